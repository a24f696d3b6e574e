// gRPC's statuses and ours: the one place that maps them. Codes have the same
// numbers on both sides. Everything is inline, for the installed client
// library as well.
#ifndef PROTO_GRPC_STATUS_H_
#define PROTO_GRPC_STATUS_H_

#include <grpcpp/support/status.h>

#include <cstddef>
#include <string>

#include "absl/status/status.h"

namespace dfl {

inline absl::Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                      status.error_message());
}

// A text beyond 2,000 bytes is cut, and not inside a UTF-8 character, because
// it travels in an HTTP/2 trailer.
inline grpc::Status ToGrpc(const absl::Status& status) {
  constexpr size_t kMaxTextBytes = 2000;
  if (status.ok()) return grpc::Status::OK;
  std::string text(status.message());
  if (text.size() > kMaxTextBytes) {
    size_t end = kMaxTextBytes;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) {
      --end;
    }
    text.resize(end);
    text += " ...";
  }
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), text);
}

}  // namespace dfl

#endif  // PROTO_GRPC_STATUS_H_
