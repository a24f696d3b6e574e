// Bounds how often one address may ask with a secret that is none. A secret has
// 256 bits, so this is not against guessing: it bounds the work and the log
// lines that a stranger can cause. Thread-safe.
#ifndef DFL_ENROL_WRONG_SECRETS_H_
#define DFL_ENROL_WRONG_SECRETS_H_

#include <cstddef>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace dfl::enrol {

class WrongSecrets {
 public:
  static constexpr int kPerPeriod = 10;
  static constexpr absl::Duration kPeriod = absl::Minutes(1);
  static constexpr size_t kMaxHosts = 256;

  // False when `host` asked kPerPeriod times within the last period.
  bool MayAsk(absl::string_view host, absl::Time now)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // `host` asked with a wrong secret. Of more than kMaxHosts the one that began
  // first is forgotten.
  void Count(absl::string_view host, absl::Time now)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Tally {
    absl::Time since;
    int count = 0;
  };

  absl::Mutex mutex_;
  std::map<std::string, Tally, std::less<>> hosts_ ABSL_GUARDED_BY(mutex_);
};

// The host in "ipv4:192.0.2.7:41234", as gRPC names a peer.
std::string HostOfPeer(absl::string_view peer);

}  // namespace dfl::enrol

#endif  // DFL_ENROL_WRONG_SECRETS_H_
