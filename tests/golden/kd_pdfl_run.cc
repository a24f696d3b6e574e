#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
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

const core::KdPdfl& AsKdPdfl(const GoldenNetwork& net, size_t i) {
  return static_cast<const core::KdPdfl&>(net.algorithm(i));
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
std::vector<float> CollabRow(const GoldenNetwork& net, size_t i) {
  std::vector<float> row;
  for (size_t j = 0; j < net.size(); ++j) {
    const double weight = AsKdPdfl(net, i).weight(net.name(j));
    row.push_back(j == i ? 0.0F : static_cast<float>(weight));
  }
  return row;
}

class KdPdflRun : public GoldenNetwork {
 public:
  explicit KdPdflRun(const Case& golden) : GoldenNetwork(golden) {
    compute_time_ = 1;  // after all asks have been answered
  }

  // The last star sends first; then the star asks, and the others begin when it
  // has what it asked for.
  void PlayRound(const json& step, int64_t k) {
    const json& deliver = step.at("deliver");
    star_ = step.at("star");
    for (size_t i = 0; i < size(); ++i) ScriptRound(step, i);
    NewRound();
    for (size_t i = 0; i < size(); ++i) {
      if (!deliver.is_null() && deliver.at("from") == i) {
        Begin(i);
      } else {
        const bool asks = !star_.is_null() && star_.at("node") == i;
        HandleAfter(asks ? 2 * kMessage : 5 * kMessage, i, core::StepBegins{});
      }
    }
    RunAll();
    EXPECT_EQ(asks_waited(), 0);
    ExpectAllDone();
    ExpectSent(deliver, k);
    const State* want = golden().StateAfter(k);
    for (size_t i = 0; i < size(); ++i) {
      EXPECT_EQ(Count<core::ComputeGradient>(i),
                step.at("local").at(i).is_null() ? 0 : 1)
          << "round " << k << " node " << i;
      const bool is_star = !star_.is_null() && star_.at("node") == i;
      EXPECT_EQ(Count<core::Ask>(i), is_star ? 1 : 0) << "round " << k;
      EXPECT_EQ(Count<core::Predict>(i), is_star && HasReceived() ? 1 : 0);
      if (want == nullptr) continue;
      ExpectRow(*want, "x", i, parameters(i));
      ExpectRow(*want, "collab", i, CollabRow(*this, i));
      if (!want->contains("star")) continue;
      if (star_.is_null()) {
        EXPECT_TRUE(want->at("star").is_null()) << "round " << k;
      } else if (is_star) {
        CheckStarState(want->at("star"), star_.at("received"),
                       AsKdPdfl(*this, i).last_star());
      }
    }
  }

 private:
  bool HasReceived() const { return !star_.at("received").empty(); }

  void ScriptRound(const json& step, size_t i) {
    const auto m = static_cast<int64_t>(size());
    decisions(i).together["star"] = {
        star_.is_null() ? m : star_.at("node").get<int64_t>()};
    decisions(i).asked.clear();
    decisions(i).asked_is_scripted = true;
    if (!star_.is_null()) {
      for (const json& j : star_.at("asked")) {
        decisions(i).asked.push_back(NodeName(j.get<int64_t>()));
      }
      if (star_.at("node") == i) {
        // One case asks fewer than the others.
        Handle(i, core::PlanChanged{KdPdflPlan(
                      golden(), static_cast<int64_t>(i),
                      std::max<int64_t>(1, decisions(i).asked.size()))});
        if (HasReceived()) batches(i).push_back(ReadBatch(star_.at("batch")));
      }
    }
    const json& batch = step.at("local").at(i);
    if (!batch.is_null()) batches(i).push_back(ReadBatch(batch));
  }

  void ExpectSent(const json& deliver, int64_t k) {
    const bool sends =
        golden().at("params").at("adopt").get<bool>() && !deliver.is_null();
    ASSERT_EQ(pushes().size(), sends ? 1 : 0) << "round " << k;
    if (!sends) return;
    ExpectPushesOf(k);
    EXPECT_EQ(pushes()[0].from, deliver.at("from").get<size_t>());
    EXPECT_EQ(pushes()[0].to, Named(deliver.at("to")));
  }

  // An answer that the star does not get is refused.
  std::optional<double> Latency(size_t from, size_t to,
                                const core::Event& message) override {
    const auto* answer = std::get_if<core::AnswerArrived>(&message);
    if (answer == nullptr) return kMessage;
    const json& received = star_.at("received");
    if (std::find(received.begin(), received.end(), json(from)) !=
        received.end()) {
      return kMessage;
    }
    HandleAfter(kMessage, to, core::AnswerMissing{name(from), answer->ask});
    return std::nullopt;
  }

  void OnAction(size_t i, const core::Action& action) override {
    GoldenNetwork::OnAction(i, action);
    if (const auto* answer = std::get_if<core::Answer>(&action)) {
      EXPECT_EQ(answer->rate, 1);
    } else if (const auto* predict = std::get_if<core::Predict>(&action)) {
      EXPECT_EQ(predict->models->size(), star_.at("received").size());
    }
  }

  json star_;
};

}  // namespace

void RunKdPdfl(const Case& golden) {
  KdPdflRun run(golden);
  if (testing::Test::HasFatalFailure()) return;
  const auto subset = golden.at("params").at("subset").get<int64_t>();
  for (size_t i = 0; i < run.size(); ++i) {
    run.AddNode(i, KdPdflPlan(golden, static_cast<int64_t>(i), subset),
                golden.at("x0").at(i));
    EXPECT_EQ(
        Difference("collab0", CollabRow(run, i), golden.at("collab0").at(i)),
        "");
  }
  int64_t k = 0;
  for (const json& step : golden.at("schedule")) {
    run.PlayRound(step, k++);
    if (testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace dfl::golden
