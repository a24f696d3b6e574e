#include "daemon/runtime/peer_table.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
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

void PeerTable::ForgetStrangers() {
  for (auto it = peers_.begin(); it != peers_.end();) {
    const auto& [id, peer] = *it;
    const bool stays = peer.active || linked_(id) || run_.IsMember(id) ||
                       leaving_.count(id) > 0;
    it = stays ? std::next(it) : peers_.erase(it);
  }
}

bool PeerTable::IsNews(const NodeId& peer,
                       const ports::StateFrame& state) const {
  const auto it = peers_.find(peer);
  if (it == peers_.end() || !it->second.known) return true;
  const ports::StateFrame& before = it->second.state;
  return state.run_id != before.run_id || state.phase != before.phase ||
         state.plan_version != before.plan_version ||
         state.algorithm != before.algorithm ||
         state.contract != before.contract ||
         state.tracker_epoch != before.tracker_epoch;
}

void PeerTable::HearStep(const NodeId& peer, int64_t step) {
  ports::StateFrame& state = peers_[peer].state;
  state.step = std::max(state.step, std::min(step, kLargestStep));
}

void PeerTable::HearWhole(const NodeId& peer, int64_t step) {
  ++heard_whole_;
  int64_t& newest = peers_[peer].whole_step;
  newest = std::max(newest, std::min(step, kLargestStep));
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
  if (!run_.has_plan() || !run_.contract() || !peer.known) {
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
  const std::vector<core::ContractField> differ =
      core::Differences(run_.contract_digest(), state.contract);
  if (!differ.empty()) {
    return Refusal{
        RefuseReason::kOtherModel,
        absl::StrCat(
            "the peer's data contract differs in ",
            absl::StrJoin(differ, ", ",
                          [](std::string* out, core::ContractField field) {
                            absl::StrAppend(out, core::FieldName(field));
                          }))};
  }
  if (same_algorithm && state.algorithm != run_.plan().algorithm.name) {
    return Refusal{RefuseReason::kOtherAlgorithm,
                   absl::StrCat("this node runs ", run_.plan().algorithm.name,
                                ", the peer ", state.algorithm)};
  }
  return std::nullopt;
}

bool PeerTable::TakesPart(const NodeId& id, const Peer& peer) const {
  if (!peer.known || !linked_(id) || !run_.IsMember(id)) return false;
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
  const bool active = !p.silent && !p.held && TakesPart(peer, p);
  if (active == p.active) return Change::kNone;
  if (!active && round && HasSent(peer, p, *round)) {
    leaving_.insert(peer);  // asked again at the boundary
    return Change::kNone;
  }
  p.active = active;
  return active ? Change::kJoined : Change::kLeft;
}

bool PeerTable::Silence(const NodeId& peer) {
  Peer& p = peers_[peer];
  p.silent = true;
  return std::exchange(p.active, false);
}

bool PeerTable::Hear(const NodeId& peer) {
  Peer& p = peers_[peer];
  p.silent = false;
  if (p.active || p.held || !TakesPart(peer, p)) return false;
  p.active = true;
  return true;
}

std::set<NodeId> PeerTable::TakeLeaving() {
  return std::exchange(leaving_, {});
}

PeerTable::Ahead PeerTable::FurthestRounds(const NodeId& self, int64_t own,
                                           int64_t exchange) const {
  const bool varies = core::TopologyVaries(run_.plan().topology);
  Ahead ahead{own, own};
  std::vector<int64_t> said;
  for (const auto& [id, peer] : peers_) {
    const int64_t step = peer.state.step;
    if (step <= exchange || !TakesPart(id, peer)) continue;
    // Where the topology varies, a peer that has not met us since our round may
    // well be ahead.
    if (!(varies ? core::MeetWithin(run_.plan(), self, id, own, step)
                 : run_.IsNeighbour(id))) {
      continue;
    }
    said.push_back(step);
    if (peer.whole_step > exchange) {
      ahead.by_one = std::max(ahead.by_one, peer.whole_step);
    }
  }
  // At least one of them is honest.
  const core::AggregationSpec& spec = run_.plan().aggregation;
  const auto needed = static_cast<size_t>(
      spec.robust() ? std::max<int64_t>(2, spec.hostile + 1) : 2);
  if (said.size() >= needed) {
    std::nth_element(said.begin(), said.begin() + (needed - 1), said.end(),
                     std::greater<>());
    ahead.by_several = std::max(own, said[needed - 1]);
  }
  return ahead;
}

void PeerTable::CountSent(const NodeId& to, int64_t dense_bytes) {
  ++models_sent_;
  ++peers_[to].models_sent;
  dense_bytes_sent_ += dense_bytes;
}

void PeerTable::CountReceived(const NodeId& from) {
  ++models_received_;
  Peer& peer = peers_[from];
  ++peer.models_received;
  peer.refusal.clear();
}

void PeerTable::CountMissed(const NodeId& peer) {
  ++missed_;
  ++peers_[peer].missed;
}

void PeerTable::CountRejected(const NodeId& from, const Refusal& refusal) {
  ++rejected_[ports::RefuseReasonName(refusal.reason)];
  Peer& peer = peers_[from];
  ++peer.rejected;
  // The other reasons pass, or are seen from its state.
  if (refusal.reason == RefuseReason::kBadMessage ||
      refusal.reason == RefuseReason::kUnknownCodec ||
      refusal.reason == RefuseReason::kNotANeighbour) {
    peer.refusal = refusal.text;
  }
}

std::optional<double> PeerTable::ConsensusDistance() const {
  double squares = 0;
  int64_t count = 0;
  for (const auto& [id, peer] : peers_) {
    if (!peer.distance.has_value()) continue;
    squares += *peer.distance * *peer.distance;
    ++count;
  }
  if (count == 0) return std::nullopt;
  return std::sqrt(squares / static_cast<double>(count));
}

void PeerTable::CountFar(const NodeId& from) {
  ++far_models_;
  Peer& peer = peers_[from];
  ++peer.far;
  peer.refusal = "they lie too far from this node's model";
}

}  // namespace dfl::runtime
