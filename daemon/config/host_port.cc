#include "daemon/config/host_port.h"

#include <cstddef>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/config/values.h"

namespace dfl::config {
namespace {

absl::Status Wrong(absl::string_view why) {
  return absl::InvalidArgumentError(why);
}

}  // namespace

std::string HostPort::ToString() const {
  if (absl::StrContains(host, ":")) {
    return absl::StrCat("[", host, "]:", port);
  }
  return absl::StrCat(host, ":", port);
}

absl::StatusOr<HostPort> ParseHostPort(absl::string_view text) {
  HostPort result;
  absl::string_view port;
  bool bracketed = false;
  if (absl::StartsWith(text, "[")) {
    const size_t end = text.find("]:");
    if (end == absl::string_view::npos) {
      return Wrong("an IPv6 address is written [address]:port");
    }
    result.host = std::string(text.substr(1, end - 1));
    port = text.substr(end + 2);
    bracketed = true;
  } else {
    const size_t colon = text.rfind(':');
    if (colon == absl::string_view::npos) return Wrong("it has no port");
    result.host = std::string(text.substr(0, colon));
    port = text.substr(colon + 1);
    if (absl::StrContains(result.host, ":")) {
      return Wrong("an IPv6 address is written [address]:port");
    }
  }
  if (result.host.empty()) return Wrong("it has no host before the port");
  if (result.host.size() > 253) return Wrong("its host is too long");
  for (const char c : result.host) {
    const auto u = static_cast<unsigned char>(c);
    const bool fits =
        bracketed ? absl::ascii_isxdigit(u) || c == ':' || c == '.' ||
                        c == '%' || absl::ascii_isalnum(u)
                  : absl::ascii_isalnum(u) || c == '-' || c == '_' || c == '.';
    if (!fits) {
      return Wrong(absl::StrCat("a host has no ",
                                Quoted(absl::string_view(&c, 1)), " in it"));
    }
  }
  const std::optional<uint64_t> number =
      port.empty() || !absl::ascii_isdigit(static_cast<unsigned char>(port[0]))
          ? std::nullopt
          : ReadUnsigned(port);
  if (!number.has_value() || *number > 65535) {
    return Wrong(absl::StrCat("port ", Quoted(port), " is not in 0 to 65535"));
  }
  result.port = static_cast<uint16_t>(*number);
  return result;
}

bool IsWildcard(absl::string_view host) {
  return host == "0.0.0.0" || host == "::" || host == "0" || host == "::0";
}

bool IsLoopback(absl::string_view host) {
  return absl::StartsWith(host, "127.") || host == "::1" ||
         absl::EqualsIgnoreCase(host, "localhost");
}

}  // namespace dfl::config
