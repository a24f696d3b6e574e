// Checkpoints of this node: takes them at boundaries, has them written, and
// goes on from one after a restart.
//
// Going on. The model, the algorithm's whole state, the generators and the
// place in the data are as they were at that boundary; what it had given and
// not got acknowledged is sent again. Neighbours that trained on meanwhile are
// joined by a jump, with the own model. Where neighbours have started again,
// too (the power was out), all go on from the highest step of which each has a
// checkpoint: a node says the step that it would go on from, and one with an
// older checkpoint at a neighbour's lower step takes that one. It waits for
// them for `within` at most.
//
// Of another version of the plan only the model and its pace are taken: what an
// algorithm keeps is of the plan that it ran.
//
// Loop only.
#ifndef DFL_RUNTIME_RESUMPTION_H_
#define DFL_RUNTIME_RESUMPTION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/ports/events.h"
#include "daemon/ports/loop.h"
#include "daemon/runtime/algorithm_lives.h"
#include "daemon/runtime/checkpoints/checkpoint.h"
#include "daemon/runtime/checkpoints/checkpoint_clock.h"
#include "daemon/runtime/exchange.h"
#include "daemon/runtime/first_model.h"
#include "daemon/runtime/joining.h"
#include "daemon/runtime/links/links.h"
#include "daemon/runtime/own_state.h"
#include "daemon/runtime/peer_table.h"
#include "daemon/runtime/presence.h"
#include "daemon/runtime/training.h"

namespace dfl::runtime {

struct CheckpointOptions {
  // Null: none are taken. They outlive the node.
  CheckpointStore* store = nullptr;
  ports::Worker* worker = nullptr;
  // How long a node waits for neighbours that have started again.
  absl::Duration within = absl::Seconds(2);
};

class Resumption {
 public:
  // All must outlive it.
  Resumption(CheckpointOptions options, OwnState& own, const PeerTable& peers,
             const Links& links, Exchange& exchange, Presence& presence,
             Training& training, Joining& joining, AlgorithmLives& lives,
             FirstModel& first_model, ports::Loop& loop,
             ports::EventSink& events);
  ~Resumption() { loop_.Cancel(timer_); }

  // Goes on from the newest checkpoint of the run in force that fits, in phase
  // idle, before a model is there; the phase stays. Once. Returns whether there
  // was one. Tells what was left aside, and why.
  bool TakeUp();

  // Begins to train from what was taken up, as soon as it is agreed from which
  // step.
  void Begin();
  // Something is new of a peer.
  void Look();

  // At the boundary of a node that trains: has a checkpoint written if one is
  // due.
  void Visit();
  // Has one written at the next boundary, from which on the node stands still
  // and takes no mass: what is written is its end. `done` is told once; OK
  // where there is nothing to write.
  // Errors: as the store's.
  void Suspend(std::function<void(absl::Status)> done);

  // Why the last one is not written; "": it is.
  const std::string& error() const { return error_; }
  // The step of the last one that was written; nullopt: none was.
  std::optional<int64_t> written() const { return written_; }

 private:
  std::shared_ptr<const Checkpoint> Capture();
  void Write(std::function<void(absl::Status)> done);
  void OnWritten(int64_t step, const absl::Status& status);
  // Goes on from `checkpoint`, or says why not.
  absl::Status Take(const Checkpoint& checkpoint);
  absl::Status CheckFits(const Checkpoint& checkpoint) const;
  // Goes back to an older checkpoint at `step`, if there is one.
  bool GoBackTo(int64_t step);
  // `together`: with neighbours that are about to go on as well.
  void GoOn(bool together);
  void Tell(bool warning, std::string text);

  const CheckpointOptions options_;
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
  CheckpointClock clock_;
  bool writing_ = false;
  std::string error_;
  std::optional<int64_t> written_;
  bool taken_up_ = false;
  bool agreeing_ = false;       // Begin was called, and it is not agreed yet
  uint64_t life_ = 0;           // of the algorithm that is to go on
  absl::Time until_;            // agreeing ends
  absl::Time moved_;            // the last change of the step
  std::vector<int64_t> older_;  // steps of further checkpoints of this run
  ports::TimerId timer_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_RESUMPTION_H_
