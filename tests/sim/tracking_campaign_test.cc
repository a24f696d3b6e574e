// Gradient tracking, push-sum and gossip-nids under random faults: messages
// lost throughout, edges cut, everything late. What is conserved stays so, and
// what is exact ends at the minimiser of the mean, whatever the links did.
//
// DFL_CAMPAIGN_RUNS schedules an algorithm (12); DFL_CAMPAIGN_SEED is the first
// one's seed (1). A failure names its seed: DFL_CAMPAIGN_SEED=s
// DFL_CAMPAIGN_RUNS=1 plays it again.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/base/rng.h"
#include "daemon/core/plan/derived_plan.h"
#include "daemon/core/plan/run_plan.h"
#include "daemon/simports/problems.h"
#include "gtest/gtest.h"
#include "tests/sim/lossy_network.h"
#include "tests/sim/solve.h"
#include "tests/support/environment.h"

namespace dfl::core {
namespace {

constexpr int64_t kMostRounds = 5000;
constexpr int64_t kRoundsAtOnce = 100;

// Least squares, different at every node, and the minimiser of their mean.
struct Task {
  std::vector<std::unique_ptr<simports::Problem>> problems;
  std::vector<double> minimiser;
};

double Normal(Rng& rng) {  // near enough: the sum of 12 uniforms
  double sum = -6;
  for (int q = 0; q < 12; ++q) sum += rng.Uniform();
  return sum;
}

Task MakeTask(Rng& rng, int64_t nodes, int64_t n) {
  const int64_t rows = 4 * n;
  Task task;
  std::vector<std::vector<double>> h(n, std::vector<double>(n, 0.0));
  std::vector<double> c(n, 0.0);
  for (int64_t i = 0; i < nodes; ++i) {
    std::vector<double> a(rows * n);
    std::vector<double> b(rows);
    const double centre = 2 * Normal(rng);
    for (double& value : a) value = Normal(rng);
    for (int64_t r = 0; r < rows; ++r) {
      b[r] = 0.5 * Normal(rng);
      for (int64_t l = 0; l < n; ++l) {
        b[r] += a[r * n + l] * (centre + (l % 2 == 0 ? 1 : -1));
      }
      for (int64_t l = 0; l < n; ++l) {
        for (int64_t k = 0; k < n; ++k) {
          h[l][k] += a[r * n + l] * a[r * n + k];
        }
        c[l] += a[r * n + l] * b[r];
      }
    }
    task.problems.push_back(
        std::make_unique<simports::LeastSquares>(std::move(a), std::move(b)));
  }
  task.minimiser = Solve(std::move(h), std::move(c));
  return task;
}

// A ring, one way round where the graph is directed, and some more edges.
RunPlan MakePlan(Rng& rng, const std::string& algorithm, KnobValues knobs,
                 int64_t nodes, bool directed) {
  RunPlan plan;
  plan.run_id = "campaign";
  plan.seed = rng.Next();
  for (int64_t i = 0; i < nodes; ++i) {
    plan.members.push_back(MemberSpec{.node = NodeId(absl::StrCat("n", i))});
  }
  plan.algorithm.name = algorithm;
  plan.algorithm.knobs = std::move(knobs);
  plan.codec.format.coordinates = Coordinates::kDense;
  plan.topology.kind = "explicit";
  plan.topology.directed = directed;
  plan.deadline.exchange = absl::Seconds(3);
  for (int64_t i = 0; i < nodes; ++i) {
    for (int64_t j = directed ? 0 : i + 1; j < nodes; ++j) {
      if (i == j) continue;
      const bool ring =
          j == (i + 1) % nodes || (!directed && (j + 1) % nodes == i);
      if (ring || rng.Bernoulli(0.25)) {
        plan.topology.edges.emplace_back(plan.members[i].node,
                                         plan.members[j].node);
      }
    }
  }
  return plan;
}

struct Campaign {
  std::string name;
  std::string algorithm;
  bool directed = false;
  bool exact = true;  // it ends at the minimiser
  KnobValues (*knobs)(Rng& rng) = nullptr;
  ValueType mass = ValueType::kFp32;
};

void PrintTo(const Campaign& campaign, std::ostream* os) {
  *os << campaign.name;
}

class Tracking : public testing::TestWithParam<Campaign> {};

TEST_P(Tracking, ConservesAndConvergesUnderFaults) {
  const int64_t runs = FromEnvironment("DFL_CAMPAIGN_RUNS", 12);
  const int64_t first = FromEnvironment("DFL_CAMPAIGN_SEED", 1);
  int64_t most_rounds = 0;
  int64_t lost = 0;
  int64_t repeated = 0;
  double worst_mass = 0;
  for (int64_t seed = first; seed < first + runs; ++seed) {
    SCOPED_TRACE(absl::StrCat("DFL_CAMPAIGN_SEED=", seed));
    Rng rng(DeriveSeed(seed, GetParam().name));
    const auto nodes = static_cast<int64_t>(3 + rng.Below(6));
    const auto n = static_cast<int64_t>(2 + rng.Below(19));
    const Task task = MakeTask(rng, nodes, n);
    const RunPlan plan =
        MakePlan(rng, GetParam().algorithm, GetParam().knobs(rng), nodes,
                 GetParam().directed);
    auto plans = DeriveNodePlans(plan);
    ASSERT_TRUE(plans.ok()) << plans.status();
    LossyOptions options;
    options.seed = rng.Next();
    options.loss = 0.3 * rng.Uniform();
    options.cut_share = 0.2 * rng.Uniform();
    options.mass = GetParam().mass;
    LossyNetwork network(GetParam().algorithm, *std::move(plans), task.problems,
                         options);

    double size = 0;
    for (const double x : task.minimiser) size += x * x;
    double error = 0;
    int64_t rounds = 0;
    do {
      rounds += kRoundsAtOnce;
      ASSERT_TRUE(network.RunToRound(rounds, 10'000'000))
          << "stands still at round " << network.lowest_round();
      const double scale = std::max(1.0, network.LargestEntry());
      if (GetParam().algorithm == "sgp") {
        const auto m = static_cast<double>(nodes);
        ASSERT_NEAR(network.TotalOmega(), m, 1e-4 * m);
      } else {
        for (const double z : network.TotalMass()) {
          ASSERT_LE(std::fabs(z), 1e-4 * scale) << "round " << rounds;
          worst_mass = std::max(worst_mass, std::fabs(z) / scale);
        }
      }
      const std::vector<double> mean = network.Mean();
      error = 0;
      for (int64_t l = 0; l < n; ++l) {
        error += (mean[l] - task.minimiser[l]) * (mean[l] - task.minimiser[l]);
      }
      ASSERT_TRUE(std::isfinite(error));
    } while (error > 1e-6 * size && rounds < kMostRounds &&
             (GetParam().exact || rounds < 500));
    if (GetParam().exact) {
      EXPECT_LE(error, 1e-6 * size)
          << nodes << " nodes, n = " << n << ", loss " << options.loss;
    }
    // A minimiser near 0 is not the scale of what was drawn.
    EXPECT_LE(error, 0.5 * std::max(1.0, size)) << "it blows up";
    most_rounds = std::max(most_rounds, rounds);
    lost += network.lost();
    repeated += network.repeated();
  }
  EXPECT_GT(lost, 0);
  EXPECT_GT(repeated, 0);
  std::cout << absl::StrFormat(
      "%s: seeds %d to %d, at most %d rounds, worst mass %.1e, %d messages "
      "lost, %d parcels repeated\n",
      GetParam().name, first, first + runs - 1, most_rounds, worst_mass, lost,
      repeated);
}

KnobValues DepositumKnobs(Rng& rng) {
  return {{"alpha", 0.05},
          {"gamma", 0.5 * rng.Uniform()},
          {"option", std::string(rng.Bernoulli(0.5) ? "polyak" : "nesterov")},
          {"T0", static_cast<int64_t>(1 + rng.Below(4))}};
}

KnobValues SpodGtKnobs(Rng& rng) {
  return {{"eta", 0.03}, {"p", 1.0}, {"p_hat", 0.4 + 0.6 * rng.Uniform()}};
}

KnobValues PushPullKnobs(Rng& /*rng*/) { return {{"eta", 0.03}}; }

KnobValues KGtKnobs(Rng& rng) {
  return {{"eta_c", 0.02}, {"K", static_cast<int64_t>(1 + rng.Below(4))}};
}

INSTANTIATE_TEST_SUITE_P(
    Algorithms, Tracking,
    testing::Values(
        Campaign{"depositum", "depositum", false, true, DepositumKnobs},
        Campaign{"spod_gt", "spod-gt", true, true, SpodGtKnobs},
        Campaign{"spod_gt_rare", "spod-gt", true, false,
                 [](Rng& rng) -> KnobValues {
                   return {{"eta", 0.01},
                           {"p", 0.2 + 0.8 * rng.Uniform()},
                           {"p_hat", 0.4 + 0.6 * rng.Uniform()}};
                 }},
        Campaign{"push_pull", "push-pull", true, true, PushPullKnobs},
        Campaign{"k_gt", "k-gt", false, true, KGtKnobs},
        Campaign{"depositum_int8", "depositum", false, true, DepositumKnobs,
                 ValueType::kInt8},
        Campaign{"spod_gt_int8", "spod-gt", true, true, SpodGtKnobs,
                 ValueType::kInt8},
        Campaign{"push_pull_int8", "push-pull", true, true, PushPullKnobs,
                 ValueType::kInt8},
        Campaign{"push_pull_bf16", "push-pull", true, true, PushPullKnobs,
                 ValueType::kBf16},
        Campaign{"k_gt_int8", "k-gt", false, true, KGtKnobs, ValueType::kInt8},
        Campaign{"k_gt_fp16", "k-gt", false, true, KGtKnobs, ValueType::kFp16},
        Campaign{"nids", "nids", false, true,
                 [](Rng&) -> KnobValues { return {{"alpha", 0.1}}; }},
        Campaign{
            "anq_nids", "anq-nids", false, true,
            [](Rng&) -> KnobValues { return {{"alpha", 0.1}, {"R0", 8.0}}; }},
        Campaign{"anq_nids_largest", "anq-nids", false, true,
                 [](Rng& rng) -> KnobValues {
                   return {{"alpha", 0.05},
                           {"range", std::string("largest")},
                           {"bits", static_cast<int64_t>(2 + rng.Below(3))},
                           {"K", static_cast<int64_t>(1 + rng.Below(3))},
                           {"c_D", 0.25}};
                 }},
        Campaign{"gossip_nids", "gossip-nids", false, true,
                 [](Rng& rng) -> KnobValues {
                   return {{"alpha", 0.05},
                           {"K", static_cast<int64_t>(1 + rng.Below(4))},
                           {"M", static_cast<int64_t>(6 + rng.Below(11))},
                           {"c", 0.1 + 0.15 * rng.Uniform()},
                           {"c0", 0.7 * rng.Uniform()}};
                 }},
        Campaign{"choco_sgd", "choco-sgd", false, false,
                 [](Rng& rng) -> KnobValues {
                   return {{"eta", 0.02},
                           {"gamma", 0.2},
                           {"rate", 0.2 + 0.3 * rng.Uniform()},
                           {"compressor",
                            std::string(rng.Bernoulli(0.5) ? "topk" : "mask")}};
                 }},
        Campaign{"beer", "beer", false, true,
                 [](Rng& rng) -> KnobValues {
                   return {{"eta", 0.02},
                           {"gamma", 0.2},
                           {"rate", 0.2 + 0.3 * rng.Uniform()},
                           {"compressor",
                            std::string(rng.Bernoulli(0.5) ? "topk" : "mask")}};
                 }},
        Campaign{"choco_sgd_sign", "choco-sgd", false, false,
                 [](Rng&) -> KnobValues {
                   return {{"eta", 0.02},
                           {"gamma", 0.2},
                           {"compressor", std::string("sign")}};
                 }},
        Campaign{"beer_sign", "beer", false, true,
                 [](Rng&) -> KnobValues {
                   return {{"eta", 0.02},
                           {"gamma", 0.2},
                           {"compressor", std::string("sign")}};
                 }},
        Campaign{"sgp", "sgp", true, false,
                 [](Rng&) -> KnobValues { return {{"eta", 0.02}}; }}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace dfl::core
