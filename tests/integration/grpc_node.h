// One node with a real loop, threads and sockets, for tests of GrpcTransport.
#ifndef DFL_TESTS_INTEGRATION_GRPC_NODE_H_
#define DFL_TESTS_INTEGRATION_GRPC_NODE_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "daemon/app/event_loop.h"
#include "daemon/base/try_listen.h"
#include "daemon/exchange/address.h"
#include "daemon/exchange/grpc_transport.h"
#include "daemon/net/network_security.h"
#include "gtest/gtest.h"
#include "tests/contract/recorder.h"
#include "tests/contract/sample_frames.h"
#include "tests/support/made_credentials.h"
#include "tests/support/process.h"

namespace dfl::exchange {

inline bool HaveIpv6() { return TryListen({"::1", 0}).ok(); }

// The name of a node of whose links nothing is recorded: what it sends comes
// back to it.
inline constexpr char kFence[] = "fence";

// One daemon's worth: a loop, a Recorder and a transport that listens.
class GrpcNode : private ports::Transport::Handler {
 public:
  GrpcNode(GrpcTransportOptions options, const std::string& listen)
      : loop("node"), transport(new GrpcTransport(loop, std::move(options))) {
    transport->SetHandler(this);
    if (listen.empty()) return;
    const auto bound = transport->Listen({listen});
    EXPECT_TRUE(bound.ok()) << bound.status();
    if (!bound.ok()) return;
    address = bound->front();
    transport->SetAdvertised(address);
  }
  ~GrpcNode() override { Kill(); }

  void Kill() {
    loop.RunAndWait([this] { transport.reset(); });
    loop.Stop();
  }
  void Run(const std::function<void()>& f) { EXPECT_TRUE(loop.RunAndWait(f)); }
  // Waits until `done`, asked on the loop, holds; false after 10 s.
  bool Wait(const std::function<bool()>& done) {
    const absl::Time end = absl::Now() + absl::Seconds(10);
    while (absl::Now() < end) {
      bool holds = false;
      if (!loop.RunAndWait([&] { holds = done(); })) return false;
      if (holds) return true;
      absl::SleepFor(absl::Milliseconds(2));
    }
    return false;
  }

  app::EventLoop loop;
  ports::contract::Recorder recorder;
  std::unique_ptr<GrpcTransport> transport;
  std::string address;

 private:
  void OnLinkUp(ports::LinkId link, const ports::PeerIdentity& peer,
                const std::string& dialled_address) override {
    if (peer.node.name() == kFence) {
      fences_.insert(link);
    } else {
      recorder.OnLinkUp(link, peer, dialled_address);
    }
  }
  void OnDialFailed(const std::string& address,
                    const absl::Status& status) override {
    recorder.OnDialFailed(address, status);
  }
  void OnFrame(ports::LinkId link, ports::Frame frame) override {
    if (fences_.count(link) > 0) {
      EXPECT_TRUE(transport->Send(link, std::move(frame)).ok());
    } else {
      recorder.OnFrame(link, std::move(frame));
    }
  }
  void OnWritable(ports::LinkId link) override { recorder.OnWritable(link); }
  void OnLinkDown(ports::LinkId link, const absl::Status& reason) override {
    if (fences_.erase(link) == 0) recorder.OnLinkDown(link, reason);
  }

  std::set<ports::LinkId> fences_;
};

inline GrpcTransportOptions NodeOptions(const std::string& name,
                                        uint64_t incarnation) {
  GrpcTransportOptions options;
  options.self.node = NodeId(name);
  options.self.incarnation = incarnation;
  return options;
}

// A bound socket that does not listen: connections are refused.
class DeadAddress {
 public:
  DeadAddress() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)),
              0);
    socklen_t length = sizeof(address);
    getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &length);
    port_ = ntohs(address.sin_port);
  }
  ~DeadAddress() { close(fd_); }
  DeadAddress(const DeadAddress&) = delete;
  DeadAddress& operator=(const DeadAddress&) = delete;

  int fd() const { return fd_; }
  int port() const { return port_; }
  std::string address() const {
    return HostPort{"127.0.0.1", port_}.ToString();
  }

 private:
  const int fd_;
  int port_ = 0;
};

// The security of one node of cluster "plant-4": an authority, and a folder.
struct MadeNetwork {
  tls::Authority authority = tls::MakeAuthority("plant-4", absl::Now());
  testing_support::TemporaryFolder folder;
  int made = 0;

  // For the node `name`, which shows `credentials`, or good ones of its own.
  std::unique_ptr<net::NetworkSecurity> Make(
      const std::string& name,
      std::shared_ptr<const tls::Credentials> credentials = nullptr) {
    auto security =
        net::NetworkSecurity::Create(folder.File(absl::StrCat("net-", ++made)));
    EXPECT_TRUE(security.ok()) << security.status();
    if (credentials == nullptr) {
      credentials = tls::MakeCredentials(authority, tls::NodeIdentity(name));
    }
    EXPECT_TRUE((*security)->Use(credentials).ok());
    return *std::move(security);
  }
};

}  // namespace dfl::exchange

#endif  // DFL_TESTS_INTEGRATION_GRPC_NODE_H_
