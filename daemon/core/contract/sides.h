// Who says what: the text of a disagreement. Room-internal.
#ifndef DFL_CORE_CONTRACT_SIDES_H_
#define DFL_CORE_CONTRACT_SIDES_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/core/contract/agreement.h"
#include "daemon/core/contract/data_contract.h"

namespace dfl::core {

// One side of a comparison.
struct Side {
  std::string who;   // "anna", "the plan"
  std::string says;  // the value as text
};

// What `text` makes of each offer; before them what the plan says, if it does.
std::vector<Side> Sides(
    absl::Span<const NamedOffer> offers,
    const std::function<std::string(const DataOffer&)>& text,
    const std::optional<std::string>& plan);

// Whether all say the same.
bool AllSay(const std::vector<Side>& sides);

// `anna and bert say ["cat"], carl says ["dog"]`: those that say the same
// together, long values and long lists of names cut.
std::string SidesText(const std::vector<Side>& sides);

// Names in the form of FieldText, after some of them how many there are in all.
std::string NamesText(const std::vector<std::string>& names);

// A whole line about `field`: the sides and the setting that mends it. `more`
// says what the values alone do not, or "".
std::string DisagreementText(ContractField field,
                             const std::vector<Side>& sides,
                             absl::string_view more = "");

}  // namespace dfl::core

#endif  // DFL_CORE_CONTRACT_SIDES_H_
