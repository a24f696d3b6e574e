// Peers of which it is not known whether they still hold the mass that they
// held: one of the two ends has started again. Until their books were compared
// they take no part, and no mass travels between them and this node.
//
// A restart is seen by a link. Of a peer that is not linked it may be *heard*
// from others.
//
// Loop only.
#ifndef DFL_RUNTIME_DOUBTS_H_
#define DFL_RUNTIME_DOUBTS_H_

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "absl/time/time.h"
#include "daemon/base/ids.h"
#include "daemon/ports/loop.h"

namespace dfl::runtime {

class Doubts {
 public:
  // How long one whose state is decided may say nothing of its books; and how
  // long one may take to decide what it goes on from, or, if it is no member or
  // others reach it, to be linked. A member that nobody reaches may be away for
  // ever.
  static constexpr absl::Duration kUnsure = absl::Seconds(10);
  static constexpr absl::Duration kUndecided = absl::Minutes(1);

  class Listener {
   public:
    virtual ~Listener() = default;
    virtual bool IsLinked(const NodeId& peer) const = 0;
    virtual bool IsMember(const NodeId& peer) const = 0;
    // Whether others reach it, as far as is known.
    virtual bool IsThere(const NodeId& peer) const = 0;
    // Whether it is known what the peer and this node go on from.
    virtual bool IsDecided(const NodeId& peer) const = 0;
    // Others are doubted than before.
    virtual void OnDoubted() = 0;
    // It is doubted no more, and has lost what it held.
    virtual void OnLost(const NodeId& peer) = 0;
  };

  // Both must outlive it.
  Doubts(ports::Loop& loop, Listener& listener)
      : loop_(loop), listener_(listener) {}
  ~Doubts() { loop_.Cancel(timer_); }

  bool Of(const NodeId& peer) const { return doubts_.count(peer) > 0; }
  // Whether it is doubted for what was heard alone.
  bool IsHeard(const NodeId& peer) const {
    const auto it = doubts_.find(peer);
    return it != doubts_.end() && it->second.heard;
  }
  void Begin(const NodeId& peer, bool heard = false) {
    doubts_[peer] = {loop_.Now(), heard};
    if (timer_ == 0) LookIn(kUnsure);
    listener_.OnDoubted();
  }
  // Whether there was one.
  bool End(const NodeId& peer) {
    if (doubts_.erase(peer) == 0) return false;
    listener_.OnDoubted();
    return true;
  }
  std::set<NodeId> all() const {
    std::set<NodeId> peers;
    for (const auto& [peer, doubt] : doubts_) peers.insert(peer);
    return peers;
  }
  // Ends all; returns whom they were of.
  std::set<NodeId> Clear() {
    loop_.Cancel(std::exchange(timer_, 0));
    std::set<NodeId> peers = all();
    doubts_.clear();
    if (!peers.empty()) listener_.OnDoubted();
    return peers;
  }

 private:
  struct Doubt {
    absl::Time since;
    bool heard = false;
  };

  void LookIn(absl::Duration delay) {
    timer_ = loop_.After(delay, [this] {
      timer_ = 0;
      Look();
    });
  }
  void Look() {
    absl::Duration next = kUnsure;
    const std::map<NodeId, Doubt> all = doubts_;
    for (const auto& [peer, doubt] : all) {
      const bool linked = listener_.IsLinked(peer);
      // Once it is there, the two ends tell each other.
      if (!linked && listener_.IsMember(peer) && !listener_.IsThere(peer)) {
        continue;
      }
      const bool decided = linked && listener_.IsDecided(peer);
      const absl::Duration left =
          doubt.since + (decided ? kUnsure : kUndecided) - loop_.Now();
      if (left > absl::ZeroDuration()) {
        next = std::min(next, left);
      } else if (End(peer)) {
        listener_.OnLost(peer);  // may end all others
      }
    }
    if (!doubts_.empty() && timer_ == 0) LookIn(next);
  }

  ports::Loop& loop_;
  Listener& listener_;
  std::map<NodeId, Doubt> doubts_;
  ports::TimerId timer_ = 0;
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_DOUBTS_H_
