#include "daemon/discovery/mdns_service.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "daemon/base/host_port.h"
#include "daemon/discovery/own_addresses.h"

namespace dfl::discovery {
namespace {

constexpr size_t kMostTxtBytes = 255;  // RFC 6763, of one string
constexpr absl::string_view kVersion = "v=1";
constexpr absl::string_view kCluster = "cluster=";
constexpr absl::string_view kNode = "node=";
constexpr absl::string_view kAddress = "a=";

bool IsMulticast(const std::string& host) {
  in_addr v4 = {};
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) {
    return IN_MULTICAST(ntohl(v4.s_addr)) || v4.s_addr == INADDR_BROADCAST;
  }
  in6_addr v6 = {};
  return inet_pton(AF_INET6, host.c_str(), &v6) == 1 &&
         IN6_IS_ADDR_MULTICAST(&v6);
}

bool IsInNumbers(const std::string& host) {
  in6_addr parsed = {};
  return inet_pton(AF_INET, host.c_str(), &parsed) == 1 ||
         inet_pton(AF_INET6, host.c_str(), &parsed) == 1;
}

// The address to dial for one that was announced; "": none.
std::string Candidate(absl::string_view announced, absl::string_view zone) {
  auto address = ParseHostPort(announced);
  if (!address.ok() || address->port == 0 || !IsInNumbers(address->host) ||
      IsWildcard(address->host) || IsLoopback(address->host) ||
      IsMulticast(address->host)) {
    return "";
  }
  if (IsLinkLocalV6(address->host)) {
    if (zone.empty()) return "";
    absl::StrAppend(&address->host, "%", zone);
  }
  return address->ToString();
}

}  // namespace

absl::Status ValidateForMdns(const MdnsService& service) {
  const size_t most = kMostTxtBytes - kCluster.size();
  if (service.cluster.size() <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "cluster: found ", service.cluster.size(), " characters; allowed: ", most,
      " for a network that is announced by mDNS, or discovery.mdns: off"));
}

std::vector<std::string> TxtOf(const MdnsService& service) {
  std::vector<std::string> txt = {std::string(kVersion),
                                  absl::StrCat(kCluster, service.cluster),
                                  absl::StrCat(kNode, service.node)};
  for (const std::string& address : service.addresses) {
    if (txt.size() == 3 + kMostMdnsAddresses) break;
    txt.push_back(absl::StrCat(kAddress, address));
  }
  return txt;
}

std::vector<std::string> CandidatesOf(const std::vector<std::string>& txt,
                                      absl::string_view cluster,
                                      absl::string_view self,
                                      absl::string_view zone) {
  bool same_cluster = false;
  bool other_node = false;
  std::vector<std::string> candidates;
  for (absl::string_view entry : txt) {
    if (absl::ConsumePrefix(&entry, kCluster)) {
      same_cluster = entry == cluster;
    } else if (absl::ConsumePrefix(&entry, kNode)) {
      other_node = !entry.empty() && entry != self;
    } else if (absl::ConsumePrefix(&entry, kAddress) &&
               candidates.size() < kMostMdnsAddresses) {
      std::string candidate = Candidate(entry, zone);
      if (!candidate.empty()) candidates.push_back(std::move(candidate));
    }
  }
  if (!same_cluster || !other_node) return {};
  return candidates;
}

}  // namespace dfl::discovery
