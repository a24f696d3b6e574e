// kill -9, SIGSTOP and a restart in the middle of a run of four real daemons:
// no survivor ever waits longer than the exchange deadline and one step.
#include <signal.h>

#include <map>
#include <memory>
#include <regex>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/daemon_process.h"

namespace dfl::testing_support {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kDeadlineSeconds = 2;

constexpr char kPlan[] = R"(
run: kill-test
seed: 5
version: 1
members: [a, b, c, d]
model: {kind: mlp, classes: 3, hidden: [256, 256]}
batch_size: 32
algorithm: {name: pame, knobs: {nu: 1, p: 0.1, kappa: [5, 10], sigma0: 20}}
topology: {kind: complete}
codec: {coordinates: random, values: int8}
evaluation: {every_steps: 0}
deadline: {exchange: 2s}
checkpoint: {interval: 0s}
)";

class FourDaemons : public testing::Test {
 protected:
  void SetUp() override {
    WriteBlobs(folder_.File("train.csv"), 600, 8, 3, 1);
    std::vector<std::string> addresses;
    for (const char* name : {"a", "b", "c", "d"}) {
      DaemonProcess::Options options;
      options.name = name;
      options.folder = folder_.path();
      options.train_csv = folder_.File("train.csv");
      options.peers = addresses;
      if (nodes_.size() == 3) {  // the one to be killed: a line a step
        options.extra_flags = {"--log.level=debug"};
      }
      nodes_.push_back(std::make_unique<DaemonProcess>(options));
      ASSERT_TRUE(nodes_.back()->Start()) << nodes_.back()->log();
      addresses.push_back(nodes_.back()->peer_address());
    }
    for (const auto& node : nodes_) {
      ASSERT_TRUE(node->client().ApplyPlan({kPlan, std::nullopt, false}).ok());
    }
    for (const auto& node : nodes_) {
      ASSERT_TRUE(node->client().Train(client::TrainAction::kStart).ok());
    }
    for (const auto& node : nodes_) {
      ASSERT_TRUE(Reaches(*node, 100)) << node->log();
    }
  }

  void TearDown() override {
    if (!HasFailure()) return;
    for (const auto& node : nodes_) {
      std::cerr << "---- log\n" << node->log();
    }
  }

  static bool Reaches(DaemonProcess& node, int64_t step) {
    return node.StatusBecomes(absl::Seconds(60),
                              [step](const client::NodeStatus& status) {
                                return status.step >= step;
                              });
  }

  // A step that `node` has come to since the call began: what a daemon tells
  // may be a moment old, so the first that differs is taken.
  static int64_t StepNow(DaemonProcess& node) {
    const int64_t told = node.Status().step;
    int64_t step = -1;
    node.StatusBecomes(absl::Seconds(60),
                       [&step, told](const client::NodeStatus& status) {
                         step = status.step;
                         return step > told;
                       });
    return step;
  }

  // Where a, b and c are, by name.
  std::map<std::string, int64_t> StepsOfSurvivors() const {
    return {{"a", StepNow(*nodes_[0])},
            {"b", StepNow(*nodes_[1])},
            {"c", StepNow(*nodes_[2])}};
  }

  // Step of the first status that shows `node` training; -1: none did.
  static int64_t FirstStepShown(DaemonProcess& node) {
    int64_t step = -1;
    node.StatusBecomes(absl::Seconds(60),
                       [&step](const client::NodeStatus& status) {
                         if (status.phase != client::Phase::kTraining) {
                           return false;
                         }
                         step = status.step;
                         return true;
                       });
    return step;
  }

  // What a log tells of how a node joined.
  struct Joined {
    std::string from;        // whose model it took; "" = nobody's
    int64_t at = -1;         // that model's step
    int64_t first_own = -1;  // the first step that it then made itself
  };
  static Joined ReadJoined(const std::string& log) {
    static const std::regex kTaken(
        R"(took the model of (\w+) at step (\d+)\n)");
    static const std::regex kStep(R"(step: step (\d+), loss)");
    Joined joined;
    std::smatch taken;
    if (!std::regex_search(log, taken, kTaken)) return joined;
    joined.from = taken[1];
    (void)absl::SimpleAtoi(taken[2].str(), &joined.at);
    const std::string rest = taken.suffix();
    std::smatch step;
    if (std::regex_search(rest, step, kStep)) {
      (void)absl::SimpleAtoi(step[1].str(), &joined.first_own);
    }
    return joined;
  }

  // The longest gap so far of each node is what one step may take here.
  static double LongestGap(DaemonProcess& node) {
    return node.Status().longest_step_gap_seconds;
  }

  TemporaryFolder folder_;
  std::vector<std::unique_ptr<DaemonProcess>> nodes_;
};

TEST_F(FourDaemons, SurviveAKillAndTakeTheRestartedNodeBackIn) {
  std::vector<double> one_step;
  for (const auto& node : nodes_) one_step.push_back(LongestGap(*node));
  DaemonProcess& victim = *nodes_[3];
  victim.Kill();
  for (int i = 0; i < 3; ++i) {
    const int64_t now = nodes_[i]->Status().step;
    EXPECT_TRUE(Reaches(*nodes_[i], now + 200)) << "node " << i;
    EXPECT_LE(LongestGap(*nodes_[i]), kDeadlineSeconds + one_step[i])
        << "node " << i;
  }
  const std::map<std::string, int64_t> before = StepsOfSurvivors();

  // It comes back with its plan, takes model and k from a neighbour, goes on.
  ASSERT_TRUE(victim.Start()) << victim.log();
  const int64_t first_shown = FirstStepShown(victim);
  const std::map<std::string, int64_t> after = StepsOfSurvivors();
  EXPECT_TRUE(Reaches(victim, first_shown + 20)) << victim.log();
  const Joined joined = ReadJoined(victim.log());
  ASSERT_EQ(before.count(joined.from), 1) << "took the model of nobody";
  // Not from step 0, nor from where it was killed: where that neighbour was
  // between its start and its first step.
  EXPECT_GE(joined.at, before.at(joined.from));
  EXPECT_LE(joined.at, after.at(joined.from));
  EXPECT_EQ(joined.first_own, joined.at + 1);
  EXPECT_GE(first_shown, joined.at);
  EXPECT_THAT(victim.log(), Not(HasSubstr("started fresh")));
  EXPECT_EQ(victim.Status().phase, client::Phase::kTraining);
  // And the others hear it again.
  EXPECT_TRUE(nodes_[0]->StatusBecomes(
      absl::Seconds(20), [](const client::NodeStatus& status) {
        for (const client::PeerStatus& peer : status.peers) {
          if (peer.node == "d") return peer.linked;
        }
        return false;
      }));
  for (const auto& node : nodes_) {
    const auto ended = node->Stop();
    ASSERT_TRUE(ended.has_value()) << "no clean stop within 10 s";
    EXPECT_EQ(ended->code, 0);
  }
}

TEST_F(FourDaemons, GoOnWhileOneIsFrozenAndHearItAgain) {
  std::vector<double> one_step;
  for (const auto& node : nodes_) one_step.push_back(LongestGap(*node));
  DaemonProcess& frozen = *nodes_[2];
  const int64_t frozen_at = frozen.Status().step;
  frozen.process().Signal(SIGSTOP);
  for (const int i : {0, 1, 3}) {
    const int64_t now = nodes_[i]->Status().step;
    EXPECT_TRUE(Reaches(*nodes_[i], now + 15)) << "node " << i;
    EXPECT_LE(LongestGap(*nodes_[i]), kDeadlineSeconds + one_step[i] + 0.1)
        << "node " << i;
  }
  frozen.process().Signal(SIGCONT);
  EXPECT_TRUE(Reaches(frozen, frozen_at + 200)) << frozen.log();
}

}  // namespace
}  // namespace dfl::testing_support
