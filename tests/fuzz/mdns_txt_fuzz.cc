// The TXT record of a service that somebody announces on the local network: one
// string a line.
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "daemon/base/check.h"
#include "daemon/base/host_port.h"
#include "daemon/discovery/mdns_service.h"
#include "tests/fuzz/fuzz_target.h"

namespace dfl::fuzz {

DFL_FUZZ_TARGET(mdns_txt)(absl::string_view bytes) {
  const std::vector<std::string> txt = absl::StrSplit(bytes, '\n');
  const std::vector<std::string> candidates =
      discovery::CandidatesOf(txt, "plant", "self", "eth0");
  DFL_CHECK(candidates.size() <= discovery::kMostMdnsAddresses);
  for (const std::string& candidate : candidates) {
    const auto address = ParseHostPort(candidate);
    DFL_CHECK(address.ok() && address->port > 0);
    DFL_CHECK(!IsWildcard(address->host) && !IsLoopback(address->host));
  }
}

}  // namespace dfl::fuzz
