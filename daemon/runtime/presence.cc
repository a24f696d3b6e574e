#include "daemon/runtime/presence.h"

#include <optional>
#include <utility>

namespace dfl::runtime {

Presence::Presence(OwnState& own, PeerTable& peers, Links& links,
                   TellMass tell_mass)
    : own_(own),
      peers_(peers),
      links_(links),
      tell_mass_(std::move(tell_mass)) {}

ports::StateFrame Presence::State(const NodeId& peer) const {
  const RunInForce& run = own_.run;
  ports::StateFrame state;
  if (run.has_plan()) {
    state.run_id = run.plan().run_id;
    state.algorithm = run.plan().algorithm.name;
    state.plan_version = run.plan().version;
  }
  state.contract = run.contract_digest();
  state.step = own_.algorithm.step();
  state.phase = own_.phases.now();
  tell_mass_(state, peer);
  return state;
}

void Presence::TellTo(const NodeId& peer) {
  (void)links_.Send(peer, State(peer));
}

void Presence::Probe(const NodeId& peer) {
  ports::StateFrame state = State(peer);
  state.wants_answer = true;
  (void)links_.Send(peer, std::move(state));
}

void Presence::Tell() {
  for (const auto& [peer, link] : links_.peers()) {
    if (link.link != 0) TellTo(peer);
  }
}

void Presence::Refresh(const NodeId& peer) {
  std::optional<int64_t> round;
  if (own_.phases.Running() && !own_.boundary.here()) {
    round = own_.algorithm.step();
  }
  switch (peers_.Refresh(peer, round)) {
    case PeerTable::Change::kNone:
      return;
    case PeerTable::Change::kJoined:
      own_.algorithm.Handle(core::PeerUp{peer});
      return;
    case PeerTable::Change::kLeft:
      own_.algorithm.Handle(core::PeerDown{peer});
      return;
  }
}

void Presence::OnSilent(const NodeId& peer) {
  if (peers_.Silence(peer)) {
    own_.algorithm.Handle(core::PeerDown{peer, /*silent=*/true});
  }
}

void Presence::OnHeard(const NodeId& peer) {
  if (peers_.Hear(peer)) {
    own_.algorithm.Handle(core::PeerUp{peer, /*heard_again=*/true});
  }
}

void Presence::RefreshAll() {
  for (const auto& [id, peer] : peers_.all()) Refresh(id);
}

void Presence::RefreshLeaving() {
  for (const NodeId& peer : peers_.TakeLeaving()) Refresh(peer);
}

void Presence::Introduce() {
  for (const auto& [id, peer] : peers_.all()) {
    peers_.Untell(id);
    Refresh(id);
  }
}

}  // namespace dfl::runtime
