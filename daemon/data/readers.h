// One function for each format; load.h picks one. All take a spec that
// ValidateSpec has passed, and read only the fields of their format.
//
// Errors of all of them, naming file and place (byte offset of the decompressed
// data, or line and column), what was found and what is allowed:
//   NOT_FOUND, PERMISSION_DENIED  the file cannot be opened
//   DATA_LOSS                     it ends before it should
//   INVALID_ARGUMENT              it is not what the format or the spec says
//   UNAVAILABLE                   the device failed
#ifndef DFL_DATA_READERS_H_
#define DFL_DATA_READERS_H_

#include "absl/status/statusor.h"
#include "daemon/data/data_spec.h"
#include "daemon/data/dataset.h"

namespace dfl {
namespace data {

// Images [n, h, w] -> bytes {1, h, w}; [n, c, h, w] -> {c, h, w};
// [n, d] -> {d}. Labels [n]. Unsigned bytes only.
absl::StatusOr<Dataset> ReadIdx(const DataSpec& spec);

// Rows of one label byte and 3 x 32 x 32 bytes -> bytes {3, 32, 32}. Files are
// joined in the order given.
absl::StatusOr<Dataset> ReadCifar10(const DataSpec& spec);

// "label index:value ...", indices from spec.index_base on and increasing ->
// floats {d}, absent ones 0. '#' starts a comment, which may be a whole line.
absl::StatusOr<Dataset> ReadLibsvm(const DataSpec& spec);

// Every column but the label's and the dropped ones -> floats {d}. True and
// False are 1 and 0. With headers, columns of several files and of spec.match
// are found by name.
absl::StatusOr<Dataset> ReadCsv(const DataSpec& spec);

// Arrays X [n, ...] and y [n] or [n, 1], of any numeric type up to 8 bytes in
// any byte order, C or Fortran; y also of text. X of u1 stays bytes (images),
// all else becomes float32; [n, h, w] becomes {1, h, w}, and [n, h, w, c] with
// channels last {c, h, w}.
absl::StatusOr<Dataset> ReadNpz(const DataSpec& spec);
absl::StatusOr<Dataset> ReadNpy(const DataSpec& spec);

// FOLDER/CLASS/PICTURE, PNG or JPEG -> bytes {1 or 3, h, w}, labelled with the
// names of the subfolders, sorted.
absl::StatusOr<Dataset> ReadImages(const DataSpec& spec);

}  // namespace data
}  // namespace dfl

#endif  // DFL_DATA_READERS_H_
