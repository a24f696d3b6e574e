// What a node announces on the local network (DNS-SD, _dfl._tcp), and what of
// it others take for candidates.
//
//   instance   the node's name, or "NAME #2" where another has it
//   TXT        v=1, cluster=NAME, node=NAME, and up to eight a=HOST:PORT, the
//              addresses in numbers by which the node is reached
#ifndef DFL_DISCOVERY_MDNS_SERVICE_H_
#define DFL_DISCOVERY_MDNS_SERVICE_H_

#include <compare>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace dfl::discovery {

inline constexpr char kMdnsType[] = "_dfl._tcp";
// Of one service.
inline constexpr size_t kMostMdnsAddresses = 8;
// The services that are looked at; anybody on the network can announce more.
inline constexpr size_t kMostMdnsServices = 1024;

struct MdnsService {
  std::string cluster;
  std::string node;
  // host:port in numbers; a link-local one without zone.
  std::vector<std::string> addresses;
};

// INVALID_ARGUMENT where the cluster's name is too long for a TXT record.
absl::Status ValidateForMdns(const MdnsService& service);

// The strings of its TXT record. `service` must be valid.
std::vector<std::string> TxtOf(const MdnsService& service);

// The candidates that a TXT record of anybody names: none unless it is of
// `cluster` and of another node than `self`. What is no address in numbers, a
// wildcard, loopback or multicast is left out. `zone` is the interface that it
// was heard on.
std::vector<std::string> CandidatesOf(const std::vector<std::string>& txt,
                                      absl::string_view cluster,
                                      absl::string_view self,
                                      absl::string_view zone);

// A service as it was heard: on an interface, by IPv4 or IPv6.
struct MdnsKey {
  int interface = 0;
  int protocol = 0;
  std::string instance;
  std::string type;
  std::string domain;

  friend auto operator<=>(const MdnsKey&, const MdnsKey&) = default;
};

}  // namespace dfl::discovery

#endif  // DFL_DISCOVERY_MDNS_SERVICE_H_
