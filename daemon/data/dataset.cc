#include "daemon/data/dataset.h"

#include <algorithm>
#include <utility>

#include "daemon/base/check.h"

namespace dfl {
namespace data {

Dataset::Dataset(std::vector<int64_t> shape, std::vector<uint8_t> features,
                 Answers answers)
    : Dataset(std::move(shape), std::move(features), std::move(answers),
              Columns()) {}

Dataset::Dataset(std::vector<int64_t> shape, std::vector<float> features,
                 Answers answers)
    : Dataset(std::move(shape), std::move(features), std::move(answers),
              Columns()) {}

Dataset::Dataset(std::vector<int64_t> shape, std::vector<uint8_t> features,
                 Answers answers, Columns columns)
    : Dataset(std::move(shape),
              std::make_shared<const std::vector<uint8_t>>(std::move(features)),
              std::make_shared<const std::vector<float>>(), std::move(answers),
              std::move(columns)) {}

Dataset::Dataset(std::vector<int64_t> shape, std::vector<float> features,
                 Answers answers, Columns columns)
    : Dataset(std::move(shape), std::make_shared<const std::vector<uint8_t>>(),
              std::make_shared<const std::vector<float>>(std::move(features)),
              std::move(answers), std::move(columns)) {}

Dataset::Dataset(std::vector<int64_t> shape, Bytes bytes, Floats floats,
                 Answers answers, Columns columns)
    : shape_(std::move(shape)),
      row_size_(1),
      bytes_(std::move(bytes)),
      floats_(std::move(floats)),
      answers_(std::move(answers)),
      columns_(std::move(columns)) {
  DFL_CHECK(!shape_.empty());
  for (const int64_t extent : shape_) {
    DFL_CHECK(extent > 0);
    row_size_ *= extent;
  }
  const size_t values = bytes_->empty() ? floats_->size() : bytes_->size();
  DFL_CHECK(values > 0 && values % static_cast<size_t>(row_size_) == 0);
  rows_ = static_cast<int64_t>(values) / row_size_;
  if (answers_.targets.empty()) {
    DFL_CHECK(answers_.labels.size() == static_cast<size_t>(rows_));
    DFL_CHECK(answers_.classes > 0);
    for (const int64_t label : answers_.labels) {
      DFL_CHECK(label >= 0 && label < answers_.classes);
    }
    DFL_CHECK(answers_.class_names.empty() ||
              answers_.class_names.size() ==
                  static_cast<size_t>(answers_.classes));
    DFL_CHECK(answers_.class_places.empty() ||
              answers_.class_places.size() ==
                  static_cast<size_t>(answers_.classes));
  } else {
    DFL_CHECK(answers_.targets.size() == static_cast<size_t>(rows_));
    DFL_CHECK(answers_.labels.empty() && answers_.classes == 0);
  }
  const auto d = static_cast<size_t>(row_size_);
  DFL_CHECK(columns_.names.empty() || columns_.names.size() == d);
  DFL_CHECK(columns_.missing.empty() || columns_.missing.size() == d);
  DFL_CHECK(columns_.fill.empty() || columns_.fill.size() == d);
}

Dataset Dataset::With(Answers answers, Columns columns) const {
  return Dataset(shape_, bytes_, floats_, std::move(answers),
                 std::move(columns));
}

DatasetView::DatasetView(std::shared_ptr<const Dataset> dataset)
    : dataset_(std::move(dataset)) {
  DFL_CHECK(dataset_ != nullptr);
}

DatasetView DatasetView::Subset(absl::Span<const int64_t> rows) const {
  auto chosen = std::make_shared<std::vector<int64_t>>();
  chosen->reserve(rows.size());
  for (const int64_t i : rows) {
    DFL_CHECK(i >= 0 && i < size());
    chosen->push_back(row(i));
  }
  DatasetView view(dataset_);
  view.rows_ = std::move(chosen);
  return view;
}

DatasetView DatasetView::First(int64_t n) const {
  std::vector<int64_t> rows(
      static_cast<size_t>(std::min(std::max<int64_t>(n, 0), size())));
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<int64_t>(i);
  return Subset(rows);
}

DatasetView DatasetView::On(std::shared_ptr<const Dataset> dataset) const {
  DFL_CHECK(dataset != nullptr && dataset->rows() == dataset_->rows());
  DatasetView view(std::move(dataset));
  view.rows_ = rows_;
  return view;
}

std::vector<int64_t> DatasetView::LabelCounts() const {
  std::vector<int64_t> counts(static_cast<size_t>(dataset_->classes()), 0);
  if (counts.empty()) return counts;
  const absl::Span<const int64_t> labels = dataset_->labels();
  for (int64_t i = 0; i < size(); ++i) {
    ++counts[static_cast<size_t>(labels[static_cast<size_t>(row(i))])];
  }
  return counts;
}

}  // namespace data
}  // namespace dfl
