// A resolver whose answers a test sets. Thread-safe; copies of what it makes
// share the answers.
#ifndef DFL_TESTS_UNIT_DISCOVERY_FAKE_RESOLVER_H_
#define DFL_TESTS_UNIT_DISCOVERY_FAKE_RESOLVER_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "daemon/discovery/resolver.h"

namespace dfl::discovery {

class FakeResolver {
 public:
  using Addresses = absl::StatusOr<std::vector<std::string>>;
  using Services = absl::StatusOr<std::vector<HostPort>>;

  void SetHost(const std::string& host, Addresses answer) {
    const absl::MutexLock lock(&answers_->mutex);
    answers_->hosts.insert_or_assign(host, std::move(answer));
  }
  void SetService(const std::string& service, Services answer) {
    const absl::MutexLock lock(&answers_->mutex);
    answers_->services.insert_or_assign(service, std::move(answer));
  }
  int lookups() const {
    const absl::MutexLock lock(&answers_->mutex);
    return answers_->lookups;
  }

  Resolver resolver() const {
    return {[answers = answers_](const std::string& host) -> Addresses {
              const absl::MutexLock lock(&answers->mutex);
              ++answers->lookups;
              const auto it = answers->hosts.find(host);
              if (it == answers->hosts.end()) {
                return absl::NotFoundError("Name or service not known");
              }
              return it->second;
            },
            [answers = answers_](const std::string& service) -> Services {
              const absl::MutexLock lock(&answers->mutex);
              const auto it = answers->services.find(service);
              if (it == answers->services.end()) {
                return absl::NotFoundError("no such service is known");
              }
              return it->second;
            }};
  }

 private:
  struct Answers {
    mutable absl::Mutex mutex;
    std::map<std::string, Addresses> hosts ABSL_GUARDED_BY(mutex);
    std::map<std::string, Services> services ABSL_GUARDED_BY(mutex);
    int lookups ABSL_GUARDED_BY(mutex) = 0;
  };
  const std::shared_ptr<Answers> answers_ = std::make_shared<Answers>();
};

}  // namespace dfl::discovery

#endif  // DFL_TESTS_UNIT_DISCOVERY_FAKE_RESOLVER_H_
