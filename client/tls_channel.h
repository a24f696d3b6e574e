// Mutual TLS to a daemon: what gRPC is told, and why a daemon was refused. Not
// installed.
#ifndef DFL_CLIENT_TLS_CHANNEL_H_
#define DFL_CLIENT_TLS_CHANNEL_H_

#include <grpcpp/security/credentials.h>

#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "client/control_client.h"

namespace dfl {
namespace client {

// Why a daemon was refused last. Thread-safe.
class Refusal {
 public:
  void Set(std::string text) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    text_ = std::move(text);
  }
  // "" when none was.
  std::string text() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return text_;
  }

 private:
  mutable absl::Mutex mutex_;
  std::string text_ ABSL_GUARDED_BY(mutex_);
};

struct TlsIdentity {
  std::shared_ptr<grpc::ChannelCredentials> credentials;
  std::string uri;  // of the caller: "spiffe://plant-4/operator/alice"
};

// Credentials that admit nodes of the caller's own network only; `refusal` is
// told of all others.
// Errors: INVALID_ARGUMENT when the PEM texts are none, or the certificate
// names no identity.
absl::StatusOr<TlsIdentity> MakeTlsIdentity(const ClientIdentity& identity,
                                            std::shared_ptr<Refusal> refusal);

}  // namespace client
}  // namespace dfl

#endif  // DFL_CLIENT_TLS_CHANNEL_H_
