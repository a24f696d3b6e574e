// 200 times kill -9 of one of eight daemons, at random moments, while the
// others train on. Each time it must be back within 3 s with a model of its
// own, nothing of its state may be broken, and no mass may be lost.
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "daemon/base/rng.h"
#include "gtest/gtest.h"
#include "tests/support/daemon_process.h"

namespace dfl::testing_support {
namespace {

constexpr int kKills = 100;  // of each algorithm
constexpr uint64_t kSeed = 20;
constexpr absl::Duration kPatience = absl::Seconds(60);
// From when it listens to the first step with the others.
constexpr absl::Duration kBack = absl::Seconds(3);

class RandomKills : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    for (int i = 0; i < 8; ++i) names_.push_back(absl::StrCat("n", i));
    WriteFile(
        folder_.File("scenario.yaml"),
        PlanText() + "network:\n  problem: {kind: linear, n: 16, rows: 20}\n");
    std::vector<std::string> addresses;
    for (const std::string& name : names_) {
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
    apply.yaml = PlanText();
    for (const auto& node : nodes_) {
      const auto applied = node->client().ApplyPlan(apply);
      ASSERT_TRUE(applied.ok()) << applied.status();
    }
    for (const auto& node : nodes_) {
      ASSERT_TRUE(node->client().Train(client::TrainAction::kStart).ok());
    }
    for (const auto& node : nodes_) ASSERT_TRUE(Reaches(*node, 50));
  }

  std::string PlanText() const {
    return absl::StrCat("run: kills\nseed: 11\nversion: 1\nmembers: [",
                        absl::StrJoin(names_, ", "),
                        "]\n"
                        "model: {kind: linear, classes: 0}\n"
                        "batch_size: 4\n"
                        "deadline: {exchange: 1s}\n"
                        "checkpoint: {interval: 500ms}\n"
                        "evaluation: {every_steps: 0}\n"
                        "topology: {kind: ring}\n"
                        "stop: {steps: 100000000}\n"
                        "algorithm: {name: ",
                        GetParam(), "}\n");
  }

  static bool Reaches(DaemonProcess& node, int64_t step) {
    return node.StatusBecomes(
        kPatience, [step](const auto& status) { return status.step >= step; });
  }

  // Kills `node` and sees it back. "": all is well.
  std::string KillOnce(DaemonProcess& node) {
    node.Kill();
    if (!node.Start()) return "it does not start";
    const absl::Time listens = absl::Now();
    if (!node.StatusBecomes(kPatience, [](const auto& status) {
          return status.phase == client::Phase::kTraining;
        })) {
      return "it does not train";
    }
    const absl::Duration took = absl::Now() - listens;
    slowest_ = std::max(slowest_, took);
    if (took > kBack)
      return absl::StrCat("it took ", absl::FormatDuration(took));
    const std::string log = node.log();
    for (const char* word : {"aside", "broken", "damaged"}) {
      if (absl::StrContains(log, word)) {
        return absl::StrCat("it found something that is ", word);
      }
    }
    if (absl::StrContains(log, "started fresh")) return "it started fresh";
    const int64_t step = node.Status().step;
    if (!Reaches(node, step + 20)) return "it does not go on";
    return "";
  }

  std::vector<std::string> names_;
  TemporaryFolder folder_;
  std::vector<std::unique_ptr<DaemonProcess>> nodes_;
  absl::Duration slowest_;
};

TEST_P(RandomKills, AreBornByTheNetwork) {
  Rng rng(kSeed);
  std::cout << "seed " << kSeed << "\n";
  for (int kill = 0; kill < kKills; ++kill) {
    absl::SleepFor(absl::Milliseconds(rng.Below(1000)));
    DaemonProcess& node = *nodes_[rng.Below(nodes_.size())];
    const std::string wrong = KillOnce(node);
    ASSERT_EQ(wrong, "") << "kill " << kill << " of " << node.name() << "\n"
                         << node.log();
  }
  std::cout << "the slowest was back after " << absl::FormatDuration(slowest_)
            << "\n";
  for (const auto& node : nodes_) {
    const client::NodeStatus status = node->Status();
    EXPECT_EQ(status.phase, client::Phase::kTraining) << status.node;
    const auto imbalance = status.gauges.find("mass_imbalance");
    if (imbalance != status.gauges.end()) {
      EXPECT_LT(imbalance->second, 1e-3) << status.node;
    }
    EXPECT_TRUE(node->Stop().has_value()) << node->name();
  }
}

INSTANTIATE_TEST_SUITE_P(Algorithms, RandomKills,
                         testing::Values("d-psgd", "k-gt"),
                         [](const auto& info) {
                           return info.param == "d-psgd" ? "d_psgd" : "k_gt";
                         });

}  // namespace
}  // namespace dfl::testing_support
