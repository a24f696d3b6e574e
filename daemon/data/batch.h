// From rows of a view to the input of a model. Only here do bytes become
// floats.
#ifndef DFL_DATA_BATCH_H_
#define DFL_DATA_BATCH_H_

#include <cstdint>

#include "absl/types/span.h"
#include "daemon/data/dataset.h"
#include "daemon/data/standardizer.h"

namespace dfl {
namespace data {

// out[b] = standardizer(row indices[b] of view), row-major
// [indices.size(), shape]: in float32, (float(v) / divide - mean) / std of
// every raw value v. Indices are in [0, view.size()), out.size() is
// indices.size() x row_size and standardizer.CheckFits(view.dataset()) is OK
// (checked). No allocation. Thread-safe.
void FillBatch(const DatasetView& view, absl::Span<const int64_t> indices,
               const Standardizer& standardizer, absl::Span<float> out);

// out[b] = label of row indices[b]. Classification only (checked).
void FillLabels(const DatasetView& view, absl::Span<const int64_t> indices,
                absl::Span<int64_t> out);

// out[b] = target of row indices[b]. Regression only (checked).
void FillTargets(const DatasetView& view, absl::Span<const int64_t> indices,
                 absl::Span<float> out);

}  // namespace data
}  // namespace dfl

#endif  // DFL_DATA_BATCH_H_
