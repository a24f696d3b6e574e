// The tensors of one mini-batch, filled in place. Memory is allocated once, for
// the largest batch seen.
#ifndef DFL_LEARNER_BATCH_TENSORS_H_
#define DFL_LEARNER_BATCH_TENSORS_H_

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "daemon/data/dataset.h"
#include "daemon/data/standardizer.h"

namespace dfl::learner {

class BatchTensors {
 public:
  // `input` is the shape of one row as the model takes it.
  BatchTensors(std::vector<int64_t> input, at::Device device);

  // Fills in the rows `rows` of `view`. It overwrites what the previous call
  // filled in, so nothing may still need that.
  void Fill(const data::DatasetView& view, absl::Span<const int64_t> rows,
            const data::Standardizer& standardizer);

  const at::Tensor& input() const { return input_; }      // [rows, input...]
  const at::Tensor& answers() const { return answers_; }  // [rows]
  // Labels of the rows; empty for regression.
  absl::Span<const int64_t> labels() const { return labels_; }
  // Targets of the rows; empty for classification.
  absl::Span<const float> targets() const { return targets_; }

  // As WildRows of bad_batch.h. Never throws, also after a Fill that did.
  std::vector<size_t> WildRows() const;

 private:
  std::vector<int64_t> shape_;  // of one row
  int64_t row_size_;
  at::Device device_;
  std::vector<int64_t> labels_;
  std::vector<float> targets_;
  at::Tensor memory_;               // [capacity, input...] on the CPU
  absl::Span<const float> values_;  // of the rows, in memory_
  at::Tensor input_;
  at::Tensor answers_;
};

}  // namespace dfl::learner

#endif  // DFL_LEARNER_BATCH_TENSORS_H_
