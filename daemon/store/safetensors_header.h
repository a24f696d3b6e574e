// The header of a safetensors file: what tensors it says it has, and where.
#ifndef DFL_STORE_SAFETENSORS_HEADER_H_
#define DFL_STORE_SAFETENSORS_HEADER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace dfl::store {

// What a header's metadata may take: names and scaling of every feature are in
// it.
inline constexpr size_t kMaxMetadataBytes = size_t{16} << 20;
// What else a header may have: many times what is seen.
inline constexpr size_t kMaxMetadataEntries = 4096;
inline constexpr size_t kMaxFileTensors = 65536;
inline constexpr size_t kMaxFileDimensions = 64;

using SafetensorsMetadata = std::map<std::string, std::string>;

// A tensor as the header tells it.
struct FileTensor {
  std::string name;
  std::string dtype;           // "F32", "I64", ...
  std::vector<int64_t> shape;  // may be empty: a scalar
  uint64_t begin = 0;          // of its bytes among the values
  uint64_t end = 0;
};

struct SafetensorsHeader {
  SafetensorsMetadata metadata;
  std::vector<FileTensor> tensors;  // in the order of their bytes
  uint64_t data_bytes = 0;          // of all values
};

// Bytes of one value; 0: this dtype is unknown.
size_t DtypeBytes(absl::string_view dtype);

// Reads the JSON text of a header. The tensors span their shapes and follow one
// another without gap or overlap; no name comes twice. Time and memory are
// linear in the text, but for the look-up of names, whatever its form.
// Errors: INVALID_ARGUMENT names the tensor, what is wrong and what is allowed.
absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(
    absl::string_view text);

// An error of a file, INVALID_ARGUMENT.
absl::Status SafetensorsError(absl::string_view what);

// A name from a file, quoted and cut.
std::string QuotedName(absl::string_view name);
// "a, b, c and 7 more".
std::string SomeOf(const std::vector<std::string>& names);

}  // namespace dfl::store

#endif  // DFL_STORE_SAFETENSORS_HEADER_H_
