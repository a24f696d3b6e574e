#include "daemon/runtime/pushes.h"

namespace dfl::runtime {

void Pushes::Send(Outgoing outgoing, bool apart) {
  Peer& peer = peers_[outgoing.to];
  if (peer.under_way != 0) {
    (apart ? peer.next_apart : peer.next) = std::move(outgoing);
  } else {
    Start(std::move(outgoing));
  }
}

void Pushes::Start(Outgoing outgoing) {
  Peer& peer = peers_[outgoing.to];
  peer.under_way = ++last_push_;
  std::shared_ptr<codec::EdgeReference> reference;
  if (outgoing.format.coordinates == core::Coordinates::kTopK) {
    const size_t n = outgoing.snapshot->parameters.size();
    if (!peer.sent || peer.sent->values().size() != n) {
      peer.sent =
          std::make_shared<codec::EdgeReference>(static_cast<int64_t>(n));
    }
    reference = peer.sent;
    outgoing.reference = reference;
  }
  outgoing.done =
      [this, to = outgoing.to, push = peer.under_way, reference,
       then = std::move(outgoing.done)](const absl::StatusOr<Receipt>& result) {
        then(result);
        OnDone(to, push, reference, result);
      };
  send_(std::move(outgoing));
}

void Pushes::OnDone(const NodeId& to, uint64_t push,
                    const std::shared_ptr<codec::EdgeReference>& reference,
                    const absl::StatusOr<Receipt>& result) {
  Peer& peer = peers_[to];
  if (peer.under_way != push) return;  // forgotten meanwhile
  peer.under_way = 0;
  if (reference && result.ok()) reference->Commit(result->sent);
  std::optional<Outgoing>& waiting =
      peer.next_apart ? peer.next_apart : peer.next;
  if (waiting) Start(*std::exchange(waiting, std::nullopt));
}

void Pushes::DropWaiting() {
  for (auto& [id, peer] : peers_) {
    peer.next.reset();
    peer.next_apart.reset();
  }
}

void Pushes::Forget() {
  DropWaiting();
  for (auto& [id, peer] : peers_) peer.under_way = 0;
}

void Pushes::Forget(const NodeId& peer) { peers_.erase(peer); }

void Pushes::ForgetReferences() {
  for (auto& [id, peer] : peers_) peer.sent.reset();
}

void EarlyPushes::Keep(const NodeId& from, core::RemoteModel model) {
  std::map<int64_t, core::RemoteModel>& rounds = kept_[from];
  const int64_t round = model.step;
  rounds.insert_or_assign(round, std::move(model));
  if (rounds.size() > kMost) rounds.erase(rounds.begin());
}

void EarlyPushes::Deliver(
    const std::function<bool(int64_t round)>& later,
    const std::function<void(const NodeId&, core::RemoteModel)>& deliver) {
  for (auto& [from, rounds] : kept_) {
    while (!rounds.empty() && !later(rounds.begin()->first)) {
      core::RemoteModel model = std::move(rounds.begin()->second);
      rounds.erase(rounds.begin());
      deliver(from, std::move(model));
    }
  }
}

}  // namespace dfl::runtime
