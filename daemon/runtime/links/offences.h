// How long a peer is shut out that keeps sending what nobody could take.
//
// `most` offences within `window` shut it out: for `first`, and each next time
// for twice as long, up to `longest`. A peer that was let in again and is quiet
// for `longest` begins anew.
//
// It holds an entry for each of the last kMost peers that have offended, and
// reads no clock.
#ifndef DFL_RUNTIME_LINKS_OFFENCES_H_
#define DFL_RUNTIME_LINKS_OFFENCES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>

#include "absl/time/time.h"
#include "daemon/base/ids.h"

namespace dfl::runtime {

struct OffenceOptions {
  int64_t most = 32;
  absl::Duration window = absl::Minutes(1);
  absl::Duration first = absl::Seconds(10);
  absl::Duration longest = absl::Minutes(10);
};

class Offences {
 public:
  explicit Offences(const OffenceOptions& options) : options_(options) {}

  static constexpr size_t kMost = 1024;

  // `peer` has offended. True when it is shut out for that from now on.
  bool Count(const NodeId& peer, absl::Time now) {
    if (entries_.size() >= kMost && entries_.count(peer) == 0) ForgetOldest();
    Entry& entry = entries_[peer];
    if (now < entry.until) return false;
    if (now - std::max(entry.last, entry.until) > options_.longest) {
      entry = Entry();
    }
    entry.last = now;
    if (now - entry.since > options_.window) {
      entry.since = now;
      entry.count = 0;
    }
    if (++entry.count < options_.most) return false;
    entry.term = entry.term == absl::ZeroDuration()
                     ? options_.first
                     : std::min(2 * entry.term, options_.longest);
    entry.until = now + entry.term;
    entry.count = 0;
    return true;
  }

  // How much longer `peer` is shut out; zero or less: it is not.
  absl::Duration Remaining(const NodeId& peer, absl::Time now) const {
    const auto found = entries_.find(peer);
    return found == entries_.end() ? absl::ZeroDuration()
                                   : found->second.until - now;
  }

 private:
  struct Entry {
    int64_t count = 0;  // since `since`
    absl::Time since = absl::InfinitePast();
    absl::Time last = absl::InfinitePast();      // the last offence
    absl::Duration term = absl::ZeroDuration();  // of the last shutting out
    absl::Time until = absl::InfinitePast();
  };

  void ForgetOldest() {
    const auto oldest = std::min_element(
        entries_.begin(), entries_.end(), [](const auto& a, const auto& b) {
          return std::max(a.second.last, a.second.until) <
                 std::max(b.second.last, b.second.until);
        });
    entries_.erase(oldest);
  }

  const OffenceOptions options_;
  std::map<NodeId, Entry> entries_;
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_LINKS_OFFENCES_H_
