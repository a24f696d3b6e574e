#include "daemon/core/rounds/local_rounds.h"

#include <utility>

namespace dfl::core {

LocalRounds::LocalRounds(AlgorithmContext context)
    : PushRounds(std::move(context)), local_steps_(plan().knobs.Integer("K")) {}

void LocalRounds::OnPlanChanged() { local_steps_ = plan().knobs.Integer("K"); }

void LocalRounds::BeforeTraining() {
  left_ = local_steps_;
  BeginLocalSteps();
}

KnobSpec LocalStepsKnob() {
  return {.name = "K",
          .type = KnobType::kInteger,
          .default_value = int64_t{5},
          .min = 1,
          .unit = "steps",
          .noun = KnobNoun::kPeriod,
          .help = "Local steps in a round."};
}

}  // namespace dfl::core
