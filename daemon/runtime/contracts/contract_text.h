// How two values of a field of the data contract differ, in words for a person
// whose nodes disagree.
#ifndef DFL_RUNTIME_CONTRACTS_CONTRACT_TEXT_H_
#define DFL_RUNTIME_CONTRACTS_CONTRACT_TEXT_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "daemon/core/contract/data_contract.h"

namespace dfl::runtime {

inline constexpr size_t kMostDifferenceBytes = 700;

// "classes: 3 ["cat", "dog", "fox"] here, 2 ["cat", "fox"] there; set
// data.classes of the plan". Both are texts of core::FieldText, or say that
// they are; `there` may be any bytes. What is long is shown where it first
// differs. At most kMostDifferenceBytes of UTF-8 without control characters.
std::string DifferenceText(core::ContractField field, absl::string_view here,
                           absl::string_view there);

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_CONTRACTS_CONTRACT_TEXT_H_
