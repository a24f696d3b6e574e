// One of four daemons is stopped by the system, as a hung box is: the others
// lose a few deadlines and go on, and it takes part again when it goes on.
#include <signal.h>

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "tests/support/daemon_process.h"

namespace dfl::testing_support {
namespace {

constexpr const char* kNames[] = {"a", "b", "c", "d"};
constexpr int64_t kVictim = 3;
constexpr absl::Duration kPatience = absl::Seconds(60);
constexpr absl::Duration kDeadline = absl::Seconds(1);

std::string PlanText(const std::string& algorithm) {
  return absl::StrCat(
      "run: frozen\n"
      "seed: 11\n"
      "version: 1\n"
      "members: [a, b, c, d]\n"
      "model: {kind: linear, classes: 0}\n"
      "batch_size: 20\n"
      "deadline: {exchange: 1s}\n"
      "evaluation: {every_steps: 0}\n"
      "topology: {kind: complete}\n"
      "stop: {steps: 1000000}\n"
      "algorithm: {name: ",
      algorithm, "}\n");
}

class Frozen : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    WriteFile(folder_.File("scenario.yaml"),
              PlanText(GetParam()) +
                  "network:\n  problem: {kind: linear, n: 16, rows: 20}\n");
    std::vector<std::string> addresses;
    for (const char* name : kNames) {
      DaemonProcess::Options options;
      options.program = "analytic_dfld";
      options.environment = {{"DFL_SCENARIO", folder_.File("scenario.yaml")}};
      options.name = name;
      options.folder = folder_.path();
      options.train_csv = "unread.csv";
      options.peers = addresses;
      nodes_.push_back(std::make_unique<DaemonProcess>(options));
      ASSERT_TRUE(nodes_.back()->Start()) << nodes_.back()->log();
      addresses.push_back(nodes_.back()->peer_address());
    }
    client::ApplyPlanOptions apply;
    apply.yaml = PlanText(GetParam());
    for (const auto& node : nodes_) {
      const auto applied = node->client().ApplyPlan(apply);
      ASSERT_TRUE(applied.ok()) << applied.status();
    }
    for (const auto& node : nodes_) {
      ASSERT_TRUE(node->client().Train(client::TrainAction::kStart).ok());
    }
    for (const auto& node : nodes_) ASSERT_TRUE(Reaches(*node, 50));
  }
  void TearDown() override {
    Signal(SIGCONT);
    if (!HasFailure()) return;
    for (const auto& node : nodes_) std::cerr << "---- log\n" << node->log();
  }

  void Signal(int signal) {
    ASSERT_EQ(kill(nodes_[kVictim]->process().pid(), signal), 0);
  }
  static bool Reaches(DaemonProcess& node, int64_t step) {
    return node.StatusBecomes(
        kPatience, [step](const auto& status) { return status.step >= step; });
  }
  static int64_t ReceivedFrom(const client::NodeStatus& status,
                              const std::string& peer) {
    for (const client::PeerStatus& entry : status.peers) {
      if (entry.node == peer) return entry.models_received;
    }
    return 0;
  }

  TemporaryFolder folder_;
  std::vector<std::unique_ptr<DaemonProcess>> nodes_;
};

TEST_P(Frozen, CostsTheOthersAFewDeadlinesAndTakesPartAgain) {
  // Unhindered, 300 rounds take no second.
  ASSERT_NO_FATAL_FAILURE(Signal(SIGSTOP));
  const absl::Time stopped = absl::Now();
  for (int64_t i = 0; i < kVictim; ++i) {
    ASSERT_TRUE(Reaches(*nodes_[i], nodes_[i]->Status().step + 300));
  }
  EXPECT_LT(absl::Now() - stopped, 3 * kDeadline + absl::Seconds(4));
  for (int64_t i = 0; i < kVictim; ++i) {
    EXPECT_LE(nodes_[i]->Status().missed, 3) << kNames[i];
  }

  std::vector<int64_t> received;
  for (int64_t i = 0; i < kVictim; ++i) {
    received.push_back(ReceivedFrom(nodes_[i]->Status(), kNames[kVictim]));
  }
  ASSERT_NO_FATAL_FAILURE(Signal(SIGCONT));
  const absl::Time went_on = absl::Now();
  for (int64_t i = 0; i < kVictim; ++i) {
    ASSERT_TRUE(nodes_[i]->StatusBecomes(kPatience, [&](const auto& status) {
      return ReceivedFrom(status, kNames[kVictim]) > received[i] + 1;
    }));
  }
  EXPECT_LT(absl::Now() - went_on, absl::Seconds(4));
  for (const auto& node : nodes_) {
    ASSERT_TRUE(Reaches(*node, node->Status().step + 100));
    const client::NodeStatus status = node->Status();
    EXPECT_EQ(status.phase, client::Phase::kTraining);
    const auto imbalance = status.gauges.find("mass_imbalance");
    if (imbalance != status.gauges.end()) {
      EXPECT_LT(imbalance->second, 1e-3) << status.node;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Daemons, Frozen, testing::Values("d-psgd", "spod-gt"),
                         [](const auto& info) {
                           return info.param == "d-psgd" ? "dpsgd" : "spod_gt";
                         });

}  // namespace
}  // namespace dfl::testing_support
