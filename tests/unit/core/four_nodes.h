// Four nodes of one algorithm without any chance: every message takes the time
// of its edge, every gradient that of its number, and parcels of mass between
// two of the nodes are late. Algorithms of all kinds run on it, for tests of
// what is common to them; one that is in no catalogue does too.
#ifndef DFL_TESTS_UNIT_CORE_FOUR_NODES_H_
#define DFL_TESTS_UNIT_CORE_FOUR_NODES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "daemon/core/algorithm/algorithm_info.h"
#include "daemon/core/algorithms/catalogue.h"
#include "daemon/simports/problems.h"
#include "tests/support/test_network.h"

namespace dfl::core {

class FourNodes : public TestNetwork {
 public:
  static constexpr size_t kNodes = 4;
  // Whose parcels to the other are late.
  static constexpr size_t kSlowGiver = 1;
  static constexpr size_t kSlowTaker = 2;

  // All nodes at step 0. Periods are short, so that they pass in a few steps.
  explicit FourNodes(const AlgorithmInfo& info);

  // Until all nodes are at a boundary and have done `steps`. After that Run
  // lets arrive what is on its way; no step begins.
  void RunToStep(int64_t steps);
  // Puts another object in the place of node i's. What that had asked for goes
  // on.
  void Replace(size_t i, std::unique_ptr<Algorithm> algorithm);

 private:
  std::optional<double> Latency(size_t from, size_t to,
                                const Event& message) override;
  std::optional<double> ComputeTime(size_t i) override;
  std::vector<int64_t> NextBatch(size_t i) override;
  GradientReady Gradient(size_t i, absl::Span<const float> model,
                         const std::vector<int64_t>& batch) override;
  void OnBoundary(size_t i) override { MayBegin(i); }
  void MayBegin(size_t i);

  const Catalogue catalogue_;
  const simports::SoftmaxSet data_;
  std::array<int64_t, kNodes> batches_ = {};  // computed on so far
  int64_t goal_ = 0;
};

}  // namespace dfl::core

#endif  // DFL_TESTS_UNIT_CORE_FOUR_NODES_H_
