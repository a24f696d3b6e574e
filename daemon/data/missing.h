// What becomes of missing values, DataSpec::missing. Readers keep them as NaN
// until all rows are there. Room-internal.
#ifndef DFL_DATA_MISSING_H_
#define DFL_DATA_MISSING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "daemon/data/data_spec.h"
#include "daemon/data/dataset.h"

namespace dfl {
namespace data {

// How to have a missing value read, for errors that refuse one.
inline constexpr char kMissingCure[] =
    "a number; data.missing: mean, zero or drop says what stands for a missing "
    "value";

// Gives every NaN of `values` [rows, d] the value that kMean or kZero says, and
// notes in `columns` how many there were and what they became. With kMean the
// values of spec.match.fill are taken where they are given.
// Errors: INVALID_ARGUMENT for a feature without a value in any row.
absl::Status FillMissing(const DataSpec& spec, int64_t d,
                         const std::string& file, absl::Span<float> values,
                         Dataset::Columns* columns);

// kDrop: takes the rows out of `values` [rows, d] that hold a NaN, and notes
// their number. Returns which ones were kept, [rows].
std::vector<bool> DropMissing(int64_t d, std::vector<float>* values,
                              Dataset::Columns* columns);

}  // namespace data
}  // namespace dfl

#endif  // DFL_DATA_MISSING_H_
