// A name server's answer to the question for a service (SRV).
#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/types/span.h"
#include "daemon/base/check.h"
#include "daemon/discovery/resolver.h"
#include "tests/fuzz/fuzz_target.h"

namespace dfl::fuzz {

DFL_FUZZ_TARGET(dns_answer)(absl::string_view bytes) {
  const auto services = discovery::ParseServices(absl::MakeSpan(
      reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()));
  if (!services.ok()) {
    DFL_CHECK(absl::IsInvalidArgument(services.status()) ||
              absl::IsNotFound(services.status()));
    return;
  }
  // Each takes at least a byte of a name, ten of a record and seven of data.
  DFL_CHECK(!services->empty() && services->size() <= bytes.size() / 18);
  for (const HostPort& service : *services) {
    DFL_CHECK(0 < service.port && service.port <= 65535);
    DFL_CHECK(!service.host.empty());
    for (const char c : service.host) {
      DFL_CHECK(absl::ascii_isgraph(static_cast<unsigned char>(c)));
    }
  }
}

}  // namespace dfl::fuzz
