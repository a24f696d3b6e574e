#include "daemon/runtime/transfers.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"

namespace dfl::runtime {

using ports::RefuseReason;
using ports::TransferAck;
using ports::TransferBegin;
using ports::TransferCancel;

namespace {

constexpr size_t kCompletedKept = 8;

}  // namespace

struct Transfers::Outbound {
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
  ports::TimerId resume_timer = 0;
};

struct Transfers::Inbound {
  ports::TransferKind kind = ports::TransferKind::kAnswer;
  uint64_t ask = 0;
  int64_t step = 0;
  std::vector<double> scalars;
  uint64_t tracker_epoch = 0;
  uint64_t sequence = 0;
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
  ports::TimerId resume_timer = 0;
};

Transfers::Transfers(TransfersOptions options, ports::Loop& loop,
                     ports::Worker& worker, Links& links, Listener& listener)
    : options_(options),
      loop_(loop),
      worker_(worker),
      links_(links),
      listener_(listener) {}

Transfers::~Transfers() {
  for (auto& [id, outbound] : outbound_) loop_.Cancel(outbound->resume_timer);
  for (auto& [key, inbound] : inbound_) loop_.Cancel(inbound->resume_timer);
}

// ---------------------------------------------------------------- sending ----

void Transfers::Send(Outgoing outgoing) {
  auto outbound = std::make_shared<Outbound>();
  outbound->id = ++last_id_;
  outbound->what = std::move(outgoing);
  outbound_[outbound->id] = outbound;
  if (!links_.IsUp(outbound->what.to)) AwaitLink(*outbound);
  Produce(outbound);
}

void Transfers::AwaitLink(Outbound& outbound) {
  loop_.Cancel(outbound.resume_timer);
  outbound.resume_timer =
      loop_.After(options_.resume_within, [this, id = outbound.id] {
        Finish(id, absl::UnavailableError("the link did not come back"));
      });
}

bool Transfers::TooManyAnswers(const NodeId& to) const {
  int64_t answers = 0;
  for (const auto& [id, outbound] : outbound_) {
    if (outbound->what.to == to &&
        outbound->what.kind == ports::TransferKind::kAnswer) {
      ++answers;
    }
  }
  return answers >= options_.max_answers_per_peer;
}

void Transfers::Produce(const std::shared_ptr<Outbound>& outbound) {
  if (outbound->producing) return;
  if (outbound->encoder != nullptr && outbound->encoder->done()) return;
  const int64_t room =
      options_.window_bytes - (outbound->encoded - outbound->acked);
  // Not for a few bytes: work comes in quarters of the window.
  if (room < options_.window_bytes / 4 && outbound->encoder != nullptr) return;
  outbound->producing = true;
  const int64_t chunk_bytes = options_.chunk_bytes;
  worker_.Run(
      [outbound, room, chunk_bytes] {
        Outbound& o = *outbound;
        if (o.encoder == nullptr) {
          codec::EncoderInput input;
          input.format = o.what.format;
          input.sent = o.what.sent_coordinates;
          input.seed = o.what.seed;
          if (o.what.mass != nullptr) {
            input.values = *o.what.mass;
            input.steps = o.what.steps.get();
          } else {
            input.values = o.what.snapshot->parameters;
            input.buffers = o.what.snapshot->buffers;
          }
          if (o.what.reference != nullptr) {
            input.reference = o.what.reference->values();
          }
          input.keep_sent =
              o.what.format.coordinates == core::Coordinates::kTopK;
          auto made = codec::Encoder::Create(input);
          if (!made.ok()) {
            o.encode_status = made.status();
            return;
          }
          o.encoder = *std::move(made);
        }
        int64_t made_bytes = 0;
        while (!o.encoder->done() && made_bytes < std::max(room, chunk_bytes)) {
          o.produced.push_back(o.encoder->Next(chunk_bytes));
          made_bytes += static_cast<int64_t>(o.produced.back().size());
        }
      },
      [this, outbound, alive = std::weak_ptr<bool>(alive_)] {
        if (alive.expired()) return;
        Outbound& o = *outbound;
        o.producing = false;
        if (outbound_.count(o.id) == 0) return;  // cancelled meanwhile
        if (!o.encode_status.ok()) {
          // Our own model is not fit to be sent.
          if (o.what.kind == ports::TransferKind::kAnswer) {
            (void)links_.Send(
                o.what.to,
                ports::RefuseFrame{o.what.ask, RefuseReason::kNotReady,
                                   std::string(o.encode_status.message())});
          }
          Finish(o.id, o.encode_status);
          return;
        }
        for (std::string& data : o.produced) {
          ports::Chunk chunk;
          chunk.transfer = o.id;
          chunk.offset = o.encoded;
          o.encoded += static_cast<int64_t>(data.size());
          chunk.data = std::move(data);
          o.chunks.push_back(std::move(chunk));
        }
        o.produced.clear();
        if (!o.announced) Announce(o);
        Pump(o);
        Produce(outbound);  // what was acknowledged meanwhile
      });
}

void Transfers::Announce(Outbound& outbound) {
  if (outbound.encoder == nullptr || outbound.producing) return;
  TransferBegin begin;
  begin.transfer = outbound.id;
  begin.kind = outbound.what.kind;
  begin.ask = outbound.what.ask;
  begin.step = outbound.what.step;
  begin.header = outbound.encoder->header_bytes();
  begin.body_bytes = outbound.encoder->header().body_bytes();
  begin.scalars = outbound.what.scalars;
  begin.tracker_epoch = outbound.what.tracker_epoch;
  begin.sequence = outbound.what.sequence;
  if (IsShort(outbound)) begin.body = outbound.chunks.front().data;
  if (begin.kind == ports::TransferKind::kPush) {
    begin.age =
        std::max(absl::ZeroDuration(), loop_.Now() - outbound.what.since);
    // The receiver measures the way of a body in chunks by itself.
    if (!begin.body.empty()) begin.age += round_trips_[outbound.what.to] / 2;
  }
  outbound.accepted = false;
  outbound.announced_at = loop_.Now();
  const auto body = static_cast<int64_t>(begin.body.size());
  outbound.announced = links_.Send(outbound.what.to, std::move(begin)).ok();
  if (outbound.announced && body > 0) outbound.most_sent = outbound.sent = body;
}

// The whole body is one chunk that may go with the announcement.
bool Transfers::IsShort(const Outbound& outbound) {
  return outbound.encoder->done() && outbound.chunks.size() == 1 &&
         outbound.encoded <= ports::kMaxInlineBodyBytes &&
         outbound.encoded ==
             static_cast<int64_t>(outbound.chunks.front().data.size());
}

void Transfers::Pump(Outbound& outbound) {
  if (!outbound.accepted) return;
  for (const ports::Chunk& chunk : outbound.chunks) {
    if (chunk.offset < outbound.sent) continue;
    // A copy: the chunk is kept until it is acknowledged.
    if (!links_.Send(outbound.what.to, chunk).ok()) return;
    outbound.sent = chunk.offset + static_cast<int64_t>(chunk.data.size());
    outbound.most_sent = std::max(outbound.most_sent, outbound.sent);
  }
}

void Transfers::OnFrame(const NodeId& from, TransferAck ack) {
  const auto it = outbound_.find(ack.transfer);
  if (it == outbound_.end() || it->second->what.to != from) return;
  const std::shared_ptr<Outbound> outbound = it->second;
  Outbound& o = *outbound;
  if (!o.announced) return;
  if (!o.accepted) round_trips_[from] = loop_.Now() - o.announced_at;
  const bool all_sent = !o.producing && o.encoder != nullptr &&
                        o.encoder->done() && o.most_sent == o.encoded;
  // Not more than was sent, not less than before.
  if (ack.received > o.most_sent || (ack.complete && !all_sent) ||
      (o.accepted && ack.received < o.acked)) {
    const std::string why = absl::StrCat(
        "acknowledges ", ack.received, " bytes",
        ack.complete ? " as the whole model" : "", " where ", o.most_sent,
        " were sent and ", o.acked, " acknowledged before");
    GiveUp(o.id, why);
    listener_.OnBadMessage(from, RefuseReason::kBadMessage, why);
    return;
  }
  if (ack.complete) {
    Receipt receipt;
    if (o.what.format.coordinates == core::Coordinates::kTopK) {
      receipt.sent = o.encoder->TakeSent();
    }
    receipt.taken = ack.taken;
    Finish(o.id, std::move(receipt));
    return;
  }
  if (ack.received < o.acked) {
    // Forgotten there, and no longer here either.
    GiveUp(o.id, "what was acknowledged is not kept");
    return;
  }
  o.acked = ack.received;
  while (!o.chunks.empty() &&
         o.chunks.front().offset +
                 static_cast<int64_t>(o.chunks.front().data.size()) <=
             o.acked) {
    o.chunks.pop_front();
  }
  if (!o.accepted) {
    o.accepted = true;
    // On from where the receiver is; a chunk cut by `acked` is repeated whole.
    o.sent = o.chunks.empty() ? o.acked : o.chunks.front().offset;
  }
  Pump(o);
  Produce(outbound);
}

void Transfers::Finish(uint64_t id, absl::StatusOr<Receipt> result) {
  const auto it = outbound_.find(id);
  if (it == outbound_.end()) return;
  const std::shared_ptr<Outbound> outbound = it->second;
  outbound_.erase(it);
  loop_.Cancel(outbound->resume_timer);
  if (!outbound->what.done) return;
  auto done = std::move(outbound->what.done);
  loop_.Post([done = std::move(done), result = std::move(result),
              alive = std::weak_ptr<bool>(alive_)] {
    if (!alive.expired()) done(result);
  });
}

void Transfers::GiveUp(uint64_t id, const std::string& why) {
  const auto it = outbound_.find(id);
  if (it == outbound_.end()) return;
  (void)links_.Send(it->second->what.to,
                    TransferCancel{id, true, RefuseReason::kBadMessage, why});
  Finish(id, absl::AbortedError(why));
}

void Transfers::CancelOutbound(const NodeId& to, uint64_t ask) {
  for (const auto& [id, outbound] : outbound_) {
    if (outbound->what.to == to && outbound->what.ask == ask &&
        outbound->what.kind == ports::TransferKind::kAnswer) {
      Finish(id, absl::CancelledError("no longer wanted"));
      return;
    }
  }
}

void Transfers::CancelMass() {
  std::vector<uint64_t> gone;
  for (const auto& [id, outbound] : outbound_) {
    if (outbound->what.kind == ports::TransferKind::kMass) gone.push_back(id);
  }
  for (const uint64_t id : gone) GiveUp(id, "a new tracker epoch");
}

// -------------------------------------------------------------- receiving ----

void Transfers::Refuse(const NodeId& from, uint64_t transfer,
                       const Refusal& refusal) {
  (void)links_.Send(
      from, TransferCancel{transfer, false, refusal.reason, refusal.text});
}

void Transfers::OnFrame(const NodeId& from, TransferBegin begin) {
  const InboundKey key(from, begin.transfer);
  const auto known = inbound_.find(key);
  if (known != inbound_.end()) {  // repeated after a lost link
    Inbound& inbound = *known->second;
    loop_.Cancel(inbound.resume_timer);
    if (inbound.checking) return;
    inbound.acknowledged = loop_.Now();
    (void)links_.Send(from, TransferAck{begin.transfer,
                                        inbound.assembler->received(), false});
    return;
  }
  const auto completed = completed_.find(from);
  if (completed != completed_.end()) {
    for (const Completed& done : completed->second) {
      if (done.transfer != begin.transfer) continue;
      (void)links_.Send(from, TransferAck{begin.transfer, begin.body_bytes,
                                          true, done.taken});
      return;
    }
  }
  const absl::StatusOr<codec::EncodedHeader> header =
      codec::ParseHeader(begin.header);
  const Admission admission =
      listener_.Admit(from, begin, header.ok() ? &*header : nullptr);
  if (const auto* refused = std::get_if<Refusal>(&admission)) {
    Refuse(from, begin.transfer, *refused);
    return;
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
    Refusal refusal;
    refusal.reason = absl::IsUnimplemented(status) ? RefuseReason::kUnknownCodec
                                                   : RefuseReason::kBadMessage;
    refusal.text = std::string(status.message());
    Refuse(from, begin.transfer, refusal);
    listener_.OnBadMessage(from, refusal.reason, refusal.text);
    listener_.OnTransferLost(from, begin.kind, begin.ask, refusal.text);
    return;
  }
  int64_t from_this_peer = 0;
  for (const auto& [other, inbound] : inbound_) {
    if (other.first == from) ++from_this_peer;
  }
  if (from_this_peer >= options_.max_inbound_per_peer) {
    Refuse(from, begin.transfer,
           {RefuseReason::kBusy, "too many transfers at once"});
    listener_.OnTransferLost(from, begin.kind, begin.ask,
                             "too many transfers at once");
    return;
  }
  auto inbound = std::make_shared<Inbound>();
  inbound->kind = begin.kind;
  inbound->ask = begin.ask;
  inbound->step = begin.step;
  inbound->scalars = std::move(begin.scalars);
  inbound->tracker_epoch = begin.tracker_epoch;
  inbound->sequence = begin.sequence;
  inbound->assembler = std::make_unique<codec::Assembler>(*header);
  inbound->check = std::make_unique<codec::BodyCheck>(*header);
  inbound->announced_age = begin.age;
  inbound->announced = inbound->acknowledged = inbound->last_bytes =
      loop_.Now();
  if (begin.body.empty()) {
    inbound_[key] = std::move(inbound);
    (void)links_.Send(from, TransferAck{begin.transfer, 0, false});
    return;
  }
  inbound->trip = absl::ZeroDuration();  // the sender has counted it
  Append(inbound_.emplace(key, std::move(inbound)).first, 0, begin.body);
}

void Transfers::OnFrame(const NodeId& from, ports::Chunk chunk) {
  const auto it = inbound_.find(InboundKey(from, chunk.transfer));
  if (it == inbound_.end() || it->second->checking) return;  // cancelled
  Append(it, chunk.offset, chunk.data);
}

void Transfers::Append(InboundMap::iterator it, int64_t offset,
                       absl::string_view data) {
  const auto& [from, transfer] = it->first;
  Inbound& inbound = *it->second;
  // A repeat after a resume may begin before what is here.
  const int64_t overlap = inbound.assembler->received() - offset;
  if (overlap > 0) {
    data.remove_prefix(
        std::min<size_t>(data.size(), static_cast<size_t>(overlap)));
    offset += overlap;
  }
  if (data.empty()) return;
  const absl::Status appended = inbound.assembler->Append(offset, data);
  if (!appended.ok()) {
    // A gap or an overrun cannot come from an honest peer on an ordered link.
    const std::string why(appended.message());
    Refuse(from, transfer, {RefuseReason::kBadMessage, why});
    listener_.OnBadMessage(from, RefuseReason::kBadMessage, why);
    LoseInbound(InboundKey(it->first), why);
    return;
  }
  inbound.last_bytes = loop_.Now();
  if (!inbound.trip) inbound.trip = loop_.Now() - inbound.acknowledged;
  if (inbound.assembler->complete()) {
    Check(it);
    return;
  }
  const int64_t received = inbound.assembler->received();
  if (received - inbound.noted < options_.window_bytes / 4) return;
  inbound.noted = received;
  (void)links_.Send(from, TransferAck{transfer, received, false});
  worker_.Run(
      [inbound = it->second, body = inbound.assembler->body()] {
        inbound->check->Advance(body);
      },
      [] {});
}

void Transfers::Check(InboundMap::iterator it) {
  const std::shared_ptr<Inbound>& inbound = it->second;
  inbound->checking = true;
  worker_.Run(
      [inbound] {
        inbound->opened = codec::OpenMessage(*std::move(inbound->check),
                                             inbound->assembler->Take());
      },
      [this, key = it->first, inbound, alive = std::weak_ptr<bool>(alive_)] {
        if (alive.expired()) return;
        const auto found = inbound_.find(key);
        if (found == inbound_.end() || found->second != inbound) return;
        if (!inbound->opened.ok()) {
          const std::string why(inbound->opened.status().message());
          Refuse(key.first, key.second, {RefuseReason::kBadMessage, why});
          listener_.OnBadMessage(key.first, RefuseReason::kBadMessage, why);
          LoseInbound(key, why);
          return;
        }
        loop_.Cancel(inbound->resume_timer);
        inbound_.erase(found);
        const int64_t body_bytes = (*inbound->opened)->header().body_bytes();
        if (inbound->kind == ports::TransferKind::kMass) {
          // Acknowledged when it is in the taker's books, not before.
          const double taken = listener_.OnMass(
              key.first, inbound->tracker_epoch, inbound->sequence,
              inbound->step, std::move(inbound->scalars),
              *std::move(inbound->opened));
          Complete(key, body_bytes, taken);
          return;
        }
        Complete(key, body_bytes, 0);
        listener_.OnModel(key.first, inbound->kind, inbound->ask, inbound->step,
                          std::move(inbound->scalars),
                          inbound->announced_age +
                              inbound->trip.value_or(absl::ZeroDuration()) / 2 +
                              (loop_.Now() - inbound->announced),
                          *std::move(inbound->opened));
      });
}

void Transfers::Complete(const InboundKey& key, int64_t body_bytes,
                         double taken) {
  std::deque<Completed>& completed = completed_[key.first];
  completed.push_back(Completed{key.second, taken});
  if (completed.size() > kCompletedKept) completed.pop_front();
  (void)links_.Send(key.first,
                    TransferAck{key.second, body_bytes, true, taken});
}

void Transfers::LoseInbound(const InboundKey& key, const std::string& why) {
  const auto it = inbound_.find(key);
  if (it == inbound_.end()) return;
  const std::shared_ptr<Inbound> inbound = it->second;
  loop_.Cancel(inbound->resume_timer);
  inbound_.erase(it);
  listener_.OnTransferLost(key.first, inbound->kind, inbound->ask, why);
}

void Transfers::CancelInbound(const NodeId& from, uint64_t ask) {
  for (auto it = inbound_.begin(); it != inbound_.end(); ++it) {
    if (it->first.first == from && it->second->ask == ask &&
        it->second->kind == ports::TransferKind::kAnswer) {
      loop_.Cancel(it->second->resume_timer);
      inbound_.erase(it);
      return;
    }
  }
}

bool Transfers::InboundMoved(const NodeId& from, uint64_t ask,
                             absl::Duration period) const {
  for (const auto& [key, inbound] : inbound_) {
    if (key.first == from && inbound->ask == ask &&
        inbound->kind == ports::TransferKind::kAnswer) {
      return inbound->checking || inbound->last_bytes >= loop_.Now() - period;
    }
  }
  return false;
}

// ------------------------------------------------------------------- both ----

void Transfers::OnFrame(const NodeId& from, TransferCancel cancel) {
  if (cancel.by_sender) {
    LoseInbound(InboundKey(from, cancel.transfer),
                absl::StrCat("the sender gave up: ", cancel.text));
    return;
  }
  const auto it = outbound_.find(cancel.transfer);
  if (it == outbound_.end() || it->second->what.to != from) return;
  Finish(cancel.transfer,
         absl::FailedPreconditionError(absl::StrCat(
             from.name(), " refused the model (",
             ports::RefuseReasonName(cancel.reason), "): ", cancel.text)));
}

void Transfers::OnPeerUp(const NodeId& peer, bool restarted) {
  round_trips_.erase(peer);
  if (restarted) {
    completed_.erase(peer);
    std::vector<uint64_t> gone;
    for (const auto& [id, outbound] : outbound_) {
      if (outbound->what.to == peer) gone.push_back(id);
    }
    for (const uint64_t id : gone) {
      Finish(id, absl::UnavailableError("the peer restarted"));
    }
    std::vector<InboundKey> lost;
    for (const auto& [key, inbound] : inbound_) {
      if (key.first == peer) lost.push_back(key);
    }
    for (const InboundKey& key : lost) LoseInbound(key, "the peer restarted");
    return;
  }
  for (const auto& [id, outbound] : outbound_) {
    if (outbound->what.to != peer) continue;
    loop_.Cancel(outbound->resume_timer);
    Announce(*outbound);
  }
}

void Transfers::OnPeerDown(const NodeId& peer) {
  for (const auto& [id, outbound] : outbound_) {
    if (outbound->what.to != peer) continue;
    outbound->announced = false;
    outbound->accepted = false;
    AwaitLink(*outbound);
  }
  for (const auto& [key, inbound] : inbound_) {
    if (key.first != peer || inbound->checking) continue;
    loop_.Cancel(inbound->resume_timer);
    inbound->resume_timer = loop_.After(
        options_.resume_within,
        [this, key = key] { LoseInbound(key, "the link did not come back"); });
  }
}

void Transfers::OnPeerWritable(const NodeId& peer) {
  for (const auto& [id, outbound] : outbound_) {
    if (outbound->what.to != peer) continue;
    if (!outbound->announced) Announce(*outbound);
    Pump(*outbound);
  }
}

void Transfers::Reset() {
  std::vector<uint64_t> ids;
  for (const auto& [id, outbound] : outbound_) ids.push_back(id);
  for (const uint64_t id : ids) {
    (void)links_.Send(outbound_[id]->what.to,
                      TransferCancel{id, true, RefuseReason::kNotReady,
                                     "the sender's model changes"});
    Finish(id, absl::CancelledError("the model changes"));
  }
  for (const auto& [key, inbound] : inbound_) {
    loop_.Cancel(inbound->resume_timer);
    Refuse(key.first, key.second,
           {RefuseReason::kNotReady, "the receiver's model changes"});
  }
  inbound_.clear();
}

}  // namespace dfl::runtime
