#include "daemon/core/contract/labels.h"

#include <cmath>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace dfl::core {

std::optional<int64_t> IntegerLabel(absl::string_view label) {
  constexpr double kMost = 9007199254740992.0;  // 2^53
  if (absl::EqualsIgnoreCase(label, "true")) return 1;
  if (absl::EqualsIgnoreCase(label, "false")) return 0;
  double number;
  if (!absl::SimpleAtod(label, &number)) return std::nullopt;
  if (!(std::fabs(number) <= kMost)) return std::nullopt;
  const auto integer = static_cast<int64_t>(number);
  if (static_cast<double>(integer) != number) return std::nullopt;
  return integer;
}

std::string CanonicalLabel(absl::string_view label) {
  const std::optional<int64_t> integer = IntegerLabel(label);
  return integer.has_value() ? absl::StrCat(*integer) : std::string(label);
}

std::vector<std::string> SortedLabels(absl::Span<const std::string> labels) {
  std::set<int64_t> integers;
  std::set<std::string> words;
  for (const std::string& label : labels) {
    if (const std::optional<int64_t> integer = IntegerLabel(label)) {
      integers.insert(*integer);
    } else {
      words.insert(label);
    }
  }
  std::vector<std::string> sorted;
  sorted.reserve(integers.size() + words.size());
  for (const int64_t integer : integers)
    sorted.push_back(absl::StrCat(integer));
  sorted.insert(sorted.end(), words.begin(), words.end());
  return sorted;
}

}  // namespace dfl::core
