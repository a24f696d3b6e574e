// Why handshakes fail inside the TLS library. gRPC tells it to its log alone,
// an error line for each stranger, and nobody else.
//
// While a HandshakeLog lives, gRPC's lines about handshakes and about files
// that it watches are not printed. All other lines of gRPC go to stderr, as
// they do otherwise. gRPC has one log a process: each HandshakeLog is told of
// the failures at all servers of the process.
#ifndef DFL_NET_HANDSHAKE_LOG_H_
#define DFL_NET_HANDSHAKE_LOG_H_

#include <functional>
#include <string>

#include "absl/strings/string_view.h"

namespace dfl::net {

// What ended the handshake of a peer that connected to us, by a line of gRPC's
// log: "no-certificate", "old-tls", "no-shared-cipher" or "bad-handshake". "":
// the line tells of none, or it was our own dial that the other end refused.
absl::string_view HandshakeFailure(absl::string_view line);

class HandshakeLog {
 public:
  // `on_failure` is called on gRPC's threads with what HandshakeFailure says.
  // It must not make or destroy a HandshakeLog.
  explicit HandshakeLog(
      std::function<void(absl::string_view reason)> on_failure);
  // Once it has returned, on_failure does not run.
  ~HandshakeLog();
  HandshakeLog(const HandshakeLog&) = delete;
  HandshakeLog& operator=(const HandshakeLog&) = delete;

  void Tell(absl::string_view reason) const { on_failure_(reason); }

 private:
  const std::function<void(absl::string_view reason)> on_failure_;
};

}  // namespace dfl::net

#endif  // DFL_NET_HANDSHAKE_LOG_H_
