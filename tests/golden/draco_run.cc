#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "daemon/core/algorithms/hubs.h"
#include "gtest/gtest.h"
#include "tests/golden/drivers.h"
#include "tests/golden/golden_network.h"
#include "tests/golden/run_parts.h"

namespace dfl::golden {
namespace {

using nlohmann::json;

// Times in the script are rounded.
constexpr double kInstant = 1e-6;

enum class DracoTimer { kPeriod, kSend, kWindow };

// Which timer is which: one that is set at the start for a period, one for
// sending, and the other.
std::map<uint64_t, DracoTimer> LearnDracoTimers(
    const simports::Problem& problem) {
  core::NodePlan plan = MakePlan(
      "draco", 0,
      {{"P", 1.0}, {"send", std::string("every")}, {"send_every", 2.0}});
  plan.facts = std::make_shared<core::HubFacts>(std::vector<NodeId>{plan.self});
  GoldenNode node("draco", std::move(plan), std::vector<float>(problem.n()),
                  problem, 1, 0);
  std::map<uint64_t, DracoTimer> timers;
  core::WakeAfter wake;
  while (node.Take(&wake)) {
    timers[wake.timer] = wake.delay == absl::Seconds(1) ? DracoTimer::kPeriod
                                                        : DracoTimer::kSend;
  }
  EXPECT_EQ(timers.size(), 2U);
  return timers;
}

// The nodes, their timers in the script's time, and what is on its way.
class DracoRun {
 public:
  explicit DracoRun(const Case& golden)
      : golden_(golden),
        params_(golden.at("params")),
        problems_(MakeProblems(golden.at("problem"))) {
    CheckProblems(golden, problems_);
    if (testing::Test::HasFatalFailure()) return;
    timers_ = LearnDracoTimers(*problems_.front());
    for (size_t i = 0; i < problems_.size(); ++i) AddNode(i);
  }

  void Play() {
    if (testing::Test::HasFatalFailure()) return;
    int64_t k = 0;
    for (const json& event : golden_.at("schedule")) {
      now_ = event.at("t").get<double>();
      PassTime();
      PlayEvent(event, k);
      if (testing::Test::HasFatalFailure()) return;
      if (const State* want = golden_.StateAfter(k)) {
        for (size_t i = 0; i < nodes_.size(); ++i) {
          ExpectRow(*want, "x", i, nodes_[i].node->parameters);
        }
      }
      ++k;
    }
  }

 private:
  struct Sent {
    std::vector<NodeId> to;
    std::vector<float> values;
    std::vector<double> scalars;
    int64_t round = 0;
    // By the script.
    size_t from = 0;
    double at = 0;
  };
  struct DracoNode {
    std::unique_ptr<GoldenNode> node;
    std::map<DracoTimer, std::pair<uint64_t, double>> timers;  // id and due
    std::vector<float> computes_at;
    std::vector<Sent> sent;  // asked for, not yet in the script
  };

  void AddNode(size_t i) {
    const json& psi = params_.at("psi");
    const json& send = params_.at("send");
    core::KnobValues knobs = {
        {"eta", params_.at("eta").get<double>()},
        {"B", params_.at("B").get<int64_t>()},
        {"gamma_max", params_.at("gamma_max").get<double>()},
        {"window", params_.at("window").get<double>()},
        {"psi", psi.is_null() ? int64_t{0} : psi.get<int64_t>()},
        {"P", params_.at("P").get<double>()},
        {"own_update", params_.at("own_update").get<bool>()}};
    if (send.is_number()) {
      knobs["send"] = std::string("every");
      knobs["send_every"] = send.get<double>();
    }
    const auto self = static_cast<int64_t>(i);
    core::NodePlan plan = MakePlan("draco", self, knobs);
    for (size_t j = 0; j < problems_.size(); ++j) {
      if (Weight(i, j) != 0) {
        plan.out_neighbours.push_back({NodeName(j), Weight(i, j)});
      }
      if (Weight(j, i) != 0) {
        plan.in_neighbours.push_back({NodeName(j), Weight(j, i)});
      }
    }
    for (const core::Neighbour& to : plan.out_neighbours) {
      // No plan says otherwise.
      EXPECT_NEAR(to.weight, 1.0 / plan.out_neighbours.size(), 1e-6)
          << "q of " << i << " to " << to.node.name()
          << ": core::Draco knows equal weights only";
    }
    auto facts = std::make_shared<core::HubFacts>();
    for (const json& hub : params_.at("hub_order")) {
      facts->hubs.push_back(NodeName(hub.get<int64_t>()));
    }
    plan.facts = std::move(facts);
    nodes_.emplace_back();
    nodes_[i].node = std::make_unique<GoldenNode>(
        "draco", std::move(plan),
        golden_.at("x0").at(i).get<std::vector<float>>(), *problems_[i], 1, 0);
    Collect(i);
  }

  // q_ij of the arc i -> j.
  double Weight(size_t i, size_t j) const {
    return params_.at("q").at(i).at(j).get<double>();
  }

  DracoTimer KindOf(uint64_t timer) const {
    const auto it = timers_.find(timer);
    return it == timers_.end() ? DracoTimer::kWindow : it->second;
  }

  // What the node has just asked for.
  void Collect(size_t i) {
    DracoNode& n = nodes_[i];
    core::WakeAfter wake;
    while (n.node->Take(&wake)) {
      n.timers[KindOf(wake.timer)] = {wake.timer,
                                      now_ + absl::ToDoubleSeconds(wake.delay)};
    }
    core::Push push;
    while (n.node->Take(&push)) {
      n.sent.push_back(
          {push.peers, n.node->TakePushed(), push.scalars, push.round});
    }
    core::ComputeGradient compute;
    if (n.node->Take(&compute)) {
      n.computes_at.assign(compute.at->begin(), compute.at->end());
    }
  }

  void Handle(size_t i, core::Event event) {
    nodes_[i].node->Handle(std::move(event));
    Collect(i);
  }

  void Fire(size_t i, DracoTimer kind) {
    const auto it = nodes_[i].timers.find(kind);
    ASSERT_NE(it, nodes_[i].timers.end()) << "node " << i << " at " << now_;
    const uint64_t timer = it->second.first;
    nodes_[i].timers.erase(it);
    Handle(i, core::TimerFired{timer});
  }

  // Periods begin.
  void PassTime() {
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const auto it = nodes_[i].timers.find(DracoTimer::kPeriod);
      if (it != nodes_[i].timers.end() &&
          it->second.second <= now_ + kInstant) {
        Fire(i, DracoTimer::kPeriod);
      }
    }
  }

  Sent TakeSent(size_t i) {
    Sent sent;
    EXPECT_EQ(nodes_[i].sent.size(), 1U) << "node " << i << " at " << now_;
    if (nodes_[i].sent.empty()) return sent;
    sent = std::move(nodes_[i].sent.front());
    nodes_[i].sent.clear();
    return sent;
  }

  core::RemoteModel Arriving(const Sent& sent, double age) {
    core::RemoteModel model = WholeModel(sent.values, sent.round);
    model.scalars = sent.scalars;
    model.age = absl::Seconds(age);
    return model;
  }

  void PlayEvent(const json& event, int64_t k) {
    const std::string type = event.at("type");
    if (type == "compute_start") {
      const auto i = event.at("node").get<size_t>();
      Handle(i, core::StepBegins{});
      EXPECT_EQ(nodes_[i].computes_at, nodes_[i].node->parameters);
    } else if (type == "compute_done") {
      const auto i = event.at("node").get<size_t>();
      for (const json& batch : event.at("batches")) {
        const std::vector<float> at = std::exchange(nodes_[i].computes_at, {});
        ASSERT_FALSE(at.empty()) << "event " << k;
        nodes_[i].node->GradientAt(at, ReadBatch(batch));
        Collect(i);
      }
      core::StepDone done;
      ASSERT_TRUE(nodes_[i].node->Take(&done)) << "event " << k;
    } else if (type == "send") {
      const auto i = event.at("node").get<size_t>();
      if (params_.at("send").is_number()) {
        Fire(i, DracoTimer::kSend);
      }
      Sent sent = TakeSent(i);
      EXPECT_EQ(sent.to, Named(event.at("to"))) << "event " << k;
      sent.from = i;
      sent.at = now_;
      deltas_[event.at("delta").get<int64_t>()] = std::move(sent);
    } else if (type == "arrive") {
      PlayArrival(event, k);
    } else if (type == "window_close") {
      const auto i = event.at("node").get<size_t>();
      EXPECT_NEAR(nodes_[i].timers[DracoTimer::kWindow].second, now_, kInstant);
      Fire(i, DracoTimer::kWindow);
    } else if (type == "unify_send") {
      unifications_[event.at("id").get<int64_t>()] =
          TakeSent(event.at("hub").get<size_t>());
    } else if (type == "unify_arrive") {
      const auto i = event.at("node").get<size_t>();
      const auto id = event.at("id").get<int64_t>();
      ASSERT_EQ(unifications_.count(id), 1U) << "event " << k;
      const Sent& sent = unifications_[id];
      // By way of a neighbour; the script does not say which.
      for (size_t j = 0; j < nodes_.size(); ++j) {
        if (Weight(j, i) == 0) continue;
        Handle(i, core::PushArrived{NodeName(j), Arriving(sent, 0)});
        break;
      }
      for (const Sent& passed : std::exchange(nodes_[i].sent, {})) {
        EXPECT_EQ(passed.scalars, sent.scalars);
        EXPECT_EQ(passed.values, nodes_[i].node->parameters);
      }
    } else {
      FAIL() << "event " << k << " is a " << type;
    }
  }

  void PlayArrival(const json& event, int64_t k) {
    const auto i = event.at("to").get<size_t>();
    const std::map<std::string, std::string> counters = {
        {"accept", "accepted"},
        {"late", "dropped_late"},
        {"cap", "dropped_full"}};
    auto before = nodes_[i].node->algorithm().Gauges();
    const auto delta = event.at("delta").get<int64_t>();
    ASSERT_EQ(deltas_.count(delta), 1U) << "event " << k;
    const Sent& sent = deltas_[delta];
    EXPECT_EQ(sent.from, event.at("from").get<size_t>()) << "event " << k;
    EXPECT_NEAR(sent.at, event.at("sent").get<double>(), kInstant)
        << "event " << k;
    Handle(i, core::PushArrived{
                  NodeName(event.at("from").get<int64_t>()),
                  Arriving(sent, now_ - event.at("sent").get<double>())});
    auto after = nodes_[i].node->algorithm().Gauges();
    for (const auto& [result, gauge] : counters) {
      EXPECT_EQ(after[gauge] - before[gauge], event.at("result") == result)
          << "event " << k << " " << gauge;
    }
  }

  const Case& golden_;
  const json& params_;
  const std::vector<std::unique_ptr<simports::Problem>> problems_;
  std::vector<DracoNode> nodes_;
  double now_ = 0;
  std::map<uint64_t, DracoTimer> timers_;
  std::map<int64_t, Sent> deltas_;
  std::map<int64_t, Sent> unifications_;
};

}  // namespace

void RunDraco(const Case& golden) { DracoRun(golden).Play(); }

}  // namespace dfl::golden
