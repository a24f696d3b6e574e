#include "daemon/runtime/exchange.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/core/vector/message_format.h"
#include "daemon/runtime/misplaced_format.h"

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
      mass_(own, peers, links, transfers_, rejections_, presence, loop),
      far_models_(own, peers, loop, events) {}

void Exchange::StopAlgorithm() {
  asks_.Stop();
  pushes_.Stop();
}

void Exchange::BeginRun(bool again) {
  transfers_.Reset();
  pushes_.Forget();
  mass_.BeginRun(again);
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
  if (header != nullptr && !state && begin.kind != TransferKind::kMass &&
      !codec::IsOnePiece(header->format.values) && !Offers()) {
    return Unplanned(from, begin, *header);
  }
  return MisplacedFormat(own_.algorithm.get() ? own_.run.algorithm() : nullptr,
                         begin, header);
}

bool Exchange::Offers() const {
  const core::AlgorithmInfo* info = own_.run.algorithm();
  return own_.algorithm.get() != nullptr && info != nullptr && info->offers;
}

// A message costs work for all n coordinates, however few it carries. While a
// plan is on its way the sender may have another one.
std::optional<Refusal> Exchange::Unplanned(
    const NodeId& from, const ports::TransferBegin& begin,
    const codec::EncodedHeader& header) const {
  const core::RunPlan& plan = own_.run.plan();
  const auto text = [](const core::MessageFormat& format) {
    return absl::StrCat(core::ToString(format.coordinates), " ",
                        core::ToString(format.values));
  };
  const bool one_plan =
      peers_.all().at(from).state.plan_version == plan.version;
  if (one_plan && !(header.format == plan.codec.format)) {
    return Refusal{RefuseReason::kUnknownCodec,
                   absl::StrCat("the model is sent as ", text(header.format),
                                "; the plan says ", text(plan.codec.format))};
  }
  if (header.format.coordinates == core::Coordinates::kDense) {
    return std::nullopt;
  }
  const int64_t n = own_.model.parameter_count();
  const core::AlgorithmInfo* info = own_.run.algorithm();
  double rate = plan.codec.rate;
  if (begin.kind == TransferKind::kAnswer && info && info->message_rate) {
    rate = info->message_rate(own_.run.node().knobs);
  }
  const int64_t planned = core::SentCoordinates(rate, n);
  const bool exact = one_plan && begin.kind == TransferKind::kPush;
  if (exact ? header.s == planned
            : header.s >= std::min(planned, std::max<int64_t>(1, n / 1000))) {
    return std::nullopt;
  }
  return Refusal{RefuseReason::kUnknownCodec,
                 absl::StrCat("the model is sent with ", header.s, " of ", n,
                              " coordinates; the plan says ", planned)};
}

Admission Exchange::Admit(const NodeId& from, const ports::TransferBegin& begin,
                          const codec::EncodedHeader* header) {
  const bool answer = begin.kind == TransferKind::kAnswer;
  const bool push = begin.kind == TransferKind::kPush;
  if (answer && !asks_.book().IsOut(begin.ask, from)) {
    return Refusal{RefuseReason::kNotReady,
                   "the answer is not wanted any more"};
  }
  if (std::optional<Refusal> wrong = Misplaced(from, begin, header)) {
    rejections_.Note(from, *wrong);
    if (answer) asks_.Miss(from, begin.ask);
    if (push) pushes_.PassOver(from, begin.step);
    return *std::move(wrong);
  }
  if (answer) return Lengths(begin.kind);
  if (!own_.run.IsMember(from) || (push && !own_.run.MayPush(from))) {
    other_view_(from);
  }
  peers_.HearStep(from, begin.step);
  const bool mass = begin.kind == TransferKind::kMass;
  // Offers are numbered anew in each epoch, and mass answers them.
  if (mass || Offers()) {
    if (std::optional<Refusal> refused = mass_.Objection(from, begin)) {
      return *std::move(refused);
    }
  }
  if (mass) return Lengths(begin.kind);
  if (std::optional<Refusal> objection = pushes_.Objection(from)) {
    pushes_.PassOver(from, begin.step);
    // That a node does not train now is no fault of its neighbour's.
    if (objection->reason == RefuseReason::kNotReady) return *objection;
    return rejections_.Note(from, *std::move(objection));
  }
  return Lengths(begin.kind);
}

ModelLengths Exchange::Lengths(TransferKind kind) const {
  ModelLengths lengths{own_.model.parameter_count(), own_.model.buffer_count(),
                       own_.algorithm.epoch()};
  const bool mass = kind == TransferKind::kMass;
  if (mass || (kind == TransferKind::kPush && Offers())) {
    lengths.tracker_epoch = mass_.parcels().epoch();
  }
  if (mass) {
    if (!Offers()) lengths.buffers = 0;
    if (const core::Algorithm* algorithm = own_.algorithm.get()) {
      lengths.parameters = algorithm->MassLength(lengths.parameters);
    }
  }
  return lengths;
}

// A plan, an algorithm or the sender's state may have changed while the message
// was on its way. An answer is for the algorithm that asked (AskBook).
std::optional<Refusal> Exchange::Recheck(const NodeId& from, TransferKind kind,
                                         uint64_t ask,
                                         const ModelLengths& admitted) {
  const bool answer = kind == TransferKind::kAnswer;
  const bool state = answer && AskBook::IsStateAsk(ask);
  const ModelLengths now = Lengths(kind);
  std::optional<Refusal> refused = peers_.Mismatch(from, !state);
  if (!refused && ((!answer && admitted.life != now.life) ||
                   admitted.parameters != now.parameters ||
                   admitted.buffers != now.buffers)) {
    refused = Refusal{RefuseReason::kNotReady,
                      "this node's algorithm has changed since the message was "
                      "announced"};
  }
  if (!refused && !own_.run.MayTakePart(from)) {
    refused = Refusal{RefuseReason::kNotANeighbour,
                      "no member of this node's plan any more"};
  }
  if (refused) {
    rejections_.Note(from, *refused);
  } else if (kind == TransferKind::kMass && own_.suspended) {
    refused = RefusedBySuspended();
  } else if (admitted.tracker_epoch != now.tracker_epoch) {
    // Its sender must not take it for delivered: in the new epoch it is void.
    refused = mass_.OlderEpoch(from, admitted.tracker_epoch);
  }
  return refused;
}

void Exchange::OnModel(const NodeId& from, TransferKind kind, uint64_t ask,
                       int64_t step, std::vector<double> scalars,
                       absl::Duration age,
                       std::unique_ptr<codec::DecodedMessage> message) {
  const bool answer = kind == TransferKind::kAnswer;
  const bool state = answer && AskBook::IsStateAsk(ask);
  const bool unused = !answer && pushes_.IsTooLate(step);
  if (!state && !unused && far_models_.Refuses(from, *message)) {
    if (answer) {
      asks_.Miss(from, ask);
    } else {
      pushes_.PassOver(from, step);
    }
    return;
  }
  peers_.CountReceived(from);
  if (!state) peers_.HearWhole(from, step);
  if (answer) {
    asks_.OnAnswer(from, ask, step, scalars, std::move(message));
    return;
  }
  core::RemoteModel model;
  model.step = step;
  model.scalars = std::move(scalars);
  model.age = age;
  model.buffers.assign(message->buffers().begin(), message->buffers().end());
  model.offer = message->offer();
  model.parameters = std::move(message);
  pushes_.OnPush(from, std::move(model));
}

double Exchange::OnMass(const NodeId& from, uint64_t tracker_epoch,
                        uint64_t sequence, int64_t round,
                        std::vector<double> scalars,
                        std::unique_ptr<codec::DecodedMessage> message) {
  peers_.HearWhole(from, round);
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
