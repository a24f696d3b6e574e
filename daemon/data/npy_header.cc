#include "daemon/data/npy_header.h"

#include <cstring>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/base/status_macros.h"
#include "daemon/data/data_error.h"

namespace dfl {
namespace data {
namespace {

constexpr absl::string_view kMagic("\x93NUMPY", 6);
constexpr uint32_t kMaxHeaderBytes = 65536;
constexpr size_t kMaxRank = 8;
constexpr uint64_t kMaxTextLength = 4096;

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
    if (Peek() == '[') {
      return Wrong("a plain type; save each field of a record as an array");
    }
    DFL_ASSIGN_OR_RETURN(const std::string name, String());
    uint64_t number = 0;
    const bool has_number =
        name.size() >= 3 && absl::SimpleAtoi(name.substr(2), &number);
    const char order = name.empty() ? '\0' : name[0];
    const char kind = name.size() < 2 ? '\0' : name[1];
    const bool whole = number == 1 || number == 2 || number == 4 || number == 8;
    const bool known = (kind == 'f' && whole && number != 1) ||
                       ((kind == 'i' || kind == 'u') && whole) ||
                       (kind == 'b' && number == 1) ||
                       ((kind == 'S' || kind == 'U') && number > 0 &&
                        number <= kMaxTextLength);
    if (!has_number || !known ||
        (order != '<' && order != '>' && order != '|' && order != '=')) {
      return WrongContent(
          file_, AtByte(at),
          absl::StrCat("values of type ", Quoted(name),
                       kind == 'O' ? ", which are Python objects" : ""),
          "numbers (f2 to f8, i1 to i8, u1 to u8, bool), and text for labels; "
          "save the array with .astype('float32')");
    }
    header_.kind = kind;
    header_.value_bytes = kind == 'U' ? 4 * number : number;
    // A type of one byte has no byte order; NumPy writes '|'.
    header_.big_endian = order == '>';
    return absl::OkStatus();
  }

  absl::Status TakeOrder() {
    header_.fortran_order = TakeWord("True");
    if (header_.fortran_order || TakeWord("False")) return absl::OkStatus();
    return Wrong("True or False");
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

}  // namespace

absl::StatusOr<NpyHeader> ReadNpyHeader(ByteStream* stream) {
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
  return HeaderParser(text, base, stream->name()).Parse();
}

}  // namespace data
}  // namespace dfl
