// Heartbeats: whether the links of members carry anything. A link may look well
// at one end only, as when the other end has lost its power or what one of them
// sends is dropped on the way.
//
// A linked member of which nothing at all was heard for a heartbeat is probed
// over its link. One that is silent for three heartbeats, with three probes in
// them, has its link closed; it is dialled again by whoever wants it linked. So
// both ends agree within three heartbeats. A link that carries anything costs
// nothing.
//
// Loop only.
#ifndef DFL_RUNTIME_MEMBERSHIP_HEARTBEATS_H_
#define DFL_RUNTIME_MEMBERSHIP_HEARTBEATS_H_

#include <cstdint>
#include <functional>
#include <map>

#include "absl/time/time.h"
#include "daemon/base/ids.h"
#include "daemon/ports/loop.h"
#include "daemon/ports/member_frames.h"
#include "daemon/runtime/links/links.h"

namespace dfl::runtime {

// LAN 5 s, WAN 15 s, cellular 60 s.
absl::Duration HeartbeatOf(ports::Pace pace);

class Heartbeats {
 public:
  static constexpr uint64_t kNumberBit = uint64_t{1} << 62;
  static constexpr int kProbes = 3;

  // `beat_of`: the heartbeat of a linked peer; zero: it is no member, and never
  // asked. All must outlive it.
  Heartbeats(NodeId self, ports::Loop& loop, Links& links,
             std::function<absl::Duration(const NodeId&)> beat_of);
  ~Heartbeats() { loop_.Cancel(timer_); }
  Heartbeats(const Heartbeats&) = delete;
  Heartbeats& operator=(const Heartbeats&) = delete;

  // A link came up.
  void OnPeerUp();

 private:
  struct Beat {
    ports::LinkId link = 0;
    int probes = 0;  // since something was heard
  };

  void Wake(absl::Duration delay);
  // Looks at all links, and at them again when the next one may be silent.
  void Look();
  // One link; returns when to look at it again.
  absl::Duration LookAt(const NodeId& node, const Links::Peer& peer,
                        absl::Duration beat);
  void SendProbe(const NodeId& node);

  const NodeId self_;
  ports::Loop& loop_;
  Links& links_;
  const std::function<absl::Duration(const NodeId&)> beat_of_;
  std::map<NodeId, Beat> beats_;  // of peers that are silent
  uint64_t last_number_ = 0;
  ports::TimerId timer_ = 0;
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_MEMBERSHIP_HEARTBEATS_H_
