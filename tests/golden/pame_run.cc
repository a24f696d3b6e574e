#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/golden/drivers.h"
#include "tests/golden/golden_network.h"
#include "tests/golden/run_parts.h"

namespace dfl::golden {
namespace {

using nlohmann::json;

// The answer `coords` of a sender whose model is `model`.
core::RemoteModel PartialAnswer(const std::vector<float>& model,
                                const json& coords) {
  std::vector<int64_t> coordinates = coords.get<std::vector<int64_t>>();
  std::vector<float> values;
  values.reserve(coordinates.size());
  for (const int64_t l : coordinates) values.push_back(model[l]);
  core::RemoteModel answer;
  answer.parameters = std::make_unique<core::PlainRemoteVector>(
      static_cast<int64_t>(model.size()), std::move(coordinates),
      std::move(values));
  return answer;
}

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

std::vector<std::unique_ptr<GoldenNode>> MakePameNodes(
    const Case& golden,
    const std::vector<std::unique_ptr<simports::Problem>>& problems) {
  std::vector<std::unique_ptr<GoldenNode>> nodes;
  for (size_t i = 0; i < problems.size(); ++i) {
    nodes.push_back(std::make_unique<GoldenNode>(
        "pame", PamePlan(golden, static_cast<int64_t>(i), 0),
        golden.at("x0").at(i).get<std::vector<float>>(), *problems[i], 1, 0));
  }
  return nodes;
}

// Everybody begins step k; who exchanges asks, and every answer is taken from
// its sender's model before the step.
void PameExchange(const Case& golden, const json& step,
                  const std::vector<std::unique_ptr<GoldenNode>>& nodes) {
  struct Delivery {
    size_t to;
    core::AnswerArrived event;
  };
  std::vector<Delivery> deliveries;
  for (size_t i = 0; i < nodes.size(); ++i) {
    GoldenNode& node = *nodes[i];
    const json& pull = step.at("pull").at(i);
    node.decisions.asked.clear();
    node.decisions.asked_is_scripted = !pull.is_null();
    if (!pull.is_null()) {
      for (const json& j : pull.at("asked")) {
        node.decisions.asked.push_back(NodeName(j.get<int64_t>()));
      }
      // How many are asked beyond those needed is up to the script.
      const auto need = pull.at("need").get<int64_t>();
      const auto asked = static_cast<int64_t>(pull.at("asked").size());
      if (asked > 0) {
        EXPECT_EQ(need, golden.at("params").at("m_init").at(i).get<int64_t>());
      }
      node.Handle(
          core::PlanChanged{PamePlan(golden, static_cast<int64_t>(i),
                                     std::max(asked - need, int64_t{0}))});
    }
    node.Handle(core::StepBegins{});
    core::Ask ask;
    ASSERT_EQ(node.Take(&ask), !pull.is_null()) << "node " << i;
    ASSERT_EQ(node.decisions.wrong_counts, 0) << "node " << i;
    if (pull.is_null()) continue;
    for (const json& scripted : pull.at("answers")) {
      const auto from = scripted.at("from").get<size_t>();
      GoldenNode& sender = *nodes[from];
      ASSERT_TRUE(sender.algorithm().parameters_settled());
      sender.Handle(core::AskArrived{NodeName(i), ask.ask});
      core::Answer answer;
      ASSERT_TRUE(sender.Take(&answer));
      EXPECT_EQ(core::SentCoordinates(answer.rate, sender.parameters.size()),
                golden.at("params").at("s").at(from).get<int64_t>());
      deliveries.push_back(
          {i, core::AnswerArrived{
                  NodeName(scripted.at("from").get<int64_t>()), ask.ask,
                  PartialAnswer(sender.parameters, scripted.at("coords"))}});
    }
  }
  for (Delivery& delivery : deliveries) {
    nodes[delivery.to]->Handle(std::move(delivery.event));
  }
  // The deadline passes for whoever still waits.
  for (const auto& node : nodes) {
    core::WakeAfter wake;
    if (node->Take(&wake)) node->Handle(core::TimerFired{wake.timer});
  }
}

}  // namespace

void RunPame(const Case& golden) {
  const auto problems = MakeProblems(golden.at("problem"));
  CheckProblems(golden, problems);
  if (testing::Test::HasFatalFailure()) return;
  const auto nodes = MakePameNodes(golden, problems);
  for (size_t i = 0; i < nodes.size(); ++i) {
    EXPECT_EQ(nodes[i]->algorithm().Gauges().at("m"),
              golden.at("params").at("m_init").at(i).get<double>());
  }
  int64_t k = 0;
  for (const json& step : golden.at("schedule")) {
    PameExchange(golden, step, nodes);
    if (testing::Test::HasFatalFailure()) return;
    const State* want = golden.StateAfter(k);
    for (size_t i = 0; i < nodes.size(); ++i) {
      GoldenNode& node = *nodes[i];
      core::ComputeGradient compute;
      ASSERT_TRUE(node.Take(&compute)) << "step " << k << " node " << i;
      const std::vector<float> vbar = node.parameters;
      node.Gradient(ReadBatch(step.at("batch").at(i)));
      core::StepDone done;
      ASSERT_TRUE(node.Take(&done));
      EXPECT_EQ(node.algorithm().step(), k + 1);
      if (want == nullptr) continue;
      ExpectRow(*want, "x", i, node.parameters);
      ExpectRow(*want, "vbar", i, vbar);
      const auto gauges = node.algorithm().Gauges();
      ExpectValue(*want, "sigma", i, gauges.at("sigma"));
      ExpectValue(*want, "m", i, gauges.at("m"));
    }
    ++k;
  }
}

}  // namespace dfl::golden
