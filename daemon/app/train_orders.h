// A person's order to this one node to train, to pause or to stop: obeyed at
// once, written down, and then answered.
#ifndef DFL_APP_TRAIN_ORDERS_H_
#define DFL_APP_TRAIN_ORDERS_H_

#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "daemon/app/event_loop.h"
#include "daemon/app/logger.h"
#include "daemon/app/shared_keeper.h"
#include "daemon/app/worker.h"
#include "daemon/control/backend.h"
#include "daemon/ports/frames.h"
#include "daemon/runtime/node.h"

namespace dfl::app {

class TrainOrders {
 public:
  // All must outlive the last order; `obeyed` is called on the loop after each
  // that the node obeys.
  TrainOrders(EventLoop& loop, runtime::Node& node, SharedKeeper& keeper,
              Logger& log, std::function<void()> obeyed)
      : loop_(loop),
        node_(node),
        keeper_(keeper),
        log_(log),
        obeyed_(std::move(obeyed)) {}

  // On the loop. `done` gets the phase that the order leads to, once it is on
  // disk; where a busy disk takes long, before: the node obeys already.
  // `writer` writes.
  // Errors: as Node::Start, Resume, Pause and Stop; of the disk, and the node
  // obeys all the same.
  void Give(control::TrainAction action, Worker& writer,
            const control::Done<ports::Phase>& done);

  // What the last daemon on this state directory was ordered, or the settings
  // say. Not on the loop; waits for it.
  // Errors: as Node::Start; UNAVAILABLE when the loop has ended.
  absl::Status Start();

 private:
  EventLoop& loop_;
  runtime::Node& node_;
  SharedKeeper& keeper_;
  Logger& log_;
  const std::function<void()> obeyed_;
};

}  // namespace dfl::app

#endif  // DFL_APP_TRAIN_ORDERS_H_
