// The states on record of runs that give mass away.
#ifndef DFL_TESTS_GOLDEN_MASS_STATES_H_
#define DFL_TESTS_GOLDEN_MASS_STATES_H_

#include "daemon/core/algorithm/knobs.h"
#include "tests/golden/golden_case.h"
#include "tests/golden/mass_run.h"

namespace dfl::golden {

// KnobsOf, the compressor's, and `unbias` off.
core::KnobValues MassKnobs(const Case& golden);

// Expects every node's states after a round.
void CheckStates(MassRun& run, const State& want);

}  // namespace dfl::golden

#endif  // DFL_TESTS_GOLDEN_MASS_STATES_H_
