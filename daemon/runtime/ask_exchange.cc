#include "daemon/runtime/ask_exchange.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "daemon/runtime/outgoing_model.h"

namespace dfl::runtime {

using ports::AskPurpose;
using ports::RefuseReason;
using ports::TransferKind;

AskExchange::AskExchange(OwnState& own, PeerTable& peers, Links& links,
                         Transfers& transfers, Rejections& rejections,
                         ports::EventSink& events, Listener& listener)
    : own_(own),
      peers_(peers),
      links_(links),
      transfers_(transfers),
      rejections_(rejections),
      events_(events),
      listener_(listener) {}

// ------------------------------------------------------------------- ours ----

void AskExchange::Do(const core::Ask& action) {
  const uint64_t wire = AskBook::WireAsk(own_.algorithm.epoch(), action.ask);
  book_.Open(wire, action.peers);
  const ports::AskFrame frame{wire, AskPurpose::kMix, own_.algorithm.step()};
  for (const NodeId& peer : action.peers) {
    // A silent one is asked as well, so that it may speak, but no round waits
    // for what it says.
    if (peers_.Mismatch(peer, true) || !links_.Send(peer, frame).ok() ||
        peers_.IsSilent(peer)) {
      Miss(peer, wire);
    }
  }
}

void AskExchange::Do(const core::CancelAsk& action) {
  const uint64_t wire = AskBook::WireAsk(own_.algorithm.epoch(), action.ask);
  for (const NodeId& peer : book_.CloseAll(wire)) {
    transfers_.CancelInbound(peer, wire);
    (void)links_.Send(peer, ports::CancelAskFrame{wire});
  }
}

void AskExchange::Do(const core::Missed& action) {
  for (const NodeId& peer : action.peers) peers_.CountMissed(peer);
  events_.Report(ports::NeighboursMissed{own_.algorithm.pace().steps,
                                         action.wanted, action.came});
}

void AskExchange::OnFrame(const NodeId& from, ports::RefuseFrame refuse) {
  if (!book_.IsOut(refuse.ask, from)) return;
  if (refuse.reason != RefuseReason::kNotReady &&
      refuse.reason != RefuseReason::kBusy) {
    events_.Report(ports::MessageRejected{
        from, refuse.reason, absl::StrCat("our ask: ", refuse.text)});
  }
  Miss(from, refuse.ask);
}

void AskExchange::Miss(const NodeId& from, uint64_t ask) {
  if (!book_.Close(ask, from)) return;
  if (AskBook::IsStateAsk(ask)) {
    listener_.OnStateMissed(from);
    return;
  }
  peers_.CountMissed(from);
  if (AskBook::EpochOf(ask) == own_.algorithm.epoch()) {
    own_.algorithm.Handle(core::AnswerMissing{from, AskBook::AskOf(ask)});
  }
}

void AskExchange::OnAnswer(const NodeId& from, uint64_t ask, int64_t step,
                           absl::Span<const double> scalars,
                           std::unique_ptr<codec::DecodedMessage> message) {
  if (!book_.Close(ask, from)) return;
  peers_.HearStep(from, step);
  if (AskBook::IsStateAsk(ask)) {
    listener_.OnState(from, ask, step, scalars, *message);
    return;
  }
  if (AskBook::EpochOf(ask) != own_.algorithm.epoch()) return;
  core::RemoteModel model;
  model.step = step;
  model.buffers.assign(message->buffers().begin(), message->buffers().end());
  model.parameters = std::move(message);
  own_.algorithm.Handle(
      core::AnswerArrived{from, AskBook::AskOf(ask), std::move(model)});
}

std::vector<uint64_t> AskExchange::Unanswered(const NodeId& peer) const {
  std::vector<uint64_t> unanswered;
  for (const uint64_t ask : book_.OutTo(peer)) {
    if (!transfers_.InboundMoved(peer, ask, absl::InfiniteDuration())) {
      unanswered.push_back(ask);
    }
  }
  return unanswered;
}

void AskExchange::OnPeerDown(const NodeId& peer) {
  for (const uint64_t ask : Unanswered(peer)) Miss(peer, ask);
  book_.Forget(peer);
}

void AskExchange::OnSilent(const NodeId& peer) {
  for (const uint64_t ask : Unanswered(peer)) {
    if (!AskBook::IsStateAsk(ask)) Miss(peer, ask);
  }
}

void AskExchange::Stop() {
  for (const auto& [ask, peers] : book_.CloseAlgorithms()) {
    for (const NodeId& peer : peers) {
      (void)links_.Send(peer, ports::CancelAskFrame{ask});
      transfers_.CancelInbound(peer, ask);
    }
  }
}

// --------------------------------------------------------------- of peers ----

std::optional<Refusal> AskExchange::Objection(
    const NodeId& from, const ports::AskFrame& ask) const {
  if (std::optional<Refusal> mismatch =
          peers_.Mismatch(from, ask.purpose == AskPurpose::kMix)) {
    return mismatch;
  }
  if (!own_.run.MayTakePart(from)) {
    return Refusal{RefuseReason::kNotANeighbour,
                   "no member of this node's plan"};
  }
  if (!own_.model.initialised()) {
    return Refusal{RefuseReason::kNotReady, "no model here yet"};
  }
  if (own_.diverged) {
    return Refusal{RefuseReason::kNotReady, "this node's model has diverged"};
  }
  if (transfers_.TooManyAnswers(from)) {
    return Refusal{RefuseReason::kBusy,
                   "too many answers are under way to you"};
  }
  return std::nullopt;
}

void AskExchange::OnFrame(const NodeId& from, ports::AskFrame ask) {
  peers_.HearStep(from, ask.step);
  if (std::optional<Refusal> refusal = Objection(from, ask)) {
    (void)links_.Send(
        from, ports::RefuseFrame{ask.ask, refusal->reason, refusal->text});
    rejections_.Note(from, *std::move(refusal));
    return;
  }
  if (book_.Wait(from, ask)) return;
  if (!own_.algorithm.handling()) Serve();
}

void AskExchange::Serve() {
  while (book_.waiting() && own_.Settled() && !own_.algorithm.handling()) {
    const AskBook::Waiting asked = book_.TakeFirst();
    if (asked.ask.purpose == AskPurpose::kState || !own_.algorithm.get()) {
      Outgoing state = OutgoingModel(
          own_.model, peers_, asked.from, TransferKind::kAnswer,
          core::MessageFormat{}, 1, own_.Sent(own_.TakeSnapshot()));
      state.ask = asked.ask.ask;
      if (own_.algorithm.get()) {
        const core::Pace pace = own_.algorithm.pace();
        state.scalars = {static_cast<double>(pace.steps),
                         static_cast<double>(pace.rounds)};
      }
      transfers_.Send(std::move(state));
    } else {
      own_.algorithm.Handle(core::AskArrived{asked.from, asked.ask.ask});
    }
  }
}

void AskExchange::Do(const core::Answer& action) {
  Outgoing outgoing =
      OutgoingModel(own_.model, peers_, action.to, TransferKind::kAnswer,
                    own_.run.plan().codec.format, action.rate,
                    own_.Sent(own_.TakeSnapshot()));
  outgoing.ask = action.ask;
  outgoing.seed = action.seed;
  transfers_.Send(std::move(outgoing));
}

void AskExchange::OnFrame(const NodeId& from, ports::CancelAskFrame dropped) {
  book_.Forget(from, dropped.ask);
  transfers_.CancelOutbound(from, dropped.ask);
}

}  // namespace dfl::runtime
