// The transport contract on simulated links.
#include <memory>
#include <string>

#include "daemon/simports/sim_loop.h"
#include "daemon/simports/sim_network.h"
#include "daemon/simports/sim_scheduler.h"
#include "daemon/simports/sim_transport.h"
#include "tests/contract/transport_contract.h"

namespace dfl::ports::contract {
namespace {

using simports::SimLoop;
using simports::SimNetwork;
using simports::SimScheduler;
using simports::SimTransport;

class SimNodes final : public TransportNodes {
 public:
  void Start(int64_t max_queued_bytes) override {
    max_queued_bytes_ = max_queued_bytes;
    simports::SimNetworkOptions options;
    options.path.delay = absl::Milliseconds(20);
    options.path.jitter = absl::Milliseconds(5);
    options.path.rate = 100e6;
    network_ = std::make_unique<SimNetwork>(scheduler_, 1, options);
    for (const int node : {0, 1}) Restart(node);
  }
  ~SimNodes() override {
    for (Node& node : nodes_) node.transport.reset();
  }

  std::string address(int node) override {
    return node == 0 ? "alpha:7000" : "beta:7000";
  }
  std::string dead_address() override { return "nobody:7000"; }

  void Run(int node,
           const std::function<void(Transport&, Recorder&)>& f) override {
    bool ran = false;
    nodes_[node].loop->Post([&] {
      f(*nodes_[node].transport, *nodes_[node].recorder);
      ran = true;
    });
    scheduler_.RunUntil([&] { return ran; }, absl::ZeroDuration());
    ASSERT_TRUE(ran);
  }
  bool Wait(int node,
            const std::function<bool(const Recorder&)>& done) override {
    return scheduler_.RunUntil([&] { return done(*nodes_[node].recorder); },
                               absl::Seconds(10));
  }
  void Settle() override { scheduler_.RunFor(absl::Milliseconds(200)); }

  void Stall(int node) override {
    network_->BlackHoleOneWay(address(1 - node), address(node));
  }
  void Resume(int) override { network_->Heal(address(0), address(1)); }

  void Kill(int node) override {
    nodes_[node].transport.reset();
    nodes_[node].loop.reset();
  }
  void Restart(int node) override {
    Node& n = nodes_[node];
    simports::SimTransportOptions options;
    options.node = NodeId(node == 0 ? "alpha" : "beta");
    options.incarnation = 100 * (node + 1) + n.starts++;
    options.address = address(node);
    options.max_queued_bytes = max_queued_bytes_;
    n.recorder = std::make_unique<Recorder>();
    n.loop = std::make_unique<SimLoop>(scheduler_);
    n.transport = std::make_unique<SimTransport>(*network_, *n.loop, options);
    n.transport->SetHandler(n.recorder.get());
  }

 private:
  struct Node {
    int starts = 0;
    std::unique_ptr<Recorder> recorder;
    std::unique_ptr<SimLoop> loop;
    std::unique_ptr<SimTransport> transport;
  };
  int64_t max_queued_bytes_ = 0;
  SimScheduler scheduler_;
  std::unique_ptr<SimNetwork> network_;
  Node nodes_[2];
};

INSTANTIATE_TYPED_TEST_SUITE_P(Sim, TransportContract, SimNodes);

}  // namespace
}  // namespace dfl::ports::contract
