// Mass: what algorithms give away, and the tracker epochs that bound its loss.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/core/algorithms/catalogue.h"
#include "daemon/runtime/node.h"

namespace dfl::runtime {

using ports::RefuseReason;

bool Node::GivesMass() const {
  if (!algorithm_) return false;
  auto info = core::FindAlgorithm(plan_->algorithm.name);
  return info.ok() && (*info)->gives_mass;
}

std::optional<Transfers::Refusal> Node::MisplacedSteps(
    const ports::TransferBegin& begin) const {
  const auto header = codec::ParseHeader(begin.header);
  if (!header.ok() || header->format.values != core::ValueType::kSteps) {
    return std::nullopt;  // a bad header is Transfers' to name
  }
  if (begin.kind == ports::TransferKind::kMass && algorithm_) {
    auto info = core::FindAlgorithm(plan_->algorithm.name);
    if (info.ok() && (*info)->keeps_replicas) return std::nullopt;
  }
  return Transfers::Refusal{
      RefuseReason::kBadMessage,
      "steps of a few bits are for what is added to replicas, never for models "
      "or other mass"};
}

bool Node::MayGive(const NodeId& peer) const {
  return links_.IsUp(peer) && !Mismatch(peer, true);
}

void Node::EnterEpoch(uint64_t epoch) {
  parcels_.Enter(epoch);
  Handle(core::EpochBegins{});
  TellState();
}

void Node::FollowEpoch(const NodeId& peer, uint64_t epoch) {
  if (!GivesMass() || epoch <= parcels_.epoch() || Mismatch(peer, true)) return;
  EnterEpoch(epoch);
}

bool Node::AdmitMass(const NodeId& from, const ports::TransferBegin& begin,
                     int64_t* parameters, int64_t* buffers,
                     Transfers::Refusal* refusal) {
  *buffers = 0;
  if (!GivesMass()) {
    *refusal = {RefuseReason::kNotReady, "no algorithm that takes mass runs"};
    return false;
  }
  *parameters = algorithm_->MassLength(*parameters);
  if (!IsMember(from)) {
    *refusal = {RefuseReason::kNotANeighbour, "no member of this node's plan"};
    OnBadMessage(from, refusal->reason, refusal->text);
    return false;
  }
  FollowEpoch(from, begin.tracker_epoch);
  if (begin.tracker_epoch < parcels_.epoch()) {
    *refusal = {RefuseReason::kOlderEpoch,
                absl::StrCat("tracker epoch ", begin.tracker_epoch,
                             " is over; it is ", parcels_.epoch(), " now")};
    // Its sender has not heard of the new one yet.
    (void)links_.Send(from, MyState());
    OnBadMessage(from, refusal->reason, refusal->text);
    return false;
  }
  return true;
}

double Node::OnMass(const NodeId& from, uint64_t tracker_epoch,
                    uint64_t sequence, int64_t round,
                    std::vector<double> scalars,
                    std::unique_ptr<codec::DecodedMessage> message) {
  if (!algorithm_ || tracker_epoch != parcels_.epoch()) return 0;  // void
  parcels_.NoteTaken(from);
  ++models_received_;
  ++peers_[from].models_received;
  const bool increments =
      message->header().format.values == core::ValueType::kSteps;
  core::RemoteModel mass;
  mass.step = round;
  mass.scalars = std::move(scalars);
  mass.parameters = std::move(message);
  Handle(core::MassArrived{from, sequence, std::move(mass), increments});
  return algorithm_ ? algorithm_->MassTaken(from) : 0;
}

void Node::Do(const core::Give& action) { parcels_.Send(action); }

void Node::Do(const core::Skip& action) {
  for (const NodeId& peer : action.peers) {
    if (Active(peer)) {
      (void)links_.Send(peer, ports::SkipFrame{action.round});
    }
  }
}

}  // namespace dfl::runtime
