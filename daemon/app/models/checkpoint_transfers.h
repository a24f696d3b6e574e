// The node's checkpoints for control: which there are, one more, and files of
// them out of the node and into it.
//
// What reads or writes the disk does so on the worker that writes checkpoints,
// one after the other.
#ifndef DFL_APP_MODELS_CHECKPOINT_TRANSFERS_H_
#define DFL_APP_MODELS_CHECKPOINT_TRANSFERS_H_

#include <functional>
#include <memory>

#include "daemon/app/event_loop.h"
#include "daemon/app/plan_taker.h"
#include "daemon/control/checkpoints.h"
#include "daemon/ports/loop.h"
#include "daemon/runtime/node.h"
#include "daemon/store/checkpoint_files.h"

namespace dfl::app {

// Thread-safe, where nothing else is said.
class CheckpointTransfers final : public control::Checkpoints {
 public:
  // All must outlive it, but for what waits in `node`: see End. `changed` is
  // called on the loop when the node is another one. Null `files`: the node
  // keeps none; else `worker` writes them.
  CheckpointTransfers(EventLoop& loop, runtime::Node& node, PlanTaker& plans,
                      store::CheckpointFiles* files, ports::Worker* worker,
                      std::function<void()> changed);

  // control::Checkpoints
  void List(control::Done<control::CheckpointList> done) override;
  void Save(control::Begin begin,
            control::Done<control::CheckpointInfo> done) override;
  void Open(
      control::Done<std::unique_ptr<control::CheckpointSource>> done) override;
  void Restore(
      const control::RestoreRequest& request,
      control::Done<std::unique_ptr<control::CheckpointSink>> done) override;

  // What waits in the node, which may outlive this, finds nobody from here on.
  // On the loop.
  void End() { alive_.reset(); }

 private:
  class Sink;
  struct Incoming;

  // Does `work` on the worker, then `then` on the loop.
  void OnWorker(std::function<void()> work, std::function<void()> then);
  // The node exists, and so does this. On the loop.
  static absl::Status CheckAlive(const std::weak_ptr<bool>& alive);
  // On the loop: why a file of that length cannot be restored now, or what it
  // must be of.
  absl::StatusOr<runtime::RestoreTarget> MayRestore(int64_t total_bytes);
  // All of the file has come.
  void Commit(std::shared_ptr<Incoming> incoming);
  // On the loop, once it is placed.
  void Take(const std::shared_ptr<Incoming>& incoming);
  void Conclude(const std::shared_ptr<Incoming>& incoming,
                const absl::Status& taken);

  EventLoop& loop_;
  runtime::Node& node_;
  PlanTaker& plans_;
  store::CheckpointFiles* const files_;
  ports::Worker* const worker_;
  const std::function<void()> changed_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // on the loop
};

}  // namespace dfl::app

#endif  // DFL_APP_MODELS_CHECKPOINT_TRANSFERS_H_
