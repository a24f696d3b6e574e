// Joining: a node that starts takes model and step from the neighbour that is
// furthest, and starts fresh only when nobody is ahead.
//
// While a search is on, the furthest neighbour that is ahead of us is asked for
// its model. Those that gave nothing are asked again, after the others and a
// few times at most. A search ends when a model came (Taken, End), when nobody
// is left to ask, or when it is ended from outside.
//
// A start is *unconfirmed* while the node has not heard of all members since: a
// neighbour that is heard of for the first time and is ahead of us still gives
// its model. Where one has given us its own, only one that is more than twice
// as far does.
//
// A run begins together, and goes on so after all have started again: a node
// that has started fresh, or from a checkpoint, waits before its first round,
// for one deadline at most, for neighbours that are in the run and do not train
// yet. Otherwise those that begin first would be through it without
// the others, whose gradients are then missing in what trackers must keep.
//
// Loop only.
#ifndef DFL_RUNTIME_JOINING_H_
#define DFL_RUNTIME_JOINING_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "absl/time/time.h"
#include "daemon/base/ids.h"
#include "daemon/ports/loop.h"
#include "daemon/runtime/ask_book.h"
#include "daemon/runtime/links/links.h"
#include "daemon/runtime/peer_table.h"
#include "daemon/runtime/run_in_force.h"
#include "daemon/runtime/transfers/transfers.h"

namespace dfl::runtime {

struct JoiningOptions {
  // How long a starting node looks for a neighbour that is ahead.
  absl::Duration within = absl::Seconds(2);
  // A neighbour's model may take long, but must keep moving.
  absl::Duration stall = absl::Seconds(10);
  // Between two asks of a neighbour that is ahead and did not give its model.
  absl::Duration retry = absl::Milliseconds(500);
};

class Joining {
 public:
  class Listener {
   public:
    virtual ~Listener() = default;
    // The node has no model and looks for one.
    virtual bool Starting() const = 0;
    // The node trains and is at a boundary, so that its model may be replaced.
    virtual bool MayReplaceModel() const = 0;
    virtual int64_t OwnStep() const = 0;
    // Starting, and nobody is ahead.
    virtual void OnNobodyToJoin() = 0;
    // What a boundary waited for has come to an end.
    virtual void OnWaitEnds() = 0;
  };

  // All must outlive it.
  Joining(JoiningOptions options, ports::Loop& loop, Links& links,
          Transfers& transfers, AskBook& asks, const PeerTable& peers,
          const RunInForce& run, Listener& listener);
  ~Joining();

  // Begins a search now.
  void Begin();
  bool searching() const { return search_.has_value(); }
  // Goes on with the search: after news of peers, and at boundaries.
  void Continue();
  void End();
  // `ask`, a closed ask for a state or one that is out, gives nothing.
  void Failed(const NodeId& peer);
  // Whether the state that answers `ask` is what the search waits for.
  bool IsWanted(uint64_t ask) const { return search_ && search_->ask == ask; }
  // The answer was taken over.
  void Taken();

  // The node started, with a neighbour's model (`joined`) or fresh.
  void NoteStart(bool joined);
  // The node went on from a checkpoint: whoever is heard of from here on may be
  // far ahead.
  void NoteResumed() {
    joined_ = true;
    heard_since_start_.clear();
    UpdateUnconfirmed();
  }
  void ForgetStart() { unconfirmed_ = false; }
  // `peer`, which has a model, is at `step`: may begin a search, which is
  // carried out at the next boundary.
  void Confirm(const NodeId& peer, int64_t step);

  // The first round waits for so long at most, and longer over slow links.
  void WaitForOthers(absl::Duration deadline);
  void WaitForNobody();
  bool waits_for_others() const { return wait_until_ != absl::InfinitePast(); }
  // Whether the first round is still to wait. OnWaitEnds tells when to ask
  // again.
  bool AwaitsOthers();

 private:
  struct Search {
    absl::Time since;
    ports::TimerId timer = 0;
    uint64_t ask = 0;  // the ask that is out; 0: none
    NodeId asked;
    std::map<NodeId, int64_t> failures;  // asks that gave nothing
    absl::Time retry_at;                 // no second ask of one before
  };
  // What a look at the peers found.
  struct Candidates {
    std::optional<NodeId> best;  // to ask now
    bool retry_later = false;
    int64_t heard = 0;
  };

  Candidates Look() const;
  void Ask(const NodeId& peer);
  // Gives `ask` up when it stops moving.
  void Watch(uint64_t ask);
  // Continue() at `when`, in place of what the timer was set to.
  void ContinueAt(absl::Time when);
  // Tells `peer` that its state is not wanted.
  void Withdraw(const NodeId& peer);
  bool OthersAreAboutToTrain() const;
  void UpdateUnconfirmed();

  const JoiningOptions options_;
  ports::Loop& loop_;
  Links& links_;
  Transfers& transfers_;
  AskBook& asks_;
  const PeerTable& peers_;
  const RunInForce& run_;
  Listener& listener_;
  std::optional<Search> search_;
  bool unconfirmed_ = false;
  bool joined_ = false;
  std::set<NodeId> heard_since_start_;
  absl::Time wait_until_ = absl::InfinitePast();
  int64_t waits_at_ = 0;  // the first round
  ports::TimerId wait_timer_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_JOINING_H_
