#include "daemon/runtime/parcels.h"

#include <algorithm>
#include <utility>

namespace dfl::runtime {
namespace {

constexpr absl::Duration kFirstPause = absl::Milliseconds(200);
constexpr absl::Duration kLongestPause = absl::Seconds(5);

// What is sent of `give`, and how.
Outgoing OutgoingOf(const core::Give& give) {
  Outgoing outgoing;
  outgoing.kind = ports::TransferKind::kMass;
  outgoing.step = give.round;
  outgoing.scalars = give.scalars;
  outgoing.mass = give.mass;
  outgoing.sent_coordinates = static_cast<int64_t>(give.mass->size());
  if (give.source != nullptr) {
    outgoing.mass = give.source;
    outgoing.format = give.format;
    outgoing.seed = give.seed;
  } else if (const auto& steps = give.steps) {
    outgoing.steps = steps;
    outgoing.format.values = core::ValueType::kSteps;
    outgoing.format.bits = steps->bits;
    outgoing.format.vectors = steps->vectors;
  } else if (const auto& answer = give.answer) {
    outgoing.answer = answer;
    outgoing.buffers = give.buffers;
    outgoing.format.values = core::ValueType::kModAnswer;
    outgoing.format.modulus = answer->spec.modulus;
    outgoing.seed = answer->seed;
  } else if (give.nonzeros > 0 &&
             give.nonzeros < outgoing.sent_coordinates / 2) {
    // A sparse parcel costs what is in it: without a reference, top-k sends
    // exactly the entries that are not 0.
    outgoing.format.coordinates = core::Coordinates::kTopK;
    outgoing.sent_coordinates = give.nonzeros;
  }
  outgoing.sequence = give.sequence;
  return outgoing;
}

}  // namespace

Parcels::Parcels(ports::Loop& loop, Transfers& transfers, uint64_t seed,
                 std::function<bool(const NodeId&)> may_send,
                 std::function<void(core::Delivered)> delivered)
    : loop_(loop),
      transfers_(transfers),
      may_send_(std::move(may_send)),
      delivered_(std::move(delivered)),
      rng_(DeriveSeed(seed, "parcels")) {}

Parcels::~Parcels() {
  for (const auto& [to, out] : out_) loop_.Cancel(out.retry);
}

void Parcels::Enter(uint64_t epoch) {
  for (const auto& [to, out] : out_) loop_.Cancel(out.retry);
  out_.clear();
  partners_.clear();
  epoch_ = epoch;
  transfers_.CancelMass();
}

void Parcels::Send(const core::Give& give) {
  partners_.insert(give.to);
  Out& out = out_[give.to];
  loop_.Cancel(out.retry);
  out = Out();
  out.give = give;
  Transfer(give.to);
}

void Parcels::Resume(const NodeId& peer, bool news) {
  const auto it = out_.find(peer);
  if (it == out_.end() || it->second.sending) return;
  Out& out = it->second;
  if (out.waits) {
    out.refused = 0;
    Transfer(peer);
    return;
  }
  if (!news) return;
  const absl::Time earliest = out.tried + kBetween;
  if (loop_.Now() >= earliest) {
    Transfer(peer);
  } else if (out.next > earliest) {
    RetryAt(peer, out, earliest);
  }
}

absl::Duration Parcels::Pause(int64_t refused) {
  absl::Duration pause = kFirstPause;
  for (int64_t i = 1; i < refused && pause < kLongestPause; ++i) pause *= 2;
  pause = std::min(pause, kLongestPause);
  return pause / 2 + pause / 2 * rng_.Uniform();
}

void Parcels::Transfer(const NodeId& to) {
  Out& out = out_[to];
  out.waits = !may_send_(to);
  if (out.waits) return;  // Resume tells
  out.tried = loop_.Now();
  loop_.Cancel(out.retry);
  out.retry = 0;
  out.sending = true;
  if (++out.tries > 1) ++resent_;
  Outgoing outgoing = OutgoingOf(out.give);
  outgoing.to = to;
  outgoing.tracker_epoch = epoch_;
  outgoing.done = [this, to, epoch = epoch_, sequence = out.give.sequence](
                      const absl::StatusOr<Receipt>& receipt) {
    const auto it = out_.find(to);
    if (epoch != epoch_ || it == out_.end() ||
        it->second.give.sequence != sequence) {
      return;  // void meanwhile
    }
    if (receipt.ok()) {
      out_.erase(it);
      delivered_(core::Delivered{to, sequence, receipt->taken});
      return;
    }
    it->second.sending = false;
    RetryAt(to, it->second, loop_.Now() + Pause(++it->second.refused));
  };
  transfers_.Send(std::move(outgoing));
}

void Parcels::RetryAt(const NodeId& to, Out& out, absl::Time when) {
  loop_.Cancel(out.retry);
  out.next = when;
  out.retry = loop_.After(when - loop_.Now(), [this, to] { Retry(to); });
}

void Parcels::Retry(const NodeId& to) {
  const auto it = out_.find(to);
  if (it == out_.end()) return;
  it->second.retry = 0;
  if (!it->second.sending) Transfer(to);
}

}  // namespace dfl::runtime
