#include "daemon/runtime/evaluations.h"

#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "daemon/core/algorithm/algorithm.h"
#include "daemon/core/algorithm/pace.h"
#include "daemon/core/plan/run_plan.h"
#include "daemon/core/plan/stop_rule.h"

namespace dfl::runtime {

using ports::Phase;

std::optional<std::string> Evaluations::StopRule() const {
  if (!own_.algorithm.get()) return std::nullopt;
  const core::StopRule& stop = own_.run.plan().stop;
  std::string met = core::MetLimit(stop, own_.algorithm.pace(), own_.Epochs());
  if (!met.empty()) return met;
  if (own_.progress.TrainingTime(loop_.Now()) >= stop.time) {
    return absl::StrCat("it trained for ", absl::FormatDuration(stop.time));
  }
  if (!made_.last) return std::nullopt;
  if (stop.loss_below > 0 && made_.last->loss < stop.loss_below) {
    return absl::StrCat("the loss is below ", stop.loss_below);
  }
  if (stop.accuracy_above > 0 &&
      made_.last->accuracy.value_or(0) > stop.accuracy_above) {
    return absl::StrCat("the accuracy is above ", stop.accuracy_above);
  }
  return std::nullopt;
}

int64_t Evaluations::EndsBy(int64_t furthest) const {
  const core::StopRule& stop = own_.run.plan().stop;
  const auto ends = [&](int64_t k) {
    const core::Pace pace = own_.algorithm.get()->PaceAt(k);
    return !core::MetLimit(stop, pace, own_.progress.epochs().At(pace.steps))
                .empty();
  };
  if (!ends(furthest)) return 0;
  int64_t low = own_.algorithm.step();
  int64_t high = furthest;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (ends(middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return high;
}

// A boundary may lie some steps beyond the one that an evaluation is due at.
bool Evaluations::Due() {
  const int64_t every = own_.run.plan().evaluation.every_steps;
  const int64_t step = own_.algorithm.pace().steps;
  const int64_t before = std::exchange(made_.visited, step);
  if (every <= 0 || step == 0 || made_.step == step || test_rows() == 0) {
    return false;
  }
  return step % every == 0 || (before >= 0 && step / every > before / every);
}

bool Evaluations::Visit() {
  const bool busy = training_.learner().busy();
  if (const std::optional<std::string> why = StopRule()) {
    if (!busy) Finish(*why);
    return true;
  }
  made_.owed = made_.owed || Due();
  if (!made_.owed || busy) return false;
  made_.owed = false;
  Run(own_.run.plan().evaluation.examples,
      [this] { own_.boundary.Schedule(); });
  return true;
}

void Evaluations::Finish(const std::string& why) {
  const bool made =
      made_.step == own_.algorithm.pace().steps && made_.rows == 0;
  if (test_rows() == 0 || made) {
    own_.phases.Set(Phase::kFinished, why);
    return;
  }
  Run(0, [this, why] {
    own_.phases.Set(Phase::kFinished, why);
    own_.boundary.Schedule();
  });
}

void Evaluations::Run(int64_t rows, std::function<void()> then) {
  own_.LeaveBoundary();
  training_.learner().Evaluate(
      rows, [this, rows,
             then = std::move(then)](absl::StatusOr<ports::Evaluation> result) {
        own_.boundary.Reach();
        made_.step = own_.algorithm.pace().steps;
        made_.rows = rows;
        if (result.ok()) {
          made_.last = *result;
          events_.Report(ports::Evaluated{made_.step, *result});
        }
        training_.OnEvaluation(result.status());
        then();
      });
}

}  // namespace dfl::runtime
