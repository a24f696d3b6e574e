// This node's certificate while the daemon runs: read at the start, looked at
// every second from then on, shown to others and checked against.
//
//   files --CredentialsWatch--> net::NetworkSecurity --> both listeners, dials
//
// What a person should know goes out as an event: new files, files that are
// wrong, an end that comes near, strangers that were refused.
#ifndef DFL_APP_SECURITY_H_
#define DFL_APP_SECURITY_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "daemon/app/worker.h"
#include "daemon/config/node_settings.h"
#include "daemon/control/backend.h"
#include "daemon/net/network_security.h"
#include "daemon/ports/events.h"
#include "daemon/ports/loop.h"
#include "daemon/tls/credentials.h"
#include "daemon/tls/credentials_watch.h"

namespace dfl::app {

// What `security: insecure` switches off, for the log and the status.
inline constexpr char kInsecureText[] =
    "security is off: network traffic is plain text, peers are not "
    "authenticated, orders are not signed, and bans have no effect";

// When to warn of a certificate's end: 30, 7 and 1 days before it, and when it
// has come. Each warning is given once.
class EndWarnings {
 public:
  // The warning to give now, "" for none. `left` is the time until the end; a
  // later end than before starts all over.
  std::string Look(absl::Duration left);

 private:
  int given_ = 0;  // how many of the limits have been passed
};

class Security {
 public:
  static constexpr absl::Duration kPeriod = absl::Seconds(1);
  static constexpr absl::Duration kRefusalPeriod = absl::Minutes(1);

  // Reads the certificate of `settings`. A certificate whose time has not come
  // yet is no error: the clock may not be set. Until it is, `network()` lets
  // nobody in, and the node trains alone. Missing files are no error of a node
  // that is on no network, or has a join token.
  // Errors: INVALID_ARGUMENT says which file is wrong, and the cure.
  static absl::StatusOr<std::unique_ptr<Security>> Open(
      const config::NodeSettings& settings, ports::Loop& loop,
      ports::EventSink& events);
  // What Open would say of the files, without keeping anything.
  static absl::Status CheckFiles(const config::NodeSettings& settings);

  // Looks at the files every period, and calls `recheck` on the loop after each
  // look. On the loop, once.
  void Watch(std::function<void()> recheck);
  // Ends that. On the loop.
  void Stop();

  net::NetworkSecurity& network() { return *network_; }
  // The network that the node is in; "" while it has no certificate.
  std::string cluster() const ABSL_LOCKS_EXCLUDED(mutex_);
  // The authorities; empty while there is no certificate. Any thread.
  std::vector<tls::Certificate> Bundle() const;

  // Sets what a status says of it. Any thread.
  void Tell(control::DaemonStatus& status) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // What the settings say of the files.
  struct Expected {
    std::string cluster;  // "": that of the certificate
    bool needed = true;   // whether it is a fault that they are missing
  };
  // Errors: as Enrolling::TokenOf, for a node that has yet to join.
  static absl::StatusOr<Expected> ExpectedBy(
      const config::NodeSettings& settings);

  Security(const config::NodeSettings& settings, Expected expected,
           std::unique_ptr<net::NetworkSecurity> network, ports::Loop& loop,
           ports::EventSink& events);
  void LookLater();
  void TakeIn(const tls::CredentialFiles& files) ABSL_LOCKS_EXCLUDED(mutex_);
  // Errors: as CredentialsWatch::status, or of the folder that gRPC reads.
  absl::Status Use(const tls::CredentialFiles& files, absl::Time now)
      ABSL_LOCKS_EXCLUDED(mutex_);
  std::shared_ptr<const tls::Credentials> current() const {
    return watch_ ? watch_->current() : nullptr;
  }
  void TellRefusals(absl::Time now);
  void Note(bool warning, std::string text);

  const std::string node_;
  const tls::CredentialPaths paths_;
  const bool needed_;
  const std::unique_ptr<net::NetworkSecurity> network_;
  ports::Loop& loop_;
  ports::EventSink& events_;

  // On the loop.
  std::optional<tls::CredentialsWatch> watch_;  // none: no network is known
  absl::Status status_;                         // of the last look
  EndWarnings warnings_;
  std::function<void()> recheck_;
  absl::Time refusals_told_ = absl::InfinitePast();
  std::map<std::string, int64_t> told_;

  mutable absl::Mutex mutex_;
  std::string cluster_ ABSL_GUARDED_BY(mutex_);
  // Why the files are not in use; "": they are.
  std::string fault_ ABSL_GUARDED_BY(mutex_);

  // False once stopped; the loop's timers look at it.
  const std::shared_ptr<bool> watching_ = std::make_shared<bool>(true);
  Worker reader_;  // last: stopped first
};

}  // namespace dfl::app

#endif  // DFL_APP_SECURITY_H_
