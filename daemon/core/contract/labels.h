// Spellings of labels: which are the same, and in which order they are numbered
// where nobody says so.
#ifndef DFL_CORE_CONTRACT_LABELS_H_
#define DFL_CORE_CONTRACT_LABELS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace dfl::core {

// The value of a label that is an integer in any spelling: "1", "+1", "1.0",
// "1e0"; True and False in any case are 1 and 0. nullopt: it is a word, or
// beyond 2^53.
std::optional<int64_t> IntegerLabel(absl::string_view label);

// One spelling for all of one label: integers in decimal digits, words as they
// are.
std::string CanonicalLabel(absl::string_view label);

// The canonical spellings of all labels, each once: integers by value, then
// words bytewise.
std::vector<std::string> SortedLabels(absl::Span<const std::string> labels);

}  // namespace dfl::core

#endif  // DFL_CORE_CONTRACT_LABELS_H_
