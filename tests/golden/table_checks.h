// Golden vectors that are no runs: tables of results of one function.
#ifndef DFL_TESTS_GOLDEN_TABLE_CHECKS_H_
#define DFL_TESTS_GOLDEN_TABLE_CHECKS_H_

#include "nlohmann/json.hpp"
#include "tests/golden/golden_case.h"

namespace dfl::golden {

// The tables of pme, prox, mixing or mod; fails for anything else.
void CheckTables(const Case& golden);

// One table of the value format `mod`.
void CheckModTable(const nlohmann::json& table);

}  // namespace dfl::golden

#endif  // DFL_TESTS_GOLDEN_TABLE_CHECKS_H_
