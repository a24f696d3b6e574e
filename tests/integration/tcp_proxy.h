// A TCP relay on loopback that can fall silent or reset what it carries: a
// network between two processes, gone bad.
#ifndef DFL_TESTS_INTEGRATION_TCP_PROXY_H_
#define DFL_TESTS_INTEGRATION_TCP_PROXY_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "daemon/exchange/address.h"
#include "gtest/gtest.h"

namespace dfl::exchange {

class TcpProxy {
 public:
  // Relays 127.0.0.1:address() to 127.0.0.1:`target_port`.
  explicit TcpProxy(int target_port) : target_port_(target_port) {
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = Loopback(0);
    EXPECT_EQ(
        bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof(address)),
        0);
    EXPECT_EQ(listen(listener_, 16), 0);
    socklen_t length = sizeof(address);
    getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { Relay(); });
  }
  ~TcpProxy() {
    stop_ = true;
    thread_.join();
    close(listener_);
  }
  TcpProxy(const TcpProxy&) = delete;
  TcpProxy& operator=(const TcpProxy&) = delete;

  std::string address() const {
    return HostPort{"127.0.0.1", port_}.ToString();
  }

  // How many pieces it has carried so far.
  int64_t carried() const { return carried_; }

  // The first bytes that the target answered, at most 64 KiB.
  std::string first_answer() const {
    absl::MutexLock lock(&mutex_);
    return first_answer_;
  }

  // Carries nothing more and says nothing.
  void Freeze() { frozen_ = true; }
  // Resets every connection, as the kernel does for a process that was killed.
  void Reset() { reset_ = true; }

 private:
  static sockaddr_in Loopback(int port) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    return address;
  }

  void Relay() {
    std::vector<std::pair<int, int>> pairs;
    while (!stop_) {
      if (reset_.exchange(false)) CloseAll(&pairs, /*reset=*/true);
      std::vector<pollfd> fds = {{listener_, POLLIN, 0}};
      if (!frozen_) {
        for (const auto& [a, b] : pairs) {
          fds.push_back({a, POLLIN, 0});
          fds.push_back({b, POLLIN, 0});
        }
      }
      if (poll(fds.data(), fds.size(), 5) <= 0) continue;
      for (size_t i = 1; i < fds.size(); ++i) {
        if (fds[i].revents == 0) continue;
        auto& pair = pairs[(i - 1) / 2];
        const int from = fds[i].fd;
        if (from < 0 || pair.first < 0) continue;
        Copy(from, from == pair.first ? pair.second : pair.first, &pair);
      }
      std::erase_if(pairs, [](const auto& pair) { return pair.first < 0; });
      if (fds[0].revents != 0) {
        const int inner = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        const sockaddr_in target = Loopback(target_port_);
        const int outer = accept(listener_, nullptr, nullptr);
        if (connect(inner, reinterpret_cast<const sockaddr*>(&target),
                    sizeof(target)) == 0) {
          pairs.emplace_back(outer, inner);
        } else {
          close(inner);
          close(outer);
        }
      }
    }
    CloseAll(&pairs, /*reset=*/false);
  }

  void Copy(int from, int to, std::pair<int, int>* pair) {
    char buffer[65536];
    const ssize_t got = read(from, buffer, sizeof(buffer));
    ssize_t sent = 0;
    while (got > 0 && sent < got) {
      const ssize_t n = send(to, buffer + sent, got - sent, MSG_NOSIGNAL);
      if (n <= 0) break;
      sent += n;
    }
    if (got > 0 && from == pair->second) {
      absl::MutexLock lock(&mutex_);
      if (first_answer_.empty()) first_answer_.assign(buffer, got);
    }
    if (got > 0 && sent == got) {
      ++carried_;
      return;
    }
    close(pair->first);
    close(pair->second);
    pair->first = -1;
  }

  static void CloseAll(std::vector<std::pair<int, int>>* pairs, bool reset) {
    for (const auto& [a, b] : *pairs) {
      for (const int fd : {a, b}) {
        const linger now = {1, 0};
        if (reset) setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
        close(fd);
      }
    }
    pairs->clear();
  }

  const int target_port_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<int64_t> carried_ = 0;
  std::atomic<bool> frozen_ = false;
  std::atomic<bool> reset_ = false;
  std::atomic<bool> stop_ = false;
  mutable absl::Mutex mutex_;
  std::string first_answer_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace dfl::exchange

#endif  // DFL_TESTS_INTEGRATION_TCP_PROXY_H_
