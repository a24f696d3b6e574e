// Labelled rows in memory: what files of every format become.
//
// A Dataset holds `rows` feature vectors of one shape, row-major [rows, shape],
// as bytes or as float32. Each row has either a class label in [0, classes) or
// a float target. Labels are numbered by the data set itself until Conform
// (conform.h) gives them the numbers of a run. Images are kept as bytes and
// become floats when a mini-batch is filled, so a training set of 60,000 28x28
// images takes 47 MB and not 188.
// A Dataset is immutable, so threads may share it.
//
// A DatasetView is some rows of a Dataset in an order of its own, for instance
// the node's part of a partition or a fixed test sample. It costs its list of
// indices.
#ifndef DFL_DATA_DATASET_H_
#define DFL_DATA_DATASET_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace dfl {
namespace data {

// Move-only. Const methods are thread-safe.
class Dataset {
 public:
  // What is to be predicted for each row: labels or targets, never both.
  struct Answers {
    std::vector<int64_t> labels;  // [rows], in [0, classes)
    int64_t classes = 0;
    // [classes] or empty: how each class is spelt, in canonical form
    // (labels.h). Empty: "0", "1", ...
    std::vector<std::string> class_names;
    // [classes] or empty: where each class was first seen, "FILE: line 3,
    // column 5"; "" for one that no row has.
    std::vector<std::string> class_places;
    // The order of class_names was given and not found.
    bool classes_stated = false;
    std::vector<float> targets;  // [rows], regression
  };

  // What the files say beside the numbers.
  struct Columns {
    std::vector<std::string> names;    // [row_size], or empty: unnamed
    std::string label;                 // name of the label's column, or ""
    std::vector<std::string> dropped;  // names of columns that were dropped
    // [row_size] or empty: how many values were missing, and what they became.
    std::vector<int64_t> missing;
    std::vector<float> fill;
    int64_t dropped_rows = 0;  // for a missing value
    // The rows may be wider elsewhere: libsvm leaves out what is 0.
    bool width_is_at_least = false;
    // What a person should look at, a sentence each, with the cure.
    std::vector<std::string> warnings;
  };

  // `features` is [rows, shape] row-major. Every size must fit (checked).
  // Without `columns` the files say nothing more.
  Dataset(std::vector<int64_t> shape, std::vector<uint8_t> features,
          Answers answers);
  Dataset(std::vector<int64_t> shape, std::vector<float> features,
          Answers answers);
  Dataset(std::vector<int64_t> shape, std::vector<uint8_t> features,
          Answers answers, Columns columns);
  Dataset(std::vector<int64_t> shape, std::vector<float> features,
          Answers answers, Columns columns);

  Dataset(Dataset&&) = default;
  Dataset& operator=(Dataset&&) = default;
  Dataset(const Dataset&) = delete;
  Dataset& operator=(const Dataset&) = delete;

  int64_t rows() const { return rows_; }
  // The shape of one row: {channels, height, width} for images, {d} for
  // vectors.
  const std::vector<int64_t>& shape() const { return shape_; }
  // Values in one row: the product of shape().
  int64_t row_size() const { return row_size_; }

  // The memory of features and answers.
  int64_t memory_bytes() const {
    return static_cast<int64_t>(bytes_->size() +
                                sizeof(float) * floats_->size() +
                                sizeof(int64_t) * answers_.labels.size() +
                                sizeof(float) * answers_.targets.size());
  }

  bool has_bytes() const { return !bytes_->empty(); }
  // [rows x row_size], empty unless has_bytes().
  absl::Span<const uint8_t> bytes() const { return *bytes_; }
  // [rows x row_size], empty when has_bytes().
  absl::Span<const float> floats() const { return *floats_; }

  bool is_regression() const { return !answers_.targets.empty(); }
  // 0 for regression.
  int64_t classes() const { return answers_.classes; }
  // [rows], empty for regression.
  absl::Span<const int64_t> labels() const { return answers_.labels; }
  // [rows], empty for classification.
  absl::Span<const float> targets() const { return answers_.targets; }
  // [classes] or empty.
  const std::vector<std::string>& class_names() const {
    return answers_.class_names;
  }
  const Answers& answers() const { return answers_; }
  const Columns& columns() const { return columns_; }

  // The same rows with other answers or columns; the features are shared, not
  // copied. The sizes must fit (checked).
  Dataset With(Answers answers, Columns columns) const;

 private:
  using Bytes = std::shared_ptr<const std::vector<uint8_t>>;
  using Floats = std::shared_ptr<const std::vector<float>>;
  Dataset(std::vector<int64_t> shape, Bytes bytes, Floats floats,
          Answers answers, Columns columns);

  std::vector<int64_t> shape_;
  int64_t row_size_;
  int64_t rows_;
  Bytes bytes_;    // not null
  Floats floats_;  // not null
  Answers answers_;
  Columns columns_;
};

// Copies are cheap (two shared pointers) and share the data set.
class DatasetView {
 public:
  // All rows, in order. `dataset` is not null.
  explicit DatasetView(std::shared_ptr<const Dataset> dataset);

  // The rows `rows[0], rows[1], ...` of this view, in that order; repeats are
  // kept. Every index is in [0, size()) (checked).
  DatasetView Subset(absl::Span<const int64_t> rows) const;
  // The first min(n, size()) rows.
  DatasetView First(int64_t n) const;

  // The same rows of `dataset`, which has as many as this one's (checked).
  DatasetView On(std::shared_ptr<const Dataset> dataset) const;

  const Dataset& dataset() const { return *dataset_; }
  int64_t size() const {
    return rows_ == nullptr ? dataset_->rows()
                            : static_cast<int64_t>(rows_->size());
  }
  // Where row i of the view stands in the data set; i in [0, size()).
  int64_t row(int64_t i) const {
    return rows_ == nullptr ? i : (*rows_)[static_cast<size_t>(i)];
  }
  // Rows of each class, [classes]; empty for regression.
  std::vector<int64_t> LabelCounts() const;

 private:
  std::shared_ptr<const Dataset> dataset_;
  std::shared_ptr<const std::vector<int64_t>> rows_;  // null: all
};

}  // namespace data
}  // namespace dfl

#endif  // DFL_DATA_DATASET_H_
