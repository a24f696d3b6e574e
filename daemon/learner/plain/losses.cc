#include "daemon/learner/plain/losses.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "daemon/base/check.h"
#include "daemon/base/distributions.h"
#include "daemon/learner/catalogue/evaluation_sums.h"

namespace dfl::learner {
namespace {

using Row = absl::Span<const float>;
using ByRow = absl::Span<double>;

// ln(1 + e^x), and its derivative.
double Softplus(double x, double* slope) {
  const double e = Exp(-std::fabs(x));
  *slope = x > 0 ? 1 / (1 + e) : e / (1 + e);
  return std::max(x, 0.0) + Log(1 + e);
}

// Each of these gives the loss of one row, as learner/losses.h says it, and
// writes its derivatives by the row's outputs.

double CrossEntropy(Row f, size_t label, ByRow by) {
  const double largest = *std::max_element(f.begin(), f.end());
  double sum = 0;
  for (size_t j = 0; j < f.size(); ++j) {
    by[j] = Exp(f[j] - largest);
    sum += by[j];
  }
  for (double& value : by) value /= sum;
  by[label] -= 1;
  return Log(sum) + largest - f[label];
}

double Hinge(Row f, size_t label, ByRow by) {
  double loss = 0;
  by[label] = 0;
  for (size_t j = 0; j < f.size(); ++j) {
    if (j == label) continue;
    const double margin = 1.0 - f[label] + f[j];
    by[j] = margin > 0 ? 1 : 0;
    by[label] -= by[j];
    loss += std::max(margin, 0.0);
  }
  return loss;
}

double Squares(Row f, size_t label, ByRow by) {
  const auto classes = static_cast<double>(f.size());
  double loss = 0;
  for (size_t j = 0; j < f.size(); ++j) {
    const double error = f[j] - (j == label ? 1.0 : 0.0);
    by[j] = 2 * error / classes;
    loss += error * error / classes;
  }
  return loss;
}

// The sum over outputs of ln(1 + e^(-s f)), times `factor`.
double Logistic(Row f, size_t label, double factor, ByRow by) {
  double loss = 0;
  for (size_t j = 0; j < f.size(); ++j) {
    const double sign = j == label ? 1 : -1;
    double slope = 0;
    loss += factor * Softplus(-sign * f[j], &slope);
    by[j] = -sign * slope * factor;
  }
  return loss;
}

double Regression(const ResolvedSpec& spec, double f, double target, ByRow by) {
  const double error = f - target;
  if (spec.loss == LossKind::kMse) {
    by[0] = 2 * error;
    return error * error;
  }
  const double d = spec.huber_delta;
  by[0] = std::clamp(error, -d, d);
  const double size = std::fabs(error);
  return size <= d ? error * error / 2 : d * (size - d / 2);
}

double RowLoss(const ResolvedSpec& spec, Row f, size_t label, ByRow by) {
  switch (spec.loss) {
    case LossKind::kCrossEntropy: {
      const double loss = CrossEntropy(f, label, by);
      if (spec.class_weights.empty()) return loss;
      for (double& value : by) value *= spec.class_weights[label];
      return spec.class_weights[label] * loss;
    }
    case LossKind::kHinge:
      return Hinge(f, label, by);
    case LossKind::kMse:
      return Squares(f, label, by);
    case LossKind::kLogistic:
      return Logistic(f, label, 1, by);
    case LossKind::kBce:
      // One output of two classes: it is class 1's, whose sign is the label's.
      return f.size() == 1
                 ? Logistic(f, 1 - label, 1, by)
                 : Logistic(f, label, 1 / static_cast<double>(f.size()), by);
    case LossKind::kHuber:
      break;  // regressions only
  }
  DFL_CHECK(spec.loss != LossKind::kHuber);
  return 0;
}

size_t Width(const ResolvedSpec& spec) {
  return static_cast<size_t>(spec.outputs());
}

}  // namespace

double PlainMeanLoss(const ResolvedSpec& spec, absl::Span<const float> outputs,
                     const Answers& answers, std::vector<float>* by_outputs) {
  const size_t width = Width(spec);
  const size_t rows = outputs.size() / width;
  const double weight =
      LossWeight(spec, static_cast<int64_t>(rows), answers.labels);
  if (by_outputs != nullptr) by_outputs->resize(outputs.size());
  std::vector<double> by(width);
  double sum = 0;
  for (size_t i = 0; i < rows; ++i) {
    const Row f = outputs.subspan(i * width, width);
    sum += spec.classes == 0
               ? Regression(spec, f[0], answers.targets[i], absl::MakeSpan(by))
               : RowLoss(spec, f, static_cast<size_t>(answers.labels[i]),
                         absl::MakeSpan(by));
    if (by_outputs == nullptr) continue;
    for (size_t j = 0; j < width; ++j) {
      (*by_outputs)[i * width + j] = static_cast<float>(by[j] / weight);
    }
  }
  return sum / weight;
}

std::vector<int64_t> PlainPredictions(const ResolvedSpec& spec,
                                      absl::Span<const float> outputs) {
  const size_t width = Width(spec);
  std::vector<int64_t> predictions(outputs.size() / width);
  for (size_t i = 0; i < predictions.size(); ++i) {
    const Row f = outputs.subspan(i * width, width);
    predictions[i] = width == 1
                         ? (f[0] > 0 ? 1 : 0)
                         : std::max_element(f.begin(), f.end()) - f.begin();
  }
  return predictions;
}

std::vector<double> PlainProbabilities(const ResolvedSpec& spec,
                                       absl::Span<const float> outputs) {
  const size_t width = Width(spec);
  std::vector<double> result;
  result.reserve(outputs.size() / width * std::max<size_t>(width, 2));
  for (size_t i = 0; i < outputs.size(); i += width) {
    std::vector<double> logits(
        outputs.begin() + static_cast<ptrdiff_t>(i),
        outputs.begin() + static_cast<ptrdiff_t>(i + width));
    if (width == 1) logits.insert(logits.begin(), 0.0);
    const double largest = *std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (double& value : logits) {
      value = Exp(value - largest);
      sum += value;
    }
    for (const double value : logits) result.push_back(value / sum);
  }
  return result;
}

}  // namespace dfl::learner
