// Asks for models: ours that are out, and those of peers that wait for settled
// parameters.
//
// On the wire an ask's id is (epoch << 32 | the algorithm's id), so that the
// ids of one algorithm object never meet another's. Epoch 0 is for asks for a
// state to start from.
//
// Pure bookkeeping: it sends nothing. Loop only.
#ifndef DFL_RUNTIME_ASK_BOOK_H_
#define DFL_RUNTIME_ASK_BOOK_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "daemon/base/ids.h"
#include "daemon/ports/frames.h"

namespace dfl::runtime {

class AskBook {
 public:
  struct Waiting {
    NodeId from;
    ports::AskFrame ask;
  };

  static uint64_t WireAsk(uint64_t epoch, uint64_t ask) {
    return (epoch << 32) | ask;
  }
  static uint64_t EpochOf(uint64_t wire_ask) { return wire_ask >> 32; }
  static uint64_t AskOf(uint64_t wire_ask) { return wire_ask & 0xFFFFFFFF; }
  static bool IsStateAsk(uint64_t wire_ask) { return EpochOf(wire_ask) == 0; }

  // ---- ours, by wire id ----

  void Open(uint64_t ask, const std::vector<NodeId>& peers) {
    if (!peers.empty()) out_[ask].insert(peers.begin(), peers.end());
  }
  // Opens an ask for a state and returns its new id.
  uint64_t OpenStateAsk(const NodeId& peer);
  bool IsOut(uint64_t ask, const NodeId& peer) const;
  // `peer` has answered or will not. Returns false when `ask` was not out to
  // it.
  bool Close(uint64_t ask, const NodeId& peer);
  // Nobody is to answer any more. Returns whom it was out to.
  std::set<NodeId> CloseAll(uint64_t ask);
  // Closes all but the asks for a state; returns them in the order of their
  // ids.
  std::vector<std::pair<uint64_t, std::set<NodeId>>> CloseAlgorithms();
  // The asks that are out to `peer`, in the order of their ids.
  std::vector<uint64_t> OutTo(const NodeId& peer) const;

  // ---- of peers ----

  // Of one peer and purpose one ask waits: a newer one takes its place. Returns
  // whether it did.
  bool Wait(const NodeId& from, const ports::AskFrame& ask);
  // `from` wants no answer to `ask`, or, without one, to anything.
  void Forget(const NodeId& from, std::optional<uint64_t> ask = std::nullopt);
  bool waiting() const { return !waiting_.empty(); }
  // The one that waits longest. Only while waiting().
  Waiting TakeFirst();

 private:
  std::map<uint64_t, std::set<NodeId>> out_;
  uint64_t last_state_ask_ = 0;
  std::vector<Waiting> waiting_;
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_ASK_BOOK_H_
