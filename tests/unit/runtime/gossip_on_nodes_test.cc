// gossip-nids on whole nodes: offers and answers travel as bytes, what pairs
// apply cancels out at any moment, and a crash begins a new tracker epoch.
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include "absl/time/time.h"
#include "daemon/core/algorithms/gossip_nids.h"
#include "daemon/simports/mass_drift.h"
#include "gtest/gtest.h"
#include "tests/unit/runtime/least_squares.h"
#include "tests/unit/runtime/sim_cluster.h"

namespace dfl::runtime {
namespace {

constexpr double kTolerance = 1e-4;

core::RunPlan PlanOf(const SimCluster& c) {
  core::RunPlan plan = FullBatches(c.MakePlan(
      "gossip-nids",
      {{"alpha", 0.1}, {"K", int64_t{2}}, {"c", 0.25}, {"c0", 0.25}}));
  plan.topology.kind = "ring";
  plan.codec.format.coordinates = core::Coordinates::kDense;
  return plan;
}

// What is missing of what all nodes conserve; nullopt: they are not all there,
// or not of one epoch.
std::optional<double> DriftOf(SimCluster& c) {
  std::map<NodeId, const core::Algorithm*> nodes;
  std::set<uint64_t> epochs;
  for (int64_t i = 0; i < c.size(); ++i) {
    const core::Algorithm* algorithm = c.node(i).algorithm();
    if (algorithm == nullptr) return std::nullopt;
    nodes[c.id(i)] = algorithm;
    epochs.insert(c.node(i).parcels().epoch());
  }
  if (epochs.size() != 1) return std::nullopt;
  return simports::MassDrift(nodes);
}

int64_t LeastExchanges(SimCluster& c) {
  double least = 1e9;
  for (int64_t i = 0; i < c.size(); ++i) {
    least = std::min(least, c.node(i).Status().gauges.at("exchanges"));
  }
  return static_cast<int64_t>(least);
}

TEST(GossipOnNodes, EveryNodeEndsAtTheOptimum) {
  const Problems problems;
  RunTwice(LeastSquaresCluster(problems, 61), [&](SimCluster& c) {
    core::RunPlan plan = PlanOf(c);
    plan.stop.steps = 1500;
    c.Run(plan);
    ASSERT_TRUE(
        c.RunUntil([&] { return c.AllFinished(); }, absl::Seconds(600)));
    EXPECT_GT(LeastExchanges(c), 100);
    for (int64_t i = 0; i < c.size(); ++i) {
      EXPECT_NEAR(problems.Loss(c.parameters(i)), problems.Least(), 1e-2)
          << "node " << i;
    }
  });
}

// Links are reset every moment, in the midst of offers, answers and
// acknowledgements.
TEST(GossipOnNodes, TheDriftIsNothingAtAnyMoment) {
  const Problems problems;
  ClusterOptions options = LeastSquaresCluster(problems, 62);
  options.network.path.jitter = absl::Milliseconds(20);
  options.network.path.reset_probability = 0.01;
  RunTwice(options, [&](SimCluster& c) {
    c.Run(PlanOf(c));
    int looks = 0;
    for (int moment = 0; moment < 300; ++moment) {
      c.RunFor(absl::Milliseconds(17));
      const std::optional<double> drift = DriftOf(c);
      if (!drift.has_value()) continue;
      ++looks;
      ASSERT_LE(*drift, kTolerance) << "moment " << moment;
    }
    EXPECT_GT(looks, 200);
    EXPECT_GT(LeastExchanges(c), 10);
  });
}

// A node dies with what it held and comes back empty. Offers of its former life
// and of the former epoch are refused, so that nobody applies what the other
// end will not.
TEST(GossipOnNodes, ACrashBeginsANewEpoch) {
  const Problems problems;
  RunTwice(LeastSquaresCluster(problems, 63), [&](SimCluster& c) {
    c.Run(PlanOf(c));
    c.RunFor(absl::Seconds(5));
    c.Crash(2);
    c.RunFor(absl::Seconds(3));
    c.Restart(2);
    ASSERT_TRUE(c.node(2).Start().ok());
    c.RunFor(absl::Seconds(2));
    for (int64_t i = 0; i < c.size(); ++i) {
      EXPECT_EQ(c.node(i).parcels().epoch(), 2U) << "node " << i;
    }
    for (int moment = 0; moment < 100; ++moment) {
      c.RunFor(absl::Milliseconds(100));
      const std::optional<double> drift = DriftOf(c);
      ASSERT_TRUE(drift.has_value());
      ASSERT_LE(*drift, kTolerance) << "moment " << moment;
    }
  });
}

}  // namespace
}  // namespace dfl::runtime
