// Peers of which it is not known whether they still hold the mass that they
// held: one of the two ends has started again. Until their books were compared
// they take no part, and no mass travels between them and this node.
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
  // long one may take to decide what it goes on from, or, if it is no member,
  // to be found. A member may be away for ever.
  static constexpr absl::Duration kUnsure = absl::Seconds(10);
  static constexpr absl::Duration kUndecided = absl::Minutes(1);

  class Listener {
   public:
    virtual ~Listener() = default;
    virtual bool IsLinked(const NodeId& peer) const = 0;
    virtual bool IsMember(const NodeId& peer) const = 0;
    // Whether it is known what the peer and this node go on from.
    virtual bool IsDecided(const NodeId& peer) const = 0;
    // It is doubted no more, and has lost what it held.
    virtual void OnLost(const NodeId& peer) = 0;
  };

  // Both must outlive it.
  Doubts(ports::Loop& loop, Listener& listener)
      : loop_(loop), listener_(listener) {}
  ~Doubts() { loop_.Cancel(timer_); }

  bool Of(const NodeId& peer) const { return since_.count(peer) > 0; }
  void Begin(const NodeId& peer) {
    since_[peer] = loop_.Now();
    if (timer_ == 0) LookIn(kUnsure);
  }
  // Whether there was one.
  bool End(const NodeId& peer) { return since_.erase(peer) > 0; }
  std::set<NodeId> all() const {
    std::set<NodeId> peers;
    for (const auto& [peer, since] : since_) peers.insert(peer);
    return peers;
  }
  // Ends all; returns whom they were of.
  std::set<NodeId> Clear() {
    loop_.Cancel(std::exchange(timer_, 0));
    std::set<NodeId> peers = all();
    since_.clear();
    return peers;
  }

 private:
  void LookIn(absl::Duration delay) {
    timer_ = loop_.After(delay, [this] {
      timer_ = 0;
      Look();
    });
  }
  void Look() {
    absl::Duration next = kUnsure;
    const std::map<NodeId, absl::Time> all = since_;
    for (const auto& [peer, since] : all) {
      const bool linked = listener_.IsLinked(peer);
      // Once it is there, the two ends tell each other.
      if (!linked && listener_.IsMember(peer)) continue;
      const bool decided = linked && listener_.IsDecided(peer);
      const absl::Duration left =
          since + (decided ? kUnsure : kUndecided) - loop_.Now();
      if (left > absl::ZeroDuration()) {
        next = std::min(next, left);
      } else if (End(peer)) {
        listener_.OnLost(peer);  // may end all others
      }
    }
    if (!since_.empty() && timer_ == 0) LookIn(next);
  }

  ports::Loop& loop_;
  Listener& listener_;
  std::map<NodeId, absl::Time> since_;
  ports::TimerId timer_ = 0;
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_DOUBTS_H_
