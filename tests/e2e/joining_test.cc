// A box that has nothing but a join token in its settings: it trains alone,
// gets its certificate once the issuer is there, and is a member from then on.
#include <algorithm>
#include <csignal>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/daemon_process.h"

namespace dfl::testing_support {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Joining : public testing::Test {
 protected:
  void SetUp() override {
    WriteBlobs(folder_.File("train.csv"), 60, 4, 3, 1);
    ASSERT_EQ(Dflctl({"cert", "init", "plant-4", "--dir", Net()}).exit_code, 0);
    ASSERT_EQ(Dflctl({"cert", "issue", "a", "--dir", Net(), "--out",
                      folder_.File("a-tls")})
                  .exit_code,
              0);
  }
  void TearDown() override {
    if (!HasFailure()) return;
    for (const auto& node : {a_.get(), b_.get()}) {
      if (node != nullptr) std::cerr << "---- log\n" << node->log();
    }
  }
  std::string Net() const { return folder_.File("net"); }
  Outcome Dflctl(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), Program("dflctl"));
    return RunCommand(arguments, {{"HOME", folder_.path()}}, absl::Seconds(30));
  }
  // An address that was free a moment ago, as a service of its own port has it.
  std::string IssuerAddress() const {
    const std::string out = folder_.File("serve.out");
    Process serve({{Program("dflctl"), "token", "serve", "--dir", Net(),
                    "--listen", "127.0.0.1:0"},
                   {},
                   out,
                   folder_.File("serve.err")});
    std::string address;
    EXPECT_TRUE(Eventually(absl::Seconds(20), [&] {
      const std::string text = ReadFile(out);
      absl::string_view rest = text;
      if (!absl::ConsumePrefix(&rest, "serving at ") ||
          !absl::ConsumeSuffix(&rest, "\n")) {
        return false;
      }
      address = std::string(rest);
      return true;
    })) << ReadFile(folder_.File("serve.err"));
    serve.Signal(SIGTERM);
    EXPECT_TRUE(serve.Wait(absl::Seconds(10)).has_value());
    return address;
  }
  std::unique_ptr<DaemonProcess> Start(const std::string& node,
                                       const std::string& extra_yaml,
                                       std::vector<std::string> peers) const {
    DaemonProcess::Options options;
    options.name = node;
    options.folder = folder_.path();
    options.train_csv = folder_.File("train.csv");
    options.tls_folder = folder_.File(node + "-tls");
    options.peers = std::move(peers);
    options.extra_yaml = extra_yaml;
    auto daemon = std::make_unique<DaemonProcess>(options);
    EXPECT_TRUE(daemon->Start()) << daemon->log();
    return daemon;
  }
  static bool Linked(DaemonProcess& node, const std::string& peer) {
    return node.StatusBecomes(
        absl::Seconds(60), [&](const client::NodeStatus& status) {
          return std::any_of(status.peers.begin(), status.peers.end(),
                             [&](const client::PeerStatus& p) {
                               return p.node == peer && p.linked;
                             });
        });
  }

  TemporaryFolder folder_;
  std::unique_ptr<DaemonProcess> a_;
  std::unique_ptr<DaemonProcess> b_;
};

TEST_F(Joining, ABoxWithATokenInItsSettingsBecomesAMember) {
  const Outcome created =
      Dflctl({"token", "create", "--node", "b", "--dir", Net()});
  ASSERT_EQ(created.exit_code, 0) << created.err;
  const std::string token(absl::StripAsciiWhitespace(created.out));
  const std::string at = IssuerAddress();
  // The issuer is not there yet.
  b_ = Start(
      "b", absl::StrCat("join: {token: ", token, ", at: \"", at, "\"}\n"), {});
  EXPECT_TRUE(Eventually(absl::Seconds(20), [&] {
    return absl::StrContains(b_->log(), "cannot join yet: the issuer at " + at);
  }));
  // Node a is a member, and has the network's authority.
  a_ = Start(
      "a", absl::StrCat("enrol: {folder: ", Net(), ", listen: \"", at, "\"}\n"),
      {b_->peer_address()});
  ASSERT_TRUE(Linked(*a_, "b"));
  ASSERT_TRUE(Linked(*b_, "a"));
  const auto status = b_->client().Status();
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ(status->cluster, "plant-4");
  EXPECT_THAT(a_->log(), HasSubstr("gave b at 127.0.0.1 its certificate"));
  EXPECT_THAT(Dflctl({"token", "list", "--dir", Net()}).out,
              HasSubstr("spent"));
  // The token was of use once, and nobody is shown it.
  const Outcome settings =
      Dflctl({"config", "show", "--effective", "--target", b_->target()});
  EXPECT_THAT(settings.out, HasSubstr("(hidden)"));
  for (const std::string& text : {settings.out, a_->log(), b_->log()}) {
    EXPECT_THAT(text, Not(HasSubstr(token.substr(10))));
  }
}

}  // namespace
}  // namespace dfl::testing_support
