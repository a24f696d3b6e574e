#include "daemon/runtime/push_exchange.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/core/rounds/push_barrier.h"
#include "daemon/runtime/outgoing_model.h"

namespace dfl::runtime {

PushExchange::PushExchange(OwnState& own, PeerTable& peers, Links& links,
                           Transfers& transfers, ports::Loop& loop)
    : own_(own),
      peers_(peers),
      links_(links),
      loop_(loop),
      pushes_([&transfers](Outgoing o) { transfers.Send(std::move(o)); }) {}

// What is pushed in the midst of a step is not w^k: it takes the buffers with
// it as they are now, and is nobody else's snapshot.
SnapshotPtr PushExchange::TakeSnapshot(absl::Span<const float> values) {
  if (values.empty() && own_.Settled()) return own_.TakeSnapshot();
  const FlatModel& model = own_.model;
  return model.CopyOf(values.empty() ? model.parameters() : values,
                      own_.algorithm.step());
}

void PushExchange::Do(const core::Push& action, uint64_t tracker_epoch) {
  if (own_.diverged) return;
  const core::CodecSpec& codec = own_.run.plan().codec;
  core::MessageFormat format = codec.format;
  SnapshotPtr snapshot;
  if (action.offer != nullptr) {
    format = {core::Coordinates::kDense, core::ValueType::kMod};
    format.modulus = action.offer->spec.modulus;
    snapshot = own_.model.CopyOf({}, own_.algorithm.step());
  }
  for (const NodeId& peer : action.peers) {
    if (!peers_.TakesPart(peer)) continue;
    if (!snapshot) snapshot = own_.Sent(TakeSnapshot(action.values));
    Outgoing outgoing =
        OutgoingModel(own_.model, peers_, peer, ports::TransferKind::kPush,
                      format, codec.rate, snapshot);
    outgoing.step = action.round;
    outgoing.offer = action.offer;
    if (action.offer != nullptr) outgoing.tracker_epoch = tracker_epoch;
    outgoing.scalars = action.scalars;
    outgoing.since = loop_.Now();
    outgoing.seed = action.offer != nullptr
                        ? action.offer->seed
                        : own_.run.EdgeSeed(peer, action.round);
    pushes_.Send(std::move(outgoing), action.apart);
  }
}

void PushExchange::Do(const core::Skip& action) {
  for (const NodeId& peer : action.peers) {
    if (peers_.TakesPart(peer)) {
      (void)links_.Send(peer, ports::SkipFrame{action.round});
    }
  }
}

void PushExchange::OnFrame(const NodeId& from, ports::SkipFrame skip) {
  if (!peers_.TakesPart(from)) return;
  peers_.HearStep(from, skip.round);
  own_.algorithm.Handle(
      core::Skipped{from, std::min(skip.round, kLargestStep)});
}

std::optional<Refusal> PushExchange::Objection(const NodeId& from) const {
  if (!own_.run.Takes(from)) {
    return Refusal{ports::RefuseReason::kNotANeighbour,
                   "no edge in this node's plan"};
  }
  if (!own_.phases.Running() && !own_.phases.Is(ports::Phase::kPaused)) {
    return Refusal{
        ports::RefuseReason::kNotReady,
        absl::StrCat("this node is ", ports::PhaseName(own_.phases.now()))};
  }
  return std::nullopt;
}

bool PushExchange::IsOfLaterGraph(int64_t round) const {
  return own_.algorithm.get() &&
         own_.run.IsOfLaterGraph(round, own_.algorithm.step());
}

bool PushExchange::IsTooLate(int64_t round) const {
  return own_.algorithm.get() && own_.run.lock_step() &&
         round < own_.algorithm.step() - core::MaxLagOf(own_.run.node().knobs);
}

void PushExchange::OnPush(const NodeId& from, core::RemoteModel model) {
  if (!IsOfLaterGraph(model.step)) {
    own_.algorithm.Handle(core::PushArrived{from, std::move(model)});
    return;
  }
  const int64_t round = model.step;
  early_.Keep(from, std::move(model));
  PassOver(from, round);  // it has passed the present round
}

void PushExchange::PassOver(const NodeId& from, int64_t round) {
  if (round < own_.algorithm.step()) return;
  const auto peer = peers_.all().find(from);
  if (peer == peers_.all().end() || !peer->second.active) return;
  own_.algorithm.Handle(core::PeerDown{from});
  own_.algorithm.Handle(core::PeerUp{from});
}

void PushExchange::DeliverEarly() {
  early_.Deliver(
      [this](int64_t round) { return IsOfLaterGraph(round); },
      [this](const NodeId& from, core::RemoteModel model) {
        own_.algorithm.Handle(core::PushArrived{from, std::move(model)});
      });
}

void PushExchange::Stop() {
  pushes_.DropWaiting();
  early_.Clear();
}

}  // namespace dfl::runtime
