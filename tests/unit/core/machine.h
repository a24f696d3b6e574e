// One algorithm by itself, for tests: its vectors, the events it is handed and
// the actions it asks for.
#ifndef DFL_TESTS_UNIT_CORE_MACHINE_H_
#define DFL_TESTS_UNIT_CORE_MACHINE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/core/algorithm/algorithm.h"
#include "daemon/core/algorithms/catalogue.h"
#include "daemon/core/algorithms/hubs.h"
#include "gtest/gtest.h"
#include "tests/support/recorded_actions.h"

namespace dfl::core {

inline RemoteModel Model(std::vector<float> values, int64_t step,
                         std::vector<float> buffers = {}) {
  RemoteModel model;
  model.parameters = std::make_unique<PlainRemoteVector>(std::move(values));
  model.buffers = std::move(buffers);
  model.step = step;
  return model;
}

inline NodeId Id(const std::string& name) { return NodeId(name); }

// Takes the first candidates; kappa is the lower end.
class ScriptedDecisions : public Decisions {
 public:
  std::vector<NodeId> ChooseNeighbours(absl::Span<const NodeId> candidates,
                                       int64_t count) override {
    return {candidates.begin(), candidates.begin() + count};
  }
  uint64_t NameCoordinates(const NodeId&) override { return ++names; }
  int64_t DrawFrom(absl::string_view, IntRange range) override {
    return range.lo;
  }
  int64_t DrawAnew(absl::string_view, IntRange range) override {
    return range.lo;
  }
  // As `happens` says.
  bool Happens(absl::string_view, const NodeId&, double) override {
    return happens;
  }
  // The lowest places.
  std::vector<int64_t> ChooseTogether(uint64_t, absl::string_view, int64_t,
                                      int64_t, int64_t count) override {
    std::vector<int64_t> places;
    for (int64_t place = 0; place < count; ++place) places.push_back(place);
    return places;
  }
  double DrawWait(absl::string_view, double mean) override { return mean; }
  // The lowest.
  std::vector<int64_t> ChooseCoordinates(absl::string_view, int64_t n,
                                         int64_t count) override {
    return ChooseTogether(0, "", 0, n, count);
  }
  uint64_t names = 0;
  bool happens = true;
};

// One algorithm with n parameters and the actions it has asked for.
class Machine {
 public:
  Machine(const std::string& algorithm, KnobValues knobs,
          std::vector<Neighbour> neighbours, int64_t n = 2)
      : parameters(n), gradient(n), buffers(1), name_(algorithm) {
    AlgorithmContext context;
    context.plan = Plan(std::move(knobs), std::move(neighbours));
    context.vectors =
        NodeVectors{absl::MakeSpan(parameters), absl::MakeSpan(gradient),
                    absl::MakeSpan(buffers)};
    algorithm_ = CreateAlgorithm(**BuiltInCatalogue().Find(algorithm),
                                 std::move(context), decisions);
    Handle(Started{0});
  }

  NodePlan Plan(KnobValues knobs, std::vector<Neighbour> neighbours) const {
    NodePlan plan;
    plan.self = NodeId("self");
    plan.knobs =
        *Knobs::Resolve((*BuiltInCatalogue().Find(name_))->knobs, knobs);
    plan.neighbours = std::move(neighbours);
    plan.member_count = static_cast<int64_t>(plan.neighbours.size()) + 1;
    plan.in_neighbours = plan.out_neighbours = plan.neighbours;
    if ((*BuiltInCatalogue().Find(name_))->derive == DeriveHubs) {
      plan.facts = std::make_shared<HubFacts>(std::vector<NodeId>{plan.self});
    }
    return plan;
  }

  // The names of the actions that `event` leads to, e.g. "ask gradient".
  std::string Handle(Event event) {
    actions.clear();
    algorithm_->Handle(std::move(event), actions);
    std::string text;
    for (const Action& action : actions) {
      static constexpr const char* kNames[] = {
          "gradient", "ask",    "cancel-ask", "answer", "push", "wake",
          "cancel",   "missed", "done",       "give",   "skip", "predict"};
      absl::StrAppend(&text, text.empty() ? "" : " ", kNames[action.index()]);
    }
    return text;
  }
  template <typename A>
  A Last() const {
    for (const Action& action : actions) {
      if (const auto* a = std::get_if<A>(&action)) return *a;
    }
    ADD_FAILURE() << "no such action";
    return A();
  }
  double Gauge(const std::string& name) { return algorithm_->Gauges()[name]; }
  Algorithm& operator*() { return *algorithm_; }
  Algorithm* operator->() { return algorithm_.get(); }

  ScriptedDecisions decisions;
  std::vector<float> parameters;
  std::vector<float> gradient;
  std::vector<float> buffers;
  RecordedActions actions{&parameters};

 private:
  std::string name_;
  std::unique_ptr<Algorithm> algorithm_;
};

inline std::vector<Neighbour> Three() {
  return {{Id("a"), 0.25}, {Id("b"), 0.25}, {Id("c"), 0.25}};
}

}  // namespace dfl::core

#endif  // DFL_TESTS_UNIT_CORE_MACHINE_H_
