// What the drivers of golden runs share: a node's plan and its batches.
#ifndef DFL_TESTS_GOLDEN_RUN_PARTS_H_
#define DFL_TESTS_GOLDEN_RUN_PARTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/core/algorithm/algorithm.h"
#include "tests/golden/golden_case.h"

namespace dfl::golden {

// A plan with checked knobs and no neighbours. Knobs that are refused end the
// case (Require).
core::NodePlan MakePlan(const std::string& algorithm, int64_t self,
                        const core::KnobValues& knobs);

// The knobs of the case's algorithm that its `params` tell as one value: those
// of the catalogue, by their names; `mode` stands for the knob `form`, and an
// object `prox` for the knobs of a proximal point.
core::KnobValues KnobsOf(const Case& golden);

// The node's neighbours with their weights: the off-diagonal non-zeros of its
// row of W.
void SetRow(const nlohmann::json& row, int64_t self, core::NodePlan* plan);

// The nodes of a list, sorted.
std::vector<NodeId> Named(const nlohmann::json& indices);

// Adds the knobs that `prox` stands for: prox, lambda, theta and a.
void AddProxKnobs(const nlohmann::json& prox, core::KnobValues& knobs);

// The batches of node i in a step: those of `local`, or the one of `batch`.
std::vector<std::vector<int64_t>> BatchesOf(const nlohmann::json& step,
                                            size_t i);

// How many batches the node's epoch has.
int64_t BatchesPerPass(const Case& golden, const simports::Problem& problem);

}  // namespace dfl::golden

#endif  // DFL_TESTS_GOLDEN_RUN_PARTS_H_
