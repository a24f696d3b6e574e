// A TCP forwarder on loopback that cuts after so many bytes: a link that dies
// at a chosen place.
#ifndef DFL_TESTS_SUPPORT_TCP_PROXY_H_
#define DFL_TESTS_SUPPORT_TCP_PROXY_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>

namespace dfl::testing_support {

class TcpProxy {
 public:
  // Forwards connections to `target` ("127.0.0.1:port").
  explicit TcpProxy(const std::string& target);
  ~TcpProxy();
  TcpProxy(const TcpProxy&) = delete;
  TcpProxy& operator=(const TcpProxy&) = delete;

  // "127.0.0.1:port", to be dialled instead of the target.
  const std::string& address() const { return address_; }

  // Cuts every connection once `bytes` more have come back from the target, and
  // takes no new ones.
  void CutAfter(int64_t bytes) { cut_at_ = from_target_ + bytes; }
  bool cut() const { return cut_; }

 private:
  void Run();

  std::string address_;
  int target_port_ = 0;
  int listener_ = -1;
  std::atomic<int64_t> from_target_{0};
  std::atomic<int64_t> cut_at_;
  std::atomic<bool> cut_{false};
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace dfl::testing_support

#endif  // DFL_TESTS_SUPPORT_TCP_PROXY_H_
