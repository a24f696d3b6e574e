// One connection of the HTTP server: bytes in and out of a socket, each request
// and each answer bounded in size and in time. Room-internal.
#ifndef DFL_WEB_HTTP_CONNECTION_H_
#define DFL_WEB_HTTP_CONNECTION_H_

#include <array>
#include <cstddef>
#include <string>

#include "absl/time/time.h"
#include "httplib.h"

namespace dfl::web {

// What a request may have in all, head and body.
inline constexpr size_t kMaxRequestBytes = (16 << 10) + (64 << 10);

// Thread-compatible. Owns its socket, which does not block.
class HttpConnection final : public httplib::Stream {
 public:
  // `patience` is how long a request may take to arrive, and how long a reader
  // may take nothing of an answer.
  HttpConnection(int fd, absl::Duration patience);
  // Shuts the socket down and closes it.
  ~HttpConnection() override;
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  // Waits for the first byte of a request, at most `idle`; false: there is
  // none. The time and the size of the request count from here.
  bool AwaitRequest(absl::Duration idle);
  // Whether the other end has hung up.
  bool Gone() const;
  const std::string& remote() const { return remote_; }
  const std::string& remote_host() const { return remote_host_; }
  int remote_port() const { return remote_port_; }
  // Whether it came to a loopback address.
  bool loopback() const { return loopback_; }

  // httplib::Stream
  bool is_readable() const override;
  bool is_writable() const override;
  ssize_t read(char* data, size_t size) override;
  ssize_t write(const char* data, size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  int socket() const override { return fd_; }

 private:
  // Waits for `events` until `until`, by the steady clock.
  bool Poll(short events, absl::Time until) const;
  bool Fill();

  const int fd_;
  const absl::Duration patience_;
  bool loopback_ = false;
  std::string remote_host_;
  int remote_port_ = 0;
  std::string remote_;
  absl::Time deadline_;
  size_t taken_ = 0;  // of the present request
  std::array<char, 4096> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
};

}  // namespace dfl::web

#endif  // DFL_WEB_HTTP_CONNECTION_H_
