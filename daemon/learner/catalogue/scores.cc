#include "daemon/learner/catalogue/scores.h"

#include <cmath>

#include "daemon/base/check.h"

namespace dfl::learner {

Scores::Scores(int64_t classes) : counts_(static_cast<size_t>(classes)) {}

void Scores::Add(absl::Span<const int64_t> labels,
                 absl::Span<const int64_t> predictions) {
  DFL_CHECK(labels.size() == predictions.size());
  for (size_t i = 0; i < labels.size(); ++i) {
    const size_t label = static_cast<size_t>(labels[i]);
    const size_t prediction = static_cast<size_t>(predictions[i]);
    DFL_CHECK(label < counts_.size() && prediction < counts_.size());
    ++counts_[label].labelled;
    ++counts_[prediction].predicted;
    if (label == prediction) ++counts_[label].both;
  }
  rows_ += static_cast<int64_t>(labels.size());
}

double Scores::Accuracy() const {
  int64_t right = 0;
  for (const Count& count : counts_) right += count.both;
  return rows_ == 0 ? 0
                    : static_cast<double>(right) / static_cast<double>(rows_);
}

double Scores::MacroF1() const {
  double sum = 0;
  int64_t seen = 0;
  for (const Count& count : counts_) {
    const int64_t total = count.labelled + count.predicted;
    if (total == 0) continue;
    ++seen;
    sum += 2.0 * static_cast<double>(count.both) / static_cast<double>(total);
  }
  return seen == 0 ? 0 : sum / static_cast<double>(seen);
}

void RegressionScores::Add(absl::Span<const float> targets,
                           absl::Span<const float> outputs) {
  DFL_CHECK(targets.size() == outputs.size());
  if (rows_ == 0 && !targets.empty()) first_ = targets[0];
  for (size_t i = 0; i < targets.size(); ++i) {
    const double target = targets[i];
    const double error = outputs[i] - target;
    absolute_ += std::fabs(error);
    squares_ += error * error;
    sum_ += target - first_;
    sum_of_squares_ += (target - first_) * (target - first_);
  }
  rows_ += static_cast<int64_t>(targets.size());
}

std::optional<double> RegressionScores::MeanAbsolute() const {
  if (rows_ == 0) return std::nullopt;
  return absolute_ / static_cast<double>(rows_);
}

std::optional<double> RegressionScores::RSquared() const {
  if (rows_ == 0) return std::nullopt;
  const double spread =
      sum_of_squares_ - sum_ * sum_ / static_cast<double>(rows_);
  if (!(spread > 0)) return std::nullopt;
  return 1 - squares_ / spread;
}

}  // namespace dfl::learner
