// Daemons on machines of their own, for tests of bad networks. Takes root: see
// tests/support/networks.h.
#ifndef DFL_TESTS_FAULTS_MACHINES_H_
#define DFL_TESTS_FAULTS_MACHINES_H_

#include <signal.h>

#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/support/daemon_process.h"
#include "tests/support/networks.h"

namespace dfl::testing_support {

inline constexpr absl::Duration kPatience = absl::Seconds(60);

class MachinesTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string missing = Networks::Enter();
    if (!missing.empty()) GTEST_SKIP() << missing;
    networks_ = std::make_unique<Networks>();
    WriteBlobs(folder_.File("train.csv"), 300, 4, 3, 1);
  }

  void TearDown() override {
    if (HasFailure()) {
      for (const auto& [name, daemon] : daemons_) {
        std::cerr << "---- log of " << name << "\n" << daemon->log();
      }
    }
    for (const auto& [name, daemon] : daemons_) daemon->Kill();
    for (const auto& helper : helpers_) helper->Signal(SIGKILL);
    for (const auto& helper : helpers_) helper->Wait(absl::Seconds(10));
  }

  // A daemon on the machine of its name, with `settings` beside its data.
  DaemonProcess& StartOn(const std::string& host, const std::string& settings,
                         std::vector<std::string> wrapper = {}) {
    DaemonProcess::Options options;
    options.name = host;
    options.folder = folder_.path();
    options.whole_yaml = absl::StrCat(
        "name: ", host, "\nstate_dir: ", folder_.File(host + ".state"),
        "\nsecurity: insecure\ncontrol: {socket: ",
        folder_.File(host + ".sock"),
        "}\ncompute: {threads: 1}\ndata: {format: csv, header: no, "
        "label_column: -1, classes: 3, train: {paths: [",
        folder_.File("train.csv"), "]}}\n", settings);
    options.wrapper = Networks::On(host);
    options.wrapper.insert(options.wrapper.end(), wrapper.begin(),
                           wrapper.end());
    auto daemon = std::make_unique<DaemonProcess>(options);
    EXPECT_TRUE(daemon->Start()) << daemon->log();
    return *(daemons_[host] = std::move(daemon));
  }

  // A program that runs on a machine until the test ends.
  void RunOn(const std::string& host, const std::vector<std::string>& command) {
    Process::Options options;
    options.command = Networks::On(host);
    options.command.insert(options.command.end(), command.begin(),
                           command.end());
    const std::string base =
        folder_.File(absl::StrCat("helper", helpers_.size()));
    options.stdout_file = base + ".out";
    options.stderr_file = base + ".err";
    helpers_.push_back(std::make_unique<Process>(options));
  }

  static bool IsLinked(const client::NodeStatus& status,
                       const std::string& other) {
    for (const client::PeerStatus& peer : status.peers) {
      if (peer.node == other) return peer.linked;
    }
    return false;
  }

  static bool BecomeLinked(DaemonProcess& daemon, const std::string& other) {
    return daemon.StatusBecomes(kPatience,
                                [&](const client::NodeStatus& status) {
                                  return IsLinked(status, other);
                                });
  }

  TemporaryFolder folder_;
  std::unique_ptr<Networks> networks_;
  std::vector<std::unique_ptr<Process>> helpers_;
  std::map<std::string, std::unique_ptr<DaemonProcess>> daemons_;
};

}  // namespace dfl::testing_support

#endif  // DFL_TESTS_FAULTS_MACHINES_H_
