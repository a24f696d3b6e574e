#include "daemon/exchange/lobby.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace dfl::exchange {

bool SameProcess(const ports::PeerIdentity& a, const ports::PeerIdentity& b) {
  return a.node == b.node && a.incarnation == b.incarnation;
}

void Lobby::Enter(std::shared_ptr<Stream> stream, const std::string& remote) {
  const StreamId id = stream->id();
  Guest& guest = guests_[id];
  guest.stream = std::move(stream);
  guest.remote = remote;
  guest.timer = loop_.After(patience_, [this, open = open_, id] {
    if (!*open) return;
    Refuse(id, absl::DeadlineExceededError(
                   absl::StrCat("no hello on both streams within ",
                                absl::FormatDuration(patience_))));
  });
}

std::shared_ptr<Stream> Lobby::Find(StreamId id) const {
  const auto found = guests_.find(id);
  return found == guests_.end() ? nullptr : found->second.stream;
}

std::optional<Lobby::Pair> Lobby::Greet(StreamId id,
                                        const ports::PeerIdentity& peer,
                                        uint64_t nonce) {
  Guest& guest = guests_.at(id);
  guest.greeted = true;
  guest.peer = peer;
  guest.nonce = nonce;
  for (const auto& [other_id, other] : guests_) {
    if (!other.greeted || other_id == id || other.nonce != nonce ||
        other.remote != guest.remote || !SameProcess(other.peer, peer)) {
      continue;
    }
    if (other.stream->kind() == guest.stream->kind()) {
      Refuse(id, absl::InvalidArgumentError("the stream exists already"));
      return std::nullopt;
    }
    Pair pair;
    pair.peer = peer;
    pair.nonce = nonce;
    for (const StreamId half : {id, other_id}) {
      std::shared_ptr<Stream> stream = Remove(half);
      pair.streams[static_cast<int>(stream->kind())] = std::move(stream);
    }
    return pair;
  }
  return std::nullopt;
}

void Lobby::Refuse(StreamId id, const absl::Status& reason) {
  if (guests_.count(id) > 0) Remove(id)->Stop(reason);
}

void Lobby::Close() {
  *open_ = false;
  guests_.clear();
}

std::shared_ptr<Stream> Lobby::Remove(StreamId id) {
  const auto found = guests_.find(id);
  std::shared_ptr<Stream> stream = std::move(found->second.stream);
  loop_.Cancel(found->second.timer);
  guests_.erase(found);
  return stream;
}

}  // namespace dfl::exchange
