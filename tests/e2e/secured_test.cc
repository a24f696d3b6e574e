// A network as its owner makes it: dflctl makes the authority and the
// certificates, daemons learn together over TLS, and orders carry a signature.
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "daemon/tls/authority.h"
#include "daemon/tls/key_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/daemon_process.h"
#include "tests/support/made_credentials.h"

namespace dfl::testing_support {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr int kOk = 0;
constexpr int kBadConfiguration = 78;

constexpr char kPlan[] =
    "members: [a, b]\n"
    "model: {kind: mlp, classes: 3, hidden: [16]}\n"
    "algorithm: {name: pame, knobs: {nu: 1, p: 0.5, kappa: [2, 4]}}\n"
    "topology: {kind: complete}\n"
    "batch_size: 8\n"
    "deadline: {exchange: 500ms}\n";

class Secured : public testing::Test {
 protected:
  void SetUp() override {
    WriteBlobs(folder_.File("train.csv"), 60, 4, 3, 1);
    WriteFile(folder_.File("plan.yaml"), kPlan);
  }
  void TearDown() override {
    if (!HasFailure()) return;
    for (const auto& [name, node] : nodes_) {
      std::cerr << "---- log of " << name << "\n" << node->log();
    }
  }

  Outcome Dflctl(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), Program("dflctl"));
    return RunCommand(arguments, {{"HOME", folder_.path()}}, absl::Seconds(30));
  }
  Outcome Dflctl(std::vector<std::string> arguments,
                 const std::string& node) const {
    arguments.insert(arguments.end(), {"--target", nodes_.at(node)->target()});
    return Dflctl(arguments);
  }
  void Do(const std::vector<std::string>& arguments) const {
    const Outcome outcome = Dflctl(arguments);
    ASSERT_EQ(outcome.exit_code, kOk) << outcome.err;
  }
  void Do(const std::vector<std::string>& arguments,
          const std::string& node) const {
    const Outcome outcome = Dflctl(arguments, node);
    ASSERT_EQ(outcome.exit_code, kOk) << outcome.err;
  }

  std::string TlsFolder(const std::string& node) const {
    return folder_.File(absl::StrCat(node, "-tls"));
  }
  void Issue(const std::string& node) {
    Do({"cert", "issue", node, "--out", TlsFolder(node)});
  }
  void MakeNetwork() {
    Do({"cert", "init", "plant-4"});
    Issue("a");
    Issue("b");
  }

  // The three files of `node`, as the authority signs them.
  void WriteFiles(const std::string& node, const tls::Authority& authority,
                  absl::Time start, absl::Duration lifetime) {
    tls::WriteCredentials(
        TlsFolder(node),
        *tls::MakeCredentials(authority,
                              {authority.cluster(), tls::Role::kNode, node}, {},
                              start, lifetime));
  }

  DaemonProcess::Options OptionsOf(const std::string& node) {
    DaemonProcess::Options options;
    options.name = node;
    options.folder = folder_.path();
    options.train_csv = folder_.File("train.csv");
    options.tls_folder = TlsFolder(node);
    for (const auto& [name, other] : nodes_) {
      options.peers.push_back(other->peer_address());
    }
    return options;
  }
  DaemonProcess& Add(const std::string& node) {
    auto process = std::make_unique<DaemonProcess>(OptionsOf(node));
    DaemonProcess& added = *process;
    nodes_[node] = std::move(process);
    return added;
  }
  void Start(const std::string& node) {
    DaemonProcess& daemon = Add(node);
    ASSERT_TRUE(daemon.Start()) << daemon.log();
  }
  // a and b, linked.
  void StartNetwork() {
    MakeNetwork();
    Start("a");
    Start("b");
    ASSERT_TRUE(Linked("a", "b"));
    ASSERT_TRUE(Linked("b", "a"));
  }

  bool Linked(const std::string& node, const std::string& peer,
              bool wanted = true) {
    return nodes_.at(node)->StatusBecomes(
        absl::Seconds(20), [&](const client::NodeStatus& status) {
          const bool linked =
              std::any_of(status.peers.begin(), status.peers.end(),
                          [&](const client::PeerStatus& p) {
                            return p.node == peer && p.linked;
                          });
          return linked == wanted;
        });
  }
  client::DaemonStatus StatusOf(const std::string& node) {
    const auto status = nodes_.at(node)->client().Status();
    return status.ok() ? *status : client::DaemonStatus();
  }
  // How often `text` stands in the node's log.
  int64_t InLog(const std::string& node, const std::string& text) {
    const std::string log = nodes_.at(node)->log();
    int64_t count = 0;
    for (size_t at = log.find(text); at != std::string::npos;
         at = log.find(text, at + 1)) {
      ++count;
    }
    return count;
  }

  TemporaryFolder folder_;
  std::map<std::string, std::unique_ptr<DaemonProcess>> nodes_;
};

TEST_F(Secured, ASignedPlanReachesAllAndTheyLearnTogether) {
  StartNetwork();
  // To one node only: it passes the plan on, and then the order to train.
  Do({"plan", "apply", folder_.File("plan.yaml")}, "a");
  Do({"train", "start", "--network"}, "a");
  for (const char* node : {"a", "b"}) {
    EXPECT_TRUE(nodes_.at(node)->StatusBecomes(absl::Seconds(30),
                                               [](const client::NodeStatus& s) {
                                                 return s.step >= 50 &&
                                                        s.models_received > 0;
                                               }))
        << node;
    const client::DaemonStatus status = StatusOf(node);
    EXPECT_FALSE(status.insecure);
    EXPECT_EQ(status.cluster, "plant-4");
    EXPECT_GT(status.certificate_days, 1);
    EXPECT_EQ(status.node.plan_version, 1u);
  }
  // Of one node alone.
  Do({"train", "pause", "--network", "--node", "b"}, "a");
  EXPECT_TRUE(nodes_.at("b")->StatusBecomes(
      absl::Seconds(10), [](const client::NodeStatus& s) {
        return s.phase == client::Phase::kPaused;
      }));
  EXPECT_EQ(nodes_.at("a")->Status().phase, client::Phase::kTraining);
}

TEST_F(Secured, OrdersAreKeptOverARestart) {
  StartNetwork();
  Do({"plan", "apply", folder_.File("plan.yaml")}, "a");
  Do({"train", "start", "--network"}, "a");
  ASSERT_TRUE(nodes_.at("b")->StatusBecomes(
      absl::Seconds(30),
      [](const client::NodeStatus& s) { return s.step >= 5; }));
  // An order of b alone, later than that of the network.
  Do({"train", "pause"}, "b");
  nodes_.at("b")->Kill();
  ASSERT_TRUE(nodes_.at("b")->Start()) << nodes_.at("b")->log();
  ASSERT_TRUE(Linked("b", "a"));
  EXPECT_EQ(nodes_.at("b")->Status().plan_version, 1u);
  EXPECT_NE(nodes_.at("b")->Status().phase, client::Phase::kTraining);
  const Outcome records = Dflctl({"record", "list", "-o", "json"}, "b");
  EXPECT_EQ(records.exit_code, kOk) << records.err;
  EXPECT_THAT(records.out, HasSubstr("\"plan\""));
  EXPECT_THAT(records.out, HasSubstr("\"phase\""));
}

TEST_F(Secured, AnUnsignedPlanIsRefusedAlsoFromRoot) {
  StartNetwork();
  client::ApplyPlanOptions plan;
  plan.yaml = kPlan;
  const auto applied = nodes_.at("a")->client().ApplyPlan(plan);
  EXPECT_EQ(applied.status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(applied.status().message()), HasSubstr("sign"));
  EXPECT_EQ(nodes_.at("a")->client().Plan()->version, 0u);
  // Somebody who has no identity.
  const Outcome outcome =
      RunCommand({Program("dflctl"), "plan", "apply", folder_.File("plan.yaml"),
                  "--target", nodes_.at("a")->target()},
                 {{"HOME", folder_.File("nobody")}});
  EXPECT_NE(outcome.exit_code, kOk);
  EXPECT_THAT(outcome.err, HasSubstr("dflctl cert"));
}

// What an operator may call never gives away what is in the node's key file.
TEST_F(Secured, AnOperatorCannotReadAKeyFile) {
  MakeNetwork();
  DaemonProcess::Options options = OptionsOf("a");
  options.extra_flags = {"--control.listen=127.0.0.1:0"};
  nodes_["a"] = std::make_unique<DaemonProcess>(options);
  ASSERT_TRUE(nodes_["a"]->Start()) << nodes_["a"]->log();
  std::string address;
  const auto ready = nlohmann::json::parse(ReadFile(folder_.File("a.1.ready")));
  for (const auto& at : ready.at("control")) {
    if (at != nodes_["a"]->target()) address = at;
  }
  const std::string key = TlsFolder("a") + "/key.pem";

  std::string told;
  const auto call = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--target", address});
    const Outcome outcome = Dflctl(arguments);
    told += outcome.out + outcome.err;
    return outcome.exit_code;
  };
  ASSERT_EQ(call({"status", "-o", "json"}), kOk) << told;
  // As the file of a model, in a question and in an order.
  WriteFile(folder_.File("key-plan.yaml"),
            absl::StrCat("members: [a, b]\nmodel: {kind: torchscript, path: ",
                         key, ", classes: 3}\nalgorithm: {name: local}\n"));
  EXPECT_NE(call({"plan", "apply", folder_.File("key-plan.yaml"), "--dry-run"}),
            kOk);
  EXPECT_NE(call({"plan", "apply", folder_.File("key-plan.yaml")}), kOk);
  // As an address, which errors quote.
  EXPECT_NE(call({"peer", "add", key}), kOk);
  // In what a node tells of itself.
  call({"config", "show"});
  call({"status", "-o", "json"});
  call({"peer", "list"});
  call({"record", "list"});
  call({"get"});
  WriteFile(folder_.File("own-plan.yaml"),
            "members: [a]\nmodel: {kind: mlp, classes: 3, hidden: [16]}\n"
            "algorithm: {name: local}\nbatch_size: 8\nstop: {steps: 5}\n");
  ASSERT_EQ(call({"plan", "apply", folder_.File("own-plan.yaml")}), kOk)
      << told;
  call({"plan", "show"});
  ASSERT_EQ(call({"train", "start"}), kOk) << told;
  ASSERT_TRUE(nodes_["a"]->StatusBecomes(
      absl::Seconds(30), [](const client::NodeStatus& status) {
        return status.phase == client::Phase::kFinished;
      }));
  const std::string exported = folder_.File("out.safetensors");
  EXPECT_EQ(call({"model", "export", exported}), kOk) << told;
  told += ReadFile(exported);

  int lines = 0;
  for (absl::string_view line : absl::StrSplit(ReadFile(key), '\n')) {
    std::string bytes;
    if (absl::StartsWith(line, "-----") ||
        !absl::Base64Unescape(line, &bytes) || bytes.size() < 16) {
      continue;
    }
    ++lines;
    EXPECT_FALSE(absl::StrContains(told, line));
    EXPECT_FALSE(absl::StrContains(told, bytes));
  }
  EXPECT_GT(lines, 0);
}

TEST_F(Secured, ABanEndsTheLinkAndAnUnbanLetsItComeBack) {
  StartNetwork();
  Do({"peer", "ban", "b", "--reason", "stolen"}, "a");
  EXPECT_TRUE(Linked("a", "b", false));
  EXPECT_THAT(StatusOf("a").banned, Contains(HasSubstr("/node/b")));
  // b goes on dialling, and is refused.
  EXPECT_TRUE(Eventually(absl::Seconds(20),
                         [&] { return StatusOf("a").refused["banned"] > 0; }));
  EXPECT_FALSE(StatusOf("a").node.peers.empty());
  Do({"peer", "unban", "b"}, "a");
  EXPECT_TRUE(Linked("a", "b"));
  EXPECT_THAT(StatusOf("a").banned, IsEmpty());
  const std::string audit = ReadFile(folder_.File("a.state/audit.log"));
  EXPECT_THAT(audit, HasSubstr("ban"));
}

TEST_F(Secured, ANewCertificateIsTakenUpAndStreamsStay) {
  StartNetwork();
  const double before = StatusOf("a").certificate_days;
  const int64_t links = InLog("a", "link-up");
  Do({"cert", "renew", "a", "--days", "1000"});
  std::filesystem::copy_file(
      folder_.File(".config/dfl/plant-4/node/a/cert.pem"),
      TlsFolder("a") + "/cert.pem",
      std::filesystem::copy_options::overwrite_existing);
  EXPECT_TRUE(Eventually(absl::Seconds(20), [&] {
    return StatusOf("a").certificate_days > before + 100;
  }));
  EXPECT_EQ(InLog("a", "link-down"), 0);
  EXPECT_EQ(InLog("a", "link-up"), links);
  // Garbage is told of, and changes nothing.
  WriteFile(TlsFolder("a") + "/cert.pem", "garbage");
  EXPECT_TRUE(Eventually(absl::Seconds(20),
                         [&] { return !StatusOf("a").warnings.empty(); }));
  EXPECT_THAT(StatusOf("a").warnings, Contains(HasSubstr("cert.pem")));
  EXPECT_EQ(InLog("a", "link-down"), 0);
}

// A daemon whose own files are wrong says which, and how to mend it.
TEST_F(Secured, ItsOwnWrongFilesKeepItFromStarting) {
  MakeNetwork();
  Do({"cert", "init", "other"});
  const std::string tls = TlsFolder("a");
  const std::string backup = folder_.File("backup");
  std::filesystem::copy(tls, backup);
  struct Case {
    const char* what;
    std::function<void()> spoil;
    std::vector<const char*> says;
  };
  const Case cases[] = {
      {"missing",
       [&] { std::filesystem::remove(tls + "/cert.pem"); },
       {"cert.pem", "dflctl cert issue a"}},
      {"garbage",
       [&] { WriteFile(tls + "/cert.pem", "garbage"); },
       {"cert.pem", "dflctl cert issue a"}},
      {"the key of another",
       [&] {
         WriteFile(tls + "/key.pem", ReadFile(TlsFolder("b") + "/key.pem"));
       },
       {"key.pem"}},
      {"of another node",
       [&] {
         WriteFile(tls + "/cert.pem", ReadFile(TlsFolder("b") + "/cert.pem"));
       },
       {"is for node \"b\"", "dflctl cert issue a"}},
      {"another authority",
       [&] {
         WriteFile(tls + "/ca.pem",
                   ReadFile(folder_.File(".config/dfl/other/ca.pem")));
       },
       {"ca.pem", "dflctl cert"}},
      {"readable by the group",
       [&] { chmod((tls + "/key.pem").c_str(), 0640); },
       {"key.pem", "chmod"}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    std::filesystem::remove_all(tls);
    std::filesystem::copy(backup, tls);
    c.spoil();
    DaemonProcess& daemon = Add("a");
    EXPECT_FALSE(daemon.Start());
    const auto ended = daemon.process().Wait(absl::Seconds(10));
    ASSERT_TRUE(ended.has_value());
    EXPECT_EQ(ended->code, kBadConfiguration) << daemon.log();
    for (const char* text : c.says) EXPECT_THAT(daemon.log(), HasSubstr(text));
    const Outcome check = RunCommand(
        {Program("dfld"), "--config", folder_.File("a.yaml"), "--check"});
    EXPECT_EQ(check.exit_code, kBadConfiguration) << check.err;
    for (const char* text : c.says) EXPECT_THAT(check.err, HasSubstr(text));
    nodes_.clear();
  }
}

TEST_F(Secured, AnExpiredCertificateKeepsItFromStarting) {
  const absl::Time then = absl::Now() - absl::Hours(48);
  const tls::Authority authority = tls::MakeAuthority("plant-4", then);
  WriteFiles("a", authority, then, absl::Hours(24));
  DaemonProcess& daemon = Add("a");
  EXPECT_FALSE(daemon.Start());
  EXPECT_THAT(daemon.log(), HasSubstr("expired"));
  EXPECT_THAT(daemon.log(), HasSubstr("dflctl cert renew a"));
}

// Its clock is behind, or the certificate is from the future: it trains alone
// until the time has come.
TEST_F(Secured, WhoseTimeHasNotComeTrainsAloneAndJoinsLater) {
  const absl::Time now = absl::Now();
  const tls::Authority authority = tls::MakeAuthority("plant-4", now);
  WriteFiles("a", authority, now, absl::Hours(24));
  // An issuer dates a certificate back by five minutes.
  WriteFiles("b", authority, now + tls::kBackdated + absl::Seconds(12),
             absl::Hours(24));
  Start("a");
  DaemonProcess::Options options = OptionsOf("b");
  options.extra_yaml = absl::StrCat("run: {plan: ", folder_.File("plan.yaml"),
                                    ", autostart: on}\n");
  nodes_["b"] = std::make_unique<DaemonProcess>(options);
  ASSERT_TRUE(nodes_["b"]->Start()) << nodes_["b"]->log();
  EXPECT_TRUE(nodes_["b"]->StatusBecomes(
      absl::Seconds(20),
      [](const client::NodeStatus& s) { return s.step > 5; }));
  EXPECT_THAT(StatusOf("b").warnings, Contains(HasSubstr("clock")));
  EXPECT_TRUE(Linked("b", "a"));
  EXPECT_THAT(StatusOf("b").warnings, Not(Contains(HasSubstr("clock"))));
}

TEST_F(Secured, AnExpiredCertificateEndsLiveLinks) {
  const absl::Time now = absl::Now();
  const tls::Authority authority = tls::MakeAuthority("plant-4", now);
  WriteFiles("a", authority, now, absl::Hours(24));
  WriteFiles("b", authority, now, absl::Seconds(15));
  Start("a");
  Start("b");
  ASSERT_TRUE(Linked("a", "b"));
  EXPECT_TRUE(Linked("a", "b", false));
  EXPECT_GT(absl::Now(), now + absl::Seconds(14));
  EXPECT_TRUE(Eventually(absl::Seconds(20),
                         [&] { return StatusOf("a").refused["expired"] > 0; }));
  EXPECT_THAT(StatusOf("b").warnings, Contains(HasSubstr("expired")));
}

}  // namespace
}  // namespace dfl::testing_support
