// Text files: lines, numbers, and labels spelled in any way.
#ifndef DFL_DATA_TEXT_H_
#define DFL_DATA_TEXT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/data/byte_stream.h"
#include "daemon/data/data_spec.h"
#include "daemon/data/dataset.h"

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

// The canonical spelling of a label: "+1", "1" and "1.0" become "1"; a word
// stays as it is. Returns whether the label is an integer, then with its value
// in `*integer`.
bool CanonicalLabel(absl::string_view token, std::string* canonical,
                    int64_t* integer);

// Turns spellings of labels into numbers 0..classes-1; see
// DataSpec::label_values for the rules.
class LabelCollector {
 public:
  explicit LabelCollector(const DataSpec& spec);

  // The next row's label, found at line `line`, column `column` of `path`.
  // Errors: INVALID_ARGUMENT for an empty label, one not in label_values, or
  // more than kMaxClasses different labels.
  absl::Status Add(absl::string_view token, const std::string& path,
                   int64_t line, int64_t column);

  // Numbers the labels.
  // Errors: INVALID_ARGUMENT when they do not fit spec.classes.
  absl::StatusOr<Dataset::Answers> Finish();

 private:
  struct Value {
    int64_t id;  // order of first appearance; label_values: the class
    bool is_integer;
    int64_t integer;
    std::string first_place;  // FILE: line L, column C
  };

  absl::StatusOr<Dataset::Answers> FinishInOrder();

  const DataSpec& spec_;
  std::map<std::string, Value, std::less<>> values_;  // by canonical spelling
  std::vector<int64_t> ids_;                          // [rows]
};

}  // namespace data
}  // namespace dfl

#endif  // DFL_DATA_TEXT_H_
