// What the tests of LibTorch's learner share, beside unit/plain/rows.h.
#ifndef DFL_TESTS_UNIT_LEARNER_LEARNER_FIXTURE_H_
#define DFL_TESTS_UNIT_LEARNER_LEARNER_FIXTURE_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "daemon/core/plan/run_plan.h"
#include "daemon/data/load.h"
#include "daemon/learner/torch_learner.h"
#include "gtest/gtest.h"
#include "tests/unit/plain/rows.h"

namespace dfl::learner {

constexpr char kFashionMnist[] = "/usr/share/datasets/fashion-mnist";

inline absl::StatusOr<std::unique_ptr<BoundLearner>> MakeLearner(
    const core::ModelSpec& spec, const data::DatasetView& train,
    const absl::optional<data::DatasetView>& test = absl::nullopt,
    const LearnerOptions& options = LearnerOptions(), uint64_t seed = 1) {
  LearnerData data(train);
  data.test = test;
  auto learner = CreateTorchLearner(spec, std::move(data), options);
  if (!learner.ok()) return learner.status();
  return BoundLearner::Of(*std::move(learner), seed);
}

}  // namespace dfl::learner

#endif  // DFL_TESTS_UNIT_LEARNER_LEARNER_FIXTURE_H_
