#include "daemon/runtime/peer_table.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/core/graph/topology.h"
#include "daemon/core/plan/plan_topology.h"

namespace dfl::runtime {

using ports::Phase;
using ports::RefuseReason;

const PeerTable::Peer& PeerTable::OnState(const NodeId& peer,
                                          ports::StateFrame state) {
  Peer& p = peers_[peer];
  p.state = std::move(state);
  p.state.step = std::min(p.state.step, kLargestStep);
  p.known = true;
  Compare(p);
  return p;
}

void PeerTable::HearStep(const NodeId& peer, int64_t step) {
  ports::StateFrame& state = peers_[peer].state;
  state.step = std::max(state.step, std::min(step, kLargestStep));
}

void PeerTable::Compare(Peer& peer) const {
  peer.agrees = false;
  peer.agrees = !Mismatch(peer, true);
}

void PeerTable::CompareAll() {
  for (auto& [id, peer] : peers_) Compare(peer);
}

std::optional<Refusal> PeerTable::Mismatch(const NodeId& peer,
                                           bool same_algorithm) const {
  const auto it = peers_.find(peer);
  return Mismatch(it == peers_.end() ? Peer() : it->second, same_algorithm);
}

std::optional<Refusal> PeerTable::Mismatch(const Peer& peer,
                                           bool same_algorithm) const {
  if (!run_.has_plan() || !run_.fingerprint() || !peer.known) {
    return Refusal{RefuseReason::kNotReady, "no run here yet"};
  }
  if (peer.agrees) return std::nullopt;
  const ports::StateFrame& state = peer.state;
  if (state.run_id != run_.plan().run_id) {
    return Refusal{RefuseReason::kOtherRun,
                   absl::StrCat("this node is in run ", run_.plan().run_id,
                                ", the peer in run ",
                                state.run_id.empty() ? "none" : state.run_id)};
  }
  if (state.fingerprint != *run_.fingerprint()) {
    return Refusal{
        RefuseReason::kOtherModel,
        absl::StrCat("this node's model has the fingerprint ",
                     run_.fingerprint()->substr(0, 12), ", the peer's ",
                     state.fingerprint.substr(0, 12))};
  }
  if (same_algorithm && state.algorithm != run_.plan().algorithm.name) {
    return Refusal{RefuseReason::kOtherAlgorithm,
                   absl::StrCat("this node runs ", run_.plan().algorithm.name,
                                ", the peer ", state.algorithm)};
  }
  return std::nullopt;
}

bool PeerTable::TakesPart(const NodeId& id, const Peer& peer) const {
  if (!peer.known || !linked_(id)) return false;
  const Phase phase = peer.state.phase;
  return (phase == Phase::kTraining || phase == Phase::kDegraded) &&
         !Mismatch(peer, true);
}

bool PeerTable::TakesPart(const NodeId& peer) const {
  const auto it = peers_.find(peer);
  return it != peers_.end() && TakesPart(peer, it->second);
}

bool PeerTable::HasSent(const NodeId& id, const Peer& peer,
                        int64_t round) const {
  return linked_(id) && !Mismatch(peer, true) && run_.lock_step() &&
         peer.state.step > round;
}

PeerTable::Change PeerTable::Refresh(const NodeId& peer,
                                     std::optional<int64_t> round) {
  Peer& p = peers_[peer];
  const bool active = TakesPart(peer, p);
  if (active == p.active) return Change::kNone;
  if (!active && round && HasSent(peer, p, *round)) {
    leaving_.insert(peer);  // asked again at the boundary
    return Change::kNone;
  }
  p.active = active;
  return active ? Change::kJoined : Change::kLeft;
}

std::set<NodeId> PeerTable::TakeLeaving() {
  return std::exchange(leaving_, {});
}

int64_t PeerTable::FurthestRound(const NodeId& self, int64_t own,
                                 int64_t exchange) const {
  const bool varies = core::TopologyVaries(run_.plan().topology);
  std::vector<int64_t> far;
  int64_t furthest = own;
  for (const auto& [id, peer] : peers_) {
    const int64_t step = peer.state.step;
    if (step <= exchange || !TakesPart(id, peer)) continue;
    // Where the topology varies, a peer that has not met us since our round may
    // well be ahead.
    if (!(varies ? core::MeetWithin(run_.plan(), self, id, own, step)
                 : run_.IsNeighbour(id))) {
      continue;
    }
    if (step > own + 1000) {
      far.push_back(step);
    } else {
      furthest = std::max(furthest, step);
    }
  }
  if (far.size() >= 2) {
    std::sort(far.begin(), far.end());
    furthest = far[far.size() - 2];
  }
  return furthest;
}

void PeerTable::CountSent(const NodeId& to, int64_t dense_bytes) {
  ++models_sent_;
  ++peers_[to].models_sent;
  dense_bytes_sent_ += dense_bytes;
}

void PeerTable::CountReceived(const NodeId& from) {
  ++models_received_;
  ++peers_[from].models_received;
}

void PeerTable::CountMissed(const NodeId& peer) {
  ++missed_;
  ++peers_[peer].missed;
}

void PeerTable::CountRejected(const NodeId& from, RefuseReason reason) {
  ++rejected_[ports::RefuseReasonName(reason)];
  ++peers_[from].rejected;
}

}  // namespace dfl::runtime
