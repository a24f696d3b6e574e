#include "daemon/net/handshake_log.h"

#include <grpc/support/log.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <set>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/synchronization/mutex.h"

namespace dfl::net {
namespace {

// gRPC's log is one a process, and so is this.
struct Listeners {
  absl::Mutex mutex;
  std::set<const HandshakeLog*> all ABSL_GUARDED_BY(mutex);
};

Listeners& TheListeners() {
  static auto* const kListeners = new Listeners();  // never destroyed
  return *kListeners;
}

// Sources of gRPC that log what strangers do, and that a watched file is not
// there yet. Both are told in other ways.
constexpr absl::string_view kTold[] = {
    "ssl_transport_security",
    "security_handshaker",
    "chttp2_server",
    "tls_security_connector",
    "stat_posix",
    "grpc_tls_certificate_provider",
};

bool IsTold(absl::string_view file) {
  return std::any_of(std::begin(kTold), std::end(kTold),
                     [&](absl::string_view source) {
                       return absl::StrContains(file, source);
                     });
}

void OnLine(gpr_log_func_args* args) {
  const absl::string_view line = args->message;
  const absl::string_view reason = HandshakeFailure(line);
  if (!reason.empty()) {
    Listeners& listeners = TheListeners();
    absl::MutexLock lock(&listeners.mutex);
    for (const HandshakeLog* listener : listeners.all) listener->Tell(reason);
  }
  if (IsTold(args->file)) return;
  std::fprintf(stderr, "gRPC: %s: %s (%s:%d)\n",
               gpr_log_severity_string(args->severity), args->message,
               args->file, args->line);
}

}  // namespace

absl::string_view HandshakeFailure(absl::string_view line) {
  if (!absl::StrContains(line, "Handshake failed with fatal error")) return "";
  if (absl::StrContains(line, "peer did not return a certificate")) {
    return "no-certificate";
  }
  if (absl::StrContains(line, "unsupported protocol") ||
      absl::StrContains(line, "version too low")) {
    return "old-tls";
  }
  if (absl::StrContains(line, "no shared cipher")) return "no-shared-cipher";
  // What a dial meets: the other end's alert, or one that speaks no TLS.
  if (absl::StrContains(line, "alert") ||
      absl::StrContains(line, "wrong version number")) {
    return "";
  }
  return "bad-handshake";
}

HandshakeLog::HandshakeLog(
    std::function<void(absl::string_view reason)> on_failure)
    : on_failure_(std::move(on_failure)) {
  Listeners& listeners = TheListeners();
  absl::MutexLock lock(&listeners.mutex);
  if (listeners.all.empty()) gpr_set_log_function(OnLine);
  listeners.all.insert(this);
}

HandshakeLog::~HandshakeLog() {
  Listeners& listeners = TheListeners();
  absl::MutexLock lock(&listeners.mutex);
  listeners.all.erase(this);
  if (listeners.all.empty()) gpr_set_log_function(nullptr);
}

}  // namespace dfl::net
