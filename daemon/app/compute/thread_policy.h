// How many threads train: as many as there are idle processors. LibTorch's
// threads meet at a barrier many times a step, so that a thread whose processor
// works for somebody else holds up all others: with one busy loop beside it,
// training on two processors takes 2.2 times as long on two threads as on one.
//
// Pure: what was read comes in as values, so tests need no load.
#ifndef DFL_APP_COMPUTE_THREAD_POLICY_H_
#define DFL_APP_COMPUTE_THREAD_POLICY_H_

#include <optional>
#include <string>

#include "absl/time/time.h"

namespace dfl::app {

// Counters as they stand at one moment; only differences mean something.
struct CpuReading {
  absl::Time at;       // of a steady clock
  absl::Duration own;  // processor time of this process
  // Of all processes on the processors that this one may run on, and of what
  // the machine's own host took from them. Nullopt: not to be had.
  std::optional<absl::Duration> all;
  // Of all processes in the cgroup whose quota bounds this one. Nullopt: there
  // is none.
  std::optional<absl::Duration> group;
};

// What a process may use.
struct CpuBounds {
  int processors = 1;  // it may run on
  double limit = 0;    // of its cgroup, in processors; 0: none
};

struct ThreadChoice {
  int threads = 1;
  std::string reason;  // "2 of 2 processors are idle"

  friend bool operator==(const ThreadChoice&, const ThreadChoice&) = default;
};

// From two readings, `before` the earlier. A processor of which others use up
// to a quarter counts as idle. At least one thread; at most the processors, cut
// to the limit and rounded up.
ThreadChoice ChooseThreads(const CpuBounds& bounds, const CpuReading& before,
                           const CpuReading& now);

}  // namespace dfl::app

#endif  // DFL_APP_COMPUTE_THREAD_POLICY_H_
