#include "daemon/simports/sim_scheduler.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "daemon/base/check.h"

namespace dfl::simports {

SimScheduler::EventId SimScheduler::At(absl::Time when, OwnerId owner,
                                       std::function<void()> task) {
  if (free_.empty()) {
    free_.push_back(events_.size());
    events_.emplace_back();
    DFL_CHECK(events_.size() <= (size_t{1} << kPlaceBits));
  }
  const size_t place = free_.back();
  free_.pop_back();
  Event& event = events_[place];
  event.id = (++last_number_ << kPlaceBits) | place;
  event.owner = owner;
  event.task = std::move(task);
  if (heap_.size() > 2 * static_cast<size_t>(pending_) + 1024) DropCancelled();
  heap_.push_back(Entry{std::max(when, now_), event.id});
  std::push_heap(heap_.begin(), heap_.end());
  ++pending_;
  return event.id;
}

// Frees the event's place; its task, whose captures may call back when they
// die, is the caller's.
std::function<void()> SimScheduler::Take(EventId id) {
  Event& event = events_[PlaceOf(id)];
  event.id = 0;
  free_.push_back(PlaceOf(id));
  --pending_;
  return std::exchange(event.task, nullptr);
}

void SimScheduler::DropCancelled() {
  heap_.erase(
      std::remove_if(heap_.begin(), heap_.end(),
                     [this](const Entry& e) { return !IsPending(e.id); }),
      heap_.end());
  std::make_heap(heap_.begin(), heap_.end());
}

const SimScheduler::Entry* SimScheduler::Next() {
  while (!heap_.empty()) {
    const EventId id = heap_.front().id;
    if (IsPending(id)) {
      if (held_.count(events_[PlaceOf(id)].owner) == 0) return &heap_.front();
      aside_.push_back(heap_.front());
    }
    std::pop_heap(heap_.begin(), heap_.end());
    heap_.pop_back();
  }
  return nullptr;
}

void SimScheduler::Release(OwnerId owner) {
  held_.erase(owner);
  std::vector<Entry> still;
  for (const Entry& entry : aside_) {
    if (!IsPending(entry.id)) continue;
    if (events_[PlaceOf(entry.id)].owner == owner) {
      heap_.push_back(entry);
      std::push_heap(heap_.begin(), heap_.end());
    } else {
      still.push_back(entry);
    }
  }
  aside_ = std::move(still);
}

void SimScheduler::Cancel(EventId event) {
  if (!IsPending(event)) return;
  const std::function<void()> dropped = Take(event);
}

void SimScheduler::CancelOwned(OwnerId owner) {
  // In the order they were planned; what dies may cancel others.
  std::vector<EventId> ids;
  for (const Event& event : events_) {
    if (event.id != 0 && event.owner == owner) ids.push_back(event.id);
  }
  std::sort(ids.begin(), ids.end());
  for (const EventId id : ids) Cancel(id);
}

void SimScheduler::CancelAll() {
  while (!held_.empty()) Release(*held_.begin());
  while (const Entry* next = Next()) Cancel(next->id);
}

bool SimScheduler::Step() {
  const Entry* next = Next();
  if (next == nullptr) return false;
  DFL_CHECK(!running_);
  now_ = std::max(now_, next->when);  // one that was held is late
  std::function<void()> task = Take(next->id);
  std::pop_heap(heap_.begin(), heap_.end());
  heap_.pop_back();
  ++events_run_;
  running_ = true;
  task();
  task = nullptr;
  running_ = false;
  return true;
}

bool SimScheduler::RunUntilIdle(int64_t max_events) {
  for (int64_t i = 0; i < max_events; ++i) {
    if (!Step()) return true;
  }
  return pending_ == 0;
}

void SimScheduler::RunFor(absl::Duration duration) {
  const absl::Time end = now_ + duration;
  for (const Entry* next = Next(); next != nullptr && next->when <= end;
       next = Next()) {
    Step();
  }
  now_ = end;
}

bool SimScheduler::RunUntil(const std::function<bool()>& done,
                            absl::Duration limit) {
  const absl::Time end = now_ + limit;
  while (true) {
    if (done()) return true;
    const Entry* next = Next();
    if (next == nullptr) return false;
    if (next->when > end) {
      now_ = end;
      return false;
    }
    Step();
  }
}

}  // namespace dfl::simports
