#include "daemon/runtime/contracts/contract_text.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace dfl::runtime {
namespace {

using core::ContractField;

// Names of a list that are shown, and bytes of all of them, of a name or of
// another value.
constexpr size_t kShownNames = 8;
constexpr size_t kShownListBytes = 200;
constexpr size_t kShownNameBytes = 60;
constexpr size_t kShownBytes = 120;
// Of a value that is too long: what is shown before the first difference.
constexpr size_t kBefore = 30;
// Of a hash.
constexpr size_t kShownDigits = 12;

// The length of the UTF-8 character at `text[i]`; 0: there is none.
size_t CharacterAt(absl::string_view text, size_t i) {
  const auto byte = [&](size_t k) {
    return static_cast<unsigned char>(text[k]);
  };
  const unsigned char first = byte(i);
  if (first < 0x80) return first >= 0x20 && first != 0x7f ? 1 : 0;
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || i + length > text.size()) return 0;
  for (size_t k = i + 1; k < i + length; ++k) {
    if ((byte(k) & 0xc0) != 0x80) return 0;
  }
  // Overlong forms, surrogates, and what is beyond Unicode.
  const unsigned char second = byte(i + 1);
  if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
      (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f)) {
    return 0;
  }
  return length;
}

// At most `bytes` of `text` from `begin` on, with dots where it was cut, and a
// question mark for what nobody can read.
std::string Cut(absl::string_view text, size_t begin, size_t bytes) {
  std::string shown = begin > 0 ? "..." : "";
  size_t i = begin;
  while (i < text.size() && i < begin + bytes) {
    const size_t length = CharacterAt(text, i);
    if (length == 0) {
      shown += '?';
      ++i;
      continue;
    }
    shown.append(text.data() + i, length);
    i += length;
  }
  if (i < text.size()) shown += "...";
  return shown;
}

// The quoted names of a list as FieldText writes it, each with its quotes;
// empty where it is none.
std::vector<absl::string_view> NamesOf(absl::string_view text) {
  std::vector<absl::string_view> names;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '"') continue;
    const size_t begin = i;
    for (++i; i < text.size() && text[i] != '"'; ++i) {
      if (text[i] == '\\') ++i;
    }
    if (i >= text.size()) return {};
    names.push_back(text.substr(begin, i + 1 - begin));
  }
  return names;
}

std::string NameText(absl::string_view name) {
  return Cut(name, 0, kShownNameBytes);
}

// A list of which the first names are shown: "3 ["cat", "dog", "fox"]".
class ShownList {
 public:
  explicit ShownList(std::vector<absl::string_view> names)
      : names_(std::move(names)) {
    size_t bytes = 0;
    for (const absl::string_view name : names_) {
      std::string text = NameText(name);
      bytes += text.size();
      if (shown_.size() == kShownNames || bytes > kShownListBytes) break;
      shown_.push_back(std::move(text));
    }
  }

  const std::vector<absl::string_view>& names() const { return names_; }
  // Whether what is shown tells the name at `i`, or that there is none.
  bool Tells(size_t i) const {
    return i < shown_.size() || shown_.size() == names_.size();
  }
  std::string text() const {
    return absl::StrCat(names_.size(), " [", absl::StrJoin(shown_, ", "),
                        shown_.size() < names_.size() ? ", ..." : "", "]");
  }

 private:
  std::vector<absl::string_view> names_;
  std::vector<std::string> shown_;
};

std::string NamesText(absl::string_view here_text,
                      absl::string_view there_text) {
  const ShownList here(NamesOf(here_text));
  const ShownList there(NamesOf(there_text));
  const size_t common = std::min(here.names().size(), there.names().size());
  size_t first = 0;
  while (first < common && here.names()[first] == there.names()[first]) ++first;
  if (here.Tells(first) && there.Tells(first)) {
    return absl::StrCat(here.text(), " here, ", there.text(), " there");
  }
  const auto at = [first](const ShownList& list) {
    return first < list.names().size() ? NameText(list.names()[first])
                                       : std::string("nothing");
  };
  return absl::StrCat(here.names().size(), " here, ", there.names().size(),
                      " there; number ", first + 1, " is ", at(here),
                      " here and ", at(there), " there");
}

std::string ValuesText(absl::string_view here, absl::string_view there) {
  size_t begin = 0;
  if (std::max(here.size(), there.size()) > kShownBytes) {
    const size_t common = std::min(here.size(), there.size());
    size_t first = 0;
    while (first < common && here[first] == there[first]) ++first;
    begin = first > kBefore ? first - kBefore : 0;
    // Not in the midst of a character.
    while (begin > 0 &&
           (static_cast<unsigned char>(here[begin]) & 0xc0) == 0x80) {
      --begin;
    }
  }
  return absl::StrCat(Cut(here, begin, kShownBytes), " here, ",
                      Cut(there, begin, kShownBytes), " there");
}

}  // namespace

std::string DifferenceText(ContractField field, absl::string_view here,
                           absl::string_view there) {
  std::string difference;
  switch (field) {
    case ContractField::kClasses:
    case ContractField::kFeatures:
      difference = NamesText(here, there);
      break;
    case ContractField::kModel:
      difference = absl::StrCat(
          Cut(here.substr(0, kShownDigits), 0, kShownDigits), " here, ",
          Cut(there.substr(0, kShownDigits), 0, kShownDigits), " there");
      break;
    case ContractField::kTask:
    case ContractField::kShape:
    case ContractField::kInput:
    case ContractField::kLoss:
      difference = ValuesText(here, there);
      break;
  }
  return absl::StrCat(core::FieldName(field), ": ", difference, "; set ",
                      core::FieldCure(field));
}

}  // namespace dfl::runtime
