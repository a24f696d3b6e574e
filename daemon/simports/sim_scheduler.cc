#include "daemon/simports/sim_scheduler.h"

#include <algorithm>
#include <vector>

#include "daemon/base/check.h"

namespace dfl::simports {

SimScheduler::EventId SimScheduler::At(absl::Time when, OwnerId owner,
                                       std::function<void()> task) {
  const EventId id = ++last_event_;
  const auto [it, inserted] = queue_.emplace(Key(std::max(when, now_), id),
                                             Event{owner, std::move(task)});
  DFL_CHECK(inserted);
  by_id_.emplace(id, it);
  return id;
}

void SimScheduler::Cancel(EventId event) {
  const auto found = by_id_.find(event);
  if (found == by_id_.end()) return;
  // The task's captures may call back when they die: first out of the queue.
  const auto dropped = queue_.extract(found->second);
  by_id_.erase(found);
}

void SimScheduler::CancelOwned(OwnerId owner) {
  std::vector<EventId> ids;
  for (const auto& [key, event] : queue_) {
    if (event.owner == owner) ids.push_back(key.second);
  }
  for (const EventId id : ids) Cancel(id);
}

bool SimScheduler::Step() {
  if (queue_.empty()) return false;
  DFL_CHECK(!running_);
  auto node = queue_.extract(queue_.begin());
  by_id_.erase(node.key().second);
  now_ = node.key().first;
  ++events_run_;
  running_ = true;
  node.mapped().task();
  node.mapped().task = nullptr;
  running_ = false;
  return true;
}

bool SimScheduler::RunUntilIdle(int64_t max_events) {
  for (int64_t i = 0; i < max_events; ++i) {
    if (!Step()) return true;
  }
  return queue_.empty();
}

void SimScheduler::RunFor(absl::Duration duration) {
  const absl::Time end = now_ + duration;
  while (!queue_.empty() && queue_.begin()->first.first <= end) Step();
  now_ = end;
}

bool SimScheduler::RunUntil(const std::function<bool()>& done,
                            absl::Duration limit) {
  const absl::Time end = now_ + limit;
  while (true) {
    if (done()) return true;
    if (queue_.empty()) return false;
    if (queue_.begin()->first.first > end) {
      now_ = end;
      return false;
    }
    Step();
  }
}

}  // namespace dfl::simports
