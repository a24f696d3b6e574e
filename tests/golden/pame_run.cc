#include <algorithm>
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "gtest/gtest.h"
#include "tests/golden/drivers.h"
#include "tests/golden/golden_network.h"
#include "tests/golden/run_parts.h"

namespace dfl::golden {
namespace {

using nlohmann::json;

core::NodePlan PamePlan(const Case& golden, int64_t node, int64_t extra) {
  const json& params = golden.at("params");
  const auto kappa = params.at("kappa").at(node).get<int64_t>();
  core::NodePlan plan =
      MakePlan("pame", node,
               {{"nu", params.at("nu").at(node).get<double>()},
                {"p", params.at("p").at(node).get<double>()},
                {"sigma0", params.at("sigma0").at(node).get<double>()},
                {"gamma", params.at("gamma").at(node).get<double>()},
                {"kappa", core::IntRange{kappa, kappa}},
                {"lookahead", int64_t{0}},
                {"extra_asked", extra}});
  const core::Graph graph =
      MakeGraph(golden.at("m").get<int64_t>(), golden.at("graph").at("edges"));
  for (const int64_t j : graph.neighbours(node)) {
    plan.neighbours.push_back({NodeName(j), 0});
  }
  return plan;
}

class PameRun : public GoldenNetwork {
 public:
  explicit PameRun(const Case& golden) : GoldenNetwork(golden) {
    compute_time_ = 0.5;  // after all asks have been answered
  }

  // Everybody begins step k; who exchanges asks, and every answer is taken from
  // its sender's model before the step. The deadline passes for whoever does
  // not get enough of them.
  void PlayStep(const json& step, int64_t k) {
    step_ = &step;
    for (size_t i = 0; i < size(); ++i) ScriptPull(step.at("pull").at(i), i);
    for (size_t i = 0; i < size(); ++i) {
      batches(i).push_back(ReadBatch(step.at("batch").at(i)));
    }
    NewRoundOfAll();
    RunAll();
    EXPECT_EQ(asks_waited(), 0);
    ExpectAllDone();
    const State* want = golden().StateAfter(k);
    for (size_t i = 0; i < size(); ++i) {
      const json& pull = step.at("pull").at(i);
      EXPECT_EQ(Count<core::Ask>(i), pull.is_null() ? 0 : 1) << "node " << i;
      EXPECT_EQ(algorithm(i).step(), k + 1);
      if (want == nullptr) continue;
      ExpectRow(*want, "x", i, parameters(i));
      ExpectRow(*want, "vbar", i, trained_from(i));
      const auto gauges = algorithm(i).Gauges();
      ExpectValue(*want, "sigma", i, gauges.at("sigma"));
      ExpectValue(*want, "m", i, gauges.at("m"));
    }
  }

 private:
  void ScriptPull(const json& pull, size_t i) {
    decisions(i).asked.clear();
    decisions(i).asked_is_scripted = !pull.is_null();
    if (pull.is_null()) return;
    for (const json& j : pull.at("asked")) {
      decisions(i).asked.push_back(NodeName(j.get<int64_t>()));
    }
    // How many are asked beyond those needed is up to the script.
    const auto need = pull.at("need").get<int64_t>();
    const auto asked = static_cast<int64_t>(pull.at("asked").size());
    if (asked > 0) {
      EXPECT_EQ(need, golden().at("params").at("m_init").at(i).get<int64_t>());
    }
    Handle(i, core::PlanChanged{PamePlan(golden(), static_cast<int64_t>(i),
                                         std::max(asked - need, int64_t{0}))});
  }

  // The place of the answer of `sender` among those that node i gets; nothing:
  // it does not answer.
  std::optional<size_t> PlaceOf(size_t i, size_t sender) const {
    const json& answers = step_->at("pull").at(i).at("answers");
    for (size_t place = 0; place < answers.size(); ++place) {
      if (answers[place].at("from") == sender) return place;
    }
    return std::nullopt;
  }

  // Answers come in the order of the script.
  std::optional<double> Latency(size_t from, size_t to,
                                const core::Event& message) override {
    const bool ask = std::holds_alternative<core::AskArrived>(message);
    const auto place = ask ? PlaceOf(from, to) : PlaceOf(to, from);
    if (!place) return std::nullopt;
    return ask ? kMessage : kMessage + 0.001 * static_cast<double>(*place);
  }

  std::vector<int64_t> Coordinates(size_t from,
                                   const core::Answer& answer) override {
    EXPECT_EQ(core::SentCoordinates(answer.rate, parameters(from).size()),
              golden().at("params").at("s").at(from).get<int64_t>());
    const size_t to = IndexOf(answer.to);
    return step_->at("pull")
        .at(to)
        .at("answers")
        .at(PlaceOf(to, from).value())
        .at("coords")
        .get<std::vector<int64_t>>();
  }

  const json* step_ = nullptr;
};

}  // namespace

void RunPame(const Case& golden) {
  PameRun run(golden);
  if (testing::Test::HasFatalFailure()) return;
  for (size_t i = 0; i < run.size(); ++i) {
    run.AddNode(i, PamePlan(golden, static_cast<int64_t>(i), 0),
                golden.at("x0").at(i));
    EXPECT_EQ(run.algorithm(i).Gauges().at("m"),
              golden.at("params").at("m_init").at(i).get<double>());
  }
  int64_t k = 0;
  for (const json& step : golden.at("schedule")) {
    run.PlayStep(step, k++);
    if (testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace dfl::golden
