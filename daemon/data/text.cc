#include "daemon/data/text.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/charconv.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/base/status_macros.h"
#include "daemon/data/data_error.h"
#include "daemon/data/spec_checks.h"

namespace dfl {
namespace data {
namespace {

constexpr size_t kReadBytes = size_t{256} << 10;

// "+1", "1" and "1.0" are one label. False if `token` is no integer.
bool ParseIntegerLabel(absl::string_view token, int64_t* value) {
  double number;
  if (!ParseNumber(token, &number)) return false;
  if (!(std::fabs(number) <= 9007199254740992.0)) return false;  // 2^53
  *value = static_cast<int64_t>(number);
  return static_cast<double>(*value) == number;
}

std::string Some(const std::vector<std::string>& names) {
  constexpr size_t kShown = 20;
  if (names.size() <= kShown) return absl::StrJoin(names, ", ");
  return absl::StrCat(
      absl::StrJoin(names.begin(), names.begin() + kShown, ", "), ", ... (",
      names.size(), " in all)");
}

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

bool CanonicalLabel(absl::string_view token, std::string* canonical,
                    int64_t* integer) {
  *integer = 0;
  const bool is_integer = ParseIntegerLabel(token, integer);
  *canonical = is_integer ? absl::StrCat(*integer) : std::string(token);
  return is_integer;
}

LabelCollector::LabelCollector(const DataSpec& spec) : spec_(spec) {
  for (size_t i = 0; i < spec.label_values.size(); ++i) {
    Value value{static_cast<int64_t>(i), false, 0, ""};
    std::string canonical;
    value.is_integer =
        CanonicalLabel(spec.label_values[i], &canonical, &value.integer);
    values_.emplace(std::move(canonical), std::move(value));
  }
}

absl::Status LabelCollector::Add(absl::string_view token,
                                 const std::string& path, int64_t line,
                                 int64_t column) {
  auto found = values_.find(token);
  if (found == values_.end()) {
    if (token.empty()) {
      return WrongContent(path, AtColumn(line, column), "the label is missing",
                          "a label in every row");
    }
    std::string canonical;
    int64_t integer;
    const bool is_integer = CanonicalLabel(token, &canonical, &integer);
    found = values_.find(canonical);
    if (found == values_.end()) {
      if (!spec_.label_values.empty()) {
        return WrongContent(path, AtColumn(line, column),
                            absl::StrCat("label ", Quoted(token)),
                            Some(spec_.label_values));
      }
      if (values_.size() >= static_cast<size_t>(kMaxClasses)) {
        return WrongContent(
            path, AtColumn(line, column),
            absl::StrCat("label ", Quoted(token), " is one too many"),
            absl::StrCat("at most ", kMaxClasses,
                         " different labels; is this the label column?"));
      }
      Value value{static_cast<int64_t>(values_.size()), is_integer, integer,
                  absl::StrCat(path, ": ", AtColumn(line, column))};
      found = values_.emplace(std::move(canonical), std::move(value)).first;
    }
  }
  ids_.push_back(found->second.id);
  return absl::OkStatus();
}

absl::StatusOr<Dataset::Answers> LabelCollector::Finish() {
  if (spec_.label_values.empty()) return FinishInOrder();
  Dataset::Answers answers;
  answers.classes = static_cast<int64_t>(spec_.label_values.size());
  answers.class_names = spec_.label_values;
  answers.labels = std::move(ids_);
  return answers;
}

absl::StatusOr<Dataset::Answers> LabelCollector::FinishInOrder() {
  struct Entry {
    const std::string* spelling;
    const Value* value;
  };
  std::vector<Entry> entries;
  bool all_integers = true;
  for (const auto& entry : values_) {
    entries.push_back({&entry.first, &entry.second});
    all_integers = all_integers && entry.second.is_integer;
  }
  if (all_integers) {
    std::sort(entries.begin(), entries.end(),
              [](const Entry& a, const Entry& b) {
                return a.value->integer < b.value->integer;
              });
  }
  const int64_t distinct = static_cast<int64_t>(entries.size());
  const int64_t wanted = spec_.classes;
  Dataset::Answers answers;
  std::vector<int64_t> class_of(entries.size());  // by id
  const bool as_they_are = wanted > 0 && all_integers && distinct > 0 &&
                           entries.front().value->integer >= 0 &&
                           entries.back().value->integer < wanted;
  if (as_they_are) {
    answers.classes = wanted;
    for (int64_t c = 0; c < wanted; ++c) {
      answers.class_names.push_back(absl::StrCat(c));
    }
    for (const Entry& entry : entries) {
      class_of[static_cast<size_t>(entry.value->id)] = entry.value->integer;
    }
  } else {
    if (wanted > 0 && distinct > wanted) {
      // The first that is out of range, else the last in order.
      const Entry* worst = &entries.back();
      if (all_integers && entries.front().value->integer < 0) {
        worst = &entries.front();
      }
      return absl::InvalidArgumentError(absl::StrCat(
          worst->value->first_place, ": label ", Quoted(*worst->spelling),
          " is one of ", distinct, " different ones; allowed: classes = ",
          wanted, " of them, or the integers 0 to ", wanted - 1));
    }
    if (distinct < std::max<int64_t>(wanted, 2)) {
      std::vector<std::string> names;
      for (const Entry& entry : entries) names.push_back(*entry.spelling);
      return absl::InvalidArgumentError(absl::StrCat(
          entries.front().value->first_place, ": only ", distinct,
          distinct == 1 ? " label (" : " labels (", Some(names),
          ") in the whole file, so their numbers cannot be told; allowed: ",
          wanted > 0 ? absl::StrCat("all ", wanted, " classes")
                     : std::string("two or more labels"),
          ", or label_values in the data settings"));
    }
    answers.classes = distinct;
    for (size_t c = 0; c < entries.size(); ++c) {
      answers.class_names.push_back(*entries[c].spelling);
      class_of[static_cast<size_t>(entries[c].value->id)] =
          static_cast<int64_t>(c);
    }
  }
  answers.labels = std::move(ids_);
  for (int64_t& label : answers.labels) {
    label = class_of[static_cast<size_t>(label)];
  }
  return answers;
}

}  // namespace data
}  // namespace dfl
