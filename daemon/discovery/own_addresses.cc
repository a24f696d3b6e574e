#include "daemon/discovery/own_addresses.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/base/host_port.h"
#include "daemon/base/status_macros.h"

namespace dfl::discovery {
namespace {

bool IsV6(absl::string_view host) { return absl::StrContains(host, ':'); }

// Of bridges and virtual links that are this machine's own.
bool IsOfThisMachineOnly(const std::string& interface) {
  for (const char* prefix :
       {"docker", "br-", "virbr", "veth", "cni", "podman", "lxcbr", "lxdbr",
        "flannel", "cali", "vnet", "vmnet", "vboxnet"}) {
    if (absl::StartsWith(interface, prefix)) return true;
  }
  return false;
}

// The smaller the better.
int RankOf(const InterfaceAddress& entry) {
  const absl::string_view host = entry.address;
  const bool v4_link_local = absl::StartsWith(host, "169.254.");
  return (IsOfThisMachineOnly(entry.interface) ? 8 : 0) +
         (v4_link_local ? 4 : 0) + (IsV6(host) ? 1 : 0);
}

// What a wildcard listener is reached by. One of IPv6 takes IPv4 as well.
std::vector<InterfaceAddress> BehindWildcard(
    const std::string& wildcard,
    const std::vector<InterfaceAddress>& interfaces) {
  std::vector<InterfaceAddress> found;
  for (const InterfaceAddress& entry : interfaces) {
    if (IsV6(entry.address) && !IsV6(wildcard)) continue;
    found.push_back(entry);
  }
  return found;
}

void AddOnce(std::vector<std::string>& list, std::string address) {
  if (std::find(list.begin(), list.end(), address) == list.end()) {
    list.push_back(std::move(address));
  }
}

absl::StatusOr<std::vector<HostPort>> Parse(
    const std::vector<std::string>& bound) {
  std::vector<HostPort> parsed;
  for (const std::string& address : bound) {
    DFL_ASSIGN_OR_RETURN(HostPort listener, ParseHostPort(address));
    parsed.push_back(std::move(listener));
  }
  return parsed;
}

// peer.advertise, checked against what is listened on.
absl::StatusOr<std::vector<std::string>> Advertised(
    const std::string& advertise, const std::vector<HostPort>& bound,
    bool loopback_only) {
  DFL_ASSIGN_OR_RETURN(HostPort address, ParseHostPort(advertise));
  if (address.port == 0) {
    if (bound.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "peer.advertise: found \"", advertise,
          "\"; allowed: an address with a port, for peer.listen is empty and "
          "gives none"));
    }
    address.port = bound.front().port;
  }
  if (IsLoopback(address.host) && !loopback_only) {
    return absl::InvalidArgumentError(absl::StrCat(
        "peer.advertise: found \"", advertise,
        "\", which other machines take for themselves; allowed: an address by "
        "which they reach this one, or peer.listen on loopback only"));
  }
  return std::vector<std::string>{address.ToString()};
}

}  // namespace

bool IsLinkLocalV6(absl::string_view host) {
  in6_addr v6 = {};
  const std::string text(host.substr(0, host.find('%')));
  return inet_pton(AF_INET6, text.c_str(), &v6) == 1 &&
         IN6_IS_ADDR_LINKLOCAL(&v6);
}

absl::StatusOr<std::vector<InterfaceAddress>> SystemInterfaces() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) {
    return absl::InternalError(absl::StrCat(
        "the network interfaces cannot be listed: ", std::strerror(errno)));
  }
  std::vector<InterfaceAddress> found;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0) {
      continue;
    }
    const int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    char text[NI_MAXHOST] = {};
    const socklen_t length =
        family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    if (getnameinfo(entry->ifa_addr, length, text, sizeof(text), nullptr, 0,
                    NI_NUMERICHOST) != 0) {
      continue;
    }
    const absl::string_view address(text);
    found.push_back(
        {entry->ifa_name, std::string(address.substr(0, address.find('%')))});
  }
  freeifaddrs(list);
  return found;
}

absl::StatusOr<std::vector<std::string>> FindOwnAddresses(
    const Listeners& listeners,
    const std::vector<InterfaceAddress>& interfaces) {
  std::vector<std::string> told;
  std::vector<std::string> on_link;  // of IPv6, without zone
  const bool wanted = listeners.dialable.value_or(!listeners.bound.empty() ||
                                                  !listeners.advertise.empty());
  if (!wanted) return told;
  DFL_ASSIGN_OR_RETURN(const std::vector<HostPort> bound,
                       Parse(listeners.bound));
  const bool loopback_only = std::all_of(
      bound.begin(), bound.end(),
      [](const HostPort& listener) { return IsLoopback(listener.host); });
  if (!listeners.advertise.empty()) {
    return Advertised(listeners.advertise, bound, loopback_only);
  }
  if (bound.empty()) {
    return absl::InvalidArgumentError(
        "peer.dialable: found on; allowed: beside peer.listen, which is empty, "
        "or peer.advertise");
  }
  // In the order of the listeners, within one by rank.
  for (const HostPort& listener : bound) {
    std::vector<InterfaceAddress> here;
    if (IsWildcard(listener.host)) {
      here = BehindWildcard(listener.host, interfaces);
      std::stable_sort(
          here.begin(), here.end(),
          [](const auto& a, const auto& b) { return RankOf(a) < RankOf(b); });
      // Bridges of this machine only where there is nothing else.
      const auto local = std::find_if(
          here.begin(), here.end(), [](const InterfaceAddress& entry) {
            return IsOfThisMachineOnly(entry.interface);
          });
      const bool others =
          std::any_of(here.begin(), local, [](const InterfaceAddress& entry) {
            return !IsLoopback(entry.address) && !IsLinkLocalV6(entry.address);
          });
      if (others) here.erase(local, here.end());
    } else {
      here = {{"", listener.host}};
    }
    for (const InterfaceAddress& entry : here) {
      const std::string address =
          HostPort{entry.address, listener.port}.ToString();
      if (IsLinkLocalV6(entry.address)) {
        AddOnce(on_link,
                HostPort{entry.address.substr(0, entry.address.find('%')),
                         listener.port}
                    .ToString());
      } else if (IsLoopback(entry.address) == loopback_only) {
        AddOnce(told, address);
      }
    }
  }
  if (told.empty()) told = std::move(on_link);
  if (told.size() > kMostOwnAddresses) told.resize(kMostOwnAddresses);
  if (told.empty()) {
    return absl::UnavailableError(absl::StrCat(
        "peer.advertise: found nothing, and no interface that is up has an "
        "address by which others could reach peer.listen (",
        absl::StrJoin(listeners.bound, ", "),
        "); set peer.advertise to one, or peer.dialable: off for a node that "
        "only dials out"));
  }
  return told;
}

std::set<std::string> SelfAddresses(
    const Listeners& listeners,
    const std::vector<InterfaceAddress>& interfaces) {
  std::set<std::string> all;
  for (const std::string& address : listeners.bound) {
    const auto listener = ParseHostPort(address);
    if (!listener.ok()) continue;
    all.insert(listener->ToString());
    if (!IsWildcard(listener->host)) continue;
    for (const InterfaceAddress& entry :
         BehindWildcard(listener->host, interfaces)) {
      all.insert(HostPort{entry.address, listener->port}.ToString());
      if (IsLinkLocalV6(entry.address)) {
        all.insert(HostPort{absl::StrCat(entry.address, "%", entry.interface),
                            listener->port}
                       .ToString());
      }
    }
  }
  const auto own = FindOwnAddresses(listeners, interfaces);
  if (own.ok()) all.insert(own->begin(), own->end());
  return all;
}

}  // namespace dfl::discovery
