#include "daemon/runtime/transfers/outbound_transfers.h"

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace dfl::runtime {

namespace {

// `what` as the encoder wants it; borrowed.
codec::EncoderInput InputOf(const Outgoing& what) {
  codec::EncoderInput input;
  input.format = what.format;
  input.sent = what.sent_coordinates;
  input.seed = what.seed;
  if (what.mass != nullptr) {
    input.values = *what.mass;
    input.steps = what.steps.get();
    input.answer = what.answer.get();
    input.buffers = what.buffers;
  } else {
    if (what.offer == nullptr) input.values = what.snapshot->parameters;
    input.offer = what.offer.get();
    input.buffers = what.snapshot->buffers;
  }
  if (what.reference != nullptr) input.reference = what.reference->values();
  input.keep_sent = what.format.coordinates == core::Coordinates::kTopK;
  return input;
}

}  // namespace

using ports::RefuseReason;
using ports::TransferAck;
using ports::TransferBegin;
using ports::TransferCancel;
using ports::TransferKind;

struct OutboundTransfers::Transfer {
  uint64_t id = 0;
  Outgoing what;

  // Encoding. While `producing` the worker owns `encoder` and `produced`.
  bool producing = false;
  std::unique_ptr<codec::Encoder> encoder;
  std::vector<std::string> produced;
  absl::Status encode_status;

  // Chunks from `acked` on, in order; those below `sent` are under way.
  std::deque<ports::Chunk> chunks;
  int64_t encoded = 0;  // bytes of the body cut into chunks so far
  int64_t sent = 0;
  int64_t most_sent = 0;  // `sent` at its highest, over all links
  int64_t acked = 0;
  bool announced = false;  // TransferBegin is out on the present link
  bool accepted = false;   // and was acknowledged
  absl::Time announced_at;
  ports::TimerId timer = 0;  // it ends then, unless something happens

  bool all_encoded() const {
    return !producing && encoder != nullptr && encoder->done();
  }
};

OutboundTransfers::OutboundTransfers(const TransfersOptions& options,
                                     ports::Loop& loop, ports::Worker& worker,
                                     Links& links, TransferListener& listener)
    : options_(options),
      loop_(loop),
      worker_(worker),
      links_(links),
      listener_(listener) {}

OutboundTransfers::~OutboundTransfers() {
  for (auto& [id, transfer] : transfers_) loop_.Cancel(transfer->timer);
}

void OutboundTransfers::Send(Outgoing outgoing) {
  auto transfer = std::make_shared<Transfer>();
  transfer->id = ++last_id_;
  transfer->what = std::move(outgoing);
  transfers_[transfer->id] = transfer;
  Await(*transfer);
  Produce(transfer);
}

void OutboundTransfers::Await(Transfer& transfer) {
  const bool up = links_.IsUp(transfer.what.to);
  loop_.Cancel(transfer.timer);
  transfer.timer = loop_.After(
      up ? options_.stalled_after : options_.resume_within,
      [this, up, id = transfer.id] {
        GiveUp(id, RefuseReason::kBusy,
               absl::UnavailableError(up ? "nothing was acknowledged for long"
                                         : "the link did not come back"));
      });
}

bool OutboundTransfers::TooManyAnswers(const NodeId& to) const {
  const auto answers = std::count_if(
      transfers_.begin(), transfers_.end(), [&to](const auto& entry) {
        const Outgoing& what = entry.second->what;
        return what.to == to && what.kind == TransferKind::kAnswer;
      });
  return answers >= options_.max_answers_per_peer;
}

// --------------------------------------------------------------- encoding ----

void OutboundTransfers::Encode(Transfer& transfer, int64_t room,
                               int64_t chunk_bytes) {
  const Outgoing& what = transfer.what;
  if (transfer.encoder == nullptr) {
    auto made = codec::Encoder::Create(InputOf(what));
    if (!made.ok()) {
      transfer.encode_status = made.status();
      return;
    }
    transfer.encoder = *std::move(made);
  }
  int64_t bytes = 0;
  while (!transfer.encoder->done() && bytes < std::max(room, chunk_bytes)) {
    transfer.produced.push_back(transfer.encoder->Next(chunk_bytes));
    bytes += static_cast<int64_t>(transfer.produced.back().size());
  }
  transfer.encode_status = transfer.encoder->status();
}

void OutboundTransfers::Produce(const TransferPtr& transfer) {
  if (transfer->producing) return;
  if (transfer->encoder != nullptr && transfer->encoder->done()) return;
  const int64_t room =
      options_.window_bytes - (transfer->encoded - transfer->acked);
  // Not for a few bytes: work comes in quarters of the window.
  if (room < options_.window_bytes / 4 && transfer->encoder != nullptr) return;
  transfer->producing = true;
  worker_.Run(
      [transfer, room, chunk_bytes = options_.chunk_bytes] {
        Encode(*transfer, room, chunk_bytes);
      },
      [this, transfer, alive = std::weak_ptr<bool>(alive_)] {
        if (!alive.expired()) OnProduced(transfer);
      });
}

void OutboundTransfers::OnProduced(const TransferPtr& transfer) {
  Transfer& t = *transfer;
  t.producing = false;
  if (transfers_.count(t.id) == 0) return;  // cancelled meanwhile
  if (!t.encode_status.ok()) {
    // Our own model is not fit to be sent.
    if (t.announced) {
      return GiveUp(t.id, RefuseReason::kNotReady, t.encode_status);
    }
    if (t.what.kind == TransferKind::kAnswer) {
      (void)links_.Send(t.what.to, ports::RefuseFrame{
                                       t.what.ask, RefuseReason::kNotReady,
                                       std::string(t.encode_status.message())});
    }
    Finish(t.id, t.encode_status);
    return;
  }
  for (std::string& data : t.produced) {
    ports::Chunk chunk;
    chunk.transfer = t.id;
    chunk.offset = t.encoded;
    t.encoded += static_cast<int64_t>(data.size());
    chunk.data = std::move(data);
    t.chunks.push_back(std::move(chunk));
  }
  t.produced.clear();
  if (!t.announced) Announce(t);
  Pump(t);
  Produce(transfer);  // what was acknowledged meanwhile
}

// ---------------------------------------------------------------- sending ----

bool OutboundTransfers::IsShort(const Transfer& transfer) {
  return transfer.encoder->done() && transfer.chunks.size() == 1 &&
         transfer.encoded <= ports::kMaxInlineBodyBytes &&
         transfer.encoded ==
             static_cast<int64_t>(transfer.chunks.front().data.size());
}

void OutboundTransfers::Announce(Transfer& transfer) {
  if (transfer.encoder == nullptr || transfer.producing) return;
  const Outgoing& what = transfer.what;
  TransferBegin begin;
  begin.transfer = transfer.id;
  begin.kind = what.kind;
  begin.ask = what.ask;
  begin.step = what.step;
  begin.header = transfer.encoder->header_bytes();
  begin.body_bytes = transfer.encoder->header().body_bytes();
  begin.scalars = what.scalars;
  begin.tracker_epoch = what.tracker_epoch;
  begin.sequence = what.sequence;
  if (IsShort(transfer)) begin.body = transfer.chunks.front().data;
  if (begin.kind == TransferKind::kPush) {
    begin.age = std::max(absl::ZeroDuration(), loop_.Now() - what.since);
    // The receiver measures the way of a body in chunks by itself.
    if (!begin.body.empty()) begin.age += round_trips_[what.to] / 2;
  }
  transfer.accepted = false;
  transfer.announced_at = loop_.Now();
  const auto body = static_cast<int64_t>(begin.body.size());
  transfer.announced = links_.Send(what.to, std::move(begin)).ok();
  if (transfer.announced && body > 0) transfer.most_sent = transfer.sent = body;
}

void OutboundTransfers::Pump(Transfer& transfer) {
  if (!transfer.accepted) return;
  for (const ports::Chunk& chunk : transfer.chunks) {
    if (chunk.offset < transfer.sent) continue;
    // A copy: the chunk is kept until it is acknowledged.
    if (!links_.Send(transfer.what.to, chunk).ok()) return;
    transfer.sent = chunk.offset + static_cast<int64_t>(chunk.data.size());
    transfer.most_sent = std::max(transfer.most_sent, transfer.sent);
  }
}

// Not more than was sent may be acknowledged, and not less than before.
std::string OutboundTransfers::Contradiction(const Transfer& transfer,
                                             const TransferAck& ack) {
  const bool all_sent =
      transfer.all_encoded() && transfer.most_sent == transfer.encoded;
  if (ack.received <= transfer.most_sent && (!ack.complete || all_sent) &&
      (!transfer.accepted || ack.received >= transfer.acked)) {
    return "";
  }
  return absl::StrCat("acknowledges ", ack.received, " bytes",
                      ack.complete ? " as the whole model" : "", " where ",
                      transfer.most_sent, " were sent and ", transfer.acked,
                      " acknowledged before");
}

void OutboundTransfers::OnAck(const NodeId& from, const TransferAck& ack) {
  const auto it = transfers_.find(ack.transfer);
  if (it == transfers_.end() || it->second->what.to != from) return;
  const TransferPtr transfer = it->second;
  if (!transfer->announced) return;
  if (!transfer->accepted) {
    round_trips_[from] = loop_.Now() - transfer->announced_at;
  }
  if (const std::string why = Contradiction(*transfer, ack); !why.empty()) {
    GiveUp(transfer->id, RefuseReason::kBadMessage, absl::AbortedError(why));
    listener_.OnBadMessage(from, RefuseReason::kBadMessage, why);
    return;
  }
  if (!ack.complete) return Advance(transfer, ack.received);
  Receipt receipt;
  if (transfer->what.format.coordinates == core::Coordinates::kTopK) {
    receipt.sent = transfer->encoder->TakeSent();
  }
  receipt.taken = ack.taken;
  Finish(transfer->id, std::move(receipt));
}

// The receiver has the first `received` bytes.
void OutboundTransfers::Advance(const TransferPtr& transfer, int64_t received) {
  Transfer& t = *transfer;
  if (received < t.acked) {
    // Forgotten there, and no longer here either.
    return GiveUp(t.id, RefuseReason::kBadMessage,
                  absl::AbortedError("what was acknowledged is not kept"));
  }
  // To repeat an acknowledgement keeps nothing alive.
  if (received > t.acked || !t.accepted) Await(t);
  t.acked = received;
  while (!t.chunks.empty() &&
         t.chunks.front().offset +
                 static_cast<int64_t>(t.chunks.front().data.size()) <=
             t.acked) {
    t.chunks.pop_front();
  }
  if (!t.accepted) {
    t.accepted = true;
    // On from where the receiver is; a chunk cut by `acked` is repeated whole.
    t.sent = t.chunks.empty() ? t.acked : t.chunks.front().offset;
  }
  Pump(t);
  Produce(transfer);
}

// ----------------------------------------------------------------- ending ----

void OutboundTransfers::Finish(uint64_t id, absl::StatusOr<Receipt> result) {
  const auto it = transfers_.find(id);
  if (it == transfers_.end()) return;
  const TransferPtr transfer = it->second;
  transfers_.erase(it);
  loop_.Cancel(transfer->timer);
  if (!transfer->what.done) return;
  auto done = std::move(transfer->what.done);
  loop_.Post([done = std::move(done), result = std::move(result),
              alive = std::weak_ptr<bool>(alive_)] {
    if (!alive.expired()) done(result);
  });
}

void OutboundTransfers::FinishIf(
    const std::function<bool(const Transfer&)>& which,
    const absl::Status& why) {
  std::vector<uint64_t> ids;
  for (const auto& [id, transfer] : transfers_) {
    if (which(*transfer)) ids.push_back(id);
  }
  for (const uint64_t id : ids) Finish(id, why);
}

void OutboundTransfers::GiveUp(uint64_t id, RefuseReason reason,
                               const absl::Status& why) {
  const auto it = transfers_.find(id);
  if (it == transfers_.end()) return;
  (void)links_.Send(
      it->second->what.to,
      TransferCancel{id, true, reason, std::string(why.message())});
  Finish(id, why);
}

void OutboundTransfers::CancelAnswer(const NodeId& to, uint64_t ask) {
  FinishIf(
      [&](const Transfer& t) {
        return t.what.to == to && t.what.ask == ask &&
               t.what.kind == TransferKind::kAnswer;
      },
      absl::CancelledError("no longer wanted"));
}

void OutboundTransfers::CancelMass() {
  std::vector<uint64_t> gone;
  for (const auto& [id, transfer] : transfers_) {
    if (transfer->what.kind == TransferKind::kMass) gone.push_back(id);
  }
  for (const uint64_t id : gone) {
    GiveUp(id, RefuseReason::kBadMessage,
           absl::AbortedError("a new tracker epoch"));
  }
}

void OutboundTransfers::Reset() {
  while (!transfers_.empty()) {
    GiveUp(transfers_.begin()->first, RefuseReason::kNotReady,
           absl::CancelledError("the sender's model changes"));
  }
}

void OutboundTransfers::OnCancel(const NodeId& from,
                                 const TransferCancel& cancel) {
  const auto it = transfers_.find(cancel.transfer);
  if (it == transfers_.end() || it->second->what.to != from) return;
  Finish(cancel.transfer,
         absl::FailedPreconditionError(absl::StrCat(
             from.name(), " refused the model (",
             ports::RefuseReasonName(cancel.reason), "): ", cancel.text)));
}

void OutboundTransfers::OnPeerUp(const NodeId& peer, bool restarted) {
  round_trips_.erase(peer);
  if (restarted) {
    FinishIf([&](const Transfer& t) { return t.what.to == peer; },
             absl::UnavailableError("the peer restarted"));
    return;
  }
  for (const auto& [id, transfer] : transfers_) {
    if (transfer->what.to != peer) continue;
    Await(*transfer);
    Announce(*transfer);
  }
}

void OutboundTransfers::OnPeerDown(const NodeId& peer) {
  for (const auto& [id, transfer] : transfers_) {
    if (transfer->what.to != peer) continue;
    transfer->announced = false;
    transfer->accepted = false;
    Await(*transfer);
  }
}

void OutboundTransfers::OnPeerWritable(const NodeId& peer) {
  for (const auto& [id, transfer] : transfers_) {
    if (transfer->what.to != peer) continue;
    if (!transfer->announced) Announce(*transfer);
    Pump(*transfer);
  }
}

}  // namespace dfl::runtime
