#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "daemon/core/graph/mixing.h"
#include "gtest/gtest.h"
#include "tests/golden/drivers.h"
#include "tests/golden/golden_network.h"
#include "tests/golden/run_parts.h"

namespace dfl::golden {
namespace {

using nlohmann::json;

// Synchronous rounds.
class RoundRun : public GoldenNetwork {
 public:
  explicit RoundRun(const Case& golden)
      : GoldenNetwork(golden), knobs_(KnobsOf(golden)) {}

  void Join(size_t i, const json& start, int64_t step) {
    AddNode(i, MakePlan(golden().algorithm(), static_cast<int64_t>(i), knobs_),
            start, BatchesPerPass(golden(), *problems()[i]), step);
    LinkUp(i);
  }

  // Plan, start, gradients, pushes.
  void PlayRound(const json& step, int64_t k) {
    const std::vector<size_t> members = Members(step);
    NewRound();
    for (const size_t i : members) {
      Retune(step, i, members);
      for (auto& batch : BatchesOf(step, i)) batches(i).push_back(batch);
    }
    for (const size_t i : members) Begin(i);
    Run(kBeforeMessages);
    CheckTrained(step, k, members);
    RunAll();
    ExpectPushesOf(k);
    ExpectNobodyMissed();
    const State* want = golden().StateAfter(k);
    for (size_t i = 0; i < size(); ++i) {
      if (std::count(members.begin(), members.end(), i) > 0) {
        ExpectDone(i);
        if (want != nullptr) ExpectRow(*want, "x", i, parameters(i));
        continue;
      }
      // Absent nodes have no states.
      for (const char* field : {"x", "x_local", "z"}) {
        if (want == nullptr || !want->contains(field)) continue;
        EXPECT_TRUE(want->at(field).at(i).is_null())
            << field << " of node " << i;
      }
    }
  }

 private:
  // rows_i members / sum of rows.
  double SampleWeight(size_t i, const std::vector<size_t>& members) const {
    double total = 0;
    for (const size_t j : members) {
      total += static_cast<double>(problems()[j]->rows());
    }
    return static_cast<double>(problems()[i]->rows()) *
           static_cast<double>(members.size()) / total;
  }

  const json& Weights(const json& step) const {
    if (!step.contains("W")) return golden().at("W");
    return golden().at("Ws").at(step.at("W").get<size_t>());
  }

  std::vector<size_t> Members(const json& step) const {
    if (step.contains("members")) {
      return step.at("members").get<std::vector<size_t>>();
    }
    std::vector<size_t> all(size());
    for (size_t i = 0; i < all.size(); ++i) all[i] = i;
    return all;
  }

  void Retune(const json& step, size_t i, const std::vector<size_t>& members) {
    core::KnobValues knobs = knobs_;
    // A constant step may be another in each round.
    const bool told = step.contains("eta");
    if (told && knobs.count("delta") == 0) {
      knobs["eta"] = step.at("eta").get<double>();
    }
    const auto self = static_cast<int64_t>(i);
    core::NodePlan plan = MakePlan(golden().algorithm(), self, knobs);
    SetRow(Weights(step).at(i), self, &plan);
    plan.sample_weight = SampleWeight(i, members);
    Handle(i, core::PlanChanged{std::move(plan)});
    if (!told) return;
    const bool weighted = golden().at("params").at("sample_weighting");
    const double eta = step.at("eta").get<double>() *
                       (weighted ? SampleWeight(i, members) : 1);
    EXPECT_NEAR(algorithm(i).Gauges().at("step_size"), eta, 1e-6 * eta)
        << "node " << i;
  }

  void CheckTrained(const json& step, int64_t k,
                    const std::vector<size_t>& members) {
    // A step with a radius takes two gradients on one batch.
    const size_t gradients = knobs_.count("rho") > 0 ? 2 : 1;
    const State* want = golden().StateAfter(k);
    for (const size_t i : members) {
      EXPECT_EQ(Count<core::ComputeGradient>(i),
                gradients * BatchesOf(step, i).size())
          << "round " << k << " node " << i;
      // A node that is alone has mixed at once.
      const bool alone = Weights(step).at(i).at(i) == 1;
      for (const char* trained : {"x_local", "z"}) {
        if (want == nullptr) continue;
        if (alone && want->contains(trained)) {
          EXPECT_TRUE(want->at(trained).at(i).is_array()) << trained;
        } else {
          ExpectRow(*want, trained, i, parameters(i));
        }
      }
    }
  }

  const core::KnobValues knobs_;
};

// The matrices are those of the rule, where one is told.
void CheckRule(const Case& golden) {
  const json& params = golden.at("params");
  const std::string rule = params.value("rule", "explicit");
  if (rule == "explicit") return;
  for (size_t q = 0; q < golden.at("Ws").size(); ++q) {
    const json& want = golden.at("Ws").at(q);
    // Of the nodes that exist.
    std::map<int64_t, int64_t> places;
    for (int64_t i = 0; i < golden.at("m").get<int64_t>(); ++i) {
      if (want.at(i).at(i) != 0) {
        places.emplace(i, static_cast<int64_t>(places.size()));
      }
    }
    core::Graph graph(static_cast<int64_t>(places.size()));
    for (const json& edge : golden.at("edge_sets").at(q)) {
      graph.AddEdge(places.at(edge.at(0)), places.at(edge.at(1)));
    }
    const auto built = core::BuildMixing(rule, graph);
    ASSERT_TRUE(built.ok()) << built.status();
    for (const auto& [i, a] : places) {
      for (const auto& [j, b] : places) {
        EXPECT_NEAR((*built)[a][b], want.at(i).at(j).get<double>(), 1e-9)
            << "Ws[" << q << "][" << i << "][" << j << "]";
      }
    }
  }
}

}  // namespace

void RunRounds(const Case& golden) {
  RoundRun run(golden);
  if (golden.contains("Ws")) CheckRule(golden);
  if (testing::Test::HasFatalFailure()) return;
  for (size_t i = 0; i < run.size(); ++i) {
    const json& x0 = golden.at("x0").at(i);
    if (!x0.is_null()) run.Join(i, x0, 0);
  }
  int64_t k = 0;
  for (const json& step : golden.at("schedule")) {
    if (step.contains("join")) {
      for (const json& joiner : step.at("join")) {
        run.Join(joiner.at("node").get<size_t>(), joiner.at("x"), k);
      }
    }
    run.PlayRound(step, k++);
    if (testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace dfl::golden
