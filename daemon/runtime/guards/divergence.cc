#include "daemon/runtime/guards/divergence.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"

namespace dfl::runtime {
namespace {

double RootMeanSquare(absl::Span<const float> values) {
  double sum = 0;
  for (const float value : values) {
    sum += static_cast<double>(value) * static_cast<double>(value);
  }
  return values.empty() ? 0
                        : std::sqrt(sum / static_cast<double>(values.size()));
}

}  // namespace

void Divergence::Begin(absl::Span<const float> parameters) {
  begun_ = RootMeanSquare(parameters);
  largest_loss_ = 1;
  losses_ = 0;
}

std::string Divergence::OnLoss(double loss) {
  if (losses_ < kFirst) {
    ++losses_;
    largest_loss_ = std::max(largest_loss_, loss);
    return "";
  }
  if (loss <= kTimes * largest_loss_) return "";
  return absl::StrFormat(
      "the loss of a mini-batch is %.4g, more than %.0f times the largest of "
      "the first %d; look for wild values in its rows, or make the step size "
      "smaller",
      loss, kTimes, kFirst);
}

std::string Divergence::OnParameters(absl::Span<const float> parameters) const {
  const double now = RootMeanSquare(parameters);
  // Not `>`: what is no number is beyond every bound.
  if (now <= kTimes * std::max(begun_, 1.0)) return "";
  return absl::StrFormat(
      "the model has diverged: the root mean square of its parameters is "
      "%.4g, where it was %.4g when training began; make the step size smaller",
      now, begun_);
}

}  // namespace dfl::runtime
