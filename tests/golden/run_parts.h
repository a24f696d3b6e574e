// What the drivers of golden runs share: a node's plan, and what it pushes.
#ifndef DFL_TESTS_GOLDEN_RUN_PARTS_H_
#define DFL_TESTS_GOLDEN_RUN_PARTS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "daemon/core/algorithm/algorithm.h"
#include "tests/golden/golden_case.h"
#include "tests/golden/golden_network.h"

namespace dfl::golden {

// A plan with checked knobs and no neighbours. Knobs that are refused end the
// case (Require).
core::NodePlan MakePlan(const std::string& algorithm, int64_t self,
                        const core::KnobValues& knobs);

// The knobs of the case's algorithm that its `params` tell as one value: those
// of the catalogue, by their names; `mode` stands for the knob `form`, and an
// object `prox` for the knobs of a proximal point.
core::KnobValues KnobsOf(const Case& golden);

// The node's neighbours with their weights: the off-diagonal non-zeros of its row
// of W.
void SetRow(const nlohmann::json& row, int64_t self, core::NodePlan* plan);

// The nodes of a list, sorted.
std::vector<NodeId> Named(const nlohmann::json& indices);

// A model on its way, as it was when it was pushed.
struct Pushed {
  int64_t from;
  std::vector<NodeId> to;
  std::vector<float> model;
};

// Adds what `node` has asked to push, if anything: its parameters of then.
void TakePush(GoldenNode& node, int64_t from, int64_t round,
              std::vector<Pushed>& pushes);

// Nobody was missed: the deadlines that were set do not pass.
void ExpectNobodyMissed(GoldenNode& node);

core::RemoteModel WholeModel(const std::vector<float>& values, int64_t round);

}  // namespace dfl::golden

#endif  // DFL_TESTS_GOLDEN_RUN_PARTS_H_
