#include "daemon/runtime/guards/divergence.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"

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

std::string TooLarge(double loss, absl::string_view than) {
  return absl::StrFormat(
      "the loss of a mini-batch is %.4g, more than %.0f times %s; look for "
      "wild values in its rows, or make the step size smaller",
      loss, Divergence::kTimes, than);
}

}  // namespace

void Divergence::Begin(absl::Span<const float> parameters) {
  begun_ = RootMeanSquare(parameters);
  first_.clear();
}

double Divergence::FarAbove() const {
  std::vector<double> sorted = first_;
  std::sort(sorted.begin(), sorted.end());
  return kTimes * std::max(sorted[sorted.size() / 2], 1.0);
}

std::string Divergence::OnLoss(double loss) {
  if (first_.size() < kFirst) {
    // Of the first one nothing can be said.
    const double far = first_.empty() ? loss : FarAbove();
    first_.push_back(loss);
    if (first_.size() == kFirst) {
      double largest = 1;
      for (const double value : first_) {
        if (value <= FarAbove()) largest = std::max(largest, value);
      }
      bound_ = kTimes * largest;
    }
    return loss <= far ? "" : TooLarge(loss, "the median of those before it");
  }
  if (loss <= bound_) return "";
  return TooLarge(loss, absl::StrCat("the largest of the first ", kFirst));
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
