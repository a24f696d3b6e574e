// What the network's records want this node to do: train, pause or stop, and
// drain. Each order of a phase is obeyed once, in the run that it is for, so
// that a later order of this node alone holds.
#ifndef DFL_APP_NETWORK_PHASE_ORDERS_H_
#define DFL_APP_NETWORK_PHASE_ORDERS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "daemon/app/shared_keeper.h"
#include "daemon/app/worker.h"
#include "daemon/ports/events.h"
#include "daemon/records/records_in_force.h"
#include "daemon/runtime/gossip/record_book.h"
#include "daemon/runtime/node.h"

namespace dfl::app {

// Loop only, but for warning.
class PhaseOrders {
 public:
  // For the node called `self`. `events` must outlive it.
  PhaseOrders(std::string self, ports::EventSink& events)
      : self_(std::move(self)), events_(events) {}

  // Orders are obeyed from here on; `obeyed` is what the keeper says of those
  // before. All must outlive the last order.
  void Connect(runtime::Node& node, SharedKeeper& keeper, Worker& setup,
               uint64_t obeyed);
  // Nothing is obeyed any more.
  void Disconnect() { node_ = nullptr; }

  // Both do nothing before Connect, and nothing anew where nothing is new. A
  // node that drains remembers an order to train, and obeys it afterwards.
  void ObeyPhase(const runtime::RecordBook& book,
                 const records::Labels& labels);
  void ObeyDrain(const runtime::RecordBook& book) ABSL_LOCKS_EXCLUDED(mutex_);

  // An order waits until the node has a model: it is to be obeyed again.
  bool awaits_model() const { return awaits_model_; }
  bool draining() const { return drain_.has_value(); }
  // Why the node drains, as a person said; none: it does not.
  const std::optional<std::string>& drain() const { return drain_; }
  // What a status says of it; "": nothing. Any thread.
  std::string warning() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // What was wanted before the node drained is wanted again.
  void GoOn();
  void Keep(const records::WantedPhase& wanted);
  void Note(std::string text);

  const std::string self_;
  ports::EventSink& events_;
  runtime::Node* node_ = nullptr;
  SharedKeeper* keeper_ = nullptr;
  Worker* setup_ = nullptr;
  uint64_t obeyed_ = 0;  // mark of the last phase that was obeyed; 0: none
  bool awaits_model_ = false;
  std::optional<std::string> drain_;

  mutable absl::Mutex mutex_;
  std::string warning_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace dfl::app

#endif  // DFL_APP_NETWORK_PHASE_ORDERS_H_
