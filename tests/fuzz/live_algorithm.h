// A made-up state of an algorithm, taken by one: it is refused and changes
// nothing, or the algorithm goes on from it.
#ifndef DFL_TESTS_FUZZ_LIVE_ALGORITHM_H_
#define DFL_TESTS_FUZZ_LIVE_ALGORITHM_H_

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "daemon/base/check.h"
#include "daemon/base/rng.h"
#include "daemon/core/algorithm/algorithm.h"
#include "daemon/core/algorithm/algorithm_state.h"
#include "daemon/core/algorithm/decisions.h"
#include "daemon/core/algorithms/catalogue.h"
#include "daemon/core/plan/derived_plan.h"
#include "daemon/core/plan/run_plan.h"

namespace dfl::fuzz {

// As those of the corpus have (tests/unit/core/four_nodes.h).
inline constexpr size_t kParameters = 12;
inline constexpr size_t kBuffers = 2;
inline constexpr int kNodes = 4;

// The first of four nodes, with the algorithm `info`.
inline core::NodePlan MakeNodePlan(const core::AlgorithmInfo& info) {
  core::RunPlan plan;
  plan.seed = 7;
  for (int i = 0; i < kNodes; ++i) {
    plan.members.push_back(
        core::MemberSpec{.node = NodeId(absl::StrCat("node-", i)), .rows = 12});
  }
  plan.algorithm.name = info.name;
  plan.topology.kind = info.star_graph ? "star" : "complete";
  plan.codec.format.coordinates = core::Coordinates::kDense;
  auto plans = core::DeriveNodePlans(plan);
  DFL_CHECK(plans.ok());
  return std::move(plans->front());
}

inline const core::NodePlan& NodePlanOf(const core::AlgorithmInfo& info) {
  static auto* const kPlans = new std::map<std::string, core::NodePlan>;
  auto found = kPlans->find(info.name);
  if (found == kPlans->end()) {
    found = kPlans->emplace(info.name, MakeNodePlan(info)).first;
  }
  return found->second;
}

// An algorithm with the vectors that it works on, and without neighbours that
// say anything.
class LiveAlgorithm final : private core::Actions {
 public:
  explicit LiveAlgorithm(const core::AlgorithmInfo& info)
      : plan_(NodePlanOf(info)),
        decisions_(DeriveSeed(plan_.seed, plan_.self.name())) {
    core::AlgorithmContext context;
    context.plan = plan_;
    context.vectors =
        core::NodeVectors{absl::MakeSpan(parameters_),
                          absl::MakeSpan(gradient_), absl::MakeSpan(buffers_)};
    context.train_rows = 12;
    algorithm_ = core::CreateAlgorithm(info, std::move(context), decisions_);
  }

  absl::Status Import(const core::AlgorithmState& state) {
    return algorithm_->ImportState(state, *this);
  }
  std::string Export() {
    return core::SerializeState(algorithm_->ExportState());
  }
  core::Algorithm& algorithm() { return *algorithm_; }

  // Up to `steps` steps, with gradients and in vain for all neighbours.
  void GoOn(int steps) {
    constexpr int kMostActions = 100;  // of a step; timers may go on for ever
    for (int i = 0; i < kNodes; ++i) {
      const NodeId peer(absl::StrCat("node-", i));
      if (peer != plan_.self) Handle(core::PeerUp{peer});
    }
    for (; steps > 0 && at_boundary_; --steps) {
      at_boundary_ = false;
      Handle(core::StepBegins{});
      for (int i = 0; i < kMostActions && !actions_.empty(); ++i) {
        core::Action action = std::move(actions_.front());
        actions_.pop_front();
        Follow(action);
      }
    }
  }

 private:
  void Do(core::Action action) override {
    actions_.push_back(std::move(action));
  }
  void Handle(core::Event event) {
    algorithm_->Handle(std::move(event), *this);
  }
  // What comes of an action.
  void Follow(const core::Action& action) {
    if (std::holds_alternative<core::ComputeGradient>(action)) {
      gradient_.assign(kParameters, 0.5F);
      core::GradientReady ready;
      ready.loss = 1;
      ready.rows = 3;
      Handle(ready);
    } else if (const auto* ask = std::get_if<core::Ask>(&action)) {
      for (const NodeId& peer : ask->peers) {
        Handle(core::AnswerMissing{peer, ask->ask});
      }
    } else if (const auto* wake = std::get_if<core::WakeAfter>(&action)) {
      Handle(core::TimerFired{wake->timer});
    } else if (std::holds_alternative<core::Predict>(action)) {
      Handle(core::Predicted{});
    } else if (std::holds_alternative<core::StepDone>(action)) {
      at_boundary_ = true;
    }
  }

  const core::NodePlan& plan_;
  core::SeededDecisions decisions_;
  std::vector<float> parameters_ = std::vector<float>(kParameters);
  std::vector<float> gradient_ = std::vector<float>(kParameters);
  std::vector<float> buffers_ = std::vector<float>(kBuffers);
  std::unique_ptr<core::Algorithm> algorithm_;
  std::deque<core::Action> actions_;
  bool at_boundary_ = true;
};

// Of a state that is taken the algorithm makes a state that it takes again, and
// it goes on from it.
inline void CheckImport(const core::AlgorithmState& state) {
  constexpr int kSteps = 4;
  const auto info = core::BuiltInCatalogue().Find(state.algorithm);
  if (!info.ok()) return;
  LiveAlgorithm subject(**info);
  const std::string before = subject.Export();
  if (!subject.Import(state).ok()) {
    DFL_CHECK(subject.Export() == before);
    return;
  }
  const std::string after = subject.Export();
  DFL_CHECK(subject.algorithm().step() >= 0);
  (void)subject.algorithm().Gauges();
  const auto parsed = core::ParseState(after);
  DFL_CHECK(parsed.ok());
  LiveAlgorithm next(**info);
  DFL_CHECK(next.Import(*parsed).ok());
  DFL_CHECK(next.Export() == after);
  next.GoOn(kSteps);
  DFL_CHECK(next.algorithm().step() >= subject.algorithm().step());
}

}  // namespace dfl::fuzz

#endif  // DFL_TESTS_FUZZ_LIVE_ALGORITHM_H_
