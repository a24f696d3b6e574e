#include "daemon/runtime/exchange.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace dfl::runtime {

using ports::RefuseReason;
using ports::TransferKind;

Exchange::Exchange(TransfersOptions options, OwnState& own, PeerTable& peers,
                   Presence& presence, Links& links, ports::Loop& loop,
                   ports::Worker& worker, ports::EventSink& events,
                   AskExchange::Listener& listener)
    : own_(own),
      peers_(peers),
      rejections_(peers, events, links),
      transfers_(options, loop, worker, links, *this),
      asks_(own, peers, links, transfers_, rejections_, events, listener),
      pushes_(own, peers, links, transfers_, loop),
      mass_(own, peers, links, transfers_, rejections_, presence, loop) {}

void Exchange::StopAlgorithm() {
  asks_.Stop();
  pushes_.Stop();
}

void Exchange::BeginRun() {
  transfers_.Reset();
  pushes_.Forget();
  mass_.BeginRun();
}

std::optional<Refusal> Exchange::Misplaced(
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
  return mass_.MisplacedSteps(begin, header);
}

Admission Exchange::Admit(const NodeId& from, const ports::TransferBegin& begin,
                          const codec::EncodedHeader* header) {
  const bool answer = begin.kind == TransferKind::kAnswer;
  if (answer && !asks_.book().IsOut(begin.ask, from)) {
    return Refusal{RefuseReason::kNotReady,
                   "the answer is not wanted any more"};
  }
  if (std::optional<Refusal> wrong = Misplaced(from, begin, header)) {
    rejections_.Note(from, *wrong);
    if (answer) asks_.Miss(from, begin.ask);
    return *std::move(wrong);
  }
  const ModelLengths lengths{own_.model.parameter_count(),
                             own_.model.buffer_count()};
  if (answer) return lengths;
  peers_.HearStep(from, begin.step);
  if (begin.kind == TransferKind::kMass) return mass_.Admit(from, begin);
  if (std::optional<Refusal> objection = pushes_.Objection(from)) {
    // That a node does not train now is no fault of its neighbour's.
    if (objection->reason == RefuseReason::kNotReady) return *objection;
    return rejections_.Note(from, *std::move(objection));
  }
  return lengths;
}

void Exchange::OnModel(const NodeId& from, TransferKind kind, uint64_t ask,
                       int64_t step, std::vector<double> scalars,
                       absl::Duration age,
                       std::unique_ptr<codec::DecodedMessage> message) {
  peers_.CountReceived(from);
  if (kind == TransferKind::kAnswer) {
    asks_.OnAnswer(from, ask, step, std::move(message));
    return;
  }
  core::RemoteModel model;
  model.step = step;
  model.scalars = std::move(scalars);
  model.age = age;
  model.buffers.assign(message->buffers().begin(), message->buffers().end());
  model.parameters = std::move(message);
  pushes_.OnPush(from, std::move(model));
}

double Exchange::OnMass(const NodeId& from, uint64_t tracker_epoch,
                        uint64_t sequence, int64_t round,
                        std::vector<double> scalars,
                        std::unique_ptr<codec::DecodedMessage> message) {
  return mass_.OnMass(from, tracker_epoch, sequence, round, std::move(scalars),
                      std::move(message));
}

void Exchange::OnTransferLost(const NodeId& from, TransferKind kind,
                              uint64_t ask, const std::string& /*why*/) {
  if (kind == TransferKind::kAnswer) asks_.Miss(from, ask);
}

void Exchange::OnBadMessage(const NodeId& from, RefuseReason reason,
                            const std::string& text) {
  rejections_.Note(from, {reason, text});
}

}  // namespace dfl::runtime
