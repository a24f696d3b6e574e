// One golden vector: a small run with every random or timing decision written
// down, and the states that must come out. The format is told in README.md.
#ifndef DFL_TESTS_GOLDEN_GOLDEN_CASE_H_
#define DFL_TESTS_GOLDEN_GOLDEN_CASE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "daemon/base/ids.h"
#include "daemon/core/problems.h"
#include "nlohmann/json.hpp"

namespace dfl::golden {

// |a - b| <= 2e-4 max(1, |b|): what float32 is held to.
inline constexpr double kTolerance = 2e-4;
bool Close(double a, double b);

// The files of DFL_GOLDEN_DIR, or of tests/golden/vectors, sorted.
std::vector<std::string> CaseFiles();

nlohmann::json LoadCase(const std::string& path);

// f_i of every node.
std::vector<std::unique_ptr<core::Problem>> MakeProblems(
    const nlohmann::json& problem);

// The trajectory's entry of step k; null when it is not recorded.
const nlohmann::json* StateAfter(const nlohmann::json& golden, int64_t k);

// "node-03": sorts as the index does.
NodeId NodeName(int64_t index);
int64_t NodeIndex(const NodeId& node);

// A batch: row indices, or null for all rows (then empty).
std::vector<int64_t> ReadBatch(const nlohmann::json& batch);

// "" when `got` matches the array `want`, else the first difference.
std::string Difference(const std::string& what, const std::vector<float>& got,
                       const nlohmann::json& want);

}  // namespace dfl::golden

#endif  // DFL_TESTS_GOLDEN_GOLDEN_CASE_H_
