#include "daemon/runtime/transfers/inbound_transfers.h"

#include <algorithm>
#include <optional>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "daemon/codec/decoder.h"

namespace dfl::runtime {

using ports::RefuseReason;
using ports::TransferAck;
using ports::TransferBegin;
using ports::TransferCancel;

namespace {

constexpr size_t kCompletedKept = 8;

}  // namespace

struct InboundTransfers::Transfer {
  ports::TransferKind kind = ports::TransferKind::kAnswer;
  uint64_t ask = 0;
  int64_t step = 0;
  std::vector<double> scalars;
  uint64_t tracker_epoch = 0;
  uint64_t sequence = 0;
  ModelLengths admitted;
  std::unique_ptr<codec::Assembler> assembler;
  std::unique_ptr<codec::BodyCheck> check;  // on the worker
  int64_t noted = 0;      // bytes acknowledged and given to `check`
  bool checking = false;  // all are here
  // By the worker, then ours.
  absl::StatusOr<std::unique_ptr<codec::DecodedMessage>> opened =
      absl::UnknownError("not checked");
  absl::Time last_bytes;
  // For the age of what comes.
  absl::Duration announced_age;
  absl::Time announced;                // here
  absl::Time acknowledged;             // before the first chunk
  std::optional<absl::Duration> trip;  // from there to that chunk
  absl::Time noted_at;
  ports::TimerId timer = 0;  // it ends then, unless something happens

  int64_t first = 0;  // bytes of the first chunk
  bool timed = true;  // neither at once nor interrupted by a lost link

  // How long all of it takes from its announcement, going by what is here;
  // nullopt: that cannot be told.
  std::optional<absl::Duration> Whole(absl::Time now) const {
    if (!timed) return std::nullopt;
    if (assembler->complete()) return now - announced;
    const int64_t streamed = assembler->received() - first;
    if (!trip || streamed <= 0) return std::nullopt;
    // The way to the first chunk is not the longer for what follows it.
    const absl::Time begun = acknowledged + *trip;
    const int64_t whole = assembler->header().body_bytes() - first;
    return (begun - announced) +
           (now - begun) *
               (static_cast<double>(whole) / static_cast<double>(streamed));
  }

  absl::Duration Age(absl::Time now) const {
    return announced_age + trip.value_or(absl::ZeroDuration()) / 2 +
           (now - announced);
  }
};

InboundTransfers::InboundTransfers(const TransfersOptions& options,
                                   ports::Loop& loop, ports::Worker& worker,
                                   Links& links, TransferListener& listener)
    : options_(options),
      loop_(loop),
      worker_(worker),
      links_(links),
      listener_(listener) {}

InboundTransfers::~InboundTransfers() {
  for (auto& [key, transfer] : transfers_) loop_.Cancel(transfer->timer);
}

// ---------------------------------------------------------- announcements ----

void InboundTransfers::OnBegin(const NodeId& from, TransferBegin begin) {
  const Key key(from, begin.transfer);
  if (Repeated(key, begin)) return;
  const absl::StatusOr<Admitted> admitted = Admit(from, begin);
  if (admitted.ok()) Open(key, std::move(begin), *admitted);
}

bool InboundTransfers::Repeated(const Key& key, const TransferBegin& begin) {
  const auto known = transfers_.find(key);
  if (known != transfers_.end()) {
    Transfer& transfer = *known->second;
    loop_.Cancel(transfer.timer);
    if (transfer.checking) return true;
    Await(key, transfer);
    transfer.acknowledged = loop_.Now();
    (void)links_.Send(
        key.first,
        TransferAck{begin.transfer, transfer.assembler->received(), false});
    return true;
  }
  const auto completed = completed_.find(key.first);
  if (completed == completed_.end()) return false;
  for (const Completed& done : completed->second) {
    if (done.transfer != begin.transfer) continue;
    (void)links_.Send(key.first, TransferAck{begin.transfer, begin.body_bytes,
                                             true, done.taken});
    return true;
  }
  return false;
}

absl::StatusOr<InboundTransfers::Admitted> InboundTransfers::Admit(
    const NodeId& from, const TransferBegin& begin) {
  const Key key(from, begin.transfer);
  absl::StatusOr<codec::EncodedHeader> header =
      codec::ParseHeader(begin.header);
  const Admission admission =
      listener_.Admit(from, begin, header.ok() ? &*header : nullptr);
  if (const auto* refused = std::get_if<Refusal>(&admission)) {
    Refuse(key, *refused);
    return absl::FailedPreconditionError(refused->text);
  }
  const auto& lengths = std::get<ModelLengths>(admission);
  absl::Status status = header.status();
  if (status.ok()) {
    status = codec::CheckHeader(*header, lengths.parameters, lengths.buffers);
  }
  if (status.ok() && begin.body_bytes != header->body_bytes()) {
    status = absl::InvalidArgumentError(
        absl::StrCat("announces ", begin.body_bytes, " bytes where ",
                     header->body_bytes(), " follow from the header"));
  }
  if (!status.ok()) {
    const Refusal refusal{absl::IsUnimplemented(status)
                              ? RefuseReason::kUnknownCodec
                              : RefuseReason::kBadMessage,
                          std::string(status.message())};
    Refuse(key, refusal);
    listener_.OnBadMessage(from, refusal.reason, refusal.text);
    listener_.OnTransferLost(from, begin.kind, begin.ask, refusal.text);
    return status;
  }
  const auto from_this_peer = std::count_if(
      transfers_.begin(), transfers_.end(),
      [&from](const auto& entry) { return entry.first.first == from; });
  if (from_this_peer >= options_.max_inbound_per_peer) {
    const std::string text = "too many transfers at once";
    Refuse(key, {RefuseReason::kBusy, text});
    listener_.OnTransferLost(from, begin.kind, begin.ask, text);
    return absl::ResourceExhaustedError(text);
  }
  return Admitted{*header, lengths};
}

void InboundTransfers::Open(const Key& key, TransferBegin begin,
                            const Admitted& admitted) {
  auto transfer = std::make_shared<Transfer>();
  transfer->kind = begin.kind;
  transfer->ask = begin.ask;
  transfer->step = begin.step;
  transfer->scalars = std::move(begin.scalars);
  transfer->tracker_epoch = begin.tracker_epoch;
  transfer->sequence = begin.sequence;
  transfer->admitted = admitted.lengths;
  transfer->assembler = std::make_unique<codec::Assembler>(admitted.header);
  transfer->check = std::make_unique<codec::BodyCheck>(admitted.header);
  transfer->announced_age = begin.age;
  transfer->announced = transfer->acknowledged = transfer->last_bytes =
      transfer->noted_at = loop_.Now();
  if (begin.body.empty()) {
    Await(key, *transfer);
    transfers_[key] = std::move(transfer);
    (void)links_.Send(key.first, TransferAck{begin.transfer, 0, false});
    return;
  }
  transfer->trip = absl::ZeroDuration();  // the sender has counted it
  transfer->timed = false;
  Append(transfers_.emplace(key, std::move(transfer)).first, 0, begin.body);
}

// Chunks only note when they came; the timer looks at that.
void InboundTransfers::Await(const Key& key, Transfer& transfer) {
  transfer.timer = loop_.After(
      std::max(transfer.last_bytes + options_.stalled_after - loop_.Now(),
               absl::Milliseconds(1)),
      [this, key] {
        Transfer& waiting = *transfers_.at(key);
        if (waiting.checking) return;
        if (loop_.Now() < waiting.last_bytes + options_.stalled_after) {
          Await(key, waiting);
          return;
        }
        const std::string why = "nothing more of it has come for long";
        Refuse(key, {RefuseReason::kBusy, why});
        Lose(key, why);
      });
}

// ----------------------------------------------------------------- bodies ----

void InboundTransfers::OnChunk(const NodeId& from, const ports::Chunk& chunk) {
  const auto it = transfers_.find(Key(from, chunk.transfer));
  if (it == transfers_.end() || it->second->checking) return;  // cancelled
  Append(it, chunk.offset, chunk.data);
}

void InboundTransfers::Append(Map::iterator it, int64_t offset,
                              absl::string_view data) {
  Transfer& transfer = *it->second;
  // A repeat after a resume may begin before what is here.
  const int64_t overlap = transfer.assembler->received() - offset;
  if (overlap > 0) {
    data.remove_prefix(
        std::min<size_t>(data.size(), static_cast<size_t>(overlap)));
    offset += overlap;
  }
  if (data.empty()) return;
  const absl::Status appended = transfer.assembler->Append(offset, data);
  if (!appended.ok()) {
    // A gap or an overrun cannot come from an honest peer on an ordered link.
    RefuseBad(Key(it->first), std::string(appended.message()));
    return;
  }
  transfer.last_bytes = loop_.Now();
  if (!transfer.trip) {
    transfer.trip = loop_.Now() - transfer.acknowledged;
    transfer.first = transfer.assembler->received();
  }
  if (transfer.assembler->complete()) {
    Check(it);
    return;
  }
  const int64_t received = transfer.assembler->received();
  if (received - transfer.noted < options_.window_bytes / 4 &&
      loop_.Now() < transfer.noted_at + options_.acknowledged_every) {
    return;
  }
  transfer.noted = received;
  transfer.noted_at = loop_.Now();
  (void)links_.Send(it->first.first,
                    TransferAck{it->first.second, received, false});
  worker_.Run(
      [transfer = it->second, body = transfer.assembler->body()] {
        transfer->check->Advance(body);
      },
      [] {});
}

void InboundTransfers::NoteTime(const Key& key, const Transfer& transfer) {
  const std::optional<absl::Duration> time = transfer.Whole(loop_.Now());
  if (time.has_value()) links_.NoteTransfer(key.first, *time);
}

void InboundTransfers::Check(Map::iterator it) {
  const TransferPtr& transfer = it->second;
  NoteTime(it->first, *transfer);
  transfer->checking = true;
  worker_.Run(
      [transfer] {
        transfer->opened = codec::OpenMessage(*std::move(transfer->check),
                                              transfer->assembler->Take());
      },
      [this, key = it->first, transfer, alive = std::weak_ptr<bool>(alive_)] {
        if (!alive.expired()) OnChecked(key, transfer);
      });
}

void InboundTransfers::OnChecked(const Key& key, const TransferPtr& transfer) {
  const auto found = transfers_.find(key);
  if (found == transfers_.end() || found->second != transfer) return;
  if (!transfer->opened.ok()) {
    RefuseBad(key, std::string(transfer->opened.status().message()));
    return;
  }
  if (const std::optional<Refusal> refused = listener_.Recheck(
          key.first, transfer->kind, transfer->ask, transfer->admitted)) {
    Refuse(key, *refused);
    Lose(key, refused->text);
    return;
  }
  loop_.Cancel(transfer->timer);
  transfers_.erase(found);
  std::unique_ptr<codec::DecodedMessage> message = *std::move(transfer->opened);
  const int64_t body_bytes = message->header().body_bytes();
  if (transfer->kind == ports::TransferKind::kMass) {
    // Acknowledged when it is in the taker's books, not before.
    const double taken = listener_.OnMass(
        key.first, transfer->tracker_epoch, transfer->sequence, transfer->step,
        std::move(transfer->scalars), std::move(message));
    Complete(key, body_bytes, taken);
    return;
  }
  Complete(key, body_bytes, 0);
  listener_.OnModel(key.first, transfer->kind, transfer->ask, transfer->step,
                    std::move(transfer->scalars), transfer->Age(loop_.Now()),
                    std::move(message));
}

void InboundTransfers::Complete(const Key& key, int64_t body_bytes,
                                double taken) {
  std::deque<Completed>& completed = completed_[key.first];
  completed.push_back(Completed{key.second, taken});
  if (completed.size() > kCompletedKept) completed.pop_front();
  (void)links_.Send(key.first,
                    TransferAck{key.second, body_bytes, true, taken});
}

// ----------------------------------------------------------------- ending ----

void InboundTransfers::Refuse(const Key& key, const Refusal& refusal) {
  (void)links_.Send(key.first, TransferCancel{key.second, false, refusal.reason,
                                              refusal.text});
}

void InboundTransfers::RefuseBad(const Key& key, const std::string& why) {
  Refuse(key, {RefuseReason::kBadMessage, why});
  listener_.OnBadMessage(key.first, RefuseReason::kBadMessage, why);
  Lose(key, why);
}

void InboundTransfers::Lose(const Key& key, const std::string& why) {
  const auto it = transfers_.find(key);
  if (it == transfers_.end()) return;
  const TransferPtr transfer = it->second;
  loop_.Cancel(transfer->timer);
  transfers_.erase(it);
  listener_.OnTransferLost(key.first, transfer->kind, transfer->ask, why);
}

bool InboundTransfers::IsAnswer(Map::const_iterator it, const NodeId& from,
                                uint64_t ask) const {
  return it->first.first == from && it->second->ask == ask &&
         it->second->kind == ports::TransferKind::kAnswer;
}

void InboundTransfers::CancelAnswer(const NodeId& from, uint64_t ask) {
  for (auto it = transfers_.begin(); it != transfers_.end(); ++it) {
    if (!IsAnswer(it, from, ask)) continue;
    if (!it->second->checking) NoteTime(it->first, *it->second);
    loop_.Cancel(it->second->timer);
    transfers_.erase(it);
    return;
  }
}

bool InboundTransfers::Moved(const NodeId& from, uint64_t ask,
                             absl::Duration period) const {
  for (auto it = transfers_.begin(); it != transfers_.end(); ++it) {
    if (!IsAnswer(it, from, ask)) continue;
    return it->second->checking ||
           it->second->last_bytes >= loop_.Now() - period;
  }
  return false;
}

void InboundTransfers::OnCancel(const NodeId& from,
                                const TransferCancel& cancel) {
  Lose(Key(from, cancel.transfer),
       absl::StrCat("the sender gave up: ", cancel.text));
}

void InboundTransfers::OnPeerUp(const NodeId& peer, bool restarted) {
  if (!restarted) return;
  completed_.erase(peer);
  std::vector<Key> lost;
  for (const auto& [key, transfer] : transfers_) {
    if (key.first == peer) lost.push_back(key);
  }
  for (const Key& key : lost) Lose(key, "the peer restarted");
}

void InboundTransfers::OnPeerDown(const NodeId& peer) {
  for (const auto& [key, transfer] : transfers_) {
    if (key.first != peer || transfer->checking) continue;
    transfer->timed = false;
    loop_.Cancel(transfer->timer);
    transfer->timer = loop_.After(options_.resume_within, [this, key = key] {
      Lose(key, "the link did not come back");
    });
  }
}

void InboundTransfers::Reset() {
  for (const auto& [key, transfer] : transfers_) {
    loop_.Cancel(transfer->timer);
    Refuse(key, {RefuseReason::kNotReady, "the receiver's model changes"});
  }
  transfers_.clear();
}

}  // namespace dfl::runtime
