// "host:port" as people write it: a name, an IPv4 address, or an IPv6 address
// in brackets, with a zone where it is link-local. Everything is inline: the
// installed client library uses it and carries no other room with it.
#ifndef DFL_BASE_HOST_PORT_H_
#define DFL_BASE_HOST_PORT_H_

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace dfl {

// What an error about an address tells people to write.
inline constexpr absl::string_view kHostPortForms =
    "write host:port, e.g. gateway-1:7400, 192.0.2.7:7400 or "
    "[2001:db8::7]:7400";

struct HostPort {
  std::string host;  // an IPv6 address has no brackets here
  int port = 0;      // 0 to 65535

  // "box-2:7600", "[fd00::2]:7600".
  std::string ToString() const {
    return absl::StrContains(host, ":") ? absl::StrCat("[", host, "]:", port)
                                        : absl::StrCat(host, ":", port);
  }
};

namespace host_port_internal {

// The IPv6 address before the zone that may follow it. False: it is none.
inline bool ParseV6(absl::string_view host, in6_addr& v6) {
  const std::string address(host.substr(0, host.find('%')));
  return inet_pton(AF_INET6, address.c_str(), &v6) == 1;
}

// What stands in brackets.
inline absl::Status CheckV6(absl::string_view host) {
  in6_addr v6 = {};
  const size_t percent = host.find('%');
  if (!ParseV6(host, v6)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", host.substr(0, percent), "\" in brackets is no IPv6 address"));
  }
  if (percent == absl::string_view::npos) return absl::OkStatus();
  constexpr size_t kLongestZone = 15;  // IF_NAMESIZE without its end
  const absl::string_view zone = host.substr(percent + 1);
  if (zone.empty() || zone.size() > kLongestZone ||
      absl::StrContains(zone, "%") || absl::StrContains(zone, ":")) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", zone, "\" behind % is no name of an interface"));
  }
  return absl::OkStatus();
}

inline absl::Status CheckHost(absl::string_view host, bool bracketed) {
  constexpr size_t kLongestName = 253;  // RFC 1035
  if (host.empty()) {
    return absl::InvalidArgumentError("it has no host before the port");
  }
  if (host.size() > kLongestName) {
    return absl::InvalidArgumentError("its host is too long");
  }
  for (const char c : host) {
    const bool fits = absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
                      absl::StrContains(bracketed ? ":%-_." : "-_.", c);
    if (!fits) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a host has no \"", absl::Utf8SafeCEscape(absl::string_view(&c, 1)),
          "\" in it"));
    }
  }
  return bracketed ? CheckV6(host) : absl::OkStatus();
}

}  // namespace host_port_internal

// Errors: INVALID_ARGUMENT says what is wrong: there is no port, the port is
// not in 0 to 65535, an IPv6 address has no brackets, something else has them,
// or a character is in no host's name. Callers put the address in front, under
// the name it has for their users, and kHostPortForms behind.
inline absl::StatusOr<HostPort> ParseHostPort(absl::string_view text) {
  constexpr absl::string_view kBrackets =
      "an IPv6 address is written [address]:port";
  const bool bracketed = absl::StartsWith(text, "[");
  const size_t colon = bracketed ? text.find("]:") : text.rfind(':');
  if (colon == absl::string_view::npos) {
    return absl::InvalidArgumentError(bracketed ? kBrackets : "it has no port");
  }
  HostPort result;
  result.host = std::string(bracketed ? text.substr(1, colon - 1)
                                      : text.substr(0, colon));
  if (!bracketed && absl::StrContains(result.host, ":")) {
    return absl::InvalidArgumentError(kBrackets);
  }
  const absl::Status host =
      host_port_internal::CheckHost(result.host, bracketed);
  if (!host.ok()) return host;
  const absl::string_view port = text.substr(colon + (bracketed ? 2 : 1));
  constexpr int kLargestPort = 65535;
  if (port.empty() ||
      port.find_first_not_of("0123456789") != absl::string_view::npos ||
      !absl::SimpleAtoi(port, &result.port) || result.port > kLargestPort) {
    return absl::InvalidArgumentError(absl::StrCat(
        "port \"", absl::Utf8SafeCEscape(port), "\" is not in 0 to 65535"));
  }
  return result;
}

// True for 0.0.0.0, [::] and the like, which can be listened on and not
// dialled.
inline bool IsWildcard(absl::string_view host) {
  in_addr v4 = {};
  if (inet_aton(std::string(host).c_str(), &v4) != 0) {
    return v4.s_addr == INADDR_ANY;
  }
  in6_addr v6 = {};
  return host_port_internal::ParseV6(host, v6) && IN6_IS_ADDR_UNSPECIFIED(&v6);
}

// True for what means the machine itself wherever it is read: 127.0.0.0/8, ::1
// and localhost.
inline bool IsLoopback(absl::string_view host) {
  const std::string lower = absl::AsciiStrToLower(host);
  if (lower == "localhost" || absl::EndsWith(lower, ".localhost")) return true;
  in_addr v4 = {};
  if (inet_aton(lower.c_str(), &v4) != 0) {
    return (ntohl(v4.s_addr) >> 24) == IN_LOOPBACKNET;
  }
  in6_addr v6 = {};
  return host_port_internal::ParseV6(lower, v6) &&
         (IN6_IS_ADDR_LOOPBACK(&v6) ||
          (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == IN_LOOPBACKNET));
}

}  // namespace dfl

#endif  // DFL_BASE_HOST_PORT_H_
