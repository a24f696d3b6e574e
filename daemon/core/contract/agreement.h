// From what nodes say of their data to one data contract, or to a refusal that
// shows both sides and the setting that mends it.
//
//   dflctl   asks the targets of an apply for their offers and fixes what the
//            plan leaves open: Fix
//   a node   derives its own contract from the plan and its own offer: Resolve
//
// A class gets its number so, the first rule that applies:
//   1  the plan lists the classes; a node may lack some of them
//   2  settings of nodes list them
//   3  all labels found are integers in [0, model.classes): they stand for
//      themselves
//   4  all labels found, integers by value and then words, of all nodes that
//      are asked; as many as model.classes, where the plan says it
#ifndef DFL_CORE_CONTRACT_AGREEMENT_H_
#define DFL_CORE_CONTRACT_AGREEMENT_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/core/contract/data_contract.h"
#include "daemon/core/contract/data_offer.h"
#include "daemon/core/contract/data_section.h"

namespace dfl::core {

struct NamedOffer {
  std::string who;  // as errors call it
  DataOffer offer;
};

// `section` with all that is open fixed from `offers`, at least one. `classes`
// is ModelSpec::classes of the plan. Where all agree that their features have
// no names, the names stay open. Mean and std over the network are worked out
// from the moments of all offers.
// Errors: INVALID_ARGUMENT, a line for each field in which they disagree with
// each other or with the section.
absl::StatusOr<DataSection> Fix(const DataSection& section, int64_t classes,
                                absl::Span<const NamedOffer> offers);

// Whether the names in `offer` can stand in a plan and in messages: UTF-8, of 1
// to kMaxNameBytes bytes.
// Errors: INVALID_ARGUMENT names the first that cannot, and where it was seen.
absl::Status CheckNames(const DataOffer& offer);
inline constexpr size_t kMaxNameBytes = 1000;

// The contract of a node that offers `offer`, under a plan that states
// `section`.
// Errors: as CheckNames and Fix; also when the numbers of a standardisation
// over the network are open, since one node cannot work them out.
absl::StatusOr<DataContract> Resolve(const DataSection& section,
                                     int64_t classes, const DataOffer& offer);

}  // namespace dfl::core

#endif  // DFL_CORE_CONTRACT_AGREEMENT_H_
