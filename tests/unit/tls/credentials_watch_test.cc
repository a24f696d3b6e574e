#include "daemon/tls/credentials_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <string>

#include "tests/unit/tls/made_certificates.h"

namespace dfl::tls {
namespace {

using ::testing::HasSubstr;
using News = CredentialsWatch::News;

class CredentialsWatchTest : public ::testing::Test {
 protected:
  CredentialsWatchTest() : watch_(NodeIdentity(), kMe) {}
  CredentialFiles Files(absl::Time issued = Now()) const {
    return FilesOf(authority_.certificate(),
                   IssueTo(authority_, key_, NodeIdentity(), issued), key_);
  }

  const Authority authority_ = MakeAuthority();
  const PrivateKey key_ = PrivateKey::Generate();
  CredentialsWatch watch_;
};

TEST_F(CredentialsWatchTest, AdoptsGoodFilesOnce) {
  EXPECT_EQ(watch_.current(), nullptr);
  EXPECT_FALSE(watch_.status().ok());
  const CredentialFiles files = Files();
  EXPECT_EQ(watch_.Look(files, Now()), News::kAdopted);
  EXPECT_TRUE(watch_.status().ok());
  const std::shared_ptr<const Credentials> first = watch_.current();
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(watch_.Look(files, Now() + absl::Minutes(1)), News::kNone);
  EXPECT_EQ(watch_.current(), first);
}

TEST_F(CredentialsWatchTest, ANewCertificateIsAdoptedAndTheFormerStaysAlive) {
  watch_.Look(Files(), Now());
  const std::shared_ptr<const Credentials> former = watch_.current();
  const absl::Time later = Now() + absl::Hours(12);
  EXPECT_EQ(watch_.Look(Files(later), later), News::kAdopted);
  EXPECT_EQ(watch_.current()->not_after(), later + absl::Hours(24));
  EXPECT_EQ(former->not_after(), Now() + absl::Hours(24));
}

TEST_F(CredentialsWatchTest, ABundleOfTwoIsAdoptedDuringARotation) {
  CredentialFiles files = Files();
  watch_.Look(files, Now());
  files.bundle.content += MakeAuthority().certificate().ToPem();
  EXPECT_EQ(watch_.Look(files, Now()), News::kAdopted);
  EXPECT_EQ(watch_.current()->bundle.size(), 2u);
}

TEST_F(CredentialsWatchTest, HalfReplacedFilesKeepTheFormerOnes) {
  watch_.Look(Files(), Now());
  const std::shared_ptr<const Credentials> former = watch_.current();
  const PrivateKey key = PrivateKey::Generate();
  const CredentialFiles complete =
      FilesOf(authority_.certificate(), IssueTo(authority_, key), key);
  CredentialFiles half = complete;
  half.key.content = key_.ToPem();
  EXPECT_EQ(watch_.Look(half, Now()), News::kRefused);
  EXPECT_EQ(watch_.current(), former);
  EXPECT_THAT(std::string(watch_.status().message()),
              HasSubstr("is not the key of /tls/cert.pem"));
  EXPECT_EQ(watch_.Look(complete, Now()), News::kAdopted);
  EXPECT_TRUE(watch_.status().ok());
}

TEST_F(CredentialsWatchTest, TheSameMistakeIsToldOnce) {
  watch_.Look(Files(), Now());
  CredentialFiles missing = Files();
  missing.key = {"/tls/key.pem", ENOENT, "", 0, 0};
  EXPECT_EQ(watch_.Look(missing, Now()), News::kRefused);
  EXPECT_EQ(watch_.Look(missing, Now() + absl::Minutes(1)), News::kNone);
  EXPECT_FALSE(watch_.status().ok());
  missing.certificate.content = "hello";
  EXPECT_EQ(watch_.Look(missing, Now() + absl::Minutes(2)), News::kRefused);
}

TEST_F(CredentialsWatchTest, FilesThatAreBackAreNoNews) {
  const CredentialFiles files = Files();
  watch_.Look(files, Now());
  CredentialFiles readable = files;
  readable.key.mode = 0644;
  EXPECT_EQ(watch_.Look(readable, Now()), News::kRefused);
  EXPECT_EQ(watch_.Look(files, Now()), News::kNone);
  EXPECT_TRUE(watch_.status().ok());
  EXPECT_EQ(watch_.Look(readable, Now()), News::kRefused);
}

TEST_F(CredentialsWatchTest, FilesBecomeValidAndExpireAsTimeGoesOn) {
  const CredentialFiles files = Files();
  EXPECT_EQ(watch_.Look(files, absl::FromUnixSeconds(0)), News::kRefused);
  EXPECT_EQ(watch_.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(watch_.current(), nullptr);
  EXPECT_EQ(watch_.Look(files, absl::FromUnixSeconds(60)), News::kNone);
  EXPECT_EQ(watch_.Look(files, Now()), News::kAdopted);
  EXPECT_EQ(watch_.Look(files, Now() + absl::Hours(25)), News::kRefused);
  EXPECT_THAT(std::string(watch_.status().message()), HasSubstr("expired at"));
  EXPECT_NE(watch_.current(), nullptr);
}

}  // namespace
}  // namespace dfl::tls
