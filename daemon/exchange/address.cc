#include "daemon/exchange/address.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace dfl::exchange {

absl::StatusOr<HostPort> ParseAddress(absl::string_view address) {
  absl::StatusOr<HostPort> parsed = ParseHostPort(address);
  if (parsed.ok()) return parsed;
  return absl::InvalidArgumentError(
      absl::StrCat("address \"", address, "\": ", parsed.status().message(),
                   "; ", kHostPortForms));
}

}  // namespace dfl::exchange
