#include "daemon/learner/catalogue/learner_data.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "daemon/base/sha256.h"
#include "daemon/base/status_macros.h"
#include "daemon/core/contract/shape.h"

namespace dfl::learner {

absl::Status CheckData(const LearnerData& data) {
  if (data.train.size() == 0) {
    return absl::InvalidArgumentError(
        "data: no training rows; allowed: at least one (did the partition "
        "leave this node any?)");
  }
  const data::Dataset& train = data.train.dataset();
  DFL_RETURN_IF_ERROR(data.standardizer.CheckFits(train));
  if (!data.test.has_value()) return absl::OkStatus();
  const data::Dataset& test = data.test->dataset();
  if (test.shape() != train.shape() ||
      test.is_regression() != train.is_regression()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "data: test rows are ", core::ShapeText(test.shape()), " with ",
        test.is_regression() ? "targets" : "labels",
        "; allowed: ", core::ShapeText(train.shape()), " with ",
        train.is_regression() ? "targets" : "labels", ", as in training"));
  }
  return absl::OkStatus();
}

DataShape ShapeOf(const LearnerData& data) {
  DataShape shape;
  shape.row = data.train.dataset().shape();
  shape.classes = data.train.dataset().classes();
  if (data.test.has_value()) {
    shape.classes = std::max(shape.classes, data.test->dataset().classes());
  }
  if (!data.contract.classes.empty()) {
    shape.classes = static_cast<int64_t>(data.contract.classes.size());
  }
  return shape;
}

std::string ModelHash(const ResolvedSpec& spec,
                      absl::string_view archive_hash) {
  return Sha256Hex(absl::StrCat("dfl model 2\n", StructureText(spec),
                                "archive ", archive_hash, "\n"));
}

absl::StatusOr<ResolvedSpec> ResolveFor(const core::ModelSpec& spec,
                                        core::Task task,
                                        const std::vector<int64_t>& shape) {
  const int64_t classes = task == core::Task::kRegression ? 0 : 1;
  return ResolveStructure(spec, {shape, classes});
}

}  // namespace dfl::learner
