#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "daemon/core/algorithms/gossip_nids.h"
#include "gtest/gtest.h"
#include "tests/golden/drivers.h"
#include "tests/golden/golden_network.h"
#include "tests/golden/run_parts.h"

namespace dfl::golden {
namespace {

using nlohmann::json;

template <typename T>
std::vector<T> Flat(const json& rows) {
  std::vector<T> flat;
  for (const json& row : rows) {
    for (const json& value : row) flat.push_back(value.get<T>());
  }
  return flat;
}

// Everything happens when the script says so. A node works through what has
// come when it visits a boundary; between two of its steps it is made to by a
// visit without a gradient.
class GossipRun : public GoldenNetwork {
 public:
  explicit GossipRun(const Case& golden)
      : GoldenNetwork(golden), params_(golden.at("params")), scripts_(size()) {
    for (const json& event : golden.at("schedule")) ReadAhead(event);
    for (size_t i = 0; i < size(); ++i) {
      Script& script = scripts_[i];
      script.periods.push_back(script.steps + 1);  // no offer after the last
      AddNode(i, PlanOf(i), golden.at("x0").at(i));
      decisions(i).drawn["period"] = script.periods;
      decisions(i).names = script.seeds;
      Handle(i, core::Started{0});  // once more, now by the script
      LinkUp(i);
    }
  }

  void Play() {
    int64_t k = 0;
    for (const json& event : golden().at("schedule")) {
      SCOPED_TRACE(testing::Message()
                   << "event " << k << ", a " << event.at("type"));
      PlayEvent(event, golden().StateAfter(k));
      if (testing::Test::HasFatalFailure()) return;
      if (const State* want = golden().StateAfter(k)) CheckState(*want);
      ++k;
    }
  }

 private:
  // What is known of a node's decisions before the run.
  struct Script {
    std::deque<int64_t> periods;  // own steps from one offer to the next
    std::deque<uint64_t> seeds;
    std::deque<NodeId> receivers;
    int64_t steps = 0;  // since the last offer
  };
  struct Exchange {
    size_t from = 0;
    size_t to = 0;
    uint64_t number = 0;
    std::shared_ptr<const core::ModOffer> offer;
    std::optional<core::Give> answer;
    bool applied = false;
  };

  void ReadAhead(const json& event) {
    if (event.at("type") == "step") {
      ++scripts_[event.at("node").get<size_t>()].steps;
    } else if (event.at("type") == "offer") {
      Script& script = scripts_[event.at("node").get<size_t>()];
      script.periods.push_back(std::exchange(script.steps, 0));
      script.seeds.push_back(event.at("seed").get<uint64_t>());
      script.receivers.push_back(NodeName(event.at("to").get<int64_t>()));
    }
  }

  core::NodePlan PlanOf(size_t i) const {
    core::NodePlan plan = MakePlan(golden().algorithm(),
                                   static_cast<int64_t>(i), KnobsOf(golden()));
    const core::Graph graph = MakeGraph(static_cast<int64_t>(size()),
                                        golden().at("graph").at("edges"));
    for (const int64_t j : graph.neighbours(static_cast<int64_t>(i))) {
      plan.neighbours.push_back({NodeName(j), 0});
    }
    auto facts = std::make_shared<core::GossipFacts>();
    facts->block = params_.at("block").get<int>();
    plan.facts = std::move(facts);
    return plan;
  }

  const core::GossipNids& gossip(size_t i) const {
    return dynamic_cast<const core::GossipNids&>(algorithm(i));
  }

  std::optional<double> Latency(size_t /*from*/, size_t /*to*/,
                                const core::Event& /*message*/) override {
    return std::nullopt;
  }
  std::optional<double> ComputeTime(size_t /*i*/) override {
    return std::nullopt;
  }
  core::GradientReady Gradient(size_t i, absl::Span<const float> model,
                               const std::vector<int64_t>& batch) override {
    if (!visits_) return GoldenNetwork::Gradient(i, model, batch);
    core::GradientReady none;
    none.none = true;
    return none;
  }
  void OnAction(size_t i, const core::Action& action) override {
    GoldenNetwork::OnAction(i, action);
    if (const auto* push = std::get_if<core::Push>(&action)) {
      ASSERT_NE(push->offer, nullptr);
      pushed_.push_back(*push);
    } else if (const auto* give = std::get_if<core::Give>(&action)) {
      given_.push_back(*give);
    }
  }

  // Node i works through what has come.
  void Visit(size_t i) {
    visits_ = true;
    Handle(i, core::StepBegins{});
    FinishGradient(i);
    visits_ = false;
    ASSERT_TRUE(node(i).at_boundary);
  }

  void PlayEvent(const json& event, const State* want) {
    const std::string type = event.at("type");
    if (type == "step") {
      const auto i = event.at("node").get<size_t>();
      Script& script = scripts_[i];
      if (!script.receivers.empty()) {
        decisions(i).asked = {script.receivers.front()};
        decisions(i).asked_is_scripted = true;
      }
      Handle(i, core::StepBegins{});
      node(i).batch = ReadBatch(event.at("batch"));
      FinishGradient(i);
      return;
    }
    Exchange& exchange = exchanges_[event.at("id").get<int64_t>()];
    if (type == "offer") {
      PlayOffer(event, exchange, want);
    } else if (type == "offer_arrive") {
      PlayOfferArrival(event, exchange, want);
    } else if (type == "repeat") {
      ASSERT_TRUE(exchange.answer.has_value());
      EXPECT_TRUE(gossip(exchange.to).ledger().Owes(name(exchange.from)));
    } else if (type == "answer_arrive") {
      PlayAnswerArrival(event, exchange);
    } else if (type == "ack_arrive") {
      Handle(exchange.to,
             core::Delivered{
                 name(exchange.from), exchange.number,
                 algorithm(exchange.from).MassTaken(name(exchange.to))});
      // A newer answer may be out by now.
      EXPECT_NE(algorithm(exchange.to).BooksWith(name(exchange.from)).out,
                exchange.number);
    } else {
      FAIL() << "no such event";
    }
  }

  // It was made at the end of the step before.
  void PlayOffer(const json& event, Exchange& exchange, const State* want) {
    exchange.from = event.at("node").get<size_t>();
    exchange.to = event.at("to").get<size_t>();
    exchange.number = event.at("number").get<uint64_t>();
    ASSERT_EQ(pushed_.size(), 1U);
    const core::Push push = pushed_.front();
    pushed_.clear();
    scripts_[exchange.from].receivers.pop_front();
    EXPECT_EQ(push.peers, std::vector<NodeId>{name(exchange.to)});
    EXPECT_EQ(push.offer->number, exchange.number);
    EXPECT_EQ(push.offer->seed, event.at("seed").get<uint64_t>());
    const int block = push.offer->spec.block;
    const auto places = static_cast<int64_t>(push.offer->scales.size()) * block;
    const std::vector<double> u = core::ModDither(push.offer->seed, places);
    ASSERT_EQ(event.at("u").size(), u.size());
    for (size_t q = 0; q < u.size(); ++q) {
      EXPECT_NEAR(u[q], event.at("u").at(q).get<double>(), 1e-9);
    }
    exchange.offer = push.offer;
    if (want == nullptr || !want->contains("offer")) return;
    const json& offer = want->at("offer");
    EXPECT_EQ(json(push.offer->scales), offer.at("e"));
    EXPECT_EQ(push.offer->codes, Flat<uint8_t>(offer.at("code")));
    EXPECT_EQ(json(push.offer->checks), offer.at("check"));
  }

  void PlayOfferArrival(const json& event, Exchange& exchange,
                        const State* want) {
    ASSERT_NE(exchange.offer, nullptr);
    core::RemoteModel model;
    model.offer = exchange.offer;
    Handle(exchange.to,
           core::PushArrived{name(exchange.from), std::move(model)});
    Visit(exchange.to);
    const std::string result = event.at("result");
    if (result != "answer") {
      // Another is out, or a later one was answered.
      EXPECT_EQ(gossip(exchange.to).ledger().Owes(name(exchange.from)),
                result == "repeat");
      EXPECT_TRUE(given_.empty());
      return;
    }
    ASSERT_EQ(given_.size(), 1U);
    exchange.answer = given_.front();
    given_.clear();
    EXPECT_EQ(exchange.answer->to, name(exchange.from));
    EXPECT_EQ(exchange.answer->sequence, exchange.number);
    if (want == nullptr || !want->contains("answer")) return;
    const json& answer = want->at("answer");
    const core::ModAnswer& got = *exchange.answer->answer;
    EXPECT_EQ(json(got.scales), answer.at("e"));
    EXPECT_EQ(got.q, Flat<int16_t>(answer.at("q")));
    EXPECT_EQ(json(got.next_scales), answer.at("e_new"));
    for (size_t b = 0; b < got.refused.size(); ++b) {
      EXPECT_EQ(got.refused[b] != 0, answer.at("refused").at(b).get<bool>());
    }
    EXPECT_TRUE(Close(got.gamma, answer.at("gamma").get<double>()));
    EXPECT_TRUE(Close(got.beta, answer.at("beta").get<double>()));
    if (answer.contains("v")) {
      EXPECT_EQ(Difference("v", *exchange.answer->mass, answer.at("v")), "");
    }
  }

  void PlayAnswerArrival(const json& event, Exchange& exchange) {
    ASSERT_TRUE(exchange.answer.has_value());
    const auto before = algorithm(exchange.from).Gauges();
    core::RemoteModel model;
    model.answer = exchange.answer->answer;
    Handle(exchange.from, core::MassArrived{name(exchange.to), exchange.number,
                                            std::move(model)});
    Visit(exchange.from);
    const auto after = algorithm(exchange.from).Gauges();
    const bool applies = event.at("result") == "apply";
    EXPECT_EQ(after.at("exchanges") - before.at("exchanges"), applies ? 1 : 0);
    EXPECT_EQ(after.at("mass_repeats") - before.at("mass_repeats"),
              applies ? 0 : 1);
    exchange.applied = exchange.applied || applies;
  }

  // Integers, exactly.
  template <typename Get>
  void ExpectIntegers(const State& want, const char* field, Get get) {
    if (!want.contains(field)) return;
    const json& rows = want.at(field);
    for (size_t i = 0; i < size(); ++i) {
      if (rows.at(i).is_null()) continue;
      for (size_t b = 0; b < rows.at(i).size(); ++b) {
        EXPECT_EQ(get(gossip(i).scales()[b]), rows.at(i).at(b).get<int>())
            << field << " of node " << i << ", block " << b;
      }
    }
  }

  // Rows of nodes that an event did not change are null.
  static void ExpectIfTold(const State& want, const std::string& field,
                           size_t i, absl::Span<const float> got) {
    if (!want.contains(field) || want.at(field).at(i).is_null()) return;
    ExpectRow(want, field, i, got);
  }

  void CheckState(const State& want) {
    for (size_t i = 0; i < size(); ++i) {
      ExpectIfTold(want, "x", i, parameters(i));
      ExpectIfTold(want, "D", i, gossip(i).control());
    }
    ExpectIntegers(want, "e", [](const core::BlockScale& s) { return s.e; });
    ExpectIntegers(want, "r",
                   [](const core::BlockScale& s) { return s.refusals; });
    if (want.contains("exchanges")) {
      for (size_t i = 0; i < size(); ++i) {
        EXPECT_EQ(gossip(i).exchanges(),
                  want.at("exchanges").at(i).get<int64_t>());
      }
    }
    CheckSums(want);
  }

  void CheckSums(const State& want) {
    if (!want.contains("sum_x")) return;
    const size_t n = parameters(0).size();
    std::vector<float> x(n, 0.0F);
    std::vector<float> d(n, 0.0F);
    std::vector<float> x_in_flight(n, 0.0F);
    std::vector<float> d_in_flight(n, 0.0F);
    for (size_t l = 0; l < n; ++l) {
      double sum_x = 0;
      double sum_d = 0;
      for (size_t i = 0; i < size(); ++i) {
        sum_x += parameters(i)[l];
        sum_d += gossip(i).control()[l];
      }
      x[l] = static_cast<float>(sum_x);
      d[l] = static_cast<float>(sum_d);
    }
    for (const auto& [id, exchange] : exchanges_) {
      if (!exchange.answer || exchange.applied) continue;
      const core::ModAnswer& answer = *exchange.answer->answer;
      for (size_t l = 0; l < n; ++l) {
        const float v = (*exchange.answer->mass)[l];
        x_in_flight[l] -= static_cast<float>(answer.gamma) * v;
        d_in_flight[l] += static_cast<float>(answer.beta) * v;
      }
    }
    EXPECT_EQ(Difference("sum_x", x, want.at("sum_x")), "");
    EXPECT_EQ(Difference("sum_D", d, want.at("sum_D")), "");
    EXPECT_EQ(Difference("x_in_flight", x_in_flight, want.at("x_in_flight")),
              "");
    EXPECT_EQ(Difference("D_in_flight", d_in_flight, want.at("D_in_flight")),
              "");
  }

  const json& params_;
  std::vector<Script> scripts_;
  std::map<int64_t, Exchange> exchanges_;
  std::vector<core::Push> pushed_;  // not yet in the script
  std::vector<core::Give> given_;
  bool visits_ = false;
};

}  // namespace

void RunGossip(const Case& golden) {
  GossipRun run(golden);
  if (testing::Test::HasFatalFailure()) return;
  run.Play();
}

}  // namespace dfl::golden
