// Neighbours: their frames, our asks, answers and pushes.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/runtime/node.h"

namespace dfl::runtime {

using ports::AskPurpose;
using ports::Phase;
using ports::RefuseReason;
using ports::TransferKind;

// ------------------------------------------------------------------- links ----

void Node::OnPeerUp(const NodeId& peer, bool restarted) {
  if (restarted) {
    pushes_.Forget(peer);
    // What it had taken from us and given to us is gone.
    if (parcels_.partners().count(peer) > 0) EnterNextEpoch();
  }
  peers_.OnLink(peer);
  (void)links_.Send(peer, MyState());
  transfers_.OnPeerUp(peer, restarted);
}

void Node::OnPeerDown(const NodeId& peer, const absl::Status& /*reason*/) {
  peers_.OnLink(peer);
  transfers_.OnPeerDown(peer);
  RefreshActive(peer);
  // Asks whose answer has not begun to arrive are lost with the link; one that
  // is under way may be resumed, within the algorithm's deadline.
  std::vector<uint64_t> lost;
  for (const uint64_t ask : asks_.OutTo(peer)) {
    if (!transfers_.InboundMoved(peer, ask, absl::InfiniteDuration())) {
      lost.push_back(ask);
    }
  }
  for (const uint64_t ask : lost) MissAnswer(peer, ask);
  asks_.Forget(peer);
}

void Node::OnFrame(const NodeId& peer, ports::CancelAskFrame dropped) {
  asks_.Forget(peer, dropped.ask);
  transfers_.CancelOutbound(peer, dropped.ask);
}

void Node::OnFrame(const NodeId& peer, ports::SkipFrame skip) {
  if (!peers_.TakesPart(peer)) return;
  peers_.HearStep(peer, skip.round);
  Handle(core::Skipped{peer, std::min(skip.round, kLargestStep)});
}

void Node::OnPeerWritable(const NodeId& peer) {
  transfers_.OnPeerWritable(peer);
}

void Node::OnAddressFailed(const std::string& /*address*/) {
  joining_.Continue();
}

// ------------------------------------------------------------------- state ----

ports::StateFrame Node::MyState() const {
  ports::StateFrame state;
  if (run_.has_plan()) {
    state.run_id = run_.plan().run_id;
    state.algorithm = run_.plan().algorithm.name;
    state.plan_version = run_.plan().version;
  }
  if (run_.fingerprint()) state.fingerprint = *run_.fingerprint();
  state.step = algorithm_.step();
  state.phase = phase_;
  if (GivesMass()) state.tracker_epoch = parcels_.epoch();
  return state;
}

void Node::TellState() {
  const ports::StateFrame state = MyState();
  for (const auto& [peer, link] : links_.peers()) {
    if (link.link != 0) (void)links_.Send(peer, state);
  }
}

void Node::OnFrame(const NodeId& peer, ports::StateFrame frame) {
  const ports::StateFrame& state = peers_.OnState(peer, std::move(frame)).state;
  // One that is joining itself may be ahead once it has a model.
  const bool has_model =
      state.phase != Phase::kIdle && state.phase != Phase::kJoining;
  if (Running() && has_model) joining_.Confirm(peer, state.step);
  FollowEpoch(peer, state.tracker_epoch);
  RefreshActive(peer);
  if (joining_.waits_for_others() && boundary_.here()) boundary_.Schedule();
  if (MayGive(peer)) parcels_.Resume(peer);
  joining_.Continue();
}

void Node::RefreshActive(const NodeId& peer) {
  std::optional<int64_t> round;
  if (Running() && !boundary_.here()) round = algorithm_.step();
  switch (peers_.Refresh(peer, round)) {
    case PeerTable::Change::kNone:
      return;
    case PeerTable::Change::kJoined:
      Handle(core::PeerUp{peer});
      return;
    case PeerTable::Change::kLeft:
      Handle(core::PeerDown{peer});
      return;
  }
}

void Node::RefreshAll() {
  for (const auto& [id, peer] : peers_.all()) RefreshActive(id);
}

// -------------------------------------------------------------------- asks ----

void Node::OnFrame(const NodeId& peer, ports::AskFrame ask) {
  peers_.HearStep(peer, ask.step);
  std::optional<Refusal> refusal =
      peers_.Mismatch(peer, ask.purpose == AskPurpose::kMix);
  if (!refusal && !model_.initialised()) {
    refusal = Refusal{RefuseReason::kNotReady, "no model here yet"};
  }
  if (!refusal && transfers_.TooManyAnswers(peer)) {
    refusal =
        Refusal{RefuseReason::kBusy, "too many answers are under way to you"};
  }
  if (refusal) {
    (void)links_.Send(
        peer, ports::RefuseFrame{ask.ask, refusal->reason, refusal->text});
    OnBadMessage(peer, refusal->reason, refusal->text);
    return;
  }
  if (asks_.Wait(peer, ask)) return;
  if (!algorithm_.handling()) ServeAsks();
}

// Asks are answered whenever the parameters hold w^k, training or not.
void Node::ServeAsks() {
  while (asks_.waiting() && Settled() && !algorithm_.handling()) {
    const AskBook::Waiting asked = asks_.TakeFirst();
    if (asked.ask.purpose == AskPurpose::kState || !algorithm_.get()) {
      Outgoing state = MakeOutgoing(asked.from, TransferKind::kAnswer,
                                    core::MessageFormat{}, 1, TakeSnapshot());
      state.ask = asked.ask.ask;
      transfers_.Send(std::move(state));
    } else {
      Handle(core::AskArrived{asked.from, asked.ask.ask});
    }
  }
}

void Node::OnFrame(const NodeId& peer, ports::RefuseFrame refuse) {
  if (!asks_.IsOut(refuse.ask, peer)) return;
  if (refuse.reason != RefuseReason::kNotReady &&
      refuse.reason != RefuseReason::kBusy) {
    events_.Report(ports::MessageRejected{
        peer, refuse.reason, absl::StrCat("our ask: ", refuse.text)});
  }
  MissAnswer(peer, refuse.ask);
}

void Node::MissAnswer(const NodeId& from, uint64_t ask) {
  if (!asks_.Close(ask, from)) return;
  if (AskBook::IsStateAsk(ask)) {
    joining_.Failed(from);
    return;
  }
  peers_.CountMissed(from);
  if (AskBook::EpochOf(ask) == algorithm_.epoch()) {
    Handle(core::AnswerMissing{from, AskBook::AskOf(ask)});
  }
}

void Node::Do(const core::Ask& action) {
  const uint64_t wire = AskBook::WireAsk(algorithm_.epoch(), action.ask);
  asks_.Open(wire, action.peers);
  const ports::AskFrame frame{wire, AskPurpose::kMix, algorithm_.step()};
  for (const NodeId& peer : action.peers) {
    if (peers_.Mismatch(peer, true) || !links_.Send(peer, frame).ok()) {
      MissAnswer(peer, wire);
    }
  }
}

void Node::Do(const core::CancelAsk& action) {
  const uint64_t wire = AskBook::WireAsk(algorithm_.epoch(), action.ask);
  for (const NodeId& peer : asks_.CloseAll(wire)) {
    transfers_.CancelInbound(peer, wire);
    (void)links_.Send(peer, ports::CancelAskFrame{wire});
  }
}

void Node::Do(const core::Missed& action) {
  for (const NodeId& peer : action.peers) peers_.CountMissed(peer);
  events_.Report(
      ports::NeighboursMissed{algorithm_.step(), action.wanted, action.came});
}

// ------------------------------------------------------------- models out ----

// What is pushed in the midst of a step is not w^k: it takes the buffers with it
// as they are now, and is nobody else's snapshot.
SnapshotPtr Node::TakePushSnapshot(absl::Span<const float> values) {
  if (values.empty() && Settled()) return TakeSnapshot();
  return model_.CopyOf(
      values.empty() ? absl::Span<const float>(model_.parameters()) : values,
      algorithm_.step());
}

SnapshotPtr Node::TakeSnapshot() {
  return model_.Share(boundary_.here(), algorithm_.step());
}

Outgoing Node::MakeOutgoing(const NodeId& to, TransferKind kind,
                            core::MessageFormat format, double rate,
                            SnapshotPtr snapshot) {
  Outgoing outgoing;
  outgoing.to = to;
  outgoing.kind = kind;
  outgoing.format = format;
  outgoing.snapshot = std::move(snapshot);
  outgoing.step = outgoing.snapshot->step;
  const int64_t n = model_.parameter_count();
  outgoing.sent_coordinates = format.coordinates == core::Coordinates::kDense
                                  ? n
                                  : core::SentCoordinates(rate, n);
  const int64_t dense_bytes = 4 * (n + model_.buffer_count());
  outgoing.done = [this, to, dense_bytes](const absl::StatusOr<Receipt>& r) {
    if (r.ok()) peers_.CountSent(to, dense_bytes);
  };
  return outgoing;
}

void Node::Do(const core::Answer& action) {
  Outgoing outgoing =
      MakeOutgoing(action.to, TransferKind::kAnswer, run_.plan().codec.format,
                   action.rate, TakeSnapshot());
  outgoing.ask = action.ask;
  outgoing.seed = action.seed;
  transfers_.Send(std::move(outgoing));
}

void Node::Do(const core::Push& action) {
  SnapshotPtr snapshot;
  for (const NodeId& peer : action.peers) {
    if (!peers_.TakesPart(peer)) continue;
    if (!snapshot) snapshot = TakePushSnapshot(action.values);
    Outgoing outgoing =
        MakeOutgoing(peer, TransferKind::kPush, run_.plan().codec.format,
                     run_.plan().codec.rate, snapshot);
    outgoing.step = action.round;
    outgoing.scalars = action.scalars;
    outgoing.since = loop_.Now();
    outgoing.seed = run_.EdgeSeed(peer, action.round);
    pushes_.Send(std::move(outgoing), action.apart);
  }
}

// -------------------------------------------------------------- models in ----

Refusal Node::Reject(const NodeId& from, Refusal refusal) {
  OnBadMessage(from, refusal.reason, refusal.text);
  return refusal;
}

std::optional<Refusal> Node::Misplaced(
    const NodeId& from, const ports::TransferBegin& begin,
    const codec::EncodedHeader* header) const {
  const bool state =
      begin.kind == TransferKind::kAnswer && AskBook::IsStateAsk(begin.ask);
  std::optional<Refusal> wrong = peers_.Mismatch(from, !state);
  if (wrong) return wrong;
  if (begin.step > kLargestStep) {
    return Refusal{
        RefuseReason::kBadMessage,
        absl::StrCat("step ", begin.step, " is beyond ", kLargestStep)};
  }
  return MisplacedSteps(begin, header);
}

Admission Node::Admit(const NodeId& from, const ports::TransferBegin& begin,
                      const codec::EncodedHeader* header) {
  const bool answer = begin.kind == TransferKind::kAnswer;
  if (answer && !asks_.IsOut(begin.ask, from)) {
    return Refusal{RefuseReason::kNotReady,
                   "the answer is not wanted any more"};
  }
  if (std::optional<Refusal> wrong = Misplaced(from, begin, header)) {
    Reject(from, *wrong);
    if (answer) MissAnswer(from, begin.ask);
    return *std::move(wrong);
  }
  if (answer) {
    return ModelLengths{model_.parameter_count(), model_.buffer_count()};
  }
  peers_.HearStep(from, begin.step);
  return begin.kind == TransferKind::kMass ? AdmitMass(from, begin)
                                           : AdmitPush(from);
}

Admission Node::AdmitPush(const NodeId& from) {
  if (!run_.MayPush(from)) {
    return Reject(
        from, {RefuseReason::kNotANeighbour, "no edge in this node's plan"});
  }
  if (!Running() && phase_ != Phase::kPaused) {
    return Refusal{RefuseReason::kNotReady,
                   absl::StrCat("this node is ", ports::PhaseName(phase_))};
  }
  return ModelLengths{model_.parameter_count(), model_.buffer_count()};
}

void Node::OnModel(const NodeId& from, TransferKind kind, uint64_t ask,
                   int64_t step, std::vector<double> scalars,
                   absl::Duration age,
                   std::unique_ptr<codec::DecodedMessage> message) {
  peers_.CountReceived(from);
  core::RemoteModel model;
  model.step = step;
  const bool push = kind == TransferKind::kPush;
  if (!push) {
    if (!asks_.Close(ask, from)) return;
    peers_.HearStep(from, step);
    if (AskBook::IsStateAsk(ask)) {
      if (joining_.IsWanted(ask)) TakeState(from, step, *message);
      return;
    }
    if (AskBook::EpochOf(ask) != algorithm_.epoch()) return;
  }
  model.buffers.assign(message->buffers().begin(), message->buffers().end());
  model.parameters = std::move(message);
  if (push) {
    model.scalars = std::move(scalars);
    model.age = age;
    TakePush(from, std::move(model));
  } else {
    Handle(core::AnswerArrived{from, AskBook::AskOf(ask), std::move(model)});
  }
}

void Node::TakePush(const NodeId& from, core::RemoteModel model) {
  if (!IsOfLaterGraph(model.step)) {
    Handle(core::PushArrived{from, std::move(model)});
    return;
  }
  early_.Keep(from, std::move(model));
  // It has passed the present round: nothing more of that will come, and
  // nobody should wait for it.
  if (peers_.all().at(from).active) {
    Handle(core::PeerDown{from});
    Handle(core::PeerUp{from});
  }
}

void Node::OnTransferLost(const NodeId& from, TransferKind kind, uint64_t ask,
                          const std::string& /*why*/) {
  if (kind == TransferKind::kAnswer) MissAnswer(from, ask);
}

void Node::OnBadMessage(const NodeId& from, RefuseReason reason,
                        const std::string& text) {
  peers_.CountRejected(from, reason);
  // Of a node that is not ready yet, or busy, counting is enough.
  if (reason == RefuseReason::kNotReady || reason == RefuseReason::kBusy) {
    return;
  }
  events_.Report(ports::MessageRejected{from, reason, text});
}

}  // namespace dfl::runtime
