// How long a node waits for neighbours whose links are slow.
#include "daemon/runtime/patience.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <variant>

#include "absl/time/time.h"
#include "daemon/core/plan/derived_plan.h"
#include "daemon/simports/analytic_learner.h"
#include "gtest/gtest.h"
#include "tests/unit/runtime/node_parts.h"
#include "tests/unit/runtime/sim_cluster.h"

namespace dfl::runtime {
namespace {

// In seconds, with this `deadline` in the plan of node a, whose neighbours are
// b and c, for a wait that the algorithm wants to last `asked`.
double PatienceOf(const NodeParts& parts, const core::DeadlineSpec& deadline,
                  absl::Duration asked) {
  core::RunPlan plan = *NodeParts::Plan("decefl").checked.plan;
  plan.deadline = deadline;
  const core::DerivedPlan derived = NodeParts::Derive(std::move(plan));
  RunInForce run(NodeId("a"));
  run.Adopt(derived.checked.plan, derived.node);
  return absl::ToDoubleSeconds(PatienceWith(run, parts.links, asked));
}

TEST(Patience, ItGrowsByTheTimeOfTheSlowestLinkBetweenFloorAndCeiling) {
  NodeParts parts;
  core::DeadlineSpec plain;
  plain.exchange = absl::Seconds(2);
  core::DeadlineSpec floor = plain;
  floor.floor = absl::Seconds(3);
  core::DeadlineSpec ceiling = plain;
  ceiling.ceiling = absl::Milliseconds(2500);
  core::DeadlineSpec fixed = plain;
  fixed.ceiling = plain.exchange;
  const absl::Duration asked = plain.exchange;
  // Nothing is known of their links.
  EXPECT_NEAR(PatienceOf(parts, plain, asked), 2, 1e-9);
  EXPECT_NEAR(PatienceOf(parts, floor, asked), 3, 1e-9);
  parts.links.NoteAnswer(parts.kB, absl::Milliseconds(100));    // 0.2 s
  parts.links.NoteTransfer(parts.kB, absl::Milliseconds(500));  // 1.5 s
  parts.links.NoteTransfer(parts.kC, absl::Milliseconds(200));  // 0.6 s
  EXPECT_NEAR(PatienceOf(parts, plain, asked), 3.7, 1e-9);
  EXPECT_NEAR(PatienceOf(parts, floor, asked), 3.7, 1e-9);
  EXPECT_NEAR(PatienceOf(parts, ceiling, asked), 2.5, 1e-9);
  EXPECT_NEAR(PatienceOf(parts, fixed, asked), 2, 1e-9);
  // Two hops take twice as long.
  EXPECT_NEAR(PatienceOf(parts, plain, 2 * asked), 7.4, 1e-9);
  // Without a word of the plan five times deadline.exchange is the most.
  parts.links.NoteTransfer(parts.kC, absl::Seconds(100));
  EXPECT_NEAR(PatienceOf(parts, plain, asked), 10, 1e-9);
}

constexpr absl::Duration kExchange = absl::Milliseconds(400);

// A model takes 1 s over the link of the two.
ClusterOptions SlowLink() {
  ClusterOptions options;
  options.nodes = 2;
  options.seed = 91;
  options.network.path.rate = 20e3;
  options.learner = [](int64_t) {
    return std::make_unique<simports::FakeLearner>(5000, 7);
  };
  options.transfers.chunk_bytes = 1000;
  options.transfers.window_bytes = 4000;
  return options;
}

// Each asks the other for all of its model in each step.
core::RunPlan AskingPlan(const SimCluster& c) {
  core::RunPlan plan = c.MakePlan(
      "pame", {{"nu", 1.0}, {"p", 1.0}, {"kappa", core::IntRange{1, 1}}});
  plan.deadline.exchange = kExchange;
  return plan;
}

// How many deadlines of both nodes have passed since then.
int64_t MissedSince(const SimCluster& c, absl::Time since) {
  int64_t missed = 0;
  for (int64_t i = 0; i < c.size(); ++i) {
    const auto& all = c.log(i).all();
    missed += std::count_if(all.begin(), all.end(), [since](const auto& entry) {
      return entry.first >= since &&
             std::holds_alternative<ports::NeighboursMissed>(entry.second);
    });
  }
  return missed;
}

TEST(Patience, ANeighbourBehindASlowLinkIsMissedAtFirstAndThenWaitedFor) {
  RunTwice(SlowLink(), [](SimCluster& c) {
    const absl::Time start = c.Now();
    c.Run(AskingPlan(c));
    c.RunFor(absl::Seconds(20));
    EXPECT_GE(MissedSince(c, start), 1);
    const absl::Time known = c.Now();
    const int64_t before = c.node(0).models_received();
    c.RunFor(absl::Seconds(60));
    EXPECT_EQ(MissedSince(c, known), 0);
    EXPECT_GT(c.node(0).models_received() - before, 30);
  });
}

TEST(Patience, WithACeilingThatAllowsNoMoreItIsMissedForEver) {
  RunTwice(SlowLink(), [](SimCluster& c) {
    core::RunPlan plan = AskingPlan(c);
    plan.deadline.ceiling = plan.deadline.exchange;
    c.Run(plan);
    c.RunFor(absl::Seconds(20));
    const absl::Time since = c.Now();
    c.RunFor(absl::Seconds(60));
    EXPECT_GT(MissedSince(c, since), 100);
  });
}

}  // namespace
}  // namespace dfl::runtime
