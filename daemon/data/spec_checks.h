// What every reader checks against the DataSpec: sizes, shapes, row counts and
// class counts. All errors are INVALID_ARGUMENT and name file and place.
#ifndef DFL_DATA_SPEC_CHECKS_H_
#define DFL_DATA_SPEC_CHECKS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/data/data_spec.h"

namespace dfl {
namespace data {

// The most classes. A larger label is taken for a mistake, such as a target
// column or an identifier.
constexpr int64_t kMaxClasses = 65536;

// The product of `extents` x `value_bytes`.
// Errors: an extent is 0, the product overflows or passes spec.max_bytes.
absl::StatusOr<uint64_t> CheckedBytes(const DataSpec& spec,
                                      absl::Span<const uint64_t> extents,
                                      uint64_t value_bytes,
                                      absl::string_view file,
                                      absl::string_view place);

// spec.shape, or `natural` where it is empty.
// Errors: its product, or spec.features, is not natural's.
absl::StatusOr<std::vector<int64_t>> ResolveShape(
    const DataSpec& spec, const std::vector<int64_t>& natural,
    absl::string_view file, absl::string_view place);

// Errors: no rows, or not spec.rows of them.
absl::Status CheckRows(const DataSpec& spec, int64_t rows,
                       absl::string_view file, absl::string_view place);

// Errors: the number of paths is not in [least, most]; the text says how many.
absl::Status CheckPaths(const DataSpec& spec, size_t least, size_t most);

// `natural` of an array of images as {channels, height, width}.
// Errors: the layout is open, and the array looks like channels last.
absl::StatusOr<std::vector<int64_t>> ChannelsFirst(
    const DataSpec& spec, const std::vector<int64_t>& natural,
    absl::string_view file, absl::string_view place);

}  // namespace data
}  // namespace dfl

#endif  // DFL_DATA_SPEC_CHECKS_H_
