// Who takes part: tells neighbours this node's state, and its algorithm which
// of them train with it.
//
// Loop only.
#ifndef DFL_RUNTIME_PRESENCE_H_
#define DFL_RUNTIME_PRESENCE_H_

#include <functional>

#include "daemon/base/ids.h"
#include "daemon/ports/frames.h"
#include "daemon/runtime/links/links.h"
#include "daemon/runtime/own_state.h"
#include "daemon/runtime/peer_table.h"

namespace dfl::runtime {

class Presence {
 public:
  // Adds to a state for `to` what is to be said of mass.
  using TellMass = std::function<void(ports::StateFrame&, const NodeId& to)>;

  // All must outlive it.
  Presence(OwnState& own, PeerTable& peers, Links& links, TellMass tell_mass);

  // What this node says of itself now to `peer`.
  ports::StateFrame State(const NodeId& peer) const;
  // Says it to `peer`.
  void TellTo(const NodeId& peer);
  // And wants to hear the state of `peer`.
  void Probe(const NodeId& peer);
  // Says it to all that are linked.
  void Tell();

  // Tells the algorithm when it has changed whether `peer` takes part.
  void Refresh(const NodeId& peer);
  void RefreshAll();
  // `peer` speaks no more, or speaks again (guards/silence.h).
  void OnSilent(const NodeId& peer);
  void OnHeard(const NodeId& peer);
  // At a boundary: those that left in the midst of the round are gone now.
  void RefreshLeaving();
  // To a new algorithm, which was told of nobody yet: tells it of all.
  void Introduce();

 private:
  OwnState& own_;
  PeerTable& peers_;
  Links& links_;
  const TellMass tell_mass_;
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_PRESENCE_H_
