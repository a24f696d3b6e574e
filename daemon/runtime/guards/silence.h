// Which peers have stopped speaking: no round waits for them until they speak
// again.
//
// A peer is asked whether it lives (Probe) when
//   - a round has missed it (Missed), or
//   - it was sent something that it has to acknowledge (Expect), and nothing at
//     all has come from it for a deadline.
// A live node answers at once, even while it computes, encodes or has a slow
// link. One that says nothing for ProbeEvery() is silent; it is asked on, each
// ProbeEvery(). Any frame that comes from it ends that (Heard). So a box that
// hangs costs its neighbours a deadline and a half, and one that is only slow
// is waited for in every round, for a deadline.
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
    // `unanswered`: no round has missed it, so that nobody has reported it.
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
  // kOwing: it has to acknowledge something.
  enum class Stage { kOwing, kAsked, kSilent };
  struct Entry {
    Stage stage = Stage::kOwing;
    bool missed = false;  // by a round
    absl::Time due;       // when it is asked next, or is silent
  };

  // Half a deadline, kProbe at most.
  absl::Duration ProbeEvery() const;
  // To `stage`: asks, and sees to it again in ProbeEvery().
  void Ask(const NodeId& peer, Entry& entry, Stage stage);
  // Something is due then: sets the timer unless it comes earlier.
  void Watch(absl::Time due);
  void OnTimer();

  ports::Loop& loop_;
  Listener& listener_;
  const std::function<absl::Duration()> deadline_;
  std::map<NodeId, Entry> entries_;  // of peers that something is expected of
  ports::TimerId timer_ = 0;
  absl::Time timer_at_ = absl::InfiniteFuture();
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_GUARDS_SILENCE_H_
