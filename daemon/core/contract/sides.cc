#include "daemon/core/contract/sides.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace dfl::core {
namespace {

constexpr size_t kWhoShown = 3;
constexpr size_t kValuesShown = 6;
constexpr size_t kNamesShown = 20;
constexpr size_t kBytesShown = 400;

std::string WhoText(const std::vector<std::string>& who) {
  if (who.size() == 1) return who[0];
  const size_t shown = std::min(who.size(), kWhoShown);
  std::string text = absl::StrJoin(who.begin(), who.begin() + shown - 1, ", ");
  if (shown < who.size()) {
    return absl::StrCat(text, ", ", who[shown - 1], " and ", who.size() - shown,
                        " more");
  }
  return absl::StrCat(text, " and ", who[shown - 1]);
}

std::string Cut(const std::string& text) {
  if (text.size() <= kBytesShown) return text;
  size_t end = kBytesShown;
  // Not within a character.
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) {
    --end;
  }
  return absl::StrCat(text.substr(0, end), "...");
}

}  // namespace

std::vector<Side> Sides(
    absl::Span<const NamedOffer> offers,
    const std::function<std::string(const DataOffer&)>& text,
    const std::optional<std::string>& plan) {
  std::vector<Side> sides;
  if (plan.has_value()) sides.push_back({"the plan", *plan});
  for (const NamedOffer& named : offers) {
    sides.push_back({named.who, text(named.offer)});
  }
  return sides;
}

bool AllSay(const std::vector<Side>& sides) {
  return std::all_of(sides.begin(), sides.end(), [&](const Side& side) {
    return side.says == sides[0].says;
  });
}

std::string SidesText(const std::vector<Side>& sides) {
  std::vector<std::pair<std::string, std::vector<std::string>>> groups;
  for (const Side& side : sides) {
    const auto found = std::find_if(
        groups.begin(), groups.end(),
        [&](const auto& group) { return group.first == side.says; });
    if (found == groups.end()) {
      groups.push_back({side.says, {side.who}});
    } else {
      found->second.push_back(side.who);
    }
  }
  std::string text;
  for (size_t i = 0; i < groups.size(); ++i) {
    const auto& [says, who] = groups[i];
    absl::StrAppend(&text, i == 0 ? "" : ", ");
    if (i == kValuesShown) {
      return absl::StrCat(text, "... (", groups.size(), " values in all)");
    }
    absl::StrAppend(&text, WhoText(who), who.size() == 1 ? " says " : " say ",
                    Cut(says));
  }
  return text;
}

std::string NamesText(const std::vector<std::string>& names) {
  const size_t shown = std::min(names.size(), kNamesShown);
  std::string text = absl::StrJoin(
      names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", ",
      [](std::string* out, const std::string& name) {
        absl::StrAppend(out, "\"", absl::Utf8SafeCEscape(name), "\"");
      });
  if (shown < names.size()) {
    absl::StrAppend(&text, ", ... (", names.size(), " in all)");
  }
  return absl::StrCat("[", text, "]");
}

std::string DisagreementText(ContractField field,
                             const std::vector<Side>& sides,
                             absl::string_view more) {
  return absl::StrCat(FieldName(field), ": ", SidesText(sides),
                      more.empty() ? "" : "; ", more, "; to mend it, set ",
                      FieldCure(field));
}

}  // namespace dfl::core
