#include "cli/support/redact.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace dfl::cli {
namespace {

constexpr absl::string_view kNames[] = {
    "password",    "passwd",     "secret",        "token",      "apikey",
    "api_key",     "api-key",    "access_key",    "access-key", "private_key",
    "private-key", "credential", "authorization", "cookie"};

bool IsNameCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' ||
         c == '-' || c == '.';
}

bool IsTokenCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' ||
         c == '-' || c == '.' || c == '+' || c == '/' || c == '=';
}

bool NamesASecret(absl::string_view name) {
  const std::string lower = absl::AsciiStrToLower(name);
  return std::any_of(std::begin(kNames), std::end(kNames),
                     [&lower](absl::string_view part) {
                       return absl::StrContains(lower, part);
                     });
}

// Reads a text from its start to its end and writes what is left of it.
class Redactor {
 public:
  explicit Redactor(absl::string_view text) : text_(text) {}

  Redacted Run() {
    while (at_ < text_.size()) {
      if (TakeKey() || TakeToken() || TakeUrlUser() || TakeScheme() ||
          TakeNamed()) {
        continue;
      }
      CopyWord();
    }
    return std::move(result_);
  }

 private:
  absl::string_view Rest() const { return text_.substr(at_); }
  bool AtWordStart() const {
    return at_ == 0 || !IsNameCharacter(text_[at_ - 1]);
  }
  void Copy(size_t count) {
    absl::StrAppend(&result_.text, text_.substr(at_, count));
    at_ += count;
  }
  void Remove(size_t count) {
    absl::StrAppend(&result_.text, kRemoved);
    ++result_.count;
    at_ += count;
  }

  // A private key, to the end of its block, or of the text where it has none.
  bool TakeKey() {
    constexpr absl::string_view kBegin = "-----BEGIN ";
    constexpr absl::string_view kEnd = "-----END ";
    constexpr absl::string_view kDashes = "-----";
    if (!absl::StartsWith(Rest(), kBegin)) return false;
    const size_t title_end = text_.find(kDashes, at_ + kBegin.size());
    if (title_end == absl::string_view::npos ||
        !absl::StrContains(text_.substr(at_, title_end - at_), "PRIVATE KEY")) {
      return false;
    }
    const size_t end = text_.find(kEnd, title_end);
    const size_t close = end == absl::string_view::npos
                             ? end
                             : text_.find(kDashes, end + kEnd.size());
    Remove(close == absl::string_view::npos ? text_.size() - at_
                                            : close + kDashes.size() - at_);
    return true;
  }

  bool TakeToken() {
    if (!AtWordStart()) return false;
    size_t length = 0;
    while (at_ + length < text_.size() &&
           IsTokenCharacter(text_[at_ + length])) {
      ++length;
    }
    const absl::string_view word = text_.substr(at_, length);
    const bool is_join = absl::StartsWith(word, "dfl1.") && length > 12;
    const bool is_jwt = absl::StartsWith(word, "eyJ") && length > 20 &&
                        std::count(word.begin(), word.end(), '.') >= 2;
    const bool is_aws = absl::StartsWith(word, "AKIA") && length == 20;
    if (!is_join && !is_jwt && !is_aws) return false;
    Remove(length);
    return true;
  }

  // "://user:password@"
  bool TakeUrlUser() {
    if (!absl::StartsWith(Rest(), "://")) return false;
    const size_t end = text_.find_first_of("/ \t\n\r\"'<>?#", at_ + 3);
    const absl::string_view authority = text_.substr(
        at_ + 3,
        (end == absl::string_view::npos ? text_.size() : end) - (at_ + 3));
    const size_t user = authority.rfind('@');
    if (user == absl::string_view::npos) return false;
    Copy(3);
    Remove(user);
    return true;
  }

  // "Bearer abc"
  bool TakeScheme() {
    if (!AtWordStart()) return false;
    for (const absl::string_view scheme : {"Bearer ", "Basic "}) {
      if (!absl::StartsWithIgnoreCase(Rest(), scheme)) continue;
      size_t end = at_ + scheme.size();
      while (end < text_.size() && IsTokenCharacter(text_[end])) ++end;
      if (end - at_ < scheme.size() + 8) return false;
      Copy(scheme.size());
      Remove(end - at_);
      return true;
    }
    return false;
  }

  // name: value, name=value, "name": "value"
  bool TakeNamed() {
    if (!AtWordStart() || !IsNameCharacter(text_[at_])) return false;
    size_t end = at_;
    while (end < text_.size() && IsNameCharacter(text_[end])) ++end;
    if (!NamesASecret(text_.substr(at_, end - at_))) return false;
    size_t value = end;
    // In JSON within JSON the quotes have backslashes.
    while (
        value < text_.size() &&
        (text_[value] == '"' || text_[value] == '\'' || text_[value] == '\\')) {
      ++value;
    }
    while (value < text_.size() && text_[value] == ' ') ++value;
    if (value >= text_.size() || (text_[value] != ':' && text_[value] != '=')) {
      return false;
    }
    ++value;
    while (value < text_.size() && text_[value] == ' ') ++value;
    const bool in_json = text_[end] == '"' || text_[end] == '\\';
    const size_t length = ValueLength(value, in_json);
    if (length == 0) return false;
    Copy(value - at_);
    // A quote that the value began with stays, so that JSON stays JSON.
    const size_t quotes = QuoteLength(value);
    Copy(quotes);
    Remove(length - quotes);
    return true;
  }

  // Of the quote at `at`, with its backslashes; 0: there is none.
  size_t QuoteLength(size_t at) const {
    size_t quote = at;
    while (quote < text_.size() && text_[quote] == '\\') ++quote;
    if (quote >= text_.size() ||
        (text_[quote] != '"' && text_[quote] != '\'')) {
      return 0;
    }
    return quote + 1 - at;
  }

  // Of a value with the quote that it begins with, without the one that ends
  // it. Nothing is left of a value without quotes in its line, for it may have
  // blanks; but within JSON or a query it ends with its part.
  size_t ValueLength(size_t at, bool in_json) const {
    if (at >= text_.size()) return 0;
    const size_t quotes = QuoteLength(at);
    if (quotes > 0) {
      const absl::string_view quote = text_.substr(at, quotes);
      size_t end = text_.find(quote, at + quotes);
      // A quote with a backslash belongs to the text.
      while (quotes == 1 && end != absl::string_view::npos &&
             text_[end - 1] == '\\') {
        end = text_.find(quote, end + 1);
      }
      if (end == at + quotes) return 0;  // "" is no secret
      return (end == absl::string_view::npos ? text_.size() : end) - at;
    }
    if (text_[at] == '|' || text_[at] == '>') return BlockLength(at);
    const size_t end = std::min(
        text_.find_first_of(in_json ? "\n\r,}]" : "\n\r&", at), text_.size());
    absl::string_view value = text_.substr(at, end - at);
    // Of a map in one line, {a: b, c: d}, the braces that end it stay.
    while (!value.empty() && (value.back() == '}' || value.back() == ']' ||
                              value.back() == ',' || value.back() == ' ')) {
      value.remove_suffix(1);
    }
    if (value == "null" || value == kRemoved || value == "(hidden)" ||
        value == "[" || value == "{") {
      return 0;
    }
    return value.size();
  }

  // Of a block of YAML: to the last line that is further in than the one in
  // which it begins.
  size_t BlockLength(size_t at) const {
    const size_t before = text_.rfind('\n', at);
    const size_t line = before == absl::string_view::npos ? 0 : before + 1;
    const size_t indent = text_.find_first_not_of(' ', line) - line;
    size_t end = std::min(text_.find('\n', at), text_.size());
    while (end < text_.size()) {
      const size_t next = end + 1;
      const size_t first =
          std::min(text_.find_first_not_of(' ', next), text_.size());
      if (first == text_.size() ||
          (text_[first] != '\n' && first - next <= indent)) {
        break;
      }
      end = std::min(text_.find('\n', first), text_.size());
    }
    return end - at;
  }

  // To where something else may begin.
  void CopyWord() {
    size_t end = at_ + 1;
    if (IsNameCharacter(text_[at_])) {
      while (end < text_.size() && IsNameCharacter(text_[end]) &&
             !absl::StartsWith(text_.substr(end), "-----BEGIN ")) {
        ++end;
      }
    }
    Copy(end - at_);
  }

  const absl::string_view text_;
  size_t at_ = 0;
  Redacted result_;
};

}  // namespace

Redacted Redact(absl::string_view text) { return Redactor(text).Run(); }

}  // namespace dfl::cli
