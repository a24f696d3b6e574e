// The two nodes of the transport contract, over sockets.
#ifndef DFL_TESTS_INTEGRATION_GRPC_NODES_H_
#define DFL_TESTS_INTEGRATION_GRPC_NODES_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/synchronization/notification.h"
#include "daemon/exchange/grpc_transport.h"
#include "daemon/net/network_security.h"
#include "tests/contract/transport_contract.h"
#include "tests/integration/grpc_node.h"

namespace dfl::exchange {

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
