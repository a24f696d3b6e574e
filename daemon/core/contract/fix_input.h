// The part of Fix that is about scaling. Room-internal.
#ifndef DFL_CORE_CONTRACT_FIX_INPUT_H_
#define DFL_CORE_CONTRACT_FIX_INPUT_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "daemon/core/contract/agreement.h"

namespace dfl::core {

// Fixes division and standardisation in `section`, whose shape is fixed, and
// its features too where they have names.
//
// What the plan states wins over a default of a node. What a node's settings
// state stays, so that it is seen as a disagreement.
// Errors: INVALID_ARGUMENT, as a line of Fix; also for open numbers over the
// network without `may_pool`.
absl::Status FixInput(absl::Span<const NamedOffer> offers, bool may_pool,
                      DataSection& section);

}  // namespace dfl::core

#endif  // DFL_CORE_CONTRACT_FIX_INPUT_H_
