// What to tell of a batch that gives no gradient, so that its rows can be
// found. Torch-free.
#ifndef DFL_LEARNER_CATALOGUE_BAD_BATCH_H_
#define DFL_LEARNER_CATALOGUE_BAD_BATCH_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/data/dataset.h"

namespace dfl::learner {

// Which rows of a batch hold an input or a target that is not finite, or so
// large that a model has to overflow. `values` are [rows x row_size], `targets`
// [rows] or empty. For reports: not quick.
std::vector<size_t> WildRows(absl::Span<const float> values, size_t row_size,
                             absl::Span<const float> targets);

// The rows `rows` of `view`, the node's `name` data, that a batch holds, by
// their numbers in the data set, from 0. Where some of them, `wild` by their
// place in the batch, are such, only those are named.
std::string DescribeRows(const data::DatasetView& view, absl::string_view name,
                         absl::Span<const int64_t> rows,
                         absl::Span<const size_t> wild);

}  // namespace dfl::learner

#endif  // DFL_LEARNER_CATALOGUE_BAD_BATCH_H_
