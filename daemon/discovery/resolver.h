// Names to addresses, as this machine resolves them.
#ifndef DFL_DISCOVERY_RESOLVER_H_
#define DFL_DISCOVERY_RESOLVER_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/base/host_port.h"

namespace dfl::discovery {

// Both block. Thread-safe.
struct Resolver {
  // All addresses of a host, in numbers; a link-local one with its zone.
  // Errors: NOT_FOUND: the name is not known, or has no address; UNAVAILABLE:
  // it cannot be looked up now. The text is the cause alone.
  std::function<absl::StatusOr<std::vector<std::string>>(
      const std::string& host)>
      addresses;
  // Hosts and ports of a DNS service, "_dfl._tcp.example.org".
  // Errors: as addresses.
  std::function<absl::StatusOr<std::vector<HostPort>>(
      const std::string& service)>
      services;
};

// Addresses come from getaddrinfo, so that what `getent ahosts` knows is
// known: /etc/hosts, DNS, mDNS and whatever else nsswitch.conf names. Services
// come from glibc's own resolver (res_nquery), which reads the same
// resolv.conf as getaddrinfo and needs no further library; it is read anew at
// each look, as containers and DHCP change it.
Resolver SystemResolver();

// The services in a DNS answer, in the order of priority and weight.
// Errors: INVALID_ARGUMENT: the answer is malformed; NOT_FOUND: it has none.
absl::StatusOr<std::vector<HostPort>> ParseServices(
    absl::Span<const unsigned char> answer);

}  // namespace dfl::discovery

#endif  // DFL_DISCOVERY_RESOLVER_H_
