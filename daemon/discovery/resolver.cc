#include "daemon/discovery/resolver.h"

#include <arpa/nameser.h>
#include <netdb.h>
#include <resolv.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <tuple>
#include <utility>

#include "absl/status/status.h"

namespace dfl::discovery {
namespace {

absl::StatusOr<std::vector<std::string>> SystemAddresses(
    const std::string& host) {
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int failed = getaddrinfo(host.c_str(), nullptr, &hints, &list);
  if (failed != 0) {
    const bool unknown = failed == EAI_NONAME || failed == EAI_NODATA;
    return absl::Status(
        unknown ? absl::StatusCode::kNotFound : absl::StatusCode::kUnavailable,
        gai_strerror(failed));
  }
  std::vector<std::string> addresses;
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    char text[NI_MAXHOST] = {};
    if (getnameinfo(entry->ai_addr, entry->ai_addrlen, text, sizeof(text),
                    nullptr, 0, NI_NUMERICHOST) == 0) {
      addresses.emplace_back(text);
    }
  }
  freeaddrinfo(list);
  return addresses;
}

// A resolver's state, from resolv.conf as it is now.
class ResolverState {
 public:
  ResolverState() : ok_(res_ninit(&state_) == 0) {}
  ~ResolverState() {
    if (ok_) res_nclose(&state_);
  }
  ResolverState(const ResolverState&) = delete;
  ResolverState& operator=(const ResolverState&) = delete;

  bool ok() const { return ok_; }
  res_state get() { return &state_; }

 private:
  struct __res_state state_ = {};
  const bool ok_;
};

absl::StatusOr<std::vector<HostPort>> SystemServices(
    const std::string& service) {
  ResolverState state;
  if (!state.ok()) {
    return absl::UnavailableError("the system's resolver cannot be set up");
  }
  std::vector<unsigned char> answer(NS_MAXMSG);
  const int size = res_nquery(state.get(), service.c_str(), ns_c_in, ns_t_srv,
                              answer.data(), static_cast<int>(answer.size()));
  if (size < 0) {
    const int cause = state.get()->res_h_errno;
    const bool unknown = cause == HOST_NOT_FOUND || cause == NO_DATA;
    return absl::Status(
        unknown ? absl::StatusCode::kNotFound : absl::StatusCode::kUnavailable,
        unknown ? "no such service is known" : "no name server answers");
  }
  answer.resize(std::min<size_t>(answer.size(), size));
  return ParseServices(answer);
}

}  // namespace

absl::StatusOr<std::vector<HostPort>> ParseServices(
    absl::Span<const unsigned char> answer) {
  const absl::Status malformed =
      absl::InvalidArgumentError("the name server's answer is malformed");
  ns_msg message;
  if (ns_initparse(answer.data(), static_cast<int>(answer.size()), &message) !=
      0) {
    return malformed;
  }
  // Priority up, weight down, then by name: the same order each time.
  std::vector<std::tuple<int, int, std::string, int>> found;
  for (int i = 0; i < ns_msg_count(message, ns_s_an); ++i) {
    ns_rr record;
    if (ns_parserr(&message, ns_s_an, i, &record) != 0) return malformed;
    if (ns_rr_type(record) != ns_t_srv) continue;
    constexpr int kFixed = 6;  // priority, weight, port
    if (ns_rr_rdlen(record) <= kFixed) return malformed;
    const unsigned char* data = ns_rr_rdata(record);
    char host[NS_MAXDNAME] = {};
    if (ns_name_uncompress(ns_msg_base(message), ns_msg_end(message),
                           data + kFixed, host, sizeof(host)) < 0) {
      return malformed;
    }
    const int port = static_cast<int>(ns_get16(data + 4));
    // "." says that the service is decidedly not there.
    if (port == 0 || host[0] == '\0' || std::strcmp(host, ".") == 0) continue;
    found.emplace_back(static_cast<int>(ns_get16(data)),
                       -static_cast<int>(ns_get16(data + 2)), host, port);
  }
  if (found.empty()) return absl::NotFoundError("no such service is known");
  std::sort(found.begin(), found.end());
  std::vector<HostPort> services;
  for (const auto& [priority, weight, host, port] : found) {
    services.push_back({host, port});
  }
  return services;
}

Resolver SystemResolver() { return {SystemAddresses, SystemServices}; }

}  // namespace dfl::discovery
