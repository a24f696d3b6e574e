#include "daemon/core/algorithm/algorithm.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/check.h"
#include "daemon/base/status_macros.h"
#include "daemon/core/algorithm/state_fields.h"

namespace dfl::core {

Pace Algorithm::PaceAt(int64_t k) const {
  const Pace now = PaceOf(step());
  const Pace then = PaceOf(k);
  return {pace_.steps + then.steps - now.steps,
          pace_.rounds + then.rounds - now.rounds};
}

void Algorithm::JumpTo(int64_t k) {
  const Pace before = pace_;
  const Pace from = PaceOf(step());
  MoveTo(k);
  const Pace to = PaceOf(step());
  pace_ = {before.steps + to.steps - from.steps,
           before.rounds + to.rounds - from.rounds};
}

void Algorithm::Visit(StateFields& fields) {
  fields.Count("gradients", pace_.steps);
  fields.Count("rounds", pace_.rounds);
  fields.Count("idle", idle_);
  // Of a gradient that is ready and waits for its round.
  fields.Flag("has_gradient", has_gradient_);
  VisitState(fields);
}

AlgorithmState Algorithm::ExportState() {
  AlgorithmState state;
  state.algorithm = name_;
  StateFields fields(&state);
  Visit(fields);
  return state;
}

absl::Status Algorithm::ImportState(const AlgorithmState& state,
                                    Actions& actions) {
  if (state.version != kAlgorithmStateVersion) {
    return absl::InvalidArgumentError(
        absl::StrCat("state of ", state.algorithm, ": version ", state.version,
                     "; allowed: ", kAlgorithmStateVersion));
  }
  if (state.algorithm != name_) {
    return absl::InvalidArgumentError(absl::StrCat(
        "state of \"", state.algorithm, "\"; allowed: of \"", name_, "\""));
  }
  StateFields check(state, StateFields::Reading::kCheck);
  Visit(check);
  DFL_RETURN_IF_ERROR(check.Finish());
  StateFields read(state, StateFields::Reading::kRead);
  Visit(read);
  DFL_CHECK(read.Finish().ok());
  Resume(actions);
  return absl::OkStatus();
}

std::unique_ptr<Algorithm> CreateAlgorithm(const AlgorithmInfo& info,
                                           AlgorithmContext context,
                                           Decisions& decisions) {
  std::unique_ptr<Algorithm> made = info.create(std::move(context), decisions);
  made->name_ = info.name;
  return made;
}

}  // namespace dfl::core
