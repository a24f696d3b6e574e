// Whose tracker epochs are believed, and how often: guards/epoch_guard.h.
//
// Loop only.
#ifndef DFL_RUNTIME_EPOCH_BELIEF_H_
#define DFL_RUNTIME_EPOCH_BELIEF_H_

#include <algorithm>
#include <cstdint>
#include <optional>

#include "absl/strings/str_cat.h"
#include "daemon/base/ids.h"
#include "daemon/ports/frames.h"
#include "daemon/ports/loop.h"
#include "daemon/runtime/guards/epoch_guard.h"
#include "daemon/runtime/links/links.h"
#include "daemon/runtime/own_state.h"
#include "daemon/runtime/peer_table.h"
#include "daemon/runtime/rejections.h"

namespace dfl::runtime {

class EpochBelief {
 public:
  // All must outlive it.
  EpochBelief(const OwnState& own, PeerTable& peers, const Links& links,
              Rejections& rejections, ports::Loop& loop)
      : own_(own),
        peers_(peers),
        links_(links),
        rejections_(rejections),
        loop_(loop) {}

  // Whether the epoch that `peer` says is believed, where it is `present` here.
  // Reports it when it is not.
  bool Believes(const NodeId& peer, uint64_t epoch, uint64_t present);

  // Whether `peer` may end the epoch now.
  EpochGuard::Verdict Raise(const NodeId& peer) {
    return guard_.Raise(peer, loop_.Now());
  }

 private:
  // The highest epoch that a member other than `peer` has told of.
  std::optional<uint64_t> EpochOfOthers(const NodeId& peer) const;

  const OwnState& own_;
  PeerTable& peers_;
  const Links& links_;
  Rejections& rejections_;
  ports::Loop& loop_;
  EpochGuard guard_;
};

inline bool EpochBelief::Believes(const NodeId& peer, uint64_t epoch,
                                  uint64_t present) {
  if (!EpochGuard::IsNear(present, epoch)) {
    const std::optional<uint64_t> others = EpochOfOthers(peer);
    if (others ? !EpochGuard::IsNear(*others, epoch)
               : epoch > ports::kMaxTrackerEpoch / 2) {
      rejections_.Note(peer,
                       {ports::RefuseReason::kOlderEpoch,
                        absl::StrCat("it claims tracker epoch ", epoch,
                                     ", where it is ", present, " here")});
      return false;
    }
  }
  switch (Raise(peer)) {
    case EpochGuard::Verdict::kFollow:
      return true;
    case EpochGuard::Verdict::kTooOften:
      rejections_.Note(peer,
                       {ports::RefuseReason::kOlderEpoch,
                        "it raises the tracker epoch again and again; it is "
                        "followed once in 30 s from now on"});
      return false;
    case EpochGuard::Verdict::kStillTooOften:
      peers_.CountRejected(peer, {ports::RefuseReason::kOlderEpoch,
                                  "it raises the epoch too often"});
      return false;
  }
  return false;
}

inline std::optional<uint64_t> EpochBelief::EpochOfOthers(
    const NodeId& peer) const {
  std::optional<uint64_t> highest;
  for (const auto& [id, other] : peers_.all()) {
    if (id == peer || other.state.tracker_epoch == 0 || !links_.IsUp(id) ||
        !own_.run.IsMember(id) || peers_.Mismatch(other, true)) {
      continue;
    }
    highest = std::max(highest.value_or(0), other.state.tracker_epoch);
  }
  return highest;
}

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_EPOCH_BELIEF_H_
