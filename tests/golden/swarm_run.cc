#include <cstdint>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "gtest/gtest.h"
#include "tests/golden/drivers.h"
#include "tests/golden/golden_network.h"
#include "tests/golden/run_parts.h"

namespace dfl::golden {
namespace {

using nlohmann::json;

class SwarmRun : public GoldenNetwork {
 public:
  explicit SwarmRun(const Case& golden) : GoldenNetwork(golden) {}

  // Everyone trains and pushes to the leader what it began the round with. The
  // leader mixes and pushes back, or nobody hears of it.
  void PlayRound(const json& step, int64_t k) {
    leader_ = step.at("leader").get<size_t>();
    lost_ = step.value("lost", false);
    for (size_t i = 0; i < size(); ++i) {
      decisions(i).together["leader"] = {static_cast<int64_t>(leader_)};
      for (auto& batch : BatchesOf(step, i)) batches(i).push_back(batch);
    }
    NewRoundOfAll();
    Run(kBeforeMessages);
    const State* want = golden().StateAfter(k);
    ASSERT_EQ(pushes().size(), size() - 1);
    ExpectPushesOf(k);
    for (const Pushed& push : pushes()) {
      EXPECT_EQ(push.to, std::vector<NodeId>{name(leader_)});
    }
    for (size_t i = 0; i < size(); ++i) {
      EXPECT_EQ(Count<core::StepDone>(i), 0) << "round " << k << " node " << i;
      if (want != nullptr) ExpectRow(*want, "x_local", i, parameters(i));
    }
    RunAll();
    ASSERT_EQ(pushes().size(), size()) << "round " << k;
    EXPECT_EQ(pushes().back().from, leader_);
    EXPECT_EQ(pushes().back().round, k);
    EXPECT_EQ(pushes().back().to.size(), size() - 1);
    ExpectAllDone();
    for (size_t i = 0; i < size(); ++i) {
      if (i != leader_) {
        EXPECT_GT(Count<core::WakeAfter>(i), 0) << "round " << k;
        EXPECT_EQ(Count<core::Missed>(i), lost_ ? 1 : 0) << "round " << k;
      }
      if (want != nullptr) ExpectRow(*want, "x", i, parameters(i));
    }
  }

 private:
  std::optional<double> Latency(size_t from, size_t /*to*/,
                                const core::Event& /*message*/) override {
    if (lost_ && from == leader_) return std::nullopt;
    return kMessage;
  }

  size_t leader_ = 0;
  bool lost_ = false;
};

}  // namespace

void RunSwarm(const Case& golden) {
  SwarmRun run(golden);
  if (testing::Test::HasFatalFailure()) return;
  for (size_t i = 0; i < run.size(); ++i) {
    const auto self = static_cast<int64_t>(i);
    core::NodePlan plan = MakePlan(golden.algorithm(), self, KnobsOf(golden));
    SetRow(golden.at("W").at(i), self, &plan);
    run.AddNode(i, std::move(plan), golden.at("x0").at(i),
                BatchesPerPass(golden, *run.problems()[i]));
    run.LinkUp(i);
  }
  int64_t k = 0;
  for (const json& step : golden.at("schedule")) {
    run.PlayRound(step, k++);
    if (testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace dfl::golden
