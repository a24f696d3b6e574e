#include "daemon/control/grpc_status.h"

#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace dfl::control {
namespace {

constexpr size_t kMaxTextBytes = 2000;

}  // namespace

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  std::string text(status.message());
  if (text.size() > kMaxTextBytes) {
    size_t end = kMaxTextBytes;
    // Not inside a UTF-8 character.
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) {
      --end;
    }
    text = absl::StrCat(absl::string_view(text).substr(0, end), " ...");
  }
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), text);
}

}  // namespace dfl::control
