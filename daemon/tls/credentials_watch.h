// Keeps the newest good credentials while their files are being replaced.
//
// A file is replaced one at a time, so a look may find a new certificate with
// the former key. Such a state is refused like any other mistake: the former
// credentials stay in use, and the next look finds the rest.
//
// The watch reads no clock and no file: a caller's timer calls
//   watch.Look(ReadCredentialFiles(paths), now)
// and acts on the answer. Thread-compatible.
#ifndef DFL_TLS_CREDENTIALS_WATCH_H_
#define DFL_TLS_CREDENTIALS_WATCH_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "daemon/tls/credentials.h"
#include "daemon/tls/identity.h"

namespace dfl::tls {

class CredentialsWatch {
 public:
  enum class News {
    kNone,     // nothing that was not told before
    kAdopted,  // current() is new
    kRefused,  // status() is new: the files are wrong, or became invalid
  };

  // `expected` and `reader` are those of CheckCredentials.
  CredentialsWatch(Identity expected, uint32_t reader);

  News Look(const CredentialFiles& files, absl::Time now);

  // The newest good ones; null before the first. They are never changed, so a
  // connection may hold on to them. They may have expired since: status() says.
  const std::shared_ptr<const Credentials>& current() const { return current_; }
  // OK when current() is what the files of the last look hold; else why not, as
  // CheckCredentials says it. UNAVAILABLE before the first look.
  const absl::Status& status() const { return status_; }

 private:
  bool HoldsCurrent(const CredentialFiles& files) const;

  const Identity expected_;
  const uint32_t reader_;
  std::shared_ptr<const Credentials> current_;
  absl::Status status_ = absl::UnavailableError("no file was read yet");
  // What kRefused was last told of: the same files may fail for another reason
  // as time goes on.
  std::optional<CredentialFiles> refused_files_;
  absl::StatusCode refused_code_ = absl::StatusCode::kOk;
};

}  // namespace dfl::tls

#endif  // DFL_TLS_CREDENTIALS_WATCH_H_
