// The file of addresses that somebody else keeps for this node.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "daemon/base/check.h"
#include "daemon/base/host_port.h"
#include "daemon/discovery/address_file.h"
#include "tests/fuzz/fuzz_target.h"

namespace dfl::fuzz {

DFL_FUZZ_TARGET(address_file)(absl::string_view bytes) {
  const auto addresses = discovery::ParseAddressFile(bytes);
  if (!addresses.ok()) {
    DFL_CHECK(absl::IsInvalidArgument(addresses.status()));
    return;
  }
  DFL_CHECK(addresses->size() <= discovery::kMostAddressesInFile);
  DFL_CHECK(std::is_sorted(addresses->begin(), addresses->end()));
  for (const std::string& text : *addresses) {
    const auto address = ParseHostPort(text);
    DFL_CHECK(address.ok() && address->port > 0 && address->ToString() == text);
  }
  const auto again =
      discovery::ParseAddressFile(absl::StrJoin(*addresses, "\n"));
  DFL_CHECK(again.ok() && *again == *addresses);
}

}  // namespace dfl::fuzz
