// NumPy's NPY and NPZ. An NPY is "\x93NUMPY", a version, the length of a header
// that is a Python dictionary ('descr', 'fortran_order', 'shape'), and the
// values; an NPZ is a zip archive of them.
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/base/check.h"
#include "daemon/base/status_macros.h"
#include "daemon/data/byte_stream.h"
#include "daemon/data/data_error.h"
#include "daemon/data/readers.h"
#include "daemon/data/spec_checks.h"
#include "daemon/data/zip.h"

namespace dfl {
namespace data {
namespace {

constexpr absl::string_view kMagic("\x93NUMPY", 6);
constexpr uint32_t kMaxHeaderBytes = 65536;
constexpr size_t kMaxRank = 8;

enum class Type { kF4, kF8, kU1, kI1, kI4, kI8 };

struct TypeEntry {
  absl::string_view name;
  Type type;
  uint64_t bytes;
};
// A type of one byte has no byte order; NumPy writes '|', '<' is harmless.
constexpr TypeEntry kTypes[] = {{"<f4", Type::kF4, 4}, {"<f8", Type::kF8, 8},
                                {"|u1", Type::kU1, 1}, {"<u1", Type::kU1, 1},
                                {"|i1", Type::kI1, 1}, {"<i1", Type::kI1, 1},
                                {"<i4", Type::kI4, 4}, {"<i8", Type::kI8, 8}};

struct NpyHeader {
  Type type = Type::kF4;
  uint64_t value_bytes = 0;
  std::vector<uint64_t> shape;
};

// The header's dictionary, no more Python than NumPy writes.
class HeaderParser {
 public:
  // `text` starts at byte `base` of the file.
  HeaderParser(absl::string_view text, uint64_t base, const std::string& file)
      : text_(text), rest_(text), base_(base), file_(file) {}

  absl::StatusOr<NpyHeader> Parse() {
    bool has_type = false, has_order = false, has_shape = false;
    if (!Take('{')) return Wrong("a dictionary that starts with {");
    while (!Take('}')) {
      std::string key;
      DFL_ASSIGN_OR_RETURN(key, String());
      if (!Take(':')) return Wrong("a colon");
      if (key == "descr" && !has_type) {
        DFL_RETURN_IF_ERROR(TakeType());
        has_type = true;
      } else if (key == "fortran_order" && !has_order) {
        DFL_RETURN_IF_ERROR(TakeOrder());
        has_order = true;
      } else if (key == "shape" && !has_shape) {
        DFL_RETURN_IF_ERROR(TakeShape());
        has_shape = true;
      } else {
        return Wrong("descr, fortran_order and shape, once each");
      }
      if (!Take(',') && Peek() != '}') return Wrong("a comma or }");
    }
    SkipSpace();
    if (!rest_.empty()) return Wrong("nothing but spaces after }");
    if (!has_type || !has_order || !has_shape) {
      return Wrong("descr, fortran_order and shape, all three");
    }
    return header_;
  }

 private:
  uint64_t Offset() const {
    return base_ + static_cast<uint64_t>(rest_.data() - text_.data());
  }
  absl::Status Wrong(absl::string_view allowed) {
    SkipSpace();
    return WrongContent(
        file_, AtByte(Offset()),
        rest_.empty() ? std::string("the header ends")
                      : absl::StrCat("the header goes on with ", Quoted(rest_)),
        allowed);
  }
  void SkipSpace() { rest_ = absl::StripLeadingAsciiWhitespace(rest_); }
  char Peek() {
    SkipSpace();
    return rest_.empty() ? '\0' : rest_[0];
  }
  bool Take(char c) {
    if (Peek() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool TakeWord(absl::string_view word) {
    SkipSpace();
    if (!absl::StartsWith(rest_, word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }

  absl::StatusOr<std::string> String() {
    const char quote = Peek();
    if (quote != '\'' && quote != '"') return Wrong("a quoted string");
    const size_t close = rest_.find(quote, 1);
    if (close == absl::string_view::npos) return Wrong("a closed string");
    std::string value(rest_.substr(1, close - 1));
    rest_.remove_prefix(close + 1);
    return value;
  }

  absl::Status TakeType() {
    SkipSpace();
    const uint64_t at = Offset();
    if (Peek() == '[') return Wrong("a plain type, no record");
    DFL_ASSIGN_OR_RETURN(const std::string name, String());
    for (const TypeEntry& entry : kTypes) {
      if (entry.name == name) {
        header_.type = entry.type;
        header_.value_bytes = entry.bytes;
        return absl::OkStatus();
      }
    }
    return WrongContent(file_, AtByte(at),
                        absl::StrCat("values of type ", Quoted(name)),
                        "'<f4', '<f8', '|u1', '|i1', '<i4', '<i8'");
  }

  absl::Status TakeOrder() {
    if (TakeWord("False")) return absl::OkStatus();
    return Wrong("False (C order; use numpy.ascontiguousarray before saving)");
  }

  absl::Status TakeShape() {
    if (!Take('(')) return Wrong("a shape in parentheses");
    while (!Take(')')) {
      uint64_t extent = 0;
      size_t digits = 0;
      SkipSpace();
      while (digits < rest_.size() && absl::ascii_isdigit(rest_[digits])) {
        if (extent > (UINT64_MAX - 9) / 10) return Wrong("a smaller number");
        extent = extent * 10 + static_cast<uint64_t>(rest_[digits] - '0');
        ++digits;
      }
      if (digits == 0) return Wrong("a number");
      if (header_.shape.size() == kMaxRank) return Wrong("at most 8 numbers");
      rest_.remove_prefix(digits);
      header_.shape.push_back(extent);
      if (!Take(',') && Peek() != ')') return Wrong("a comma or )");
    }
    return absl::OkStatus();
  }

  absl::string_view text_;
  absl::string_view rest_;
  uint64_t base_;
  const std::string& file_;
  NpyHeader header_;
};

// One array on its way in: its header, then its values through `stream`.
struct NpyArray {
  std::unique_ptr<ByteStream> stream;
  NpyHeader header;
  uint64_t values = 0;        // in all
  uint64_t values_begin = 0;  // byte offset of the first
  std::string shape_text;
};

absl::StatusOr<NpyArray> OpenArray(const DataSpec& spec,
                                   std::unique_ptr<ByteStream> stream) {
  char start[8];
  DFL_RETURN_IF_ERROR(
      stream->ReadExactly(absl::MakeSpan(start), "the NPY header"));
  if (absl::string_view(start, 6) != kMagic) {
    return WrongContent(stream->name(), AtByte(0),
                        absl::StrCat("the magic string is ",
                                     Quoted(absl::string_view(start, 6))),
                        "'\\x93NUMPY' (an array as numpy.save writes)");
  }
  const int version = static_cast<unsigned char>(start[6]);
  if (version < 1 || version > 3 || start[7] != 0) {
    return WrongContent(
        stream->name(), AtByte(6),
        absl::StrCat("NPY version ", version, ".",
                     static_cast<int>(static_cast<unsigned char>(start[7]))),
        "1.0, 2.0 or 3.0");
  }
  char length_bytes[4] = {};
  DFL_RETURN_IF_ERROR(stream->ReadExactly(
      absl::MakeSpan(length_bytes, version == 1 ? 2 : 4), "the NPY header"));
  uint32_t length;
  std::memcpy(&length, length_bytes, sizeof(length));
  if (length > kMaxHeaderBytes) {
    return WrongContent(stream->name(), AtByte(8),
                        absl::StrCat("a header of ", length, " bytes"),
                        absl::StrCat("at most ", kMaxHeaderBytes));
  }
  const uint64_t base = stream->offset();
  std::string text(length, '\0');
  DFL_RETURN_IF_ERROR(
      stream->ReadExactly(absl::MakeSpan(&text[0], length), "the NPY header"));
  NpyArray array;
  DFL_ASSIGN_OR_RETURN(array.header,
                       HeaderParser(text, base, stream->name()).Parse());
  array.shape_text =
      absl::StrCat("(", absl::StrJoin(array.header.shape, ", "), ")");
  array.values_begin = stream->offset();
  DFL_ASSIGN_OR_RETURN(
      const uint64_t bytes,
      CheckedBytes(spec, array.header.shape, array.header.value_bytes,
                   stream->name(), AtByte(base)));
  array.values = bytes / array.header.value_bytes;
  array.stream = std::move(stream);
  return array;
}

// Reads all values and hands them to `take(i, value)`, a Status.
template <typename T, typename Take>
absl::Status ForEachAs(NpyArray& array, absl::string_view what, Take take) {
  constexpr uint64_t kBlock = 16384;
  std::vector<T> block;
  for (uint64_t done = 0; done < array.values;) {
    block.clear();
    const uint64_t step = std::min(kBlock, array.values - done);
    DFL_RETURN_IF_ERROR(array.stream->ReadArray(step, what, &block));
    for (uint64_t i = 0; i < step; ++i) {
      DFL_RETURN_IF_ERROR(take(done + i, block[i]));
    }
    done += step;
  }
  return array.stream->ExpectEnd();
}

template <typename Take>
absl::Status ForEach(NpyArray& array, absl::string_view what, Take take) {
  switch (array.header.type) {
    case Type::kF4:
      return ForEachAs<float>(array, what, take);
    case Type::kF8:
      return ForEachAs<double>(array, what, take);
    case Type::kU1:
      return ForEachAs<uint8_t>(array, what, take);
    case Type::kI1:
      return ForEachAs<int8_t>(array, what, take);
    case Type::kI4:
      return ForEachAs<int32_t>(array, what, take);
    case Type::kI8:
      return ForEachAs<int64_t>(array, what, take);
  }
  DFL_CHECK(false);
  return absl::InternalError("unreachable");
}

// Where value i stands: for people, also row and column.
std::string PlaceOf(const NpyArray& array, uint64_t i) {
  const uint64_t row_size = array.values / array.header.shape[0];
  return absl::StrCat(AtByte(array.values_begin + i * array.header.value_bytes),
                      " (row ", i / row_size, ", column ", i % row_size,
                      ", from 0)");
}

// Whether `what` of `count` values can be there at all; before memory is taken.
absl::Status CheckPresent(const NpyArray& array, absl::string_view what) {
  const uint64_t most = array.stream->max_remaining();
  const uint64_t bytes = array.values * array.header.value_bytes;
  if (bytes <= most) return absl::OkStatus();
  return CutShort(array.stream->name(), AtByte(array.values_begin),
                  absl::StrCat(what, " of shape ", array.shape_text, " take ",
                               bytes, " bytes, but at most ", most, " follow"),
                  "a complete file; copy it again");
}

absl::StatusOr<std::vector<float>> ReadFloats(NpyArray& array,
                                              absl::string_view what) {
  DFL_RETURN_IF_ERROR(CheckPresent(array, what));
  std::vector<float> out;
  out.reserve(array.values);
  DFL_RETURN_IF_ERROR(
      ForEach(array, what, [&](uint64_t i, auto value) -> absl::Status {
        const double number = static_cast<double>(value);
        if (!(std::fabs(number) <= std::numeric_limits<float>::max())) {
          return WrongContent(array.stream->name(), PlaceOf(array, i),
                              absl::StrCat("value ", number),
                              "finite numbers that fit float32");
        }
        out.push_back(static_cast<float>(value));
        return absl::OkStatus();
      }));
  return out;
}

absl::StatusOr<std::vector<int64_t>> ReadLabels(const DataSpec& spec,
                                                NpyArray& array) {
  DFL_RETURN_IF_ERROR(CheckPresent(array, "the labels"));
  const int64_t limit = LabelLimit(spec);
  std::vector<int64_t> out;
  out.reserve(array.values);
  DFL_RETURN_IF_ERROR(
      ForEach(array, "the labels", [&](uint64_t i, auto value) -> absl::Status {
        // Compared as double: limit is small, so this is exact.
        const double number = static_cast<double>(value);
        if (!(number >= 0 && number < static_cast<double>(limit)) ||
            number != std::floor(number)) {
          return WrongContent(array.stream->name(), PlaceOf(array, i),
                              absl::StrCat("label ", +value),
                              absl::StrCat("integers 0 to ", limit - 1));
        }
        out.push_back(static_cast<int64_t>(value));
        return absl::OkStatus();
      }));
  return out;
}

absl::StatusOr<Dataset> Join(const DataSpec& spec, NpyArray x, NpyArray y) {
  const std::string& x_name = x.stream->name();
  const std::string& y_name = y.stream->name();
  const std::vector<uint64_t>& x_shape = x.header.shape;
  const std::vector<uint64_t>& y_shape = y.header.shape;
  if (x_shape.size() < 2) {
    return WrongContent(x_name, AtByte(10),
                        absl::StrCat("features of shape ", x.shape_text),
                        "(rows, features) or (rows, ...)");
  }
  const bool y_fits =
      (y_shape.size() == 1 || (y_shape.size() == 2 && y_shape[1] == 1)) &&
      y_shape[0] == x_shape[0];
  if (!y_fits) {
    return WrongContent(
        y_name, AtByte(10), absl::StrCat("labels of shape ", y.shape_text),
        absl::StrCat("(", x_shape[0], ") for features ", x.shape_text));
  }
  DFL_RETURN_IF_ERROR(
      CheckRows(spec, static_cast<int64_t>(x_shape[0]), x_name, AtByte(10)));
  std::vector<int64_t> natural;
  if (x_shape.size() == 3) natural.push_back(1);
  for (size_t i = 1; i < x_shape.size(); ++i) {
    natural.push_back(static_cast<int64_t>(x_shape[i]));
  }
  DFL_ASSIGN_OR_RETURN(std::vector<int64_t> shape,
                       ResolveShape(spec, natural, x_name, AtByte(10)));
  Dataset::Answers answers;
  if (spec.task == Task::kRegression) {
    DFL_ASSIGN_OR_RETURN(answers.targets, ReadFloats(y, "the targets"));
  } else {
    DFL_ASSIGN_OR_RETURN(answers.labels, ReadLabels(spec, y));
    answers.classes = ResolveClasses(spec, answers.labels);
  }
  if (x.header.type == Type::kU1) {
    std::vector<uint8_t> bytes;
    DFL_RETURN_IF_ERROR(x.stream->ReadArray(x.values, "the features", &bytes));
    DFL_RETURN_IF_ERROR(x.stream->ExpectEnd());
    return Dataset(std::move(shape), std::move(bytes), std::move(answers));
  }
  // Held as float32, whatever the file's type.
  DFL_RETURN_IF_ERROR(
      CheckedBytes(spec, x_shape, sizeof(float), x_name, AtByte(10)).status());
  DFL_ASSIGN_OR_RETURN(std::vector<float> floats,
                       ReadFloats(x, "the features"));
  return Dataset(std::move(shape), std::move(floats), std::move(answers));
}

}  // namespace

absl::StatusOr<Dataset> ReadNpy(const DataSpec& spec) {
  DFL_ASSIGN_OR_RETURN(std::unique_ptr<ByteStream> x_stream,
                       ByteStream::Open(spec.paths[0]));
  DFL_ASSIGN_OR_RETURN(std::unique_ptr<ByteStream> y_stream,
                       ByteStream::Open(spec.paths[1]));
  DFL_ASSIGN_OR_RETURN(NpyArray x, OpenArray(spec, std::move(x_stream)));
  DFL_ASSIGN_OR_RETURN(NpyArray y, OpenArray(spec, std::move(y_stream)));
  return Join(spec, std::move(x), std::move(y));
}

absl::StatusOr<Dataset> ReadNpz(const DataSpec& spec) {
  DFL_ASSIGN_OR_RETURN(const ZipArchive archive,
                       ZipArchive::Open(spec.paths[0]));
  DFL_ASSIGN_OR_RETURN(
      std::unique_ptr<ByteStream> x_stream,
      archive.OpenMember(absl::StrCat(spec.features_key, ".npy")));
  DFL_ASSIGN_OR_RETURN(
      std::unique_ptr<ByteStream> y_stream,
      archive.OpenMember(absl::StrCat(spec.labels_key, ".npy")));
  DFL_ASSIGN_OR_RETURN(NpyArray x, OpenArray(spec, std::move(x_stream)));
  DFL_ASSIGN_OR_RETURN(NpyArray y, OpenArray(spec, std::move(y_stream)));
  return Join(spec, std::move(x), std::move(y));
}

}  // namespace data
}  // namespace dfl
