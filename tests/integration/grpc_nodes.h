// Nodes with real loops, threads and sockets, for tests of GrpcTransport.
#ifndef DFL_TESTS_INTEGRATION_GRPC_NODES_H_
#define DFL_TESTS_INTEGRATION_GRPC_NODES_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "daemon/app/event_loop.h"
#include "daemon/base/try_listen.h"
#include "daemon/exchange/address.h"
#include "daemon/exchange/grpc_transport.h"
#include "daemon/net/network_security.h"
#include "tests/contract/transport_contract.h"
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

enum class Wire { kPlain, kTls };

template <bool kIpv6, Wire kWire = Wire::kPlain>
class GrpcNodes final : public ports::contract::TransportNodes {
 public:
  using Recorder = ports::contract::Recorder;

  ~GrpcNodes() override {
    if (stall_ != nullptr) stall_->Notify();
    for (const int node : {0, 1}) nodes_[node].reset();
  }

  std::string missing() override {
    return kIpv6 && !HaveIpv6() ? "this machine has no IPv6" : "";
  }
  void Start(int64_t max_queued_bytes) override {
    max_queued_bytes_ = max_queued_bytes;
    for (const int node : {0, 1}) Restart(node);
  }
  std::string address(int node) override { return nodes_[node]->address; }
  std::string dead_address() override { return dead_.address(); }
  void Run(int node, const std::function<void(ports::Transport&, Recorder&)>& f)
      override {
    nodes_[node]->Run(
        [&] { f(*nodes_[node]->transport, nodes_[node]->recorder); });
  }
  bool Wait(int node,
            const std::function<bool(const Recorder&)>& done) override {
    return nodes_[node]->Wait([&] { return done(nodes_[node]->recorder); });
  }
  // A third node connects to both, and a frame goes there and comes back: what
  // was under way before has been through the same loops.
  void Settle() override {
    GrpcTransportOptions options = NodeOptions(kFence, 1);
    const auto security = Security(kFence);
    options.security = security.get();
    GrpcNode fence(options, "");
    for (const int node : {0, 1}) {
      fence.Run([&] { fence.transport->Dial(address(node)); });
      ports::LinkId link = 0;
      EXPECT_TRUE(fence.Wait([&] {
        link = fence.recorder.last();
        return fence.recorder.up() == node + 1;
      }));
      fence.Run([&] {
        const auto ask = ports::contract::AskNumber(node);
        EXPECT_TRUE(fence.transport->Send(link, ask).ok());
      });
      EXPECT_TRUE(fence.Wait(
          [&] { return fence.recorder.links[link].control.size() == 1; }));
    }
  }

  void Stall(int node) override {
    stall_ = std::make_shared<absl::Notification>();
    nodes_[node]->loop.Post([stall = stall_] { stall->WaitForNotification(); });
  }
  void Resume(int) override {
    stall_->Notify();
    stall_.reset();
  }
  void Kill(int node) override { nodes_[node]->Kill(); }
  void Restart(int node) override {
    GrpcTransportOptions options = NodeOptions(
        node == 0 ? "alpha" : "beta", 100 * (node + 1) + starts_[node]++);
    options.max_queued_bytes = max_queued_bytes_;
    if (security_[node] == nullptr) {
      security_[node] = Security(options.self.node.name());
    }
    options.security = security_[node].get();
    nodes_[node] =
        std::make_unique<GrpcNode>(options, kIpv6 ? "[::1]:0" : "127.0.0.1:0");
  }

 private:
  std::unique_ptr<net::NetworkSecurity> Security(const std::string& name) {
    if (kWire == Wire::kPlain) return nullptr;
    return network_.Make(name);
  }

  MadeNetwork network_;
  int64_t max_queued_bytes_ = 0;
  int starts_[2] = {0, 0};
  DeadAddress dead_;
  std::shared_ptr<absl::Notification> stall_;
  std::unique_ptr<net::NetworkSecurity> security_[2];
  std::unique_ptr<GrpcNode> nodes_[2];
};

using GrpcTlsNodes = GrpcNodes<false, Wire::kTls>;

}  // namespace dfl::exchange

#endif  // DFL_TESTS_INTEGRATION_GRPC_NODES_H_
