// Whether training still works. It has failed for good when kInARow gradients
// in a row came to nothing, or more than half of the last kWindow, or kInARow
// predictions in a row.
//
// A mini-batch that gives no gradient is passed over. After kPassedOver of them
// in a row it is not the mini-batch: the next tries come with pauses.
//
// Pure bookkeeping, of one run.
#ifndef DFL_RUNTIME_GUARDS_TRAINING_HEALTH_H_
#define DFL_RUNTIME_GUARDS_TRAINING_HEALTH_H_

#include <cstdint>
#include <deque>
#include <string>

#include "absl/strings/str_cat.h"

namespace dfl::runtime {

class TrainingHealth {
 public:
  static constexpr int64_t kInARow = 20;
  static constexpr int64_t kWindow = 200;
  static constexpr int64_t kPassedOver = 4;

  void OnGradient() {
    in_a_row_ = 0;
    Note(false);
  }
  // One came to nothing; `passed_over`: because of its mini-batch, and the next
  // one is tried.
  void OnFailure(bool passed_over) {
    ++failed_;
    if (passed_over) ++passed_over_;
    ++in_a_row_;
    Note(true);
  }
  void OnPrediction(bool worked) {
    predictions_in_a_row_ = worked ? 0 : predictions_in_a_row_ + 1;
  }
  // Whether the next mini-batch may be tried at once when this one gives no
  // gradient.
  bool MayPassOver() const { return in_a_row_ < kPassedOver; }
  // Training is tried anew: only the counts stay.
  void TryAnew() {
    in_a_row_ = bad_ = predictions_in_a_row_ = 0;
    recent_.clear();
  }

  // Why training has failed, with counts; "": it has not.
  std::string Failure() const {
    if (in_a_row_ >= kInARow) {
      return absl::StrCat(in_a_row_, " gradients in a row came to nothing");
    }
    if (static_cast<int64_t>(recent_.size()) == kWindow && 2 * bad_ > kWindow) {
      return absl::StrCat(bad_, " of the last ", kWindow,
                          " gradients came to nothing");
    }
    if (predictions_in_a_row_ >= kInARow) {
      return absl::StrCat(predictions_in_a_row_,
                          " predictions in a row came to nothing");
    }
    return "";
  }

  int64_t in_a_row() const { return in_a_row_; }
  int64_t failed() const { return failed_; }
  int64_t passed_over() const { return passed_over_; }

 private:
  void Note(bool bad) {
    recent_.push_back(bad);
    bad_ += bad ? 1 : 0;
    if (static_cast<int64_t>(recent_.size()) <= kWindow) return;
    bad_ -= recent_.front() ? 1 : 0;
    recent_.pop_front();
  }

  int64_t in_a_row_ = 0;
  int64_t predictions_in_a_row_ = 0;
  std::deque<bool> recent_;  // whether each was bad
  int64_t bad_ = 0;          // of recent_
  int64_t failed_ = 0;
  int64_t passed_over_ = 0;
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_GUARDS_TRAINING_HEALTH_H_
