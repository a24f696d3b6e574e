// What to tell of a batch that gives no gradient, so that its rows can be
// found.
#ifndef DFL_LEARNER_BAD_BATCH_H_
#define DFL_LEARNER_BAD_BATCH_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/data/dataset.h"
#include "daemon/learner/batch_tensors.h"

namespace dfl::learner {

// The rows of `view`, the node's `name` data, that `batch` holds, by their
// numbers in the data set, from 0. Where some hold values that are not finite
// or far too large, only those are named.
std::string DescribeRows(const data::DatasetView& view, absl::string_view name,
                         absl::Span<const int64_t> rows,
                         const BatchTensors& batch);

}  // namespace dfl::learner

#endif  // DFL_LEARNER_BAD_BATCH_H_
