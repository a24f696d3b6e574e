#include "daemon/core/algorithm/knobs.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "daemon/base/check.h"
#include "daemon/base/status_macros.h"

namespace dfl::core {
namespace {

bool InBounds(const KnobSpec& spec, double value) {
  if (!std::isfinite(value)) return false;
  if (value < spec.min || (spec.min_open && value == spec.min)) return false;
  return value < spec.max || (!spec.max_open && value == spec.max);
}

// `text` without surrounding blanks as an integer.
std::optional<int64_t> ReadInteger(absl::string_view text) {
  int64_t value = 0;
  if (!absl::SimpleAtoi(text, &value)) return std::nullopt;
  return value;
}

// "7", "5..10" or "[5, 10]".
std::optional<IntRange> ReadRange(absl::string_view text) {
  std::pair<absl::string_view, absl::string_view> ends;
  if (absl::ConsumePrefix(&text, "[")) {
    if (!absl::ConsumeSuffix(&text, "]")) return std::nullopt;
    const std::vector<absl::string_view> parts = absl::StrSplit(text, ',');
    if (parts.size() != 2) return std::nullopt;
    ends = {parts[0], parts[1]};
  } else if (text.find("..") != absl::string_view::npos) {
    ends = absl::StrSplit(text, absl::MaxSplits("..", 1));
  } else {
    ends = {text, text};
  }
  const std::optional<int64_t> lo = ReadInteger(ends.first);
  const std::optional<int64_t> hi = ReadInteger(ends.second);
  if (!lo.has_value() || !hi.has_value()) return std::nullopt;
  return IntRange{*lo, *hi};
}

std::optional<bool> ReadFlag(absl::string_view text) {
  const std::string lower = absl::AsciiStrToLower(text);
  if (lower == "on" || lower == "true" || lower == "yes") return true;
  if (lower == "off" || lower == "false" || lower == "no") return false;
  return std::nullopt;
}

absl::string_view TypeText(KnobType type) {
  switch (type) {
    case KnobType::kNumber:
      return "a number";
    case KnobType::kInteger:
      return "an integer";
    case KnobType::kFlag:
      return "on or off";
    case KnobType::kText:
      return "a text";
    case KnobType::kIntRange:
      return "an integer or a range of integers";
  }
  return "of a known type";
}

absl::Status WrongType(const KnobSpec& spec, absl::string_view found) {
  return absl::InvalidArgumentError(
      absl::StrCat(spec.name, ": ", found, " is not ", TypeText(spec.type),
                   "; allowed: ", spec.AllowedText()));
}

absl::Status OutOfBounds(const KnobSpec& spec, absl::string_view found) {
  const bool interval = spec.type == KnobType::kNumber &&
                        std::isfinite(spec.min) && std::isfinite(spec.max);
  return absl::InvalidArgumentError(
      absl::StrCat(spec.name, ": ", found,
                   interval ? " is not in " : " is not allowed; allowed: ",
                   spec.AllowedText()));
}

// `value` as the type that `spec` declares: an integer serves as a number and
// as a range of one.
KnobValue Widen(const KnobSpec& spec, const KnobValue& value) {
  if (const int64_t* integer = std::get_if<int64_t>(&value)) {
    if (spec.type == KnobType::kNumber) return static_cast<double>(*integer);
    if (spec.type == KnobType::kIntRange) return IntRange{*integer, *integer};
  }
  return value;
}

}  // namespace

std::string ToString(const KnobValue& value) {
  if (const double* number = std::get_if<double>(&value)) {
    return NumberText(*number);
  }
  if (const int64_t* integer = std::get_if<int64_t>(&value)) {
    return absl::StrCat(*integer);
  }
  if (const bool* flag = std::get_if<bool>(&value)) return *flag ? "on" : "off";
  if (const IntRange* range = std::get_if<IntRange>(&value)) {
    if (range->lo == range->hi) return absl::StrCat(range->lo);
    return absl::StrCat("[", range->lo, ", ", range->hi, "]");
  }
  return std::get<std::string>(value);
}

std::string KnobSpec::AllowedText() const {
  if (type == KnobType::kFlag) return "on or off";
  if (type == KnobType::kText) {
    if (choices.empty()) return "any text";
    if (choices.size() == 1) return choices[0];
    const absl::Span<const std::string> all(choices);
    return absl::StrCat(absl::StrJoin(all.first(all.size() - 1), ", "), " or ",
                        choices.back());
  }
  const bool has_min = std::isfinite(min);
  const bool has_max = std::isfinite(max);
  const auto bound = [this](double value) {
    return type == KnobType::kNumber
               ? NumberText(value)
               : absl::StrCat(static_cast<int64_t>(value));
  };
  const std::string noun = type == KnobType::kNumber ? "number" : "integer";
  std::string text;
  if (has_min && has_max) {
    text = absl::StrCat(min_open ? "(" : "[", bound(min), ", ", bound(max),
                        max_open ? ")" : "]");
    if (type != KnobType::kNumber) text = absl::StrCat("integer in ", text);
  } else if (has_min) {
    text = absl::StrCat(noun, min_open ? " > " : " >= ", bound(min));
  } else if (has_max) {
    text = absl::StrCat(noun, max_open ? " < " : " <= ", bound(max));
  } else {
    text = absl::StrCat("any ", noun);
  }
  if (type == KnobType::kIntRange)
    absl::StrAppend(&text, ", or a range [lo, hi]");
  return text;
}

absl::StatusOr<KnobValue> KnobSpec::Parse(absl::string_view text) const {
  const absl::string_view found = absl::StripAsciiWhitespace(text);
  const std::string quoted = absl::StrCat("\"", found, "\"");
  KnobValue value;
  switch (type) {
    case KnobType::kNumber: {
      double number = 0;
      if (!absl::SimpleAtod(found, &number)) return WrongType(*this, quoted);
      value = number;
      break;
    }
    case KnobType::kInteger: {
      const std::optional<int64_t> integer = ReadInteger(found);
      if (!integer.has_value()) return WrongType(*this, quoted);
      value = *integer;
      break;
    }
    case KnobType::kFlag: {
      const std::optional<bool> flag = ReadFlag(found);
      if (!flag.has_value()) return WrongType(*this, quoted);
      value = *flag;
      break;
    }
    case KnobType::kText:
      value = std::string(found);
      break;
    case KnobType::kIntRange: {
      const std::optional<IntRange> range = ReadRange(found);
      if (!range.has_value()) return WrongType(*this, quoted);
      value = *range;
      break;
    }
  }
  DFL_RETURN_IF_ERROR(Check(value));
  return value;
}

absl::Status KnobSpec::Check(const KnobValue& value) const {
  const KnobValue wide = Widen(*this, value);
  switch (type) {
    case KnobType::kNumber: {
      const double* number = std::get_if<double>(&wide);
      if (number == nullptr) break;
      if (!InBounds(*this, *number)) return OutOfBounds(*this, ToString(wide));
      return absl::OkStatus();
    }
    case KnobType::kInteger: {
      const int64_t* integer = std::get_if<int64_t>(&wide);
      if (integer == nullptr) break;
      if (!InBounds(*this, static_cast<double>(*integer))) {
        return OutOfBounds(*this, ToString(wide));
      }
      return absl::OkStatus();
    }
    case KnobType::kFlag:
      if (std::holds_alternative<bool>(wide)) return absl::OkStatus();
      break;
    case KnobType::kText: {
      const std::string* chosen = std::get_if<std::string>(&wide);
      if (chosen == nullptr) break;
      if (choices.empty() ||
          std::find(choices.begin(), choices.end(), *chosen) != choices.end()) {
        return absl::OkStatus();
      }
      return UnknownNameError(name, *chosen, choices);
    }
    case KnobType::kIntRange: {
      const IntRange* range = std::get_if<IntRange>(&wide);
      if (range == nullptr) break;
      if (range->lo > range->hi) {
        return absl::InvalidArgumentError(absl::StrCat(
            name, ": [", range->lo, ", ", range->hi,
            "] is empty, its first number must not exceed its second; "
            "allowed: ",
            AllowedText()));
      }
      if (!InBounds(*this, static_cast<double>(range->lo)) ||
          !InBounds(*this, static_cast<double>(range->hi))) {
        return OutOfBounds(*this, ToString(wide));
      }
      return absl::OkStatus();
    }
  }
  return WrongType(*this, absl::StrCat("\"", ToString(wide), "\""));
}

KnobSpec PositiveKnob(std::string name, double default_value,
                      std::string help) {
  return {.name = std::move(name),
          .default_value = default_value,
          .min = 0,
          .min_open = true,
          .help = std::move(help)};
}

std::vector<KnobSpec> Joined(std::vector<KnobSpec> first,
                             const std::vector<KnobSpec>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

absl::StatusOr<Knobs> Knobs::Resolve(absl::Span<const KnobSpec> specs,
                                     const KnobValues& values,
                                     const KnobValues& overrides) {
  Knobs knobs;
  std::map<std::string, const KnobSpec*> by_name;
  std::vector<std::string> known;
  for (const KnobSpec& spec : specs) {
    DFL_CHECK(by_name.emplace(spec.name, &spec).second);
    known.push_back(spec.name);
    knobs.values_[spec.name] = Widen(spec, spec.default_value);
  }
  for (const KnobValues* layer : {&values, &overrides}) {
    for (const auto& [name, value] : *layer) {
      const auto found = by_name.find(name);
      if (found == by_name.end()) {
        if (known.empty()) {
          return absl::InvalidArgumentError(
              absl::StrCat(name, ": unknown knob; this algorithm has none"));
        }
        const std::string nearest = NearestName(name, known);
        return absl::InvalidArgumentError(absl::StrCat(
            name, ": unknown knob; ",
            nearest.empty() ? ""
                            : absl::StrCat("did you mean \"", nearest, "\"? "),
            "allowed: ", absl::StrJoin(known, ", ")));
      }
      DFL_RETURN_IF_ERROR(found->second->Check(value));
      knobs.values_[name] = Widen(*found->second, value);
    }
  }
  return knobs;
}

const KnobValue& Knobs::Get(absl::string_view name) const {
  const auto found = values_.find(std::string(name));
  DFL_CHECK(found != values_.end());
  return found->second;
}

double Knobs::Number(absl::string_view name) const {
  const double* value = std::get_if<double>(&Get(name));
  DFL_CHECK(value != nullptr);
  return *value;
}

int64_t Knobs::Integer(absl::string_view name) const {
  const int64_t* value = std::get_if<int64_t>(&Get(name));
  DFL_CHECK(value != nullptr);
  return *value;
}

bool Knobs::Flag(absl::string_view name) const {
  const bool* value = std::get_if<bool>(&Get(name));
  DFL_CHECK(value != nullptr);
  return *value;
}

const std::string& Knobs::Text(absl::string_view name) const {
  const std::string* value = std::get_if<std::string>(&Get(name));
  DFL_CHECK(value != nullptr);
  return *value;
}

IntRange Knobs::Range(absl::string_view name) const {
  const IntRange* value = std::get_if<IntRange>(&Get(name));
  DFL_CHECK(value != nullptr);
  return *value;
}

}  // namespace dfl::core
