// How this node finds others and is found: the sources of candidate addresses
// that its settings name, and the addresses that it tells of itself, which
// follow the machine's interfaces.
#ifndef DFL_APP_NETWORK_FINDING_H_
#define DFL_APP_NETWORK_FINDING_H_

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "daemon/app/event_loop.h"
#include "daemon/app/logger.h"
#include "daemon/config/node_settings.h"
#include "daemon/discovery/discovery.h"
#include "daemon/discovery/mdns.h"
#include "daemon/discovery/names.h"
#include "daemon/discovery/own_addresses.h"

namespace dfl::app {

// Called on the loop.
struct FindingHooks {
  // All that `source` has now.
  std::function<void(const std::string& source,
                     std::vector<std::string> addresses)>
      candidates;
  // This node is reached elsewhere than before.
  std::function<void(const std::vector<std::string>& addresses)> moved;
};

// Begin, Start and Stop are for the thread that builds the daemon.
class Finding {
 public:
  // All must outlive it; the loop has ended before it goes.
  Finding(const config::NodeSettings& settings, EventLoop& loop, Logger& log);
  ~Finding();  // Stop
  Finding(const Finding&) = delete;
  Finding& operator=(const Finding&) = delete;

  // The peers of the settings, to which an operator adds.
  const std::shared_ptr<discovery::NameList>& peers() const { return peers_; }

  // Works out where others reach this node, which listens at `bound`. Nowhere
  // yet is no error: it is said, and looked at again.
  // Errors: INVALID_ARGUMENT, as discovery::FindOwnAddresses.
  absl::Status Begin(const std::vector<std::string>& bound);
  // What is told to others; the best first.
  const std::vector<std::string>& told() const { return told_; }

  // Looks for others and is found from here on. After Begin.
  void Start(FindingHooks hooks);

  // No hook is called afterwards. Not on the loop.
  void Stop();

 private:
  void StartMdns();
  // Once more, on the loop, for ever.
  void LookAtInterfaces();
  void LookAgain();
  bool IsSelf(absl::string_view address) const ABSL_LOCKS_EXCLUDED(mutex_);
  void SetSelf(std::set<std::string> self) ABSL_LOCKS_EXCLUDED(mutex_);
  void Note(bool warning, const std::string& text);

  const config::NodeSettings& settings_;
  EventLoop& loop_;
  Logger& log_;
  const std::shared_ptr<discovery::NameList> peers_;
  // From Start on of the loop alone.
  FindingHooks hooks_;
  discovery::Listeners listeners_;
  std::vector<std::string> told_;
  std::string trouble_;  // with the interfaces, as told last
  bool stopped_ = false;
  std::shared_ptr<discovery::MdnsSource> mdns_;
  mutable absl::Mutex mutex_;
  std::set<std::string> self_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<discovery::Discovery> discovery_;  // the first to end
};

}  // namespace dfl::app

#endif  // DFL_APP_NETWORK_FINDING_H_
