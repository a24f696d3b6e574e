// Which rows make the next mini-batch: without replacement, reshuffled each
// pass; the last batch of a pass is short when batch_size does not divide rows.
//
// Some models cannot train on a batch of one row, because they normalise by the
// batch. For them `min_rows` is 2: rows that would be left over as a shorter
// batch are joined to the batch before.
//
// The order of pass p is a function of (seed, p) alone. A position is therefore
// three numbers in a checkpoint, and a restored sampler continues bit for bit.
#ifndef DFL_DATA_BATCH_SAMPLER_H_
#define DFL_DATA_BATCH_SAMPLER_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace dfl {
namespace data {

// The batches of a pass: ceil(rows / batch_size), or one fewer where the last
// one is joined. rows, batch_size >= 1; min_rows in [1, rows].
int64_t BatchesPerPass(int64_t rows, int64_t batch_size, int64_t min_rows);

// Thread-compatible.
class BatchSampler {
 public:
  // Where a sampler stands.
  struct State {
    uint64_t seed = 0;
    int64_t rows = 0;      // the state is for a view of this size
    uint64_t pass = 0;     // passes completed
    int64_t position = 0;  // rows of this pass already given, in [0, rows)
  };

  // rows >= 1, batch_size >= 1 (checked). A batch_size above rows means all
  // rows.
  BatchSampler(int64_t rows, int64_t batch_size, uint64_t seed);

  // Row indices in [0, rows) of the next batch; valid until the next call of
  // any method that is not const.
  absl::Span<const int64_t> Next();

  // The last result of Next, valid as long as that. Next must have been called
  // since the last Restore (checked).
  absl::Span<const int64_t> Again() const;

  int64_t batches_per_pass() const {
    return BatchesPerPass(rows(), batch_size_, min_rows_);
  }
  int64_t rows() const { return static_cast<int64_t>(order_.size()); }
  int64_t batch_size() const { return batch_size_; }

  // Takes effect with the next batch; the rest of the pass keeps its order.
  // batch_size >= 1 (checked).
  void set_batch_size(int64_t batch_size);

  // No batch has fewer rows; 1 at first. A smaller batch_size counts as
  // min_rows. Takes effect with the next batch. Where that leaves fewer rows
  // of the pass than min_rows, they are dropped, and the next pass begins.
  // min_rows is in [1, rows] (checked).
  void set_min_rows(int64_t min_rows);

  State state() const;

  // Continues where the sampler that gave `state` stood.
  // Errors: INVALID_ARGUMENT when `state` is for another number of rows or its
  // position is out of range; the sampler does not change.
  absl::Status Restore(const State& state);

 private:
  void Shuffle();

  uint64_t seed_;
  int64_t batch_size_;
  int64_t min_rows_ = 1;
  uint64_t pass_ = 0;
  int64_t position_ = 0;
  int64_t last_count_ = 0;      // rows of the last batch; 0: none
  bool shuffled_ = false;       // order_ is that of pass_
  std::vector<int64_t> order_;  // [rows]
};

}  // namespace data
}  // namespace dfl

#endif  // DFL_DATA_BATCH_SAMPLER_H_
