// Text files: lines, and values as people write them.
#ifndef DFL_DATA_TEXT_H_
#define DFL_DATA_TEXT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/data/byte_stream.h"

namespace dfl {
namespace data {

// Lines of a plain or gzip file, without line ends (LF or CRLF) and without a
// leading UTF-8 byte order mark. Blank lines are ignored at the end of the file
// and refused elsewhere.
class LineReader {
 public:
  // Errors: as ByteStream::Open.
  static absl::StatusOr<LineReader> Open(const std::string& path);

  // The next line, valid until the next call; false at the end.
  // Errors: as ByteStream::Read; INVALID_ARGUMENT for a line longer than
  // kMaxLineBytes, with a zero byte, or after a blank one.
  absl::StatusOr<bool> Next(absl::string_view* line);

  // The number of the line last returned, from 1.
  int64_t line_number() const { return line_number_; }
  const std::string& path() const { return stream_->name(); }

  static constexpr size_t kMaxLineBytes = size_t{16} << 20;

 private:
  explicit LineReader(std::unique_ptr<ByteStream> stream);

  absl::StatusOr<bool> NextRaw(absl::string_view* line);

  std::unique_ptr<ByteStream> stream_;
  std::vector<char> buffer_;
  size_t begin_ = 0;  // unread bytes are buffer_[begin_, end_)
  size_t end_ = 0;
  bool at_end_ = false;
  int64_t line_number_ = 0;
};

// Parses the whole of `token` as a number ("+1", "2.5e-3").
// "nan" and "inf" are numbers here; ParseFiniteFloat refuses them.
bool ParseNumber(absl::string_view token, double* value);

// `token` as a finite float32. Returns null, or why not ("is not a number").
const char* ParseFiniteFloat(absl::string_view token, float* value);

// Whether `token` is one of the spellings of a missing value: empty, NA, N/A,
// NaN, ?, null, None, in any case.
bool IsMissing(absl::string_view token);

// True and False, in any case, as 1 and 0. Returns false for other texts.
bool ParseBoolean(absl::string_view token, double* value);

// `token` as a feature's value: a finite float32, True or False. Returns null,
// or why not.
const char* ParseValue(absl::string_view token, float* value);

}  // namespace data
}  // namespace dfl

#endif  // DFL_DATA_TEXT_H_
