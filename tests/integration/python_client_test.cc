// A real daemon of a secured network, called by Debian's grpcio: see
// python_client.py.
#include <gtest/gtest.h>

#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "daemon/tls/key_file.h"
#include "nlohmann/json.hpp"
#include "tests/support/daemon_process.h"
#include "tests/support/made_credentials.h"

namespace dfl::testing_support {
namespace {

constexpr char kPython[] = "/usr/bin/python3";

constexpr char kScenario[] =
    "run: beside\nseed: 11\nmembers: [a, b]\n"
    "model: {kind: linear, classes: 0}\ntopology: {kind: complete}\n"
    "algorithm: {name: local}\nbatch_size: 10\nstop: {steps: 5}\n"
    "network:\n  problem: {kind: linear, n: 40, rows: 30}\n";

class PythonClient : public testing::Test {
 protected:
  void WriteIdentity(const std::string& folder,
                     const std::shared_ptr<const tls::Credentials>& own) {
    ASSERT_EQ(RunCommand({"/bin/mkdir", "-p", folder}).exit_code, 0);
    ASSERT_TRUE(tls::WritePublic(folder + "/ca.pem", own->bundle_pem).ok());
    ASSERT_TRUE(tls::WritePublic(folder + "/cert.pem", own->chain_pem).ok());
    ASSERT_TRUE(tls::WritePrivate(folder + "/key.pem", own->key_pem).ok());
  }
  void WriteIdentities() {
    const tls::Authority authority = tls::MakeAuthority("plant-4", absl::Now());
    const tls::Authority stranger = tls::MakeAuthority("plant-4", absl::Now());
    const auto write = [&](const tls::Authority& issuer, tls::Role role,
                           const std::string& name) {
      WriteIdentity(folder_.File(name),
                    tls::MakeCredentials(issuer, {"plant-4", role, name}));
    };
    write(authority, tls::Role::kNode, "a");
    write(authority, tls::Role::kNode, "b");
    write(authority, tls::Role::kOperator, "alice");
    write(authority, tls::Role::kViewer, "eve");
    write(stranger, tls::Role::kOperator, "mallory");
    ASSERT_TRUE(tls::WritePublic(folder_.File("ca.pem"),
                                 authority.certificate().ToPem())
                    .ok());
  }

  void StartDaemon() {
    WriteFile(folder_.File("scenario.yaml"), kScenario);
    DaemonProcess::Options options;
    options.program = "analytic_dfld";
    options.environment = {{"DFL_SCENARIO", folder_.File("scenario.yaml")}};
    options.name = "a";
    options.folder = folder_.path();
    options.train_csv = "unread.csv";
    options.tls_folder = folder_.File("a");
    options.extra_flags = {"--control.listen=127.0.0.1:0"};
    daemon_ = std::make_unique<DaemonProcess>(options);
    ASSERT_TRUE(daemon_->Start()) << daemon_->log();
    const auto ready =
        nlohmann::json::parse(ReadFile(folder_.File("a.1.ready")));
    for (const auto& address : ready.at("control")) {
      const std::string text = address;
      if (!absl::StartsWith(text, "unix:")) control_ = text;
    }
    ASSERT_NE(control_, "");
  }

  TemporaryFolder folder_;
  std::unique_ptr<DaemonProcess> daemon_;
  std::string control_;
};

TEST_F(PythonClient, IsServedWhatItMayHaveAndNothingElse) {
  if (RunCommand({kPython, "-c", "import grpc, google.protobuf"}).exit_code !=
      0) {
    GTEST_SKIP() << "there is no grpcio for /usr/bin/python3 (Debian: "
                    "python3-grpcio)";
  }
  if (RunCommand({"/usr/bin/openssl", "version"}).exit_code != 0) {
    GTEST_SKIP() << "there is no `openssl` command (Debian: openssl)";
  }
  ASSERT_NO_FATAL_FAILURE(WriteIdentities());
  ASSERT_NO_FATAL_FAILURE(StartDaemon());
  const std::string stubs = folder_.File("stubs");
  const Outcome made = RunCommand(
      {"/bin/sh", "-c",
       absl::StrCat("mkdir ", stubs, " && cd ", DFL_PROTO_FOLDER,
                    " && protoc -I . --python_out=", stubs,
                    " --grpc_python_out=", stubs,
                    " --plugin=protoc-gen-grpc_python=$(command -v "
                    "grpc_python_plugin) dfl/control/v1/control.proto "
                    "dfl/control/v1/observe.proto "
                    "dfl/peer/v1/peer.proto dfl/record/v1/record.proto")});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const Outcome outcome =
      RunCommand({kPython, DFL_PYTHON_CLIENT, stubs, control_,
                  daemon_->peer_address(), folder_.path()},
                 {}, absl::Seconds(120));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err << "---- log\n"
                                  << daemon_->log();
  std::cout << outcome.out;
}

}  // namespace
}  // namespace dfl::testing_support
