// Which tracker epochs of peers a node follows (runtime/parcels.h).
//
// To follow costs the node what it exchanged in its own epoch, so no peer may
// make it do that at will:
//   - An epoch further ahead than kNear is a claim that needs a second peer.
//     So epochs grow slowly enough never to reach the largest number.
//   - One peer is followed kBurst times, and then once in kEvery. A node that
//     comes back from a crash again and again raises the epoch no faster than
//     that for long; until then its mass waits.
//
// It reads no clock. It holds one entry for each peer that was followed.
#ifndef DFL_RUNTIME_GUARDS_EPOCH_GUARD_H_
#define DFL_RUNTIME_GUARDS_EPOCH_GUARD_H_

#include <algorithm>
#include <cstdint>
#include <map>

#include "absl/time/time.h"
#include "daemon/base/ids.h"

namespace dfl::runtime {

class EpochGuard {
 public:
  static constexpr uint64_t kNear = uint64_t{1} << 16;
  static constexpr int64_t kBurst = 8;
  static constexpr absl::Duration kEvery = absl::Seconds(30);

  enum class Verdict { kFollow, kTooOften, kStillTooOften };

  // Whether `epoch` is one that `present` may have come to.
  static bool IsNear(uint64_t present, uint64_t epoch) {
    return epoch <= present || epoch - present <= kNear;
  }

  // `peer` says an epoch that is above ours.
  Verdict Raise(const NodeId& peer, absl::Time now) {
    Entry& entry = entries_.try_emplace(peer, Entry{kBurst, now}).first->second;
    const int64_t earned = (now - entry.since) / kEvery;
    entry.since += earned * kEvery;
    entry.left = std::min(kBurst, entry.left + earned);
    if (entry.left > 0) {
      --entry.left;
      entry.told = false;
      return Verdict::kFollow;
    }
    if (entry.told) return Verdict::kStillTooOften;
    entry.told = true;
    return Verdict::kTooOften;
  }

 private:
  struct Entry {
    int64_t left = 0;
    absl::Time since;  // when `left` was counted
    bool told = false;
  };

  std::map<NodeId, Entry> entries_;
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_GUARDS_EPOCH_GUARD_H_
