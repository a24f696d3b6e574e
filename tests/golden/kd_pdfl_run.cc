#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "daemon/core/algorithms/kd_pdfl.h"
#include "gtest/gtest.h"
#include "tests/golden/drivers.h"
#include "tests/golden/golden_network.h"
#include "tests/golden/run_parts.h"

namespace dfl::golden {
namespace {

using nlohmann::json;

std::vector<core::Neighbour> NeighboursOf(const Case& golden, int64_t node) {
  std::vector<core::Neighbour> neighbours;
  for (const json& edge : golden.at("graph").at("edges")) {
    for (const auto& [a, b] : {std::pair{0, 1}, std::pair{1, 0}}) {
      if (edge.at(a) == node) neighbours.push_back({NodeName(edge.at(b)), 0});
    }
  }
  std::sort(neighbours.begin(), neighbours.end(),
            [](const auto& a, const auto& b) { return a.node < b.node; });
  return neighbours;
}

const core::KdPdfl& AsKdPdfl(GoldenNode& node) {
  return static_cast<const core::KdPdfl&>(node.algorithm());
}

// Whether a round has a node that neither trains nor has anything else to do:
// else only the star and its adopters skip a local step.
bool LiteralRounds(const Case& golden) {
  const json& params = golden.at("params");
  if (params.contains("literal_rounds")) return params.at("literal_rounds");
  for (const json& step : golden.at("schedule")) {
    std::set<int64_t> busy;
    if (!step.at("star").is_null()) {
      busy.insert(step.at("star").at("node").get<int64_t>());
    }
    if (params.at("adopt") && !step.at("deliver").is_null()) {
      for (const json& to : step.at("deliver").at("to")) {
        busy.insert(to.get<int64_t>());
      }
    }
    for (size_t i = 0; i < step.at("local").size(); ++i) {
      if (step.at("local").at(i).is_null() &&
          busy.count(static_cast<int64_t>(i)) == 0) {
        return true;
      }
    }
  }
  return false;
}

core::NodePlan KdPdflPlan(const Case& golden, int64_t node, int64_t subset) {
  const json& params = golden.at("params");
  core::NodePlan plan = MakePlan("kd-pdfl", node,
                                 {{"eta", params.at("eta").get<double>()},
                                  {"T_ex", params.at("T_ex").get<int64_t>()},
                                  {"subset", subset},
                                  {"mu1", params.at("mu1").get<double>()},
                                  {"mu2", params.at("mu2").get<double>()},
                                  {"c_base", params.at("c_base").get<double>()},
                                  {"adopt", params.at("adopt").get<bool>()},
                                  {"stars", std::string("drawn")},
                                  {"literal_rounds", LiteralRounds(golden)}});
  plan.place = node;
  plan.member_count = golden.at("m").get<int64_t>();
  plan.neighbours = NeighboursOf(golden, node);
  return plan;
}

// The learner's part: predictions of `batch` by the node and by `models`.
core::Predicted PredictWith(const simports::Problem& problem,
                            const std::vector<float>& own,
                            const std::vector<core::ModelValues>& models,
                            const std::vector<int64_t>& batch) {
  const auto& softmax = dynamic_cast<const simports::Softmax&>(problem);
  const auto classes = static_cast<size_t>(softmax.classes());
  core::Predicted predicted;
  predicted.rows = static_cast<int64_t>(batch.size());
  const auto add = [&](absl::Span<const float> w) {
    std::vector<double> p(batch.size() * classes);
    for (size_t i = 0; i < batch.size(); ++i) {
      softmax.Predict(w, batch[i],
                      absl::MakeSpan(p).subspan(i * classes, classes));
    }
    predicted.probabilities.push_back(std::move(p));
  };
  add(own);
  for (const core::ModelValues& model : models) add(model.parameters);
  return predicted;
}

// The star of a round; `before` = all models as the round began.
void PlayStar(const json& star, int64_t k,
              const std::vector<std::vector<float>>& before,
              const std::vector<std::unique_ptr<simports::Problem>>& problems,
              const std::vector<std::unique_ptr<GoldenNode>>& nodes) {
  const auto self = star.at("node").get<size_t>();
  GoldenNode& node = *nodes[self];
  core::Ask ask;
  ASSERT_TRUE(node.Take(&ask)) << "round " << k;
  const json& received = star.at("received");
  for (const NodeId& peer : ask.peers) {
    const int64_t j = NodeIndex(peer);
    nodes[j]->Handle(core::AskArrived{NodeName(self), ask.ask});
    core::Answer answer;
    ASSERT_TRUE(nodes[j]->Take(&answer));
    EXPECT_EQ(answer.rate, 1);
    if (std::find(received.begin(), received.end(), json(j)) !=
        received.end()) {
      node.Handle(core::AnswerArrived{peer, ask.ask, WholeModel(before[j], k)});
    } else {
      node.Handle(core::AnswerMissing{peer, ask.ask});
    }
  }
  core::Predict predict;
  ASSERT_EQ(node.Take(&predict), !received.empty()) << "round " << k;
  if (received.empty()) return;
  ASSERT_EQ(predict.models->size(), received.size());
  node.Handle(PredictWith(*problems[self], node.parameters, *predict.models,
                          RowsOf(star.at("batch"), *problems[self])));
}

// `want`'s lists are in the order of `received`.
void CheckStarState(const json& want, const json& received,
                    const core::KdPdfl::Star& star) {
  const auto check = [&](const char* what, const std::vector<double>& got) {
    ASSERT_EQ(got.size(), received.size()) << what;
    std::vector<float> ordered;
    for (const json& j : received) {
      const auto it = std::find(star.received.begin(), star.received.end(),
                                NodeName(j.get<int64_t>()));
      ASSERT_NE(it, star.received.end()) << j;
      ordered.push_back(static_cast<float>(got[it - star.received.begin()]));
    }
    EXPECT_EQ(Difference(what, ordered, want.at(what)), "");
  };
  check("d", star.distances);
  check("grad", star.gradient);
  check("raw", star.raw);
  EXPECT_TRUE(Close(star.norm, want.at("norm"))) << star.norm;
  EXPECT_TRUE(Close(star.own_share, want.at("c"))) << star.own_share;
}

// The weights that node i gives to the others.
std::vector<float> CollabRow(GoldenNode& node, int64_t i, int64_t m) {
  std::vector<float> row;
  for (int64_t j = 0; j < m; ++j) {
    row.push_back(
        j == i ? 0.0F : static_cast<float>(AsKdPdfl(node).weight(NodeName(j))));
  }
  return row;
}

void PlayKdPdflRound(
    const Case& golden, const json& step, int64_t k,
    const std::vector<std::unique_ptr<simports::Problem>>& problems,
    const std::vector<std::unique_ptr<GoldenNode>>& nodes) {
  const auto m = static_cast<int64_t>(nodes.size());
  const json& star = step.at("star");
  std::vector<std::vector<float>> before;
  for (const auto& node : nodes) {
    before.push_back(node->parameters);
    node->decisions.together["star"] = {
        star.is_null() ? m : star.at("node").get<int64_t>()};
    node->decisions.asked.clear();
    node->decisions.asked_is_scripted = true;
    if (star.is_null()) continue;
    for (const json& j : star.at("asked")) {
      node->decisions.asked.push_back(NodeName(j.get<int64_t>()));
    }
  }
  if (!star.is_null()) {
    // One case asks fewer than the others.
    const auto self = star.at("node").get<int64_t>();
    nodes[self]->Handle(core::PlanChanged{KdPdflPlan(
        golden, self,
        std::max<int64_t>(1, static_cast<int64_t>(star.at("asked").size())))});
  }
  // The last star sends first.
  std::vector<size_t> order;
  for (size_t i = 0; i < nodes.size(); ++i) order.push_back(i);
  const json& deliver = step.at("deliver");
  if (!deliver.is_null()) {
    std::swap(order[0], order[deliver.at("from").get<size_t>()]);
  }
  const bool adopts = golden.at("params").at("adopt").get<bool>();
  for (const size_t i : order) {
    nodes[i]->Handle(core::StepBegins{});
    EXPECT_EQ(nodes[i]->decisions.wrong_counts, 0);
    core::Push push;
    const bool sends = adopts && !deliver.is_null() && i == deliver.at("from");
    ASSERT_EQ(nodes[i]->Take(&push), sends) << "round " << k << " node " << i;
    if (!sends) continue;
    EXPECT_EQ(push.peers, Named(deliver.at("to")));
    for (const NodeId& to : push.peers) {
      nodes[NodeIndex(to)]->Handle(
          core::PushArrived{NodeName(i), WholeModel(before[i], k)});
    }
  }
  if (!star.is_null()) PlayStar(star, k, before, problems, nodes);
  const State* want = golden.StateAfter(k);
  for (size_t i = 0; i < nodes.size(); ++i) {
    GoldenNode& node = *nodes[i];
    const json& batch = step.at("local").at(i);
    core::ComputeGradient compute;
    ASSERT_EQ(node.Take(&compute), !batch.is_null())
        << "round " << k << " node " << i;
    if (!batch.is_null()) node.Gradient(ReadBatch(batch));
    core::StepDone done;
    ASSERT_TRUE(node.Take(&done)) << "round " << k << " node " << i;
    if (want == nullptr) continue;
    ExpectRow(*want, "x", i, node.parameters);
    ExpectRow(*want, "collab", i, CollabRow(node, static_cast<int64_t>(i), m));
    if (!want->contains("star")) continue;
    if (star.is_null()) {
      EXPECT_TRUE(want->at("star").is_null()) << "round " << k;
    } else if (star.at("node") == i) {
      CheckStarState(want->at("star"), star.at("received"),
                     AsKdPdfl(node).last_star());
    }
  }
}

}  // namespace

void RunKdPdfl(const Case& golden) {
  const auto problems = MakeProblems(golden.at("problem"));
  CheckProblems(golden, problems);
  if (testing::Test::HasFatalFailure()) return;
  const json& params = golden.at("params");
  std::vector<std::unique_ptr<GoldenNode>> nodes;
  for (size_t i = 0; i < problems.size(); ++i) {
    nodes.push_back(std::make_unique<GoldenNode>(
        "kd-pdfl",
        KdPdflPlan(golden, static_cast<int64_t>(i),
                   params.at("subset").get<int64_t>()),
        golden.at("x0").at(i).get<std::vector<float>>(), *problems[i], 1, 0));
    const auto self = static_cast<int64_t>(i);
    EXPECT_EQ(
        Difference("collab0",
                   CollabRow(*nodes[i], self, golden.at("m").get<int64_t>()),
                   golden.at("collab0").at(i)),
        "");
  }
  int64_t k = 0;
  for (const json& step : golden.at("schedule")) {
    PlayKdPdflRound(golden, step, k, problems, nodes);
    if (testing::Test::HasFatalFailure()) return;
    ++k;
  }
}

}  // namespace dfl::golden
