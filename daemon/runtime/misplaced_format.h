// Which value formats have no business in a transfer, whatever the plan says.
#ifndef DFL_RUNTIME_MISPLACED_FORMAT_H_
#define DFL_RUNTIME_MISPLACED_FORMAT_H_

#include <optional>

#include "absl/strings/str_cat.h"
#include "daemon/codec/header.h"
#include "daemon/core/algorithm/algorithm_info.h"
#include "daemon/core/vector/message_format.h"
#include "daemon/ports/frames.h"
#include "daemon/runtime/transfers/refusal.h"

namespace dfl::runtime {

// Why `begin` announces steps (core/vector/step_codes.h), or an offer or an
// answer in `mod`, where they have no business, or something else where only
// these have; nullopt: it does not. `running`: the algorithm's entry; null:
// none runs. `header`: as TransferListener::Admit.
inline std::optional<Refusal> MisplacedFormat(
    const core::AlgorithmInfo* running, const ports::TransferBegin& begin,
    const codec::EncodedHeader* header) {
  if (header == nullptr) return std::nullopt;  // it is Transfers' to name
  const core::ValueType values = header->format.values;
  const bool mass = begin.kind == ports::TransferKind::kMass;
  const bool push = begin.kind == ports::TransferKind::kPush;
  const bool offers = running != nullptr && running->offers;
  if (core::IsMod(values) || (offers && (mass || push))) {
    const core::ValueType right =
        mass ? core::ValueType::kModAnswer : core::ValueType::kMod;
    if (offers && (mass || push) && values == right) return std::nullopt;
    return Refusal{
        ports::RefuseReason::kBadMessage,
        absl::StrCat("sent as ", core::ToString(values),
                     ": an algorithm that makes offers pushes them in mod and "
                     "gives answers to them, and nothing else; no other "
                     "algorithm does")};
  }
  if (!core::IsSteps(values)) return std::nullopt;
  if (mass && running != nullptr && running->keeps_replicas) {
    return std::nullopt;
  }
  return Refusal{
      ports::RefuseReason::kBadMessage,
      "steps of a few bits are for what is added to replicas, never for models "
      "or other mass"};
}

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_MISPLACED_FORMAT_H_
