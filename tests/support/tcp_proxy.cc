#include "tests/support/tcp_proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <limits>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/check.h"

namespace dfl::testing_support {
namespace {

sockaddr_in Loopback(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// Two sockets that are forwarded to each other.
struct Pair {
  int client = -1;
  int target = -1;
};

// Passes on what is there; the number of bytes, 0 when a side has ended.
int64_t Forward(int from, int to) {
  char buffer[65536];
  const ssize_t got = recv(from, buffer, sizeof(buffer), 0);
  if (got <= 0) return 0;
  ssize_t sent = 0;
  while (sent < got) {
    const ssize_t n = send(to, buffer + sent, got - sent, MSG_NOSIGNAL);
    if (n <= 0) return 0;
    sent += n;
  }
  return got;
}

}  // namespace

TcpProxy::TcpProxy(const std::string& target)
    : cut_at_(std::numeric_limits<int64_t>::max()) {
  DFL_CHECK(
      absl::SimpleAtoi(target.substr(target.rfind(':') + 1), &target_port_));
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = Loopback(0);
  DFL_CHECK(bind(listener_, reinterpret_cast<sockaddr*>(&address),
                 sizeof(address)) == 0);
  DFL_CHECK(listen(listener_, 16) == 0);
  socklen_t length = sizeof(address);
  getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length);
  address_ = absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
  thread_ = std::thread([this] { Run(); });
}

TcpProxy::~TcpProxy() {
  stopping_ = true;
  thread_.join();
  close(listener_);
}

void TcpProxy::Run() {
  std::vector<Pair> pairs;
  const auto close_all = [&pairs] {
    for (const Pair& pair : pairs) {
      close(pair.client);
      close(pair.target);
    }
    pairs.clear();
  };
  while (!stopping_) {
    if (from_target_ >= cut_at_ && !cut_) {
      close_all();
      cut_ = true;
    }
    std::vector<pollfd> fds = {{listener_, POLLIN, 0}};
    for (const Pair& pair : pairs) {
      fds.push_back({pair.client, POLLIN, 0});
      fds.push_back({pair.target, POLLIN, 0});
    }
    if (poll(fds.data(), fds.size(), 50) <= 0) continue;
    std::vector<Pair> kept;
    for (size_t i = 0; i < pairs.size(); ++i) {
      bool alive = true;
      if (fds[1 + 2 * i].revents != 0) {
        alive = Forward(pairs[i].client, pairs[i].target) > 0;
      }
      if (alive && fds[2 + 2 * i].revents != 0) {
        const int64_t bytes = Forward(pairs[i].target, pairs[i].client);
        from_target_ += bytes;
        alive = bytes > 0;
      }
      if (alive) {
        kept.push_back(pairs[i]);
      } else {
        close(pairs[i].client);
        close(pairs[i].target);
      }
    }
    pairs = kept;
    if (fds[0].revents != 0) {
      Pair pair;
      pair.client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      pair.target = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      sockaddr_in address = Loopback(target_port_);
      if (cut_ || connect(pair.target, reinterpret_cast<sockaddr*>(&address),
                          sizeof(address)) != 0) {
        close(pair.client);
        close(pair.target);
      } else {
        pairs.push_back(pair);
      }
    }
  }
  close_all();
}

}  // namespace dfl::testing_support
