#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "daemon/core/algorithms/async_dsgd.h"
#include "daemon/core/algorithms/catalogue.h"
#include "daemon/core/graph/mixing.h"
#include "gtest/gtest.h"
#include "tests/golden/drivers.h"
#include "tests/golden/golden_network.h"
#include "tests/golden/run_parts.h"

namespace dfl::golden {
namespace {

using nlohmann::json;

// Whether a round ends by the clock. Without one it waits for everybody.
bool HasClock(const Case& golden) {
  for (const core::KnobSpec& knob :
       (*core::BuiltInCatalogue().Find(golden.algorithm()))->knobs) {
    if (knob.name == "gamma_max") return true;
  }
  return false;
}

core::NodePlan ClockedPlan(const Case& golden, size_t i) {
  const std::string algorithm = golden.algorithm();
  const json& params = golden.at("params");
  core::KnobValues knobs = {{"eta", params.at("eta").get<double>()},
                            {"xi", params.at("xi").get<double>()}};
  if (HasClock(golden)) {
    knobs["measure_q"] = false;
    knobs["q"] = std::clamp(params.at("q").at(i).get<double>(), 0.0, 0.99);
  }
  core::NodePlan plan = MakePlan(algorithm, static_cast<int64_t>(i), knobs);
  auto facts = std::make_shared<core::StragglerFacts>();
  for (const json& q : params.at("q")) {
    facts->largest_q =
        std::max(facts->largest_q, std::clamp(q.get<double>(), 0.0, 0.99));
  }
  if (algorithm != "sync-dsgd") plan.facts = std::move(facts);
  for (size_t j = 0; j < golden.at("m"); ++j) {
    if (j != i) plan.neighbours.push_back({NodeName(j), 0});
  }
  return plan;
}

class ClockedRun : public GoldenNetwork {
 public:
  explicit ClockedRun(const Case& golden)
      : GoldenNetwork(golden), from_round_(size(), -1) {}

  void PlayRound(const json& step, int64_t k) {
    NewRound();
    std::vector<size_t> links(size());
    for (size_t i = 0; i < size(); ++i) {
      links[i] = Link(step, i);
      Compute(step, k, i);
      if (testing::Test::HasFatalFailure()) return;
    }
    const double clock =
        HasClock(golden()) ? node(0).plan.knobs.Number("gamma_max") : 0;
    Run(clock + kBeforeMessages);
    const State* want = golden().StateAfter(k);
    std::vector<size_t> sent(size());
    ExpectPushesOf(k);
    for (const Pushed& push : pushes()) sent[push.from] += push.to.size();
    for (size_t i = 0; i < size(); ++i) {
      if (want != nullptr) ExpectRow(*want, "x_half", i, parameters(i));
      EXPECT_EQ(sent[i], links[i]) << "round " << k << " node " << i;
      EXPECT_EQ(Count<core::Push>(i), links[i] > 0 ? 1 : 0);
    }
    RunAll();
    ExpectNobodyMissed();
    for (size_t i = 0; i < size(); ++i) {
      EXPECT_EQ(Count<core::StepDone>(i), 1) << "round " << k << " node " << i;
      if (want != nullptr) ExpectRow(*want, "x", i, parameters(i));
    }
  }

 private:
  // How many links node i has in this round.
  size_t Link(const json& step, size_t i) {
    std::set<size_t> linked;
    for (const json& edge : step.at("edges")) {
      for (const auto& [a, b] : {std::pair{0, 1}, std::pair{1, 0}}) {
        if (edge.at(a) == i) linked.insert(edge.at(b).get<size_t>());
      }
    }
    for (size_t j = 0; j < size(); ++j) {
      if (linked.count(j) > 0) {
        Handle(i, core::PeerUp{name(j)});
      } else {
        Handle(i, core::PeerDown{name(j)});
      }
    }
    return linked.size();
  }

  // The computing until the barrier. What came too late is discarded and begun
  // anew, or computed on.
  void Compute(const json& step, int64_t k, size_t i) {
    Handle(i, core::StepBegins{});
    EXPECT_EQ(Count<core::WakeAfter>(i), HasClock(golden()) ? 1 : 0);
    if (from_round_[i] >= 0 && golden().algorithm() == "barrier-dsgd") {
      SpoilGradient(i);
      from_round_[i] = -1;
    }
    ASSERT_EQ(Count<core::ComputeGradient>(i), from_round_[i] < 0 ? 1 : 0);
    if (from_round_[i] < 0) from_round_[i] = k;
    const json& script = step.at("nodes").at(i);
    EXPECT_EQ(from_round_[i], script.at("from_round").get<int64_t>());
    EXPECT_TRUE(algorithm(i).parameters_settled());
    if (!script.at("ready").get<bool>()) return;
    node(i).batch = ReadBatch(script.at("batch"));
    FinishGradient(i);
    from_round_[i] = -1;
  }

  // A gradient comes that must not be used: it is not a number.
  void SpoilGradient(size_t i) {
    node(i).computes_at.reset();
    std::fill(node(i).gradient.begin(), node(i).gradient.end(),
              std::numeric_limits<float>::quiet_NaN());
    Handle(i, core::GradientReady{});
  }

  // By node: of which round the gradient under way is; -1: none is.
  std::vector<int64_t> from_round_;
};

// The round's W, which the nodes find by themselves.
void CheckMetropolis(const Case& golden, const json& step) {
  if (!step.contains("W")) return;
  const core::Graph graph =
      MakeGraph(golden.at("m").get<int64_t>(), step.at("edges"));
  const auto w = core::BuildMixing("metropolis", graph);
  ASSERT_TRUE(w.ok()) << w.status();
  for (size_t i = 0; i < w->size(); ++i) {
    for (size_t j = 0; j < w->size(); ++j) {
      EXPECT_NEAR((*w)[i][j], step.at("W").at(i).at(j).get<double>(), 1e-9);
    }
  }
}

}  // namespace

void RunClocked(const Case& golden) {
  ClockedRun run(golden);
  if (testing::Test::HasFatalFailure()) return;
  for (size_t i = 0; i < run.size(); ++i) {
    run.AddNode(i, ClockedPlan(golden, i), golden.at("x0").at(i));
    const double step_size = golden.at("params").at("eta_i").at(i);
    EXPECT_NEAR(run.algorithm(i).Gauges().at("step_size"), step_size,
                1e-6 * step_size);
  }
  int64_t k = 0;
  for (const json& step : golden.at("schedule")) {
    CheckMetropolis(golden, step);
    run.PlayRound(step, k++);
    if (testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace dfl::golden
