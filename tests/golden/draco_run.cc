#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "daemon/core/algorithms/catalogue.h"
#include "daemon/core/algorithms/hubs.h"
#include "gtest/gtest.h"
#include "tests/golden/drivers.h"
#include "tests/golden/golden_network.h"
#include "tests/golden/run_parts.h"
#include "tests/support/recorded_actions.h"

namespace dfl::golden {
namespace {

using nlohmann::json;

// Times in the script are rounded.
constexpr double kInstant = 1e-6;

enum class DracoTimer { kPeriod, kSend, kWindow };

// Which timer is which: one that is set at the start for a period, one for
// sending, and the other.
std::map<uint64_t, DracoTimer> LearnDracoTimers(int64_t n) {
  core::AlgorithmContext context;
  context.plan = MakePlan(
      "draco", 0,
      {{"P", 1.0}, {"send", std::string("every")}, {"send_every", 2.0}});
  context.plan.facts =
      std::make_shared<core::HubFacts>(std::vector<NodeId>{context.plan.self});
  std::vector<float> parameters(n);
  std::vector<float> gradient(n);
  context.vectors = {absl::MakeSpan(parameters), absl::MakeSpan(gradient), {}};
  ScriptedDecisions decisions;
  const auto algorithm = core::CreateAlgorithm(
      **core::BuiltInCatalogue().Find("draco"), std::move(context), decisions);
  core::RecordedActions actions(&parameters);
  algorithm->Handle(core::Started{0}, actions);
  std::map<uint64_t, DracoTimer> timers;
  for (const core::Action& action : actions) {
    if (const auto* wake = std::get_if<core::WakeAfter>(&action)) {
      timers[wake->timer] = wake->delay == absl::Seconds(1)
                                ? DracoTimer::kPeriod
                                : DracoTimer::kSend;
    }
  }
  EXPECT_EQ(timers.size(), 2U);
  return timers;
}

// Everything happens when the script says so: what nodes ask for waits for it.
class DracoRun : public GoldenNetwork {
 public:
  explicit DracoRun(const Case& golden)
      : GoldenNetwork(golden),
        params_(golden.at("params")),
        states_(size()),
        timers_(LearnDracoTimers(problems().front()->n())) {
    for (size_t i = 0; i < size(); ++i) {
      AddNode(i, PlanOf(i), golden.at("x0").at(i));
    }
  }

  void Play() {
    int64_t k = 0;
    for (const json& event : golden().at("schedule")) {
      time_ = event.at("t").get<double>();
      PassTime();
      PlayEvent(event, k);
      if (testing::Test::HasFatalFailure()) return;
      if (const State* want = golden().StateAfter(k)) {
        for (size_t i = 0; i < size(); ++i) {
          ExpectRow(*want, "x", i, parameters(i));
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
  struct DracoState {
    std::map<DracoTimer, std::pair<uint64_t, double>> timers;  // id and due
    std::vector<Sent> sent;  // asked for, not yet in the script
  };

  std::optional<double> Latency(size_t /*from*/, size_t /*to*/,
                                const core::Event& /*message*/) override {
    return std::nullopt;
  }
  std::optional<double> TimerTime(size_t /*i*/,
                                  const core::WakeAfter& /*wake*/) override {
    return std::nullopt;
  }
  void OnAction(size_t i, const core::Action& action) override {
    GoldenNetwork::OnAction(i, action);
    if (const auto* wake = std::get_if<core::WakeAfter>(&action)) {
      states_[i].timers[KindOf(wake->timer)] = {
          wake->timer, time_ + absl::ToDoubleSeconds(wake->delay)};
    } else if (const auto* push = std::get_if<core::Push>(&action)) {
      std::vector<float> values(push->values.begin(), push->values.end());
      if (values.empty()) values = parameters(i);
      states_[i].sent.push_back(
          {push->peers, std::move(values), push->scalars, push->round});
    }
  }

  core::NodePlan PlanOf(size_t i) const {
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
    core::NodePlan plan = MakePlan("draco", static_cast<int64_t>(i), knobs);
    for (size_t j = 0; j < size(); ++j) {
      if (Weight(i, j) != 0) {
        plan.out_neighbours.push_back({name(j), Weight(i, j)});
      }
      if (Weight(j, i) != 0) {
        plan.in_neighbours.push_back({name(j), Weight(j, i)});
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
    return plan;
  }

  // q_ij of the arc i -> j.
  double Weight(size_t i, size_t j) const {
    return params_.at("q").at(i).at(j).get<double>();
  }

  DracoTimer KindOf(uint64_t timer) const {
    const auto it = timers_.find(timer);
    return it == timers_.end() ? DracoTimer::kWindow : it->second;
  }

  void Fire(size_t i, DracoTimer kind) {
    const auto it = states_[i].timers.find(kind);
    ASSERT_NE(it, states_[i].timers.end()) << "node " << i << " at " << time_;
    const uint64_t timer = it->second.first;
    states_[i].timers.erase(it);
    Handle(i, core::TimerFired{timer});
  }

  // Periods begin.
  void PassTime() {
    for (size_t i = 0; i < size(); ++i) {
      const auto it = states_[i].timers.find(DracoTimer::kPeriod);
      if (it != states_[i].timers.end() &&
          it->second.second <= time_ + kInstant) {
        Fire(i, DracoTimer::kPeriod);
      }
    }
  }

  Sent TakeSent(size_t i) {
    const std::vector<Sent> sent = std::exchange(states_[i].sent, {});
    EXPECT_EQ(sent.size(), 1U) << "node " << i << " at " << time_;
    return sent.empty() ? Sent() : sent.front();
  }

  void Arrive(size_t i, const NodeId& from, const Sent& sent, double age) {
    core::RemoteModel model;
    model.parameters = std::make_unique<core::PlainRemoteVector>(sent.values);
    model.step = sent.round;
    model.scalars = sent.scalars;
    model.age = absl::Seconds(age);
    Handle(i, core::PushArrived{from, std::move(model)});
  }

  void PlayEvent(const json& event, int64_t k) {
    const std::string type = event.at("type");
    if (type == "compute_start") {
      const auto i = event.at("node").get<size_t>();
      Handle(i, core::StepBegins{});
      EXPECT_EQ(node(i).computes_at, parameters(i));
    } else if (type == "compute_done") {
      const auto i = event.at("node").get<size_t>();
      for (const json& batch : event.at("batches")) {
        ASSERT_TRUE(node(i).computes_at.has_value()) << "event " << k;
        node(i).batch = ReadBatch(batch);
        FinishGradient(i);
      }
      ASSERT_TRUE(node(i).at_boundary) << "event " << k;
    } else if (type == "send") {
      const auto i = event.at("node").get<size_t>();
      if (params_.at("send").is_number()) Fire(i, DracoTimer::kSend);
      Sent sent = TakeSent(i);
      EXPECT_EQ(sent.to, Named(event.at("to"))) << "event " << k;
      sent.from = i;
      sent.at = time_;
      deltas_[event.at("delta").get<int64_t>()] = std::move(sent);
    } else if (type == "arrive") {
      PlayArrival(event, k);
    } else if (type == "window_close") {
      const auto i = event.at("node").get<size_t>();
      EXPECT_NEAR(states_[i].timers[DracoTimer::kWindow].second, time_,
                  kInstant);
      Fire(i, DracoTimer::kWindow);
    } else if (type == "unify_send") {
      unifications_[event.at("id").get<int64_t>()] =
          TakeSent(event.at("hub").get<size_t>());
    } else if (type == "unify_arrive") {
      PlayUnification(event, k);
    } else {
      FAIL() << "event " << k << " is a " << type;
    }
  }

  void PlayUnification(const json& event, int64_t k) {
    const auto i = event.at("node").get<size_t>();
    const auto id = event.at("id").get<int64_t>();
    ASSERT_EQ(unifications_.count(id), 1U) << "event " << k;
    const Sent& sent = unifications_[id];
    // By way of a neighbour; the script does not say which.
    for (size_t j = 0; j < size(); ++j) {
      if (Weight(j, i) == 0) continue;
      Arrive(i, name(j), sent, 0);
      break;
    }
    for (const Sent& passed : std::exchange(states_[i].sent, {})) {
      EXPECT_EQ(passed.scalars, sent.scalars);
      EXPECT_EQ(passed.values, parameters(i));
    }
  }

  void PlayArrival(const json& event, int64_t k) {
    const auto i = event.at("to").get<size_t>();
    const std::map<std::string, std::string> counters = {
        {"accept", "accepted"},
        {"late", "dropped_late"},
        {"cap", "dropped_full"}};
    auto before = algorithm(i).Gauges();
    const auto delta = event.at("delta").get<int64_t>();
    ASSERT_EQ(deltas_.count(delta), 1U) << "event " << k;
    const Sent& sent = deltas_[delta];
    EXPECT_EQ(sent.from, event.at("from").get<size_t>()) << "event " << k;
    const double sent_at = event.at("sent").get<double>();
    EXPECT_NEAR(sent.at, sent_at, kInstant) << "event " << k;
    Arrive(i, name(sent.from), sent, time_ - sent_at);
    auto after = algorithm(i).Gauges();
    for (const auto& [result, gauge] : counters) {
      EXPECT_EQ(after[gauge] - before[gauge], event.at("result") == result)
          << "event " << k << " " << gauge;
    }
  }

  const json& params_;
  std::vector<DracoState> states_;
  double time_ = 0;  // of the script
  const std::map<uint64_t, DracoTimer> timers_;
  std::map<int64_t, Sent> deltas_;
  std::map<int64_t, Sent> unifications_;
};

}  // namespace

void RunDraco(const Case& golden) {
  DracoRun run(golden);
  if (testing::Test::HasFatalFailure()) return;
  run.Play();
}

}  // namespace dfl::golden
