// Pushes: the models that an algorithm sends without being asked, and those of
// neighbours that came before their graph.
//
// Pushes: one transfer at a time is under way to each peer. A slow link carries
// what it can: behind that transfer the newest push waits, and a newer one
// takes its place. A push that is *apart* (core::Push::apart) waits in a place
// of its own and goes first. In top-k each peer has a reference, which holds
// what it was sent so far.
//
// EarlyPushes: where the topology varies a push of a later round may belong to
// a graph that is still to come. Of each peer the newest kMost are kept for it.
//
// Loop only.
#ifndef DFL_RUNTIME_PUSHES_H_
#define DFL_RUNTIME_PUSHES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "daemon/base/ids.h"
#include "daemon/codec/edge_reference.h"
#include "daemon/core/algorithm/algorithm.h"
#include "daemon/runtime/transfers/transfers.h"

namespace dfl::runtime {

class Pushes {
 public:
  // `send` starts a transfer as Transfers::Send does: `done` of what it is
  // given is never called from inside.
  explicit Pushes(std::function<void(Outgoing)> send)
      : send_(std::move(send)) {}

  // Sends now, or when the transfer that is under way to the peer has ended.
  void Send(Outgoing outgoing, bool apart);

  // What waits is not sent any more.
  void DropWaiting();
  // The same, and what is under way ends without a consequence.
  void Forget();
  // The same for `peer`, which has lost its memory: its reference is void too.
  void Forget(const NodeId& peer);
  // References begin anew: the run or the format of messages is new.
  void ForgetReferences();

 private:
  struct Peer {
    uint64_t under_way = 0;  // number of the push; 0: none
    std::optional<Outgoing> next;
    std::optional<Outgoing> next_apart;
    std::shared_ptr<codec::EdgeReference> sent;
  };

  void Start(Outgoing outgoing);
  void OnDone(const NodeId& to, uint64_t push,
              const std::shared_ptr<codec::EdgeReference>& reference,
              const absl::StatusOr<Receipt>& result);

  const std::function<void(Outgoing)> send_;
  std::map<NodeId, Peer> peers_;
  uint64_t last_push_ = 0;
};

class EarlyPushes {
 public:
  static constexpr size_t kMost = 2;

  void Keep(const NodeId& from, core::RemoteModel model);
  void Clear() { kept_.clear(); }

  // Hands those on whose graph is not `later` any more, by sender and round.
  // `deliver` must not call this object.
  void Deliver(
      const std::function<bool(int64_t round)>& later,
      const std::function<void(const NodeId&, core::RemoteModel)>& deliver);

 private:
  std::map<NodeId, std::map<int64_t, core::RemoteModel>> kept_;
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_PUSHES_H_
