// A node that has a join token and no certificate gets one while it trains
// alone, and a node that has the network's authority serves others so.
#ifndef DFL_APP_ENROLLING_H_
#define DFL_APP_ENROLLING_H_

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "daemon/config/node_settings.h"
#include "daemon/enrol/issuer.h"
#include "daemon/enrol/join_token.h"
#include "daemon/enrol/joining.h"
#include "daemon/threads/steady_cond_var.h"
#include "daemon/tls/credentials.h"

namespace dfl::app {

// What the log and the events are told. Called on threads of its own.
using EnrolNote = std::function<void(bool warning, const std::string& text)>;

// Asks until it has a certificate, or until the issuer refuses the token for
// good. The files appear where `paths` says: whoever watches them goes on.
class Enrolling {
 public:
  struct Pace {
    absl::Duration first = absl::Seconds(1);  // doubled with each failure
    absl::Duration longest = absl::Minutes(1);
    absl::Duration timeout = absl::Seconds(5);  // of one attempt
  };

  // True when the settings have a token and there is no certificate.
  static bool Wanted(const config::NodeSettings& settings,
                     const tls::CredentialPaths& paths);

  // The token of the settings, for this node: its cluster is the network's.
  // Errors: INVALID_ARGUMENT when it is damaged or for another node, or when
  // join.at is not set; each names the setting.
  static absl::StatusOr<enrol::JoinToken> TokenOf(
      const config::NodeSettings& settings);

  // Begins at once. Only a node that Wanted is true of has anything to ask.
  // Errors: as TokenOf.
  static absl::StatusOr<std::unique_ptr<Enrolling>> Start(
      const config::NodeSettings& settings, const tls::CredentialPaths& paths,
      EnrolNote note, const Pace& pace);
  // Waits for the attempt that is being made.
  ~Enrolling();
  Enrolling(const Enrolling&) = delete;
  Enrolling& operator=(const Enrolling&) = delete;

 private:
  Enrolling(enrol::JoinOptions options, EnrolNote note, const Pace& pace);
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);

  const enrol::JoinOptions options_;
  const EnrolNote note_;
  const Pace pace_;
  absl::Mutex mutex_;
  SteadyCondVar changed_;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

// Serves on settings.enrol.listen; null when it is not set.
// Errors: INVALID_ARGUMENT without enrol.folder; as enrol::Issuer::Start.
absl::StatusOr<std::unique_ptr<enrol::Issuer>> StartIssuer(
    const config::NodeSettings& settings, EnrolNote note);

}  // namespace dfl::app

#endif  // DFL_APP_ENROLLING_H_
