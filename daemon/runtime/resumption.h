// Goes on from a checkpoint after a restart, and from one that a person brings
// (restoration.h).
//
// The model, the algorithm's whole state, the generators and the
// place in the data are as they were at that boundary; what it had given and
// not got acknowledged is sent again. Neighbours that trained on meanwhile are
// joined by a jump, with the own model; where they are more than twice as far,
// with theirs (joining.h). Where neighbours have started again, too (the power
// was out), all go on from the lowest of their last steps: a node says the step
// that it would go on from, and one with an older checkpoint at a neighbour's
// lower step takes that one. It waits for them for `within` at most.
//
// Of another version of the plan only the model and its pace are taken: what an
// algorithm keeps is of the plan that it ran.
//
// Loop only.
#ifndef DFL_RUNTIME_RESUMPTION_H_
#define DFL_RUNTIME_RESUMPTION_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/ports/events.h"
#include "daemon/ports/loop.h"
#include "daemon/runtime/algorithm_lives.h"
#include "daemon/runtime/checkpointing.h"
#include "daemon/runtime/checkpoints/checkpoint.h"
#include "daemon/runtime/exchange.h"
#include "daemon/runtime/first_model.h"
#include "daemon/runtime/joining.h"
#include "daemon/runtime/links/links.h"
#include "daemon/runtime/own_state.h"
#include "daemon/runtime/peer_table.h"
#include "daemon/runtime/presence.h"
#include "daemon/runtime/training.h"

namespace dfl::runtime {

class Resumption {
 public:
  // All must outlive it.
  Resumption(const CheckpointOptions& options, Checkpointing& checkpointing,
             OwnState& own, const PeerTable& peers, const Links& links,
             Exchange& exchange, Presence& presence, Training& training,
             Joining& joining, AlgorithmLives& lives, FirstModel& first_model,
             ports::Loop& loop, ports::EventSink& events);
  ~Resumption() { loop_.Cancel(timer_); }

  // Goes on from the newest checkpoint of the run in force that fits, in phase
  // idle, before a model is there; the phase stays. Returns whether there was
  // one. Tells what was left aside, and why.
  bool TakeUp();

  // For a checkpoint that a person brings.
  // Errors: INVALID_ARGUMENT, DATA_LOSS: why it is none for this node.
  absl::Status CheckFits(const Checkpoint& checkpoint) const;
  // Goes on from one that fits; the phase stays. `before`: as
  // AlgorithmLives::Resume has it.
  // Errors: as Algorithm::ImportState; there is no model then.
  absl::Status TakeFitting(const Checkpoint& checkpoint, uint64_t before = 0);
  // What was taken waits for the order to train, which is Begin. `older`: the
  // steps of other checkpoints of its run that are kept.
  void AwaitOrder(std::vector<int64_t> older) {
    older_ = std::move(older);
    restored_ = true;
  }
  bool awaits() const {
    return restored_ && own_.algorithm.get() != nullptr &&
           own_.algorithm.epoch() == life_;
  }

  // Begins to train from what was taken up or restored, as soon as it is agreed
  // from which step.
  void Begin();
  // Something is new of a peer.
  void Look();

 private:
  // What a neighbour says of itself: nothing that helps, that it trains, that
  // it has started again as well, that it has a model and stands still.
  enum class Hears { kUnknown, kTrains, kGoesOn, kStands };

  // Goes on from `checkpoint`, or says why not.
  absl::Status Take(const Checkpoint& checkpoint);
  // Goes back to an older checkpoint at `step`, if there is one.
  bool GoBackTo(int64_t step);
  // `step`: the neighbour's, where it says one.
  Hears Hear(const NodeId& neighbour, int64_t& step) const;
  // `together`: with neighbours that are about to go on as well.
  void GoOn(bool together);
  void Tell(bool warning, std::string text);

  const CheckpointOptions options_;
  Checkpointing& checkpointing_;
  OwnState& own_;
  const PeerTable& peers_;
  const Links& links_;
  Exchange& exchange_;
  Presence& presence_;
  Training& training_;
  Joining& joining_;
  AlgorithmLives& lives_;
  FirstModel& first_model_;
  ports::Loop& loop_;
  ports::EventSink& events_;
  bool agreeing_ = false;       // Begin was called, and it is not agreed yet
  bool restored_ = false;       // and Begin was not called yet
  uint64_t life_ = 0;           // of the algorithm that is to go on
  absl::Time until_;            // agreeing ends
  absl::Time moved_;            // the last change of the step
  std::vector<int64_t> older_;  // steps of further checkpoints of this run
  ports::TimerId timer_ = 0;
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_RESUMPTION_H_
