// The Python package dfl against real daemons: see python_module.py, whose
// scenarios have the names of these tests.
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/daemon_process.h"
#include "tests/support/made_credentials.h"

namespace dfl::testing_support {
namespace {

constexpr char kPython[] = "/usr/bin/python3";

class PythonModule : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* module : {"grpc", "google.protobuf", "numpy"}) {
      if (RunCommand({kPython, "-c", absl::StrCat("import ", module)})
              .exit_code != 0) {
        GTEST_SKIP() << "there is no " << module << " for " << kPython
                     << "; install python3-grpcio, python3-protobuf and "
                        "python3-numpy to run this test";
      }
    }
    WriteBlobs(folder_.File("train.csv"), 60, 4, 3, 1);
    WriteBlobs(folder_.File("test.csv"), 30, 4, 3, 2);
  }
  void TearDown() override {
    if (!HasFailure()) return;
    for (const auto& node : nodes_) std::cerr << "---- log\n" << node->log();
  }

  DaemonProcess& Start(const std::string& name,
                       const std::string& tls_folder = "",
                       const std::vector<std::string>& flags = {}) {
    DaemonProcess::Options options;
    options.name = name;
    options.folder = folder_.path();
    options.train_csv = folder_.File("train.csv");
    options.test_csv = folder_.File("test.csv");
    options.tls_folder = tls_folder;
    options.extra_flags = flags;
    for (const auto& node : nodes_) {
      options.peers.push_back(node->peer_address());
    }
    nodes_.push_back(std::make_unique<DaemonProcess>(options));
    EXPECT_TRUE(nodes_.back()->Start()) << nodes_.back()->log();
    return *nodes_.back();
  }

  // Runs a scenario of python_module.py.
  void Run(const std::string& scenario, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(),
                     {kPython, "-B", DFL_PYTHON_SCENARIOS, scenario});
    const Outcome outcome = RunCommand(arguments,
                                       {{"PYTHONPATH", DFL_PYTHON_PACKAGE},
                                        {"DFLCTL", Program("dflctl")},
                                        {"HOME", folder_.path()}},
                                       absl::Seconds(120));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
  }

  // "host:port" of a node's control service on the network.
  std::string ControlAddress(const std::string& name) {
    const auto ready = nlohmann::json::parse(
        ReadFile(folder_.File(absl::StrCat(name, ".1.ready"))));
    for (const auto& address : ready.at("control")) {
      const std::string text = address;
      if (!absl::StartsWith(text, "unix:")) return text;
    }
    return "";
  }
  void WriteIdentity(const tls::Authority& issuer, tls::Role role,
                     const std::string& name) {
    tls::WriteCredentials(
        folder_.File(name),
        *tls::MakeCredentials(issuer, {issuer.cluster(), role, name}));
  }

  TemporaryFolder folder_;
  std::vector<std::unique_ptr<DaemonProcess>> nodes_;
};

TEST_F(PythonModule, TrainsAndFetchesTheModel) {
  Start("a");
  Start("b");
  Run("train", {folder_.path(), nodes_[0]->target(), nodes_[1]->target()});
}

TEST_F(PythonModule, SaysWhatIsWrong) {
  Start("a");
  Run("errors", {nodes_[0]->target()});
}

TEST_F(PythonModule, ADaemonThatDiesOrFreezesMeanwhileIsAClearError) {
  Start("a");
  Run("dying", {nodes_[0]->target(), absl::StrCat(nodes_[0]->process().pid())});
}

TEST_F(PythonModule, SpeaksTlsToANodeOfItsOwnNetworkOnly) {
  const tls::Authority authority = tls::MakeAuthority("plant-4", absl::Now());
  const tls::Authority stranger = tls::MakeAuthority("plant-4", absl::Now());
  tls::WriteCredentials(
      folder_.File("a-tls"),
      *tls::MakeCredentials(authority, {"plant-4", tls::Role::kNode, "a"}));
  WriteIdentity(authority, tls::Role::kOperator, "alice");
  WriteIdentity(authority, tls::Role::kViewer, "eve");
  WriteIdentity(stranger, tls::Role::kOperator, "mallory");
  Start("a", folder_.File("a-tls"), {"--control.listen=127.0.0.1:0"});
  const std::string address = ControlAddress("a");
  ASSERT_NE(address, "");
  Run("secured", {folder_.path(), address});
}

}  // namespace
}  // namespace dfl::testing_support
