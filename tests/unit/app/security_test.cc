// A node's certificate files while a daemon runs, over a real folder.
#include "daemon/app/security.h"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "daemon/app/event_loop.h"
#include "daemon/tls/key_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/made_credentials.h"
#include "tests/support/process.h"

namespace dfl::app {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing_support::Eventually;
using testing_support::TemporaryFolder;

class Notes final : public ports::EventSink {
 public:
  void Report(const ports::NodeEvent& event) override
      ABSL_LOCKS_EXCLUDED(mutex_) {
    const auto* note = std::get_if<ports::SecurityNote>(&event);
    if (note == nullptr) return;
    const absl::MutexLock lock(&mutex_);
    texts_.push_back(
        absl::StrCat(note->warning ? "warning: " : "", note->text));
  }
  std::vector<std::string> texts() ABSL_LOCKS_EXCLUDED(mutex_) {
    const absl::MutexLock lock(&mutex_);
    return texts_;
  }
  bool Says(const std::string& text) {
    return Eventually(absl::Seconds(10), [&] {
      for (const std::string& said : texts()) {
        if (said.find(text) != std::string::npos) return true;
      }
      return false;
    });
  }

 private:
  absl::Mutex mutex_;
  std::vector<std::string> texts_ ABSL_GUARDED_BY(mutex_);
};

class SecurityTest : public testing::Test {
 protected:
  void SetUp() override {
    settings_.name = "box-1";
    settings_.state_dir = folder_.File("state");
    settings_.tls.folder = folder_.File("tls");
    std::filesystem::create_directories(settings_.state_dir);
  }

  // Valid from `start` on for `lifetime`.
  void Write(absl::Time start, absl::Duration lifetime) {
    tls::WriteCredentials(settings_.tls.folder,
                          *tls::MakeCredentials(authority_, tls::NodeIdentity(),
                                                {}, start, lifetime));
  }
  absl::StatusOr<std::unique_ptr<Security>> Open() {
    return Security::Open(settings_, loop_, notes_);
  }
  control::DaemonStatus Told(const Security& security) {
    control::DaemonStatus status;
    security.Tell(status);
    return status;
  }
  void Watch(Security& security) {
    loop_.RunAndWait([&] { security.Watch([] {}); });
  }
  void Stop(Security& security) {
    loop_.RunAndWait([&] { security.Stop(); });
  }

  TemporaryFolder folder_;
  const tls::Authority authority_ = tls::MakeAuthority("plant-4", absl::Now());
  config::NodeSettings settings_;
  Notes notes_;
  EventLoop loop_{"test"};
};

TEST_F(SecurityTest, GoodFilesAreUsedAtOnce) {
  Write(absl::Now(), absl::Hours(24 * 100));
  const auto security = Open();
  ASSERT_TRUE(security.ok()) << security.status();
  EXPECT_EQ((*security)->cluster(), "plant-4");
  EXPECT_EQ((*security)->Bundle().size(), 1u);
  const control::DaemonStatus status = Told(**security);
  EXPECT_EQ(status.cluster, "plant-4");
  EXPECT_NEAR(status.certificate_days, 100, 0.1);
  EXPECT_THAT(status.warnings, IsEmpty());
}

TEST_F(SecurityTest, FilesThatAreMissingAreAMistakeOnANetworkOnly) {
  const auto security = Open();
  EXPECT_EQ(security.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(security.status().message()), HasSubstr("ca.pem"));
  EXPECT_EQ(Security::CheckFiles(settings_), security.status());
  settings_.peer.listen.clear();
  EXPECT_TRUE(Open().ok());
  EXPECT_TRUE(Security::CheckFiles(settings_).ok());
}

TEST_F(SecurityTest, AnotherNetworkThanTheSettingsSayIsAMistake) {
  Write(absl::Now(), absl::Hours(24));
  settings_.cluster = "plant-5";
  const auto security = Open();
  EXPECT_EQ(security.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(security.status().message()),
              HasSubstr("\"plant-4\""));
}

TEST_F(SecurityTest, ACertificateOfTheFutureWaitsForItsTime) {
  Write(absl::Now() + tls::kBackdated + absl::Seconds(2), absl::Hours(24));
  const auto security = Open();
  ASSERT_TRUE(security.ok()) << security.status();
  EXPECT_TRUE((*security)->Bundle().empty());
  EXPECT_EQ(Told(**security).certificate_days, 0);
  EXPECT_THAT(Told(**security).warnings, Contains(HasSubstr("clock")));
  Watch(**security);
  EXPECT_TRUE(notes_.Says("trains alone"));
  EXPECT_TRUE(notes_.Says("is in use"));
  EXPECT_THAT(Told(**security).warnings, Contains(HasSubstr("expires")));
  Stop(**security);
}

TEST_F(SecurityTest, NewFilesAreTakenUpAndWrongOnesAreToldOfOnce) {
  const auto credentials = tls::MakeCredentials(
      authority_, tls::NodeIdentity(), {}, absl::Now(), absl::Hours(24 * 100));
  tls::WriteCredentials(settings_.tls.folder, *credentials);
  const auto security = Open();
  ASSERT_TRUE(security.ok()) << security.status();
  Watch(**security);
  const std::string leaf = settings_.tls.folder + "/cert.pem";
  ASSERT_TRUE(
      tls::WritePublic(
          leaf, tls::IssueTo(authority_, credentials->key, tls::NodeIdentity(),
                             absl::Now(), absl::Hours(24 * 200))
                    .ToPem())
          .ok());
  EXPECT_TRUE(notes_.Says("is in use"));
  EXPECT_GT(Told(**security).certificate_days, 150);
  ASSERT_TRUE(tls::WritePublic(leaf, "no PEM").ok());
  EXPECT_TRUE(notes_.Says("the former files stay in use"));
  EXPECT_GT(Told(**security).certificate_days, 150);
  EXPECT_THAT(Told(**security).warnings, Contains(HasSubstr("cert.pem")));
  Stop(**security);
}

TEST_F(SecurityTest, StrangersAreToldOfByReason) {
  Write(absl::Now(), absl::Hours(24 * 100));
  const auto security = Open();
  ASSERT_TRUE(security.ok()) << security.status();
  (*security)->network().CountRefusal("no-certificate");
  (*security)->network().CountRefusal("no-certificate");
  Watch(**security);
  EXPECT_TRUE(notes_.Says("2 no-certificate"));
  EXPECT_EQ(Told(**security).refused.at("no-certificate"), 2);
  Stop(**security);
}

TEST(EndWarnings, EachIsGivenOnce) {
  EndWarnings warnings;
  EXPECT_EQ(warnings.Look(absl::Hours(24 * 31)), "");
  EXPECT_EQ(warnings.Look(absl::Hours(24 * 30)), "expires in 720h");
  EXPECT_EQ(warnings.Look(absl::Hours(24 * 29)), "");
  EXPECT_EQ(warnings.Look(absl::Hours(24 * 6)), "expires in 144h");
  EXPECT_EQ(warnings.Look(absl::Hours(5)), "expires in 5h");
  EXPECT_EQ(warnings.Look(absl::Hours(4)), "");
  EXPECT_EQ(warnings.Look(absl::ZeroDuration()), "has expired");
  EXPECT_EQ(warnings.Look(-absl::Hours(1)), "");
}

TEST(EndWarnings, ANewCertificateStartsAllOver) {
  EndWarnings warnings;
  EXPECT_EQ(warnings.Look(absl::Hours(10)), "expires in 10h");
  EXPECT_EQ(warnings.Look(absl::Hours(24 * 365)), "");
  EXPECT_EQ(warnings.Look(absl::Hours(10)), "expires in 10h");
}

}  // namespace
}  // namespace dfl::app
