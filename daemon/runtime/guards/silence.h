// Which peers have stopped speaking: no round waits for them until they speak
// again.
//
// A peer becomes silent when
//   - a round has missed it (Missed), or
//   - it was sent something that a live node acknowledges at once, whatever it
//     computes (Expect), and nothing at all has come from it for a deadline.
// Any frame that comes from it ends that (Heard). The peer may have nothing to
// send, or think the same of us; so a silent peer is probed, at once and then
// every half deadline, kProbe at most. A live node answers a probe, even while
// it computes: who is only slow is waited for in every round, for a deadline.
//
// It reads no clock but the loop's. Loop only.
#ifndef DFL_RUNTIME_GUARDS_SILENCE_H_
#define DFL_RUNTIME_GUARDS_SILENCE_H_

#include <functional>
#include <map>
#include <utility>

#include "absl/time/time.h"
#include "daemon/base/ids.h"
#include "daemon/ports/loop.h"

namespace dfl::runtime {

class Silence {
 public:
  static constexpr absl::Duration kProbe = absl::Milliseconds(500);

  // They may call Expect and Missed.
  class Listener {
   public:
    virtual ~Listener() = default;
    // `unanswered`: by Expect, so that nobody has reported it as missed.
    virtual void OnSilent(const NodeId& peer, bool unanswered) = 0;
    virtual void OnHeard(const NodeId& peer) = 0;
    virtual void Probe(const NodeId& peer) = 0;
  };

  // `deadline`: how long a peer may say nothing, > 0. All must outlive it.
  Silence(ports::Loop& loop, Listener& listener,
          std::function<absl::Duration()> deadline)
      : loop_(loop), listener_(listener), deadline_(std::move(deadline)) {}
  ~Silence() { loop_.Cancel(timer_); }
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;

  // `peer` was sent something that it has to acknowledge.
  void Expect(const NodeId& peer);
  // A deadline has passed without `peer`.
  void Missed(const NodeId& peer);
  // A frame of `peer` came.
  void Heard(const NodeId& peer);
  // The link to `peer` is gone: nothing is said of it any more.
  void Forget(const NodeId& peer) { entries_.erase(peer); }

 private:
  struct Entry {
    bool silent = false;
    // Silent: when it is probed next. Otherwise: since when it owes an
    // acknowledgement; InfiniteFuture: it owes none.
    absl::Time at = absl::InfiniteFuture();
  };

  absl::Duration ProbeEvery() const;
  void Silent(const NodeId& peer, Entry& entry, bool unanswered);
  // When something is to be done about `entry`.
  absl::Time Due(const Entry& entry) const;
  // Sets the timer unless it is set.
  void Watch();
  void OnTimer();

  ports::Loop& loop_;
  Listener& listener_;
  const std::function<absl::Duration()> deadline_;
  std::map<NodeId, Entry> entries_;
  ports::TimerId timer_ = 0;
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_GUARDS_SILENCE_H_
