#include "daemon/learner/catalogue/evaluation_sums.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "daemon/base/rng.h"
#include "daemon/learner/catalogue/bad_batch.h"

namespace dfl::learner {

std::vector<int64_t> EvaluationOrder(int64_t rows) {
  std::vector<int64_t> order(static_cast<size_t>(rows));
  std::iota(order.begin(), order.end(), int64_t{0});
  Rng(DeriveSeed(0, "evaluation order")).Shuffle(absl::MakeSpan(order));
  return order;
}

int64_t EvaluationBatch(int64_t row_size) {
  constexpr int64_t kValues = 100000;
  return std::max<int64_t>(1, std::min<int64_t>(256, kValues / row_size));
}

double LossWeight(const ResolvedSpec& spec, int64_t rows,
                  absl::Span<const int64_t> labels) {
  if (spec.class_weights.empty()) return static_cast<double>(rows);
  double sum = 0;
  for (const int64_t label : labels) {
    sum += spec.class_weights[static_cast<size_t>(label)];
  }
  return sum;
}

absl::Status LossNotFinite(const data::DatasetView& test,
                           absl::Span<const int64_t> rows,
                           absl::Span<const size_t> wild) {
  return absl::DataLossError(
      absl::StrCat("evaluation: the loss is not finite; ",
                   DescribeRows(test, "test", rows, wild),
                   "; either training diverged or the data is to be mended or "
                   "standardised"));
}

void EvaluationSums::AddLoss(double loss, int64_t rows,
                             absl::Span<const int64_t> labels) {
  const double weight = LossWeight(spec_, rows, labels);
  rows_ += rows;
  loss_ += loss * weight;
  weight_ += weight;
}

void EvaluationSums::AddClasses(double loss, absl::Span<const int64_t> labels,
                                absl::Span<const int64_t> predictions) {
  AddLoss(loss, static_cast<int64_t>(labels.size()), labels);
  scores_.Add(labels, predictions);
}

void EvaluationSums::AddTargets(double loss, absl::Span<const float> targets,
                                absl::Span<const float> outputs) {
  AddLoss(loss, static_cast<int64_t>(targets.size()), {});
  errors_.Add(targets, outputs);
}

ports::Evaluation EvaluationSums::Result() const {
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

}  // namespace dfl::learner
