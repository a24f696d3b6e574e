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
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/ports/learner.h"
#include "daemon/store/model_import.h"
#include "daemon/store/safetensors_header.h"

namespace dfl::store {

// A tensor as it stands in a file, of any dtype.
struct RawTensor {
  std::string name;
  std::string dtype;  // as DtypeBytes knows it
  std::vector<int64_t> shape;
  absl::string_view bytes;
};

// The file of a model, by byte. Reads the vectors it was made of at each call:
// they must outlive it, and hold still for the file to be of one moment.
class SafetensorsSource {
 public:
  // `parameters` [n] and `buffers` [b] as `model` lays them out, tied tensors
  // under each of their names, and `others` beside them. The metadata gets
  // "format": "pt" where it has none.
  // Errors: INVALID_ARGUMENT when sizes do not agree, a name is no UTF-8, comes
  // twice or is "__metadata__".
  static absl::StatusOr<SafetensorsSource> Create(
      const ports::ModelInfo& model, absl::Span<const float> parameters,
      absl::Span<const float> buffers, const SafetensorsMetadata& metadata,
      const std::vector<RawTensor>& others = {});

  // Bytes of the whole file.
  uint64_t size() const { return size_; }

  // Copies the bytes from `offset` on into `out`; returns how many, less than
  // out.size() only at the file's end.
  size_t Read(uint64_t offset, absl::Span<char> out) const;

 private:
  // A stretch of the file.
  struct Piece {
    uint64_t begin = 0;
    absl::string_view bytes;
  };

  explicit SafetensorsSource(std::string header);
  void Append(absl::string_view bytes);

  std::string header_;         // with its length in front; pieces_ has the rest
  std::vector<Piece> pieces_;  // in order
  uint64_t size_ = 0;
};

// Takes the bytes of a file in order and fills `parameters` [n] and `buffers`
// [b] with what PlanImport takes of it. F16, BF16 and F64 become float32.
// Strict: data without gap or overlap; only finite values; nothing behind the
// end. Whatever the bytes, memory stays within the header's limit.
//
//   reader.Feed(piece) ... reader.Finish()
//
// Give it memory of your own and copy when Finish is OK: after an error the
// vectors are half filled. Thread-compatible; the spans must outlive it.
class SafetensorsReader {
 public:
  SafetensorsReader(ports::ModelInfo model, absl::Span<float> parameters,
                    absl::Span<float> buffers, ImportOptions options = {});

  // Errors: INVALID_ARGUMENT says what in the file is wrong and what is
  // allowed. The first error is kept and returned by every later call.
  absl::Status Feed(absl::string_view piece);

  // Errors: as Feed; DATA_LOSS when the file ends too early.
  absl::Status Finish();

  // Called with the file's "__metadata__" when the header has been read, before
  // any value; an error ends the reading.
  void CheckMetadata(
      std::function<absl::Status(const SafetensorsMetadata&)> check) {
    check_metadata_ = std::move(check);
  }

  // The file's "__metadata__", once the header has been read.
  const SafetensorsMetadata& metadata() const { return header_.metadata; }
  // What was taken, and what people should know of it; once Finish was OK.
  const ImportPlan& plan() const { return plan_; }

  // A header longer than this is refused: kMaxMetadataBytes, and 1 KiB a tensor
  // of the model.
  size_t max_header_bytes() const;

 private:
  absl::Status Consume(absl::string_view piece);
  absl::Status ReadHeader();
  // Takes bytes of the values; `piece` loses what was taken.
  absl::Status ReadValues(absl::string_view& piece);
  // Takes as many whole values of `tensor` as `piece` has.
  absl::Status Convert(const FileTensor& tensor, const ImportPlan::Move& move,
                       absl::string_view piece);

  const ports::ModelInfo model_;
  const absl::Span<float> parameters_;
  const absl::Span<float> buffers_;
  const ImportOptions options_;
  std::function<absl::Status(const SafetensorsMetadata&)> check_metadata_;
  SafetensorsHeader header_;
  ImportPlan plan_;
  std::string head_;           // length and header, until parsed
  uint64_t header_bytes_ = 0;  // 0: not known yet
  bool header_done_ = false;
  size_t tensor_ = 0;         // being read
  size_t move_ = 0;           // the next one
  int64_t values_ = 0;        // of the tensor being read that were taken
  std::string value_;         // the first bytes of a value that was cut
  uint64_t data_offset_ = 0;  // bytes of data taken
  int64_t rounded_ = 0;       // values that float32 cannot hold as they were
  absl::Status status_;
};

}  // namespace dfl::store

#endif  // DFL_STORE_SAFETENSORS_H_
