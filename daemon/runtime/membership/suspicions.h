// Who is suspected since when and by whom, and when that is over.
// See preset.h for how long a suspicion lasts.
#ifndef DFL_RUNTIME_MEMBERSHIP_SUSPICIONS_H_
#define DFL_RUNTIME_MEMBERSHIP_SUSPICIONS_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "absl/time/time.h"
#include "daemon/base/ids.h"
#include "daemon/ports/member_frames.h"
#include "daemon/runtime/membership/preset.h"

namespace dfl::runtime {

// Reads no clock.
class Suspicions {
 public:
  // `by` suspects `node`. A suspicion of another incarnation begins anew and
  // lasts by `least`; otherwise `by` confirms the one that there is. False:
  // that was known, or enough have confirmed it.
  bool Add(const NodeId& node, const ports::MemberIncarnation& incarnation,
           const NodeId& by, absl::Duration least, absl::Time now) {
    const auto found = entries_.find(node);
    if (found == entries_.end() || found->second.incarnation != incarnation) {
      Entry& entry = entries_[node];
      entry = Entry{incarnation, now, least, {by}, now};
      entry.over = now + SuspicionTime(least, 0);
      return true;
    }
    Entry& entry = found->second;
    if (entry.by.size() > kMostConfirmations || !entry.by.insert(by).second) {
      return false;
    }
    const auto confirmations = static_cast<int64_t>(entry.by.size()) - 1;
    entry.over = std::min(
        entry.over, entry.since + SuspicionTime(entry.least, confirmations));
    return true;
  }

  void End(const NodeId& node) { entries_.erase(node); }

  bool Holds(const NodeId& node) const { return entries_.count(node) > 0; }
  size_t size() const { return entries_.size(); }

  // When the first of them is over; InfiniteFuture: there is none.
  absl::Time Next() const {
    absl::Time next = absl::InfiniteFuture();
    for (const auto& [node, entry] : entries_) {
      next = std::min(next, entry.over);
    }
    return next;
  }

  // Takes out those that are over.
  std::vector<NodeId> TakeOver(absl::Time now) {
    std::vector<NodeId> over;
    for (const auto& [node, entry] : entries_) {
      if (entry.over <= now) over.push_back(node);
    }
    for (const NodeId& node : over) entries_.erase(node);
    return over;
  }

  // This node did nothing for `lag`, so that no refutation was read: each one
  // lasts as much longer, and at least until `least`.
  void Prolong(absl::Duration lag, absl::Time least) {
    for (auto& [node, entry] : entries_) {
      entry.since += lag;
      entry.over = std::max(entry.over + lag, least);
    }
  }

 private:
  struct Entry {
    ports::MemberIncarnation incarnation;
    absl::Time since;
    absl::Duration least;
    std::set<NodeId> by;
    absl::Time over;
  };

  std::map<NodeId, Entry> entries_;
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_MEMBERSHIP_SUSPICIONS_H_
