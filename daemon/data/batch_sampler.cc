#include "daemon/data/batch_sampler.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "daemon/base/check.h"
#include "daemon/base/rng.h"

namespace dfl {
namespace data {

int64_t BatchesPerPass(int64_t rows, int64_t batch_size, int64_t min_rows) {
  const int64_t size = std::min(std::max(batch_size, min_rows), rows);
  return rows / size + (rows % size >= min_rows ? 1 : 0);
}

BatchSampler::BatchSampler(int64_t rows, int64_t batch_size, uint64_t seed)
    : seed_(seed), batch_size_(batch_size) {
  DFL_CHECK(rows >= 1);
  DFL_CHECK(batch_size >= 1);
  order_.resize(static_cast<size_t>(rows));
}

void BatchSampler::Shuffle() {
  std::iota(order_.begin(), order_.end(), int64_t{0});
  Rng rng(DeriveSeed(seed_, "mini-batches", pass_));
  rng.Shuffle(absl::MakeSpan(order_));
  shuffled_ = true;
}

absl::Span<const int64_t> BatchSampler::Next() {
  if (rows() - position_ < min_rows_) {
    ++pass_;
    position_ = 0;
    shuffled_ = false;
  }
  if (!shuffled_) Shuffle();
  const int64_t left = rows() - position_;
  last_count_ = std::min(std::max(batch_size_, min_rows_), left);
  if (left - last_count_ < min_rows_) last_count_ = left;
  position_ += last_count_;
  return Again();
}

absl::Span<const int64_t> BatchSampler::Again() const {
  DFL_CHECK(last_count_ > 0);
  return absl::MakeConstSpan(order_).subspan(
      static_cast<size_t>(position_ - last_count_),
      static_cast<size_t>(last_count_));
}

void BatchSampler::set_batch_size(int64_t batch_size) {
  DFL_CHECK(batch_size >= 1);
  batch_size_ = batch_size;
}

void BatchSampler::set_min_rows(int64_t min_rows) {
  DFL_CHECK(min_rows >= 1 && min_rows <= rows());
  min_rows_ = min_rows;
}

BatchSampler::State BatchSampler::state() const {
  State state;
  state.seed = seed_;
  state.rows = rows();
  const bool at_end = position_ == rows();
  state.pass = pass_ + (at_end ? 1 : 0);
  state.position = at_end ? 0 : position_;
  return state;
}

absl::Status BatchSampler::Restore(const State& state) {
  if (state.rows != rows()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "mini-batch position: saved for ", state.rows,
        " training rows; allowed: ", rows(),
        ", as the node has now (did its data or partition change?)"));
  }
  if (state.position < 0 || state.position >= rows()) {
    return absl::InvalidArgumentError(
        absl::StrCat("mini-batch position: ", state.position,
                     "; allowed: 0 to ", rows() - 1));
  }
  seed_ = state.seed;
  pass_ = state.pass;
  position_ = state.position;
  last_count_ = 0;
  shuffled_ = false;
  return absl::OkStatus();
}

}  // namespace data
}  // namespace dfl
