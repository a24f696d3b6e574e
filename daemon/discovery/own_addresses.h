// Where others reach this node: what it says of itself in Hellos, in its facts
// as a member, and by mDNS.
//
//   `peer.advertise`      holds, whatever is listened on
//   a listener of one     that address; a loopback one only if all listeners
//   address               are loopback, for a network on one machine
//   a wildcard listener   the addresses of the interfaces that are up
//
// Never told: 0.0.0.0 and [::], port 0, and loopback to other machines. Of the
// interfaces those of bridges that containers and virtual machines have on
// this machine alone are left out (docker0, br-*, virbr*, ...): other machines
// have the same addresses there. They are taken where there is no other. So are
// link-local addresses of IPv6, without a zone: receivers by mDNS add theirs.
#ifndef DFL_DISCOVERY_OWN_ADDRESSES_H_
#define DFL_DISCOVERY_OWN_ADDRESSES_H_

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace dfl::discovery {

// The most addresses that are told.
inline constexpr size_t kMostOwnAddresses = 4;

// One address of an interface that is up.
struct InterfaceAddress {
  std::string interface;  // "eth0"
  std::string address;    // in numbers, without zone

  friend bool operator==(const InterfaceAddress&,
                         const InterfaceAddress&) = default;
};

// Errors: INTERNAL.
absl::StatusOr<std::vector<InterfaceAddress>> SystemInterfaces();

struct Listeners {
  // host:port as bound, the port not 0.
  std::vector<std::string> bound;
  // The setting, port 0: that of the first listener; "": none.
  std::string advertise;
  // Whether others can dial this node; nullopt: if it listens.
  std::optional<bool> dialable;
};

// "host:port" by which others reach this node, the best first, at most
// kMostOwnAddresses; empty: it only dials out.
// Errors: INVALID_ARGUMENT names the setting that is wrong. UNAVAILABLE: it
// listens, and now there is no address by which others reach it; names the
// setting that says one.
absl::StatusOr<std::vector<std::string>> FindOwnAddresses(
    const Listeners& listeners,
    const std::vector<InterfaceAddress>& interfaces);

// All addresses at which this node itself answers, loopback included.
std::set<std::string> SelfAddresses(
    const Listeners& listeners,
    const std::vector<InterfaceAddress>& interfaces);

// fe80::/10: means something together with an interface only.
bool IsLinkLocalV6(absl::string_view host);

}  // namespace dfl::discovery

#endif  // DFL_DISCOVERY_OWN_ADDRESSES_H_
