#include "daemon/learner/losses.h"

#include <ATen/ATen.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace dfl::learner {
namespace {

// One output for two classes; labels become -1 and 1. Binary cross-entropy of a
// logit is the logistic loss.
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

// Outputs [rows] or [rows, 1], or [] for one row.
bool IsOneOutput(const at::Tensor& outputs) {
  return outputs.dim() <= 1 || outputs.size(1) == 1;
}

at::Tensor RegressionLoss(const ResolvedSpec& spec, const at::Tensor& outputs,
                          const at::Tensor& targets) {
  const at::Tensor f = outputs.reshape({-1});
  return spec.loss == LossKind::kHuber
             ? at::huber_loss(f, targets, at::Reduction::Mean, spec.huber_delta)
             : at::mse_loss(f, targets);
}

at::Tensor CrossEntropy(const ResolvedSpec& spec, const at::Tensor& outputs,
                        const at::Tensor& labels) {
  if (spec.class_weights.empty()) {
    return at::cross_entropy_loss(outputs, labels);
  }
  const at::Tensor weights =
      at::tensor(spec.class_weights, at::kFloat).to(outputs.device());
  return at::cross_entropy_loss(outputs, labels, weights);
}

}  // namespace

absl::Status CheckOutputs(const ResolvedSpec& spec, int64_t rows,
                          const at::Tensor& outputs) {
  if (outputs.scalar_type() != at::kFloat) {
    return absl::InvalidArgumentError(
        absl::StrCat("forward gives ", c10::toString(outputs.scalar_type()),
                     "; allowed: float32"));
  }
  const bool column =
      outputs.dim() == 2 && outputs.size(0) == rows && outputs.size(1) == 1;
  const bool flat = outputs.dim() == 1 && outputs.size(0) == rows;
  const bool one = column || flat || (outputs.dim() == 0 && rows == 1);
  std::string allowed;
  if (spec.classes == 0) {
    if (one) return absl::OkStatus();
    allowed = absl::StrCat("[", rows, ", 1] or [", rows, "] for a regression");
  } else {
    if (outputs.dim() == 2 && outputs.size(0) == rows &&
        outputs.size(1) == spec.classes) {
      return absl::OkStatus();
    }
    allowed = absl::StrCat("[", rows, ", ", spec.classes, "] for ",
                           spec.classes, " classes");
    if (spec.classes == 2) {
      const bool may = spec.loss != LossKind::kCrossEntropy;
      if (may && one) return absl::OkStatus();
      absl::StrAppend(&allowed, ", or [", rows, ", 1]",
                      may ? "" : " with model.loss: bce");
    }
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "forward gives [",
      absl::StrJoin(outputs.sizes().begin(), outputs.sizes().end(), ", "),
      "] for ", rows, " rows of shape [", absl::StrJoin(spec.input, ", "),
      "]; allowed: ", allowed));
}

at::Tensor MeanLoss(const ResolvedSpec& spec, const at::Tensor& outputs,
                    const at::Tensor& answers) {
  if (spec.classes == 0) return RegressionLoss(spec, outputs, answers);
  if (IsOneOutput(outputs)) return SignLoss(spec.loss, outputs, answers);
  switch (spec.loss) {
    case LossKind::kCrossEntropy:
      return CrossEntropy(spec, outputs, answers);
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
    case LossKind::kBce:
      return at::binary_cross_entropy_with_logits(outputs,
                                                  OneHot(answers, outputs));
    case LossKind::kHuber:
      break;  // regressions only
  }
  return at::Tensor();
}

at::Tensor Probabilities(const at::Tensor& outputs) {
  at::Tensor logits = outputs.to(at::kDouble);
  if (IsOneOutput(logits)) {
    logits = logits.reshape({-1, 1});
    logits = at::cat({at::zeros_like(logits), logits}, 1);
  }
  return at::softmax(logits, 1);
}

at::Tensor Predictions(const at::Tensor& outputs) {
  if (IsOneOutput(outputs)) {
    return outputs.reshape({-1}).gt(0).to(at::kLong);
  }
  return outputs.argmax(1);
}

}  // namespace dfl::learner
