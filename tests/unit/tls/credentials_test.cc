#include "daemon/tls/credentials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "tests/unit/control/socket_folder.h"
#include "tests/unit/tls/made_certificates.h"

namespace dfl::tls {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class CredentialsTest : public ::testing::Test {
 protected:
  CredentialFiles Good() const {
    return FilesOf(authority_.certificate(), IssueTo(authority_, key_), key_);
  }
  CredentialFiles WithLeaf(const Certificate& leaf) const {
    return FilesOf(authority_.certificate(), leaf, key_);
  }
  absl::Status Check(const CredentialFiles& files, absl::Time now = Now()) {
    return CheckCredentials(files, NodeIdentity(), now, kMe).status();
  }

  const Authority authority_ = MakeAuthority();
  const PrivateKey key_ = PrivateKey::Generate();
};

TEST_F(CredentialsTest, GoodOnesAreReturnedWithTheirText) {
  const CredentialFiles files = Good();
  const absl::StatusOr<Credentials> found =
      CheckCredentials(files, NodeIdentity(), Now(), kMe);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->identity, NodeIdentity());
  EXPECT_EQ(found->bundle_pem, files.bundle.content);
  EXPECT_EQ(found->chain_pem, files.certificate.content);
  EXPECT_EQ(found->key_pem, files.key.content);
  EXPECT_EQ(found->not_after(), Now() + absl::Hours(24));
  EXPECT_TRUE(found->key.Matches(found->chain[0]));
}

TEST_F(CredentialsTest, AreReadFromDisk) {
  SocketFolder folder;
  const CredentialFiles files = Good();
  const CredentialPaths paths = {folder.File("ca.pem"), folder.File("cert.pem"),
                                 folder.File("key.pem")};
  EXPECT_EQ(CheckCredentials(ReadCredentialFiles(paths), NodeIdentity(), Now(),
                             geteuid())
                .status()
                .code(),
            absl::StatusCode::kNotFound);
  ASSERT_TRUE(WritePublic(paths.bundle, files.bundle.content).ok());
  ASSERT_TRUE(WritePublic(paths.certificate, files.certificate.content).ok());
  ASSERT_TRUE(WritePrivate(paths.key, files.key.content).ok());
  const absl::StatusOr<Credentials> found = CheckCredentials(
      ReadCredentialFiles(paths), NodeIdentity(), Now(), geteuid());
  EXPECT_TRUE(found.ok()) << found.status();
}

TEST_F(CredentialsTest, AMissingOrDamagedFileIsNamedWithItsCure) {
  const auto changed = [&](PemFile CredentialFiles::* which, int error,
                           const std::string& content) {
    CredentialFiles files = Good();
    (files.*which).error = error;
    (files.*which).content = content;
    return Check(files);
  };
  constexpr auto kBundle = &CredentialFiles::bundle;
  constexpr auto kCertificate = &CredentialFiles::certificate;
  struct Case {
    absl::Status status;
    absl::StatusCode code;
    std::string said;
    std::string cure;
  };
  const std::string issue = "`dflctl cert issue box-1 --cluster plant-4`";
  using enum absl::StatusCode;
  const Case cases[] = {
      {changed(kBundle, ENOENT, ""), kNotFound,
       "/tls/ca.pem: there is no such file", "`dflctl cert init plant-4`"},
      {changed(kBundle, EACCES, ""), kPermissionDenied,
       "/tls/ca.pem: this user may not read it", "`namei -l /tls/ca.pem`"},
      {changed(kBundle, 0, ""), kInvalidArgument, "/tls/ca.pem: is empty",
       "`dflctl cert init plant-4`"},
      {changed(kBundle, 0, Good().certificate.content), kInvalidArgument,
       "is no authority's", "`dflctl cert init plant-4`"},
      {changed(kCertificate, ENOENT, ""), kNotFound,
       "/tls/cert.pem: there is no such file", issue},
      {changed(kCertificate, EACCES, ""), kPermissionDenied,
       "/tls/cert.pem: this user may not read it", "`namei -l /tls/cert.pem`"},
      {changed(kCertificate, 0, "hello"), kInvalidArgument,
       "/tls/cert.pem: has no certificate", issue},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(c.status.code(), c.code) << c.status;
    EXPECT_THAT(std::string(c.status.message()),
                AllOf(HasSubstr(c.said), HasSubstr(c.cure)));
  }
}

// Before there is a certificate nobody may know the network's name.
TEST_F(CredentialsTest, TheCureOfAnUnknownNetworkIsACommandToo) {
  CredentialFiles files = Good();
  files.bundle.error = ENOENT;
  const Identity unknown = {"", Role::kNode, "box-1"};
  EXPECT_THAT(
      std::string(
          CheckCredentials(files, unknown, Now(), kMe).status().message()),
      HasSubstr("copy ca.pem of cluster CLUSTER, which `dflctl cert init "
                "CLUSTER` made"));
  files = Good();
  files.certificate.error = ENOENT;
  EXPECT_THAT(
      std::string(
          CheckCredentials(files, unknown, Now(), kMe).status().message()),
      HasSubstr("`dflctl cert issue box-1`"));
}

TEST_F(CredentialsTest, AWrongCertificateIsNamedWithBothValuesAndItsCure) {
  struct Case {
    Certificate leaf;
    std::string said;
  };
  const Authority other = MakeAuthority("plant-5");
  const Case cases[] = {
      {IssueTo(authority_, key_, NodeIdentity("box-2")),
       "is for node \"box-2\", and \"box-1\" is expected"},
      {IssueTo(authority_, key_, {"plant-4", Role::kOperator, "box-1"}),
       "is for role \"operator\", and \"node\" is expected"},
      {IssueTo(other, key_, NodeIdentity("box-1", "plant-5")),
       "is for cluster \"plant-5\", and \"plant-4\" is expected"},
      {MakeOdd(authority_, key_, {.names = ""}), "it names no identity"},
      {MakeOdd(authority_, key_,
               {.names = "URI:spiffe://plant-4/node/box-1,"
                         "URI:spiffe://plant-4/node/box-2"}),
       "it has 2 URIs"},
      {MakeOdd(authority_, key_, {.usage = "clientAuth"}),
       "may not be used by a server"},
      {MakeOdd(authority_, key_, {.digest = EVP_sha1()}), "is too weak"},
  };
  for (const Case& c : cases) {
    const absl::Status status = Check(WithLeaf(c.leaf));
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("/tls/cert.pem: "), HasSubstr(c.said),
                      HasSubstr("`dflctl cert issue box-1 --cluster "
                                "plant-4`")));
  }
}

TEST_F(CredentialsTest, AWeakKeyIsRefused) {
  const PrivateKey weak = RsaKey(1024);
  const absl::Status status = Check(
      FilesOf(authority_.certificate(), MakeOdd(authority_, weak, {}), weak));
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("is too weak (RSA 1024"));
}

TEST_F(CredentialsTest, AnotherAuthorityIsNamedWithBothNames) {
  const Authority other = MakeAuthority();
  const absl::Status status =
      Check(FilesOf(other.certificate(), IssueTo(authority_, key_), key_));
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("/tls/cert.pem"), HasSubstr("/tls/ca.pem"),
                    HasSubstr(other.certificate().subject()),
                    HasSubstr(authority_.certificate().subject()),
                    HasSubstr("`dflctl cert show FILE`")));
}

TEST_F(CredentialsTest, AnExpiredOneNamesDatesAndRenewal) {
  const absl::Status status = Check(Good(), Now() + absl::Hours(48));
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("expired at 2027-01-16 08:00:00 UTC"),
                    HasSubstr("the clock says 2027-01-17 08:00:00 UTC"),
                    HasSubstr("`dflctl cert renew box-1 --cluster plant-4`")));
}

// The caller waits for the clock and tries again.
TEST_F(CredentialsTest, AClockBeforeTheStartIsUnavailable) {
  const absl::Status status = Check(Good(), absl::FromUnixSeconds(3600));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("valid from 2027-01-15 07:55:00 UTC"),
                    HasSubstr("the clock says 1970-01-01 01:00:00 UTC"),
                    HasSubstr("`timedatectl set-ntp true`")));
}

TEST_F(CredentialsTest, TheKeysOwnMistakesAreReported) {
  CredentialFiles files = Good();
  files.key.mode = 0640;
  EXPECT_EQ(Check(files).code(), absl::StatusCode::kPermissionDenied);
}

TEST_F(CredentialsTest, TheCureOfAnOperatorNamesTheRole) {
  const Identity alice = {"plant-4", Role::kOperator, "alice"};
  const absl::Status status =
      CheckCredentials(Good(), alice, Now(), kMe).status();
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("`dflctl cert issue alice --cluster plant-4 --role "
                        "operator`"));
}

}  // namespace
}  // namespace dfl::tls
