#include "daemon/data/spec_checks.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/data/data_error.h"

namespace dfl {
namespace data {

absl::StatusOr<uint64_t> CheckedBytes(const DataSpec& spec,
                                      absl::Span<const uint64_t> extents,
                                      uint64_t value_bytes,
                                      absl::string_view file,
                                      absl::string_view place) {
  uint64_t bytes = value_bytes;
  bool too_large = false;
  for (const uint64_t extent : extents) {
    if (extent == 0) {
      return WrongContent(
          file, place,
          absl::StrCat("the shape is (", absl::StrJoin(extents, ", "),
                       "), which holds nothing"),
          "every extent at least 1");
    }
    if (extent > spec.max_bytes / bytes) {
      too_large = true;
      break;
    }
    bytes *= extent;
  }
  if (too_large || bytes > spec.max_bytes) {
    return WrongContent(
        file, place,
        absl::StrCat("the shape is (", absl::StrJoin(extents, ", "), ") of ",
                     value_bytes, "-byte values, too large"),
        absl::StrCat("at most data.max_bytes = ", spec.max_bytes));
  }
  return bytes;
}

absl::StatusOr<std::vector<int64_t>> ResolveShape(
    const DataSpec& spec, const std::vector<int64_t>& natural,
    absl::string_view file, absl::string_view place) {
  int64_t features = 1;
  for (const int64_t extent : natural) features *= extent;
  if (spec.features != 0 && spec.features != features) {
    return WrongContent(file, place,
                        absl::StrCat("a row has ", features, " features"),
                        absl::StrCat("data.features = ", spec.features,
                                     ", as the settings say"));
  }
  if (spec.shape.empty()) return natural;
  int64_t product = 1;
  for (const int64_t extent : spec.shape) {
    if (extent < 1 || extent > features || product > features / extent) {
      product = -1;
      break;
    }
    product *= extent;
  }
  if (product != features) {
    return WrongContent(file, place,
                        absl::StrCat("a row has ", features,
                                     " features, which do not fill shape (",
                                     absl::StrJoin(spec.shape, ", "), ")"),
                        absl::StrCat("a shape whose product is ", features));
  }
  return spec.shape;
}

absl::Status CheckRows(const DataSpec& spec, int64_t rows,
                       absl::string_view file, absl::string_view place) {
  if (rows == 0) {
    return WrongContent(file, place, "no rows", "at least one");
  }
  if (spec.rows != 0 && rows != spec.rows) {
    return WrongContent(
        file, place, absl::StrCat(rows, " rows"),
        absl::StrCat("rows = ", spec.rows, ", as the data settings say"));
  }
  return absl::OkStatus();
}

absl::Status CheckPaths(const DataSpec& spec, size_t least, size_t most) {
  if (spec.paths.size() >= least && spec.paths.size() <= most) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "data format ", FormatName(spec.format), ": ", spec.paths.size(),
      " paths given; allowed: ",
      least == most ? absl::StrCat(least) : absl::StrCat("at least ", least),
      least == 2 ? " (features, then labels)" : ""));
}

absl::StatusOr<std::vector<int64_t>> ChannelsFirst(
    const DataSpec& spec, const std::vector<int64_t>& natural,
    absl::string_view file, absl::string_view place) {
  if (natural.size() != 3) return natural;
  if (spec.layout == Layout::kNhwc) {
    return std::vector<int64_t>{natural[2], natural[0], natural[1]};
  }
  const auto are_channels = [](int64_t extent) {
    return extent == 1 || extent == 3 || extent == 4;
  };
  if (spec.layout == Layout::kNchw || are_channels(natural[0]) ||
      !are_channels(natural[2])) {
    return natural;
  }
  return WrongContent(
      file, place,
      absl::StrCat("rows of shape (", absl::StrJoin(natural, ", "),
                   ") look like height, width, channels"),
      "channels first; data.layout: nhwc reads channels last, and nchw reads "
      "the array as it is");
}

}  // namespace data
}  // namespace dfl
