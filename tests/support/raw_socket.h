// A TCP connection of a test, byte by byte.
#ifndef DFL_TESTS_SUPPORT_RAW_SOCKET_H_
#define DFL_TESTS_SUPPORT_RAW_SOCKET_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "daemon/base/host_port.h"
#include "gtest/gtest.h"

namespace dfl::testing_support {

class RawSocket {
 public:
  // Connects to `address`, "127.0.0.1:7400" or "[::1]:7400", from `source`, an
  // IPv4 address of this machine, or any.
  explicit RawSocket(const std::string& address,
                     const std::string& source = "") {
    const HostPort target = *ParseHostPort(address);
    const bool six = target.host.find(':') != std::string::npos;
    fd_ = socket(six ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (!source.empty()) {
      sockaddr_in from{};
      from.sin_family = AF_INET;
      inet_pton(AF_INET, source.c_str(), &from.sin_addr);
      EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&from), sizeof(from)), 0);
    }
    sockaddr_storage to{};
    if (six) {
      auto& address6 = reinterpret_cast<sockaddr_in6&>(to);
      address6.sin6_family = AF_INET6;
      address6.sin6_port = htons(target.port);
      inet_pton(AF_INET6, target.host.c_str(), &address6.sin6_addr);
    } else {
      auto& address4 = reinterpret_cast<sockaddr_in&>(to);
      address4.sin_family = AF_INET;
      address4.sin_port = htons(target.port);
      inet_pton(AF_INET, target.host.c_str(), &address4.sin_addr);
    }
    connected_ = connect(fd_, reinterpret_cast<sockaddr*>(&to),
                         six ? sizeof(sockaddr_in6) : sizeof(sockaddr_in)) == 0;
  }
  ~RawSocket() { close(fd_); }
  RawSocket(const RawSocket&) = delete;
  RawSocket& operator=(const RawSocket&) = delete;

  bool connected() const { return connected_; }
  int fd() const { return fd_; }

  bool Send(absl::string_view bytes) const {
    return send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(bytes.size());
  }
  // Whether the other end ends the connection within 10 s. What comes before is
  // thrown away.
  bool WaitForEnd() const {
    char buffer[4096];
    pollfd wait = {fd_, POLLIN, 0};
    while (poll(&wait, 1, 10'000) > 0) {
      if (recv(fd_, buffer, sizeof(buffer), 0) <= 0) return true;
    }
    return false;
  }
  bool IsOpen() const {
    char byte;
    const ssize_t got = recv(fd_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
  }
  // As gRPC names it: "ipv4:127.0.0.1:4711".
  std::string GrpcName() const {
    sockaddr_storage own{};
    socklen_t length = sizeof(own);
    getsockname(fd_, reinterpret_cast<sockaddr*>(&own), &length);
    if (own.ss_family == AF_INET6) {
      return absl::StrCat(
          "ipv6:%5B::1%5D:",
          ntohs(reinterpret_cast<sockaddr_in6&>(own).sin6_port));
    }
    const auto& own4 = reinterpret_cast<sockaddr_in&>(own);
    return absl::StrCat("ipv4:", inet_ntoa(own4.sin_addr), ":",
                        ntohs(own4.sin_port));
  }

 private:
  int fd_ = -1;
  bool connected_ = false;
};

}  // namespace dfl::testing_support

#endif  // DFL_TESTS_SUPPORT_RAW_SOCKET_H_
