// Golden runs of the algorithms that give mass away (core/rounds/mass_rounds.h).
#ifndef DFL_TESTS_GOLDEN_MASS_RUNS_H_
#define DFL_TESTS_GOLDEN_MASS_RUNS_H_

#include "tests/golden/golden_case.h"

namespace dfl::golden {

// Plays depositum, spod-gt and its kin, k-gt, sgp, nids or what keeps replicas,
// and expects the states on record: models, what the ledger conserves, what is
// measured beside x, what was sent, and for sgp omega.
void RunMass(const Case& golden);

}  // namespace dfl::golden

#endif  // DFL_TESTS_GOLDEN_MASS_RUNS_H_
