#include "daemon/learner/losses.h"

#include <ATen/ATen.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace dfl::learner {
namespace {

// One output for two classes; labels become -1 and 1.
at::Tensor SignLoss(LossKind loss, const at::Tensor& outputs,
                    const at::Tensor& labels) {
  const at::Tensor f = outputs.reshape({-1});
  const at::Tensor sign = labels.to(f.scalar_type()) * 2 - 1;
  if (loss == LossKind::kHinge) return at::relu(1 - sign * f).mean();
  if (loss == LossKind::kMse) return at::mse_loss(f, sign);
  return at::softplus(-sign * f).mean();
}

at::Tensor OneHot(const at::Tensor& labels, const at::Tensor& like) {
  return at::zeros_like(like).scatter_(1, labels.unsqueeze(1), 1.0);
}

}  // namespace

absl::Status CheckOutputs(const ResolvedSpec& spec, int64_t rows,
                          absl::Span<const int64_t> shape) {
  const bool column = shape.size() == 2 && shape[0] == rows && shape[1] == 1;
  const bool flat = shape.size() == 1 && shape[0] == rows;
  std::string allowed;
  if (spec.classes == 0) {
    if (column || flat) return absl::OkStatus();
    allowed = absl::StrCat("[", rows, ", 1] or [", rows, "] for a regression");
  } else {
    if (shape.size() == 2 && shape[0] == rows && shape[1] == spec.classes) {
      return absl::OkStatus();
    }
    allowed = absl::StrCat("[", rows, ", ", spec.classes, "] for ",
                           spec.classes, " classes");
    if (spec.classes == 2 && spec.loss != LossKind::kCrossEntropy) {
      if (column || flat) return absl::OkStatus();
      absl::StrAppend(&allowed, ", or [", rows, ", 1]");
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("forward gives [", absl::StrJoin(shape, ", "), "] for ",
                   rows, " rows of shape [", absl::StrJoin(spec.input, ", "),
                   "]; allowed: ", allowed));
}

at::Tensor MeanLoss(const ResolvedSpec& spec, const at::Tensor& outputs,
                    const at::Tensor& answers) {
  if (spec.classes == 0) return at::mse_loss(outputs.reshape({-1}), answers);
  if (outputs.dim() == 1 || outputs.size(1) == 1) {
    return SignLoss(spec.loss, outputs, answers);
  }
  switch (spec.loss) {
    case LossKind::kCrossEntropy:
      return at::cross_entropy_loss(outputs, answers);
    case LossKind::kHinge:
      // LibTorch divides by the number of classes.
      return at::multi_margin_loss(outputs, answers) *
             static_cast<double>(spec.classes);
    case LossKind::kMse:
      return at::mse_loss(outputs, OneHot(answers, outputs));
    case LossKind::kLogistic:
      return at::binary_cross_entropy_with_logits(outputs,
                                                  OneHot(answers, outputs)) *
             static_cast<double>(spec.classes);
  }
  return at::Tensor();
}

at::Tensor Probabilities(const at::Tensor& outputs) {
  at::Tensor logits = outputs.to(at::kDouble);
  if (logits.dim() == 1 || logits.size(1) == 1) {
    logits = logits.reshape({-1, 1});
    logits = at::cat({at::zeros_like(logits), logits}, 1);
  }
  return at::softmax(logits, 1);
}

at::Tensor Predictions(const at::Tensor& outputs) {
  if (outputs.dim() == 1 || outputs.size(1) == 1) {
    return outputs.reshape({-1}).gt(0).to(at::kLong);
  }
  return outputs.argmax(1);
}

}  // namespace dfl::learner
