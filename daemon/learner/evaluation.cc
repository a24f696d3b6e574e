#include "daemon/learner/evaluation.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/rng.h"
#include "daemon/base/status_macros.h"
#include "daemon/learner/bad_batch.h"
#include "daemon/learner/losses.h"
#include "daemon/learner/scores.h"

namespace dfl::learner {
namespace {

// Rows evaluated at once: what one takes as activations grows with its size.
int64_t EvaluationBatch(int64_t row_size) {
  constexpr int64_t kValues = 100000;
  return std::max<int64_t>(1, std::min<int64_t>(256, kValues / row_size));
}

// Loss and scores, gathered part by part.
class Sums {
 public:
  explicit Sums(const ResolvedSpec& spec)
      : spec_(spec), scores_(spec.classes) {}

  // `outputs` are those for `batch`. Returns the loss of the part.
  double Add(const at::Tensor& outputs, const BatchTensors& batch) {
    const double loss =
        MeanLoss(spec_, outputs, batch.answers()).item<double>();
    const int64_t rows = batch.answers().size(0);
    const double weight = LossWeight(spec_, rows, batch.labels());
    rows_ += rows;
    loss_ += loss * weight;
    weight_ += weight;
    const auto count = static_cast<size_t>(rows);
    if (spec_.classes == 0) {
      const at::Tensor values = outputs.to(at::kCPU).reshape({-1}).contiguous();
      errors_.Add(batch.targets(),
                  absl::MakeConstSpan(values.data_ptr<float>(), count));
    } else {
      const at::Tensor predictions =
          Predictions(outputs).to(at::kCPU).contiguous();
      scores_.Add(batch.labels(),
                  absl::MakeConstSpan(predictions.data_ptr<int64_t>(), count));
    }
    return loss;
  }

  ports::Evaluation Result() const {
    ports::Evaluation result;
    result.rows = rows_;
    result.loss = loss_ / weight_;
    if (spec_.classes == 0) {
      result.mae = errors_.MeanAbsolute();
      result.r2 = errors_.RSquared();
    } else {
      result.accuracy = scores_.Accuracy();
      result.macro_f1 = scores_.MacroF1();
    }
    return result;
  }

 private:
  const ResolvedSpec& spec_;
  Scores scores_;
  RegressionScores errors_;
  double loss_ = 0;
  double weight_ = 0;
  int64_t rows_ = 0;
};

}  // namespace

std::vector<int64_t> EvaluationOrder(int64_t rows) {
  std::vector<int64_t> order(static_cast<size_t>(rows));
  std::iota(order.begin(), order.end(), int64_t{0});
  Rng(DeriveSeed(0, "evaluation order")).Shuffle(absl::MakeSpan(order));
  return order;
}

absl::StatusOr<ports::Evaluation> EvaluateRows(
    const BoundModel& model, const data::DatasetView& test,
    absl::Span<const int64_t> rows, const data::Standardizer& standardizer,
    BatchTensors& batch) {
  const c10::AutoGradMode no_gradients(false);
  model.binding.BeginEvaluation();
  const auto step =
      static_cast<size_t>(EvaluationBatch(test.dataset().row_size()));
  Sums sums(model.spec);
  for (size_t begin = 0; begin < rows.size(); begin += step) {
    const absl::Span<const int64_t> part = rows.subspan(begin, step);
    batch.Fill(test, part, standardizer);
    DFL_ASSIGN_OR_RETURN(const at::Tensor outputs,
                         ComputeOutputs(model, batch));
    if (std::isfinite(sums.Add(outputs, batch))) continue;
    return absl::DataLossError(absl::StrCat(
        "evaluation: the loss is not finite; ",
        DescribeRows(test, "test", part, batch),
        "; either training diverged or the data is to be mended or "
        "standardised"));
  }
  return sums.Result();
}

}  // namespace dfl::learner
