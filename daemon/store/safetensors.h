// A model as a safetensors file: 8 bytes, the little-endian length of a JSON
// header; the header {"name": {"dtype": "F32", "shape": [...],
// "data_offsets": [begin, end]}, ..., "__metadata__": {"key": "text"}}; the
// values. Names and shapes are the module's own, so other programs can read it.
//
// Both directions work piece by piece on the node's flat vectors: no second
// copy of the model is made.
#ifndef DFL_STORE_SAFETENSORS_H_
#define DFL_STORE_SAFETENSORS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/ports/learner.h"

namespace dfl::store {

using SafetensorsMetadata = std::map<std::string, std::string>;

// The file of a model, by byte. Reads the vectors it was made of at each call:
// they must outlive it, and hold still for the file to be of one moment.
class SafetensorsSource {
 public:
  // `parameters` [n] and `buffers` [b] as `model` lays them out. The metadata
  // gets "format": "pt" where it has none.
  // Errors: INVALID_ARGUMENT when sizes do not agree, a name is no UTF-8, comes
  // twice or is "__metadata__".
  static absl::StatusOr<SafetensorsSource> Create(
      const ports::ModelInfo& model, absl::Span<const float> parameters,
      absl::Span<const float> buffers, const SafetensorsMetadata& metadata);

  // Bytes of the whole file.
  uint64_t size() const { return header_.size() + data_bytes_; }

  // Copies the bytes from `offset` on into `out`; returns how many, less than
  // out.size() only at the file's end.
  size_t Read(uint64_t offset, absl::Span<char> out) const;

 private:
  SafetensorsSource(std::string header, absl::Span<const float> parameters,
                    absl::Span<const float> buffers);

  std::string header_;  // with its length in front
  absl::Span<const float> parameters_;
  absl::Span<const float> buffers_;
  uint64_t data_bytes_;
};

// Takes the bytes of a file in order and fills `parameters` [n] and `buffers`
// [b]. Strict: exactly the model's tensors, each once, F32, with its shape;
// data without gap or overlap; only finite values; nothing behind the end.
// Whatever the bytes, memory stays within the header's limit.
//
//   reader.Feed(piece) ... reader.Finish()
//
// Give it memory of your own and copy when Finish is OK: after an error the
// vectors are half filled. Thread-compatible; the spans must outlive it.
class SafetensorsReader {
 public:
  SafetensorsReader(const ports::ModelInfo& model, absl::Span<float> parameters,
                    absl::Span<float> buffers);

  // Errors: INVALID_ARGUMENT says what in the file is wrong and what is
  // allowed. The first error is kept and returned by every later call.
  absl::Status Feed(absl::string_view piece);

  // Errors: as Feed; DATA_LOSS when the file ends too early.
  absl::Status Finish();

  // The file's "__metadata__", once the header has been read.
  const SafetensorsMetadata& metadata() const { return metadata_; }

  // A header longer than this is refused: 1 MiB and 1 KiB a tensor.
  size_t max_header_bytes() const;

 private:
  // Where the values of one tensor go.
  struct Target {
    std::string name;
    std::vector<int64_t> shape;
    absl::Span<float> values;
  };
  // A tensor's place in the data, in the file's order.
  struct Segment {
    uint64_t begin = 0;
    uint64_t end = 0;
    size_t target = 0;  // index
  };

  absl::Status Consume(absl::string_view piece);
  absl::Status ParseHeader();
  absl::Status PlaceSegments(std::vector<Segment> segments);
  absl::Status CheckFinite(const Target& target) const;

  std::vector<Target> targets_;  // sorted by name
  SafetensorsMetadata metadata_;
  std::string head_;           // length and header, until parsed
  uint64_t header_bytes_ = 0;  // 0: not known yet
  bool header_done_ = false;
  std::vector<Segment> segments_;
  size_t segment_ = 0;        // being filled
  uint64_t data_offset_ = 0;  // bytes of data taken
  uint64_t data_bytes_ = 0;   // bytes of data there must be
  absl::Status status_;
};

}  // namespace dfl::store

#endif  // DFL_STORE_SAFETENSORS_H_
