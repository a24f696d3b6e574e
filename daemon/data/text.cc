#include "daemon/data/text.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/charconv.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/data/data_error.h"

namespace dfl {
namespace data {
namespace {

constexpr size_t kReadBytes = size_t{256} << 10;

}  // namespace

absl::StatusOr<LineReader> LineReader::Open(const std::string& path) {
  DFL_ASSIGN_OR_RETURN(std::unique_ptr<ByteStream> stream,
                       ByteStream::Open(path));
  return LineReader(std::move(stream));
}

LineReader::LineReader(std::unique_ptr<ByteStream> stream)
    : stream_(std::move(stream)), buffer_(kReadBytes) {}

absl::StatusOr<bool> LineReader::NextRaw(absl::string_view* line) {
  size_t searched = begin_;
  while (true) {
    const char* newline = static_cast<const char*>(
        std::memchr(buffer_.data() + searched, '\n', end_ - searched));
    if (newline != nullptr) {
      const size_t stop = static_cast<size_t>(newline - buffer_.data());
      *line = absl::string_view(buffer_.data() + begin_, stop - begin_);
      begin_ = stop + 1;
      break;
    }
    if (at_end_) {
      if (begin_ == end_) return false;
      *line = absl::string_view(buffer_.data() + begin_, end_ - begin_);
      begin_ = end_;
      break;
    }
    if (end_ - begin_ > kMaxLineBytes) {
      return WrongContent(path(), AtLine(line_number_ + 1), "a line too long",
                          absl::StrCat("at most ", kMaxLineBytes, " bytes"));
    }
    // Move what is left to the front and read on.
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
    searched = end_;
    if (buffer_.size() - end_ < kReadBytes) {
      buffer_.resize(std::max(buffer_.size() * 2, end_ + kReadBytes));
    }
    DFL_ASSIGN_OR_RETURN(
        const size_t got,
        stream_->Read(absl::MakeSpan(buffer_.data() + end_, kReadBytes)));
    end_ += got;
    at_end_ = got == 0;
  }
  ++line_number_;
  if (line_number_ == 1 && line->substr(0, 3) == "\xEF\xBB\xBF") {
    line->remove_prefix(3);
  }
  if (!line->empty() && line->back() == '\r') line->remove_suffix(1);
  return true;
}

absl::StatusOr<bool> LineReader::Next(absl::string_view* line) {
  int64_t blank = 0;
  while (true) {
    DFL_ASSIGN_OR_RETURN(const bool more, NextRaw(line));
    if (!more) return false;
    if (!absl::StripAsciiWhitespace(*line).empty()) break;
    if (blank == 0) blank = line_number_;
  }
  if (blank != 0) {
    return WrongContent(path(), AtLine(blank), "a blank line",
                        "blank lines only at the end of the file");
  }
  const size_t zero = line->find('\0');
  if (zero != absl::string_view::npos) {
    return WrongContent(path(),
                        AtColumn(line_number_, static_cast<int64_t>(zero) + 1),
                        "a zero byte: not a text file", "text");
  }
  return true;
}

bool ParseNumber(absl::string_view token, double* value) {
  if (!token.empty() && token[0] == '+') {
    token.remove_prefix(1);
    if (!token.empty() && (token[0] == '-' || token[0] == '+')) return false;
  }
  const char* const end = token.data() + token.size();
  const absl::from_chars_result result =
      absl::from_chars(token.data(), end, *value);
  // Out of range gives infinity or the nearest tiny number.
  if (result.ec != std::errc() && result.ec != std::errc::result_out_of_range) {
    return false;
  }
  if (result.ec == std::errc::result_out_of_range && std::fabs(*value) > 1) {
    *value = std::numeric_limits<double>::infinity();
  }
  return result.ptr == end;
}

const char* ParseFiniteFloat(absl::string_view token, float* value) {
  if (token.empty()) return "is missing";
  double number;
  if (!ParseNumber(token, &number)) return "is not a number";
  if (!std::isfinite(number)) return "is not finite";
  if (std::fabs(number) > std::numeric_limits<float>::max()) {
    return "is too large for float32";
  }
  *value = static_cast<float>(number);
  return nullptr;
}

bool IsMissing(absl::string_view token) {
  if (token.empty() || token == "?") return true;
  if (token.size() > 4) return false;
  for (const absl::string_view spelling :
       {"na", "n/a", "nan", "-nan", "null", "none"}) {
    if (absl::EqualsIgnoreCase(token, spelling)) return true;
  }
  return false;
}

bool ParseBoolean(absl::string_view token, double* value) {
  const bool yes = absl::EqualsIgnoreCase(token, "true");
  if (!yes && !absl::EqualsIgnoreCase(token, "false")) return false;
  *value = yes ? 1 : 0;
  return true;
}

const char* ParseValue(absl::string_view token, float* value) {
  double number;
  if (!ParseBoolean(token, &number)) return ParseFiniteFloat(token, value);
  *value = static_cast<float>(number);
  return nullptr;
}

}  // namespace data
}  // namespace dfl
