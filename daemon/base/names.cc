#include "daemon/base/names.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/base/utf8.h"

namespace dfl {
namespace {

// Levenshtein's distance, upper and lower case being the same.
size_t EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const bool same =
          absl::ascii_tolower(static_cast<unsigned char>(a[i - 1])) ==
          absl::ascii_tolower(static_cast<unsigned char>(b[j - 1]));
      const size_t replaced = diagonal + (same ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

// The shortest text that reads back as `value`.
std::string NumberText(double value) {
  char buffer[32];
  const std::to_chars_result end =
      std::to_chars(buffer, buffer + sizeof(buffer), value);
  return std::string(buffer, end.ptr);
}

std::string NearestName(absl::string_view name,
                        absl::Span<const std::string> known) {
  constexpr size_t kMostCells = size_t{1} << 22;  // of all tables together
  size_t cells = 0;
  const size_t limit = std::max<size_t>(2, name.size() / 3);
  size_t best_distance = limit + 1;
  std::string best;
  for (const std::string& candidate : known) {
    // The distance is at least the difference in length; a name of a megabyte
    // is not measured at all.
    const size_t longer = std::max(name.size(), candidate.size());
    if (longer - std::min(name.size(), candidate.size()) >= best_distance) {
      continue;
    }
    cells += (name.size() + 1) * (candidate.size() + 1);
    if (cells > kMostCells) break;
    const size_t distance = EditDistance(name, candidate);
    // Nothing in common: "xy" is not a slip for "nu".
    if (distance >= std::max(name.size(), candidate.size())) continue;
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

absl::Status UnknownNameError(absl::string_view path, absl::string_view found,
                              absl::Span<const std::string> known) {
  constexpr size_t kShownBytes = 200;
  constexpr size_t kShownNames = 50;
  const std::string nearest = NearestName(found, known);
  std::string text = absl::StrCat(
      path, ": \"", StartOf(found, kShownBytes),
      found.size() > kShownBytes ? "..." : "", "\" is unknown; ",
      nearest.empty() ? "" : absl::StrCat("did you mean \"", nearest, "\"? "),
      "allowed: ", absl::StrJoin(known.subspan(0, kShownNames), ", "));
  if (known.size() > kShownNames) {
    absl::StrAppend(&text, " and ", known.size() - kShownNames, " more");
  }
  return absl::InvalidArgumentError(text);
}

}  // namespace dfl
