// The start of an NPY array: "\x93NUMPY", a version, the length of a header
// that is a Python dictionary ('descr', 'fortran_order', 'shape').
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
// Room-internal.
#ifndef DFL_DATA_NPY_HEADER_H_
#define DFL_DATA_NPY_HEADER_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/data/byte_stream.h"

namespace dfl {
namespace data {

struct NpyHeader {
  // f: 2, 4 or 8 bytes; i, u: 1 to 8; b: 1, truth values; S: text of so many
  // bytes; U: of so many characters of 4 bytes.
  char kind = 'f';
  uint64_t value_bytes = 0;
  bool big_endian = false;
  bool fortran_order = false;  // the first index varies fastest
  std::vector<uint64_t> shape;
};

// Reads up to the first value.
// Errors: DATA_LOSS when the stream ends; INVALID_ARGUMENT for what is no NPY,
// or holds what is neither numbers nor text.
absl::StatusOr<NpyHeader> ReadNpyHeader(ByteStream* stream);

}  // namespace data
}  // namespace dfl

#endif  // DFL_DATA_NPY_HEADER_H_
