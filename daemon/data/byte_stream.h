// Bytes of a file in order, decompressed on the way. A file is opened once; a
// range of it is read as it is, as gzip (one or more members) or as raw deflate
// (a zip member), and checksums are verified before the end is reported.
#ifndef DFL_DATA_BYTE_STREAM_H_
#define DFL_DATA_BYTE_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace dfl {
namespace data {

// A regular file open for reading at given positions. Thread-compatible.
class InputFile {
 public:
  // Errors: NOT_FOUND, PERMISSION_DENIED, INVALID_ARGUMENT (a folder, a pipe),
  // UNAVAILABLE (the device fails).
  static absl::StatusOr<std::shared_ptr<const InputFile>> Open(
      const std::string& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const { return path_; }
  // When it was opened.
  uint64_t size() const { return size_; }

  // Fills `out` from byte `offset` on.
  // Errors: DATA_LOSS when the file ends before that; UNAVAILABLE.
  absl::Status ReadAt(uint64_t offset, absl::Span<char> out) const;

 private:
  InputFile(std::string path, int fd, uint64_t size);

  std::string path_;
  int fd_;
  uint64_t size_;
};

// Thread-compatible.
class ByteStream {
 public:
  enum class Encoding { kPlain, kGzip, kDeflate };

  // The whole file, decompressed if it starts as gzip does.
  // Errors: as InputFile::Open.
  static absl::StatusOr<std::unique_ptr<ByteStream>> Open(
      const std::string& path);

  // Bytes [begin, begin + length) of `file`, which lie in it. `name` is what
  // errors call it.
  ByteStream(std::shared_ptr<const InputFile> file, std::string name,
             uint64_t begin, uint64_t length, Encoding encoding);
  ~ByteStream();
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;

  // What errors call this stream: the path, or path and member.
  const std::string& name() const { return name_; }
  // Bytes delivered so far; with compression, of the decompressed data.
  uint64_t offset() const { return offset_; }
  bool compressed() const { return encoding_ != Encoding::kPlain; }
  // An upper bound of the bytes still to come (deflate shrinks 1032 times at
  // most). Sizes that a header declares are checked against it before memory is
  // allocated.
  uint64_t max_remaining() const;

  // Up to out.size() bytes; fewer only at the end, where 0 follows.
  // Errors: DATA_LOSS for a compressed stream that ends early,
  // INVALID_ARGUMENT for one that is damaged or followed by something else.
  absl::StatusOr<size_t> Read(absl::Span<char> out);

  // Exactly out.size() bytes of `what`.
  // Errors: as Read; DATA_LOSS when fewer are left.
  absl::Status ReadExactly(absl::Span<char> out, absl::string_view what);

  // Appends `count` values to `*out`, growing it only as they arrive.
  // T is trivially copyable, little-endian in the file.
  // Errors: as ReadExactly.
  template <typename T>
  absl::Status ReadArray(uint64_t count, absl::string_view what,
                         std::vector<T>* out);

  // Errors: as Read; INVALID_ARGUMENT when something follows.
  absl::Status ExpectEnd();

  // Makes Read verify, at the end, that `bytes` bytes were delivered and that
  // their CRC-32 (zip's) is `crc`; it fails with INVALID_ARGUMENT otherwise.
  // Call before the first Read.
  void ExpectTotal(uint64_t bytes, uint32_t crc);

 private:
  struct Inflater;

  absl::StatusOr<size_t> ReadPlain(absl::Span<char> out);
  absl::StatusOr<size_t> Inflate(absl::Span<char> out);
  absl::Status FillInput();
  absl::Status VerifyTotal() const;
  absl::Status CheckCount(uint64_t count, uint64_t value_bytes,
                          absl::string_view what) const;
  std::string Place() const;

  std::shared_ptr<const InputFile> file_;
  std::string name_;
  uint64_t position_;  // of the next byte to read from the file
  uint64_t end_;
  Encoding encoding_;
  uint64_t offset_ = 0;
  bool has_expected_total_ = false;
  uint64_t expected_bytes_ = 0;
  uint32_t expected_crc_ = 0;
  uint32_t crc_ = 0;
  std::unique_ptr<Inflater> inflater_;
};

template <typename T>
absl::Status ByteStream::ReadArray(uint64_t count, absl::string_view what,
                                   std::vector<T>* out) {
  absl::Status status = CheckCount(count, sizeof(T), what);
  if (!status.ok()) return status;
  // A plain file is known to hold them. A compressed one may be lying, so
  // address space is reserved but memory touched only as data comes.
  out->reserve(out->size() + static_cast<size_t>(count));
  constexpr uint64_t kStep = (uint64_t{1} << 20) / sizeof(T);
  while (count > 0) {
    const size_t step = static_cast<size_t>(count < kStep ? count : kStep);
    const size_t before = out->size();
    out->resize(before + step);
    status = ReadExactly(
        absl::MakeSpan(reinterpret_cast<char*>(out->data() + before),
                       step * sizeof(T)),
        what);
    if (!status.ok()) return status;
    count -= step;
  }
  return absl::OkStatus();
}

}  // namespace data
}  // namespace dfl

#endif  // DFL_DATA_BYTE_STREAM_H_
