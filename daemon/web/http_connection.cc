#include "daemon/web/http_connection.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "daemon/base/host_port.h"
#include "daemon/threads/steady_cond_var.h"

namespace dfl::web {
namespace {

struct Place {
  std::string host;
  int port = 0;
  bool loopback = false;
};

Place PlaceOf(const sockaddr_storage& address) {
  Place place;
  char text[INET6_ADDRSTRLEN] = "";
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    inet_ntop(AF_INET, &v4.sin_addr, text, sizeof(text));
    place.port = ntohs(v4.sin_port);
    place.loopback = (ntohl(v4.sin_addr.s_addr) >> 24) == 127;
  } else if (address.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    place.port = ntohs(v6.sin6_port);
    if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
      inet_ntop(AF_INET, &v6.sin6_addr.s6_addr[12], text, sizeof(text));
      place.loopback = v6.sin6_addr.s6_addr[12] == 127;
    } else {
      inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof(text));
      place.loopback = IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
    }
  }
  place.host = text;
  return place;
}

}  // namespace

HttpConnection::HttpConnection(int fd, absl::Duration patience)
    : fd_(fd), patience_(patience), deadline_(absl::InfinitePast()) {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) == 0) {
    loopback_ = PlaceOf(address).loopback;
  }
  length = sizeof(address);
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&address), &length) == 0) {
    const Place place = PlaceOf(address);
    remote_host_ = place.host;
    remote_port_ = place.port;
    // As net::BoundedAcceptor has it: without brackets.
    remote_ = absl::StrCat(place.host, ":", place.port);
  }
}

HttpConnection::~HttpConnection() {
  shutdown(fd_, SHUT_RDWR);  // the acceptor has a duplicate
  close(fd_);
}

bool HttpConnection::Poll(short events, absl::Time until) const {
  while (true) {
    const absl::Duration left = until - SteadyNow();
    if (left <= absl::ZeroDuration()) return false;
    pollfd entry = {fd_, events, 0};
    const int ready =
        poll(&entry, 1, static_cast<int>(absl::ToInt64Milliseconds(left)) + 1);
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

bool HttpConnection::AwaitRequest(absl::Duration idle) {
  if (begin_ == end_ && !Poll(POLLIN, SteadyNow() + idle)) return false;
  taken_ = 0;
  deadline_ = SteadyNow() + patience_;
  return begin_ < end_ || Fill();
}

bool HttpConnection::Gone() const {
  pollfd entry = {fd_, POLLRDHUP, 0};
  return poll(&entry, 1, 0) > 0;
}

bool HttpConnection::Fill() {
  while (true) {
    if (!Poll(POLLIN, deadline_)) return false;
    const ssize_t got = recv(fd_, buffer_.data(), buffer_.size(), 0);
    if (got > 0) {
      begin_ = 0;
      end_ = static_cast<size_t>(got);
      return true;
    }
    if (got == 0 || (errno != EAGAIN && errno != EINTR)) return false;
  }
}

bool HttpConnection::is_readable() const {
  return begin_ < end_ || Poll(POLLIN, deadline_);
}

bool HttpConnection::is_writable() const {
  return Poll(POLLOUT, SteadyNow() + patience_) && !Gone();
}

ssize_t HttpConnection::read(char* data, size_t size) {
  if (begin_ == end_ && !Fill()) return -1;
  const size_t part = std::min(size, end_ - begin_);
  if (taken_ + part > kMaxRequestBytes) return -1;
  std::memcpy(data, buffer_.data() + begin_, part);
  begin_ += part;
  taken_ += part;
  return static_cast<ssize_t>(part);
}

ssize_t HttpConnection::write(const char* data, size_t size) {
  size_t sent = 0;
  while (sent < size) {
    const ssize_t part = send(fd_, data + sent, size - sent, MSG_NOSIGNAL);
    if (part > 0) {
      sent += static_cast<size_t>(part);
      continue;
    }
    if (part < 0 && errno != EAGAIN && errno != EINTR) return -1;
    if (!Poll(POLLOUT, SteadyNow() + patience_)) return -1;
  }
  return static_cast<ssize_t>(size);
}

void HttpConnection::get_remote_ip_and_port(std::string& ip, int& port) const {
  ip = remote_host_;
  port = remote_port_;
}

void HttpConnection::get_local_ip_and_port(std::string& ip, int& port) const {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  if (getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    return;
  }
  const Place place = PlaceOf(address);
  ip = place.host;
  port = place.port;
}

}  // namespace dfl::web
