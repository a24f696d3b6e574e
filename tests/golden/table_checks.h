// Golden vectors that are no runs: tables of results of one function.
#ifndef DFL_TESTS_GOLDEN_TABLE_CHECKS_H_
#define DFL_TESTS_GOLDEN_TABLE_CHECKS_H_

#include "tests/golden/golden_case.h"

namespace dfl::golden {

// The tables of pme, prox or mixing; fails for anything else.
void CheckTables(const Case& golden);

}  // namespace dfl::golden

#endif  // DFL_TESTS_GOLDEN_TABLE_CHECKS_H_
