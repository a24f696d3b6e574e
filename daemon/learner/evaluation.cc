#include "daemon/learner/evaluation.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <cmath>
#include <cstddef>

#include "absl/status/status.h"
#include "daemon/base/status_macros.h"
#include "daemon/learner/catalogue/evaluation_sums.h"
#include "daemon/learner/losses.h"

namespace dfl::learner {
namespace {

// Adds the outputs for `batch` to `sums`. Returns the loss of the part.
double Add(const ResolvedSpec& spec, const at::Tensor& outputs,
           const BatchTensors& batch, EvaluationSums& sums) {
  const double loss = MeanLoss(spec, outputs, batch.answers()).item<double>();
  const auto count = static_cast<size_t>(batch.answers().size(0));
  if (spec.classes == 0) {
    const at::Tensor values = outputs.to(at::kCPU).reshape({-1}).contiguous();
    sums.AddTargets(loss, batch.targets(),
                    absl::MakeConstSpan(values.data_ptr<float>(), count));
  } else {
    const at::Tensor predictions =
        Predictions(outputs).to(at::kCPU).contiguous();
    sums.AddClasses(
        loss, batch.labels(),
        absl::MakeConstSpan(predictions.data_ptr<int64_t>(), count));
  }
  return loss;
}

}  // namespace

absl::StatusOr<ports::Evaluation> EvaluateRows(
    const BoundModel& model, const data::DatasetView& test,
    absl::Span<const int64_t> rows, const data::Standardizer& standardizer,
    BatchTensors& batch) {
  const c10::AutoGradMode no_gradients(false);
  model.binding.BeginEvaluation();
  const auto step =
      static_cast<size_t>(EvaluationBatch(test.dataset().row_size()));
  EvaluationSums sums(model.spec);
  for (size_t begin = 0; begin < rows.size(); begin += step) {
    const absl::Span<const int64_t> part = rows.subspan(begin, step);
    batch.Fill(test, part, standardizer);
    DFL_ASSIGN_OR_RETURN(const at::Tensor outputs,
                         ComputeOutputs(model, batch));
    if (std::isfinite(Add(model.spec, outputs, batch, sums))) continue;
    return LossNotFinite(test, part, batch.WildRows());
  }
  return sums.Result();
}

}  // namespace dfl::learner
