#include "daemon/config/values.h"

#include <charconv>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"

namespace dfl::config {
namespace {

struct SizeUnit {
  absl::string_view name;
  uint64_t bytes;
};
// Longest names first, so that "MiB" is not read as "B".
constexpr SizeUnit kSizeUnits[] = {{"TiB", uint64_t{1} << 40},
                                   {"GiB", uint64_t{1} << 30},
                                   {"MiB", uint64_t{1} << 20},
                                   {"KiB", uint64_t{1} << 10},
                                   {"TB", 1000ull * 1000000000},
                                   {"GB", 1000000000ull},
                                   {"MB", 1000000ull},
                                   {"kB", 1000ull},
                                   {"B", 1ull}};

// Characters that can stand anywhere in an unquoted scalar.
bool IsPlain(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' ||
         c == '.' || c == '/' || c == '-' || c == '+';
}

// The shortest text that reads back as `value`.
template <typename T>
std::string Shortest(T value) {
  char buffer[32];
  const std::to_chars_result end =
      std::to_chars(buffer, buffer + sizeof(buffer), value);
  return std::string(buffer, end.ptr);
}

}  // namespace

std::optional<int64_t> ReadInteger(absl::string_view text) {
  int64_t value = 0;
  if (!absl::SimpleAtoi(text, &value)) return std::nullopt;
  return value;
}

std::optional<uint64_t> ReadUnsigned(absl::string_view text) {
  uint64_t value = 0;
  // SimpleAtoi takes "-0" for an unsigned number.
  if (!absl::SimpleAtoi(text, &value) || absl::StrContains(text, "-")) {
    return std::nullopt;
  }
  return value;
}

std::optional<double> ReadNumber(absl::string_view text) {
  double value = 0;
  if (!absl::SimpleAtod(text, &value) || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

std::optional<bool> ReadFlag(absl::string_view text) {
  const std::string lower = absl::AsciiStrToLower(text);
  if (lower == "on" || lower == "true" || lower == "yes" || lower == "1") {
    return true;
  }
  if (lower == "off" || lower == "false" || lower == "no" || lower == "0") {
    return false;
  }
  return std::nullopt;
}

std::optional<uint64_t> ReadSize(absl::string_view text) {
  uint64_t unit = 1;
  for (const SizeUnit& entry : kSizeUnits) {
    if (absl::ConsumeSuffix(&text, entry.name)) {
      unit = entry.bytes;
      break;
    }
  }
  const std::optional<uint64_t> count =
      ReadUnsigned(absl::StripAsciiWhitespace(text));
  if (!count.has_value() ||
      *count > std::numeric_limits<uint64_t>::max() / unit) {
    return std::nullopt;
  }
  return *count * unit;
}

std::optional<absl::Duration> ReadDuration(absl::string_view text) {
  absl::Duration value;
  if (!absl::ParseDuration(text, &value)) return std::nullopt;
  return value;
}

std::optional<Hours> ReadHours(absl::string_view text) {
  const auto minute = [](absl::string_view time) -> std::optional<int> {
    if (time.size() != 5 || time[2] != ':') return std::nullopt;
    for (const size_t digit : {0, 1, 3, 4}) {
      if (!absl::ascii_isdigit(static_cast<unsigned char>(time[digit]))) {
        return std::nullopt;
      }
    }
    const int hours = 10 * (time[0] - '0') + (time[1] - '0');
    const int minutes = 10 * (time[3] - '0') + (time[4] - '0');
    if (hours > 23 || minutes > 59) return std::nullopt;
    return 60 * hours + minutes;
  };
  if (text.size() != 11 || text[5] != '-') return std::nullopt;
  const auto from = minute(text.substr(0, 5));
  const auto until = minute(text.substr(6));
  if (!from || !until || *from == *until) return std::nullopt;
  return Hours{*from, *until};
}

std::string WriteNumber(double value) { return Shortest(value); }
std::string WriteNumber(float value) { return Shortest(value); }

std::string WriteSize(uint64_t bytes) {
  if (bytes == 0) return "0";
  for (const SizeUnit& entry : kSizeUnits) {
    const bool binary = absl::StrContains(entry.name, "i");
    if (binary && bytes % entry.bytes == 0) {
      return absl::StrCat(bytes / entry.bytes, entry.name);
    }
  }
  return absl::StrCat(bytes);
}

std::string WriteDuration(absl::Duration time) {
  // "1h30m0s" reads better without what is zero.
  const std::string text = absl::FormatDuration(time);
  absl::string_view rest = text;
  if (absl::EndsWith(rest, "m0s")) rest.remove_suffix(2);
  if (absl::EndsWith(rest, "h0m")) rest.remove_suffix(2);
  return std::string(rest);
}

std::string WriteText(absl::string_view text) {
  const std::string lower = absl::AsciiStrToLower(text);
  bool plain = !text.empty() && lower != "null" && text[0] != '-' &&
               text[0] != '.' && text != "---";
  for (const char c : text) plain = plain && IsPlain(c);
  if (plain) return std::string(text);
  std::string out = "\"";
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
          absl::StrAppend(&out, "\\x",
                          absl::Hex(static_cast<uint8_t>(c), absl::kZeroPad2));
        } else {
          out += c;  // UTF-8 stays as it is
        }
    }
  }
  return out + "\"";
}

std::string WriteList(absl::Span<const std::string> items) {
  return absl::StrCat(
      "[",
      absl::StrJoin(items, ", ",
                    [](std::string* out, const std::string& item) {
                      out->append(WriteText(item));
                    }),
      "]");
}

std::string Either(absl::Span<const std::string> choices) {
  if (choices.empty()) return "";
  if (choices.size() == 1) return choices[0];
  return absl::StrCat(absl::StrJoin(choices.first(choices.size() - 1), ", "),
                      " or ", choices.back());
}

std::string Quoted(absl::string_view text) {
  constexpr size_t kShown = 60;
  const bool cut = text.size() > kShown;
  return absl::StrCat("\"", absl::Utf8SafeCEscape(text.substr(0, kShown)),
                      cut ? "...\"" : "\"");
}

absl::Status Mistakes::ToStatus() const {
  if (lines_.empty()) return absl::OkStatus();
  std::string text = absl::StrJoin(lines_, "\n");
  if (more_ > 0) absl::StrAppend(&text, "\n... and ", more_, " more");
  return absl::InvalidArgumentError(text);
}

}  // namespace dfl::config
