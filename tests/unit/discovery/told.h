// What a source has told, for tests that wait for it.
#ifndef DFL_TESTS_UNIT_DISCOVERY_TOLD_H_
#define DFL_TESTS_UNIT_DISCOVERY_TOLD_H_

#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "daemon/discovery/source.h"
#include "tests/support/process.h"

namespace dfl::discovery {

// Thread-safe. Must outlive the source, or be told nothing any more.
class Told {
 public:
  Source::Tell tell() {
    return [this](Findings findings) {
      const absl::MutexLock lock(&mutex_);
      last_ = std::move(findings);
      ++times_;
    };
  }
  Findings last() const {
    const absl::MutexLock lock(&mutex_);
    return last_;
  }
  int times() const {
    const absl::MutexLock lock(&mutex_);
    return times_;
  }
  // Waits until what was told last fits.
  template <typename Condition>
  bool Becomes(Condition condition) const {
    return testing_support::Eventually(
        absl::Seconds(20), [&] { return times() > 0 && condition(last()); });
  }

 private:
  mutable absl::Mutex mutex_;
  Findings last_ ABSL_GUARDED_BY(mutex_);
  int times_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace dfl::discovery

#endif  // DFL_TESTS_UNIT_DISCOVERY_TOLD_H_
