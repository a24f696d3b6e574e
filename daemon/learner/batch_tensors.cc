#include "daemon/learner/batch_tensors.h"

#include <ATen/ATen.h>

#include <utility>

#include "daemon/data/batch.h"
#include "daemon/learner/catalogue/bad_batch.h"

namespace dfl::learner {

BatchTensors::BatchTensors(std::vector<int64_t> input, at::Device device)
    : shape_(std::move(input)), row_size_(1), device_(device) {
  for (const int64_t extent : shape_) row_size_ *= extent;
}

void BatchTensors::Fill(const data::DatasetView& view,
                        absl::Span<const int64_t> rows,
                        const data::Standardizer& standardizer) {
  const int64_t count = static_cast<int64_t>(rows.size());
  values_ = {};
  if (!memory_.defined() || memory_.size(0) < count) {
    std::vector<int64_t> shape = {count};
    shape.insert(shape.end(), shape_.begin(), shape_.end());
    memory_ = at::empty(shape, at::kFloat);
  }
  const absl::Span<float> values(memory_.data_ptr<float>(),
                                 static_cast<size_t>(count * row_size_));
  data::FillBatch(view, rows, standardizer, values);
  values_ = values;
  labels_.clear();
  targets_.clear();
  input_ = memory_.narrow(0, 0, count).to(device_);
  if (view.dataset().is_regression()) {
    targets_.resize(rows.size());
    data::FillTargets(view, rows, absl::MakeSpan(targets_));
    answers_ = at::from_blob(targets_.data(), {count}, at::kFloat).to(device_);
  } else {
    labels_.resize(rows.size());
    data::FillLabels(view, rows, absl::MakeSpan(labels_));
    answers_ = at::from_blob(labels_.data(), {count}, at::kLong).to(device_);
  }
}

std::vector<size_t> BatchTensors::WildRows() const {
  return learner::WildRows(values_, static_cast<size_t>(row_size_), targets_);
}

}  // namespace dfl::learner
