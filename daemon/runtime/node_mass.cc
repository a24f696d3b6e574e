// Mass: what algorithms give away, and the tracker epochs that bound its loss.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/runtime/node.h"

namespace dfl::runtime {

using ports::RefuseReason;

bool Node::GivesMass() const { return algorithm_.get() && run_.gives_mass(); }

std::optional<Refusal> Node::MisplacedSteps(
    const ports::TransferBegin& begin,
    const codec::EncodedHeader* header) const {
  if (header == nullptr || header->format.values != core::ValueType::kSteps) {
    return std::nullopt;  // a bad header is Transfers' to name
  }
  if (begin.kind == ports::TransferKind::kMass && algorithm_.get()) {
    const core::AlgorithmInfo* info = run_.algorithm();
    if (info && info->keeps_replicas) return std::nullopt;
  }
  return Refusal{
      RefuseReason::kBadMessage,
      "steps of a few bits are for what is added to replicas, never for models "
      "or other mass"};
}

bool Node::MayGive(const NodeId& peer) const {
  return links_.IsUp(peer) && !peers_.Mismatch(peer, true);
}

void Node::EnterEpoch(uint64_t epoch) {
  parcels_.Enter(epoch);
  Handle(core::EpochBegins{});
  TellState();
}

void Node::FollowEpoch(const NodeId& peer, uint64_t epoch) {
  if (!GivesMass() || epoch <= parcels_.epoch() ||
      peers_.Mismatch(peer, true)) {
    return;
  }
  EnterEpoch(epoch);
}

Admission Node::AdmitMass(const NodeId& from,
                          const ports::TransferBegin& begin) {
  if (!GivesMass()) {
    return Refusal{RefuseReason::kNotReady,
                   "no algorithm that takes mass runs"};
  }
  const int64_t length = algorithm_.get()->MassLength(model_.parameter_count());
  if (!run_.IsMember(from)) {
    return Reject(
        from, {RefuseReason::kNotANeighbour, "no member of this node's plan"});
  }
  FollowEpoch(from, begin.tracker_epoch);
  if (begin.tracker_epoch < parcels_.epoch()) {
    // Its sender has not heard of the new one yet.
    (void)links_.Send(from, MyState());
    return Reject(from,
                  {RefuseReason::kOlderEpoch,
                   absl::StrCat("tracker epoch ", begin.tracker_epoch,
                                " is over; it is ", parcels_.epoch(), " now")});
  }
  return ModelLengths{length, 0};
}

double Node::OnMass(const NodeId& from, uint64_t tracker_epoch,
                    uint64_t sequence, int64_t round,
                    std::vector<double> scalars,
                    std::unique_ptr<codec::DecodedMessage> message) {
  if (!algorithm_.get() || tracker_epoch != parcels_.epoch()) return 0;  // void
  parcels_.NoteTaken(from);
  peers_.CountReceived(from);
  const bool increments =
      message->header().format.values == core::ValueType::kSteps;
  core::RemoteModel mass;
  mass.step = round;
  mass.scalars = std::move(scalars);
  mass.parameters = std::move(message);
  Handle(core::MassArrived{from, sequence, std::move(mass), increments});
  return algorithm_.get() ? algorithm_.get()->MassTaken(from) : 0;
}

void Node::Do(const core::Give& action) { parcels_.Send(action); }

void Node::Do(const core::Skip& action) {
  for (const NodeId& peer : action.peers) {
    if (peers_.TakesPart(peer)) {
      (void)links_.Send(peer, ports::SkipFrame{action.round});
    }
  }
}

}  // namespace dfl::runtime
