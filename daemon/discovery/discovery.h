// All sources of candidate addresses together: tells what each has, whenever it
// changes, and what people should know of it, once a change.
//
// An address of this node itself in a list is nothing wrong: it is left out.
#ifndef DFL_DISCOVERY_DISCOVERY_H_
#define DFL_DISCOVERY_DISCOVERY_H_

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "daemon/discovery/source.h"

namespace dfl::discovery {

// Of one source. What is more is left out, and that is told.
inline constexpr size_t kMostCandidates = 1024;

// Called on threads of sources, one call at a time, while Discovery holds its
// lock: they must not call it.
struct DiscoveryHooks {
  // All candidates that the source has now.
  std::function<void(const std::string& source,
                     const std::vector<std::string>& addresses)>
      changed;
  // For the log.
  std::function<void(bool warning, const std::string& text)> note;
  // Whether this node itself answers there. May be null.
  std::function<bool(absl::string_view address)> is_own;
};

// Thread-safe.
class Discovery {
 public:
  explicit Discovery(DiscoveryHooks hooks);
  ~Discovery();  // Stop
  Discovery(const Discovery&) = delete;
  Discovery& operator=(const Discovery&) = delete;

  // Takes it over and starts it. `source` must have a name of its own.
  void Add(std::shared_ptr<Source> source) ABSL_LOCKS_EXCLUDED(mutex_);

  // No hook is called afterwards. Takes a second at most a source. Idempotent.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  // What each source has told last.
  std::map<std::string, Findings> findings() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Take(const std::string& source, Findings findings)
      ABSL_LOCKS_EXCLUDED(mutex_);

  const DiscoveryHooks hooks_;
  mutable absl::Mutex mutex_;
  std::vector<std::shared_ptr<Source>> sources_ ABSL_GUARDED_BY(mutex_);
  // Of sources that have told something.
  std::map<std::string, Findings> findings_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace dfl::discovery

#endif  // DFL_DISCOVERY_DISCOVERY_H_
