// Virtual time: one queue of events for a whole simulated network, run in the
// order (time, sequence number). Nothing in it looks at the wall clock, so a
// run depends on its inputs alone.
//
// Single-threaded. Tasks may schedule, cancel and post, and must not call Run*.
#ifndef DFL_SIMPORTS_SIM_SCHEDULER_H_
#define DFL_SIMPORTS_SIM_SCHEDULER_H_

#include <cstdint>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "daemon/simports/trace_digest.h"

namespace dfl::simports {

class SimScheduler {
 public:
  using EventId = uint64_t;  // 0 is never an event
  // The owner of an event, so that a crash can drop what a node had planned.
  using OwnerId = uint64_t;

  explicit SimScheduler(absl::Time start = absl::UnixEpoch()) : now_(start) {}
  SimScheduler(const SimScheduler&) = delete;
  SimScheduler& operator=(const SimScheduler&) = delete;

  absl::Time Now() const { return now_; }

  // A fresh owner, never used before.
  OwnerId NewOwner() { return ++last_owner_; }

  // Runs `task` at `when`, or now if that is past, after every event scheduled
  // earlier for the same time.
  EventId At(absl::Time when, OwnerId owner, std::function<void()> task);
  EventId After(absl::Duration delay, OwnerId owner,
                std::function<void()> task) {
    return At(now_ + delay, owner, std::move(task));
  }

  // Drops an event. Does nothing if it has run or is unknown.
  void Cancel(EventId event);
  // Drops all events of `owner`. O(most events that were ever pending).
  void CancelOwned(OwnerId owner);
  // Drops all events, when a whole network is taken down.
  void CancelAll();

  // Sets aside what is due for `owner`, as for a process that its system has
  // stopped. Release runs it at once, in the order of its times.
  void Hold(OwnerId owner) { held_.insert(owner); }
  void Release(OwnerId owner);

  // Runs the next event and moves the time to it. False when there is none.
  bool Step();

  // Runs until nothing is pending. False when `max_events` ran and some are
  // left (timers that re-arm themselves never end).
  bool RunUntilIdle(int64_t max_events = 100'000'000);

  // Runs what is due within `duration`, then moves the time to its end.
  void RunFor(absl::Duration duration);

  // Runs until `done()` holds, asked before each event, for at most `limit` of
  // virtual time. Returns whether it holds.
  bool RunUntil(const std::function<bool()>& done, absl::Duration limit);

  int64_t events_run() const { return events_run_; }
  int64_t pending() const { return pending_; }

  // The network adds what it delivers; a scenario may add its own facts.
  TraceDigest& trace() { return trace_; }
  const TraceDigest& trace() const { return trace_; }

 private:
  // A pending event. Its place is used again with another id.
  struct Event {
    EventId id = 0;  // 0: nothing is pending here
    OwnerId owner = 0;
    std::function<void()> task;
  };
  // An id is the event's number, which orders events of one time, and its
  // place.
  static constexpr int kPlaceBits = 24;
  static size_t PlaceOf(EventId id) {
    return static_cast<size_t>(id & ((EventId{1} << kPlaceBits) - 1));
  }
  struct Entry {
    absl::Time when;
    EventId id = 0;
    // For a heap whose first is the earliest.
    friend bool operator<(const Entry& a, const Entry& b) {
      return a.when != b.when ? b.when < a.when : b.id < a.id;
    }
  };

  bool IsPending(EventId id) const {
    return id != 0 && PlaceOf(id) < events_.size() &&
           events_[PlaceOf(id)].id == id;
  }
  std::function<void()> Take(EventId id);
  void DropCancelled();
  // The earliest event, or null. Drops cancelled ones before it, and sets aside
  // those of held owners.
  const Entry* Next();

  absl::Time now_;
  uint64_t last_number_ = 0;
  OwnerId last_owner_ = 0;
  int64_t events_run_ = 0;
  int64_t pending_ = 0;
  bool running_ = false;
  std::vector<Entry> heap_;  // those of cancelled events too
  std::vector<Event> events_;
  std::vector<size_t> free_;  // places in events_
  std::set<OwnerId> held_;
  std::vector<Entry> aside_;  // due, of held owners; some may be cancelled
  TraceDigest trace_;
};

}  // namespace dfl::simports

#endif  // DFL_SIMPORTS_SIM_SCHEDULER_H_
