#include "daemon/runtime/evaluations.h"

#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "daemon/core/plan/run_plan.h"

namespace dfl::runtime {

using ports::Phase;

std::optional<std::string> Evaluations::StopRule() const {
  if (!own_.algorithm.get()) return std::nullopt;
  const core::StopRule& stop = own_.run.plan().stop;
  if (stop.steps > 0 && own_.algorithm.step() >= stop.steps) {
    return absl::StrCat(stop.steps, " steps are done");
  }
  if (own_.progress.TrainingTime(loop_.Now()) >= stop.time) {
    return absl::StrCat("it trained for ", absl::FormatDuration(stop.time));
  }
  if (!made_.last) return std::nullopt;
  if (stop.loss_below > 0 && made_.last->loss < stop.loss_below) {
    return absl::StrCat("the loss is below ", stop.loss_below);
  }
  if (stop.accuracy_above > 0 && made_.last->accuracy > stop.accuracy_above) {
    return absl::StrCat("the accuracy is above ", stop.accuracy_above);
  }
  return std::nullopt;
}

bool Evaluations::Due() const {
  const int64_t every = own_.run.plan().evaluation.every_steps;
  const int64_t step = own_.algorithm.step();
  return every > 0 && step > 0 && step % every == 0 && made_.step != step &&
         test_rows() > 0;
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
  const bool made = made_.step == own_.algorithm.step() && made_.rows == 0;
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
        made_.step = own_.algorithm.step();
        made_.rows = rows;
        if (result.ok()) {
          made_.last = *result;
          events_.Report(ports::Evaluated{made_.step, *result});
        } else {
          training_.Fail(result.status());
        }
        then();
      });
}

}  // namespace dfl::runtime
