// ports::Transport on a SimNetwork: one process on one host.
#ifndef DFL_SIMPORTS_SIM_TRANSPORT_H_
#define DFL_SIMPORTS_SIM_TRANSPORT_H_

#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "absl/container/btree_map.h"
#include "absl/status/status.h"
#include "daemon/ports/transport.h"
#include "daemon/simports/sim_loop.h"
#include "daemon/simports/sim_network.h"

namespace dfl::simports {

struct SimTransportOptions {
  NodeId node;
  uint64_t incarnation = 1;
  // The host's name on the network, by which it is dialled. Only one transport
  // may have it at a time.
  std::string address;
  // False: it can only dial out (and advertises "").
  bool accepts_dials = true;
  int64_t max_queued_bytes = 4 << 20;
};

// Loop only. `network` and `loop` must outlive it. Destroying it is a crash:
// neighbours see their links reset.
class SimTransport final : public ports::Transport {
 public:
  SimTransport(SimNetwork& network, SimLoop& loop, SimTransportOptions options);
  ~SimTransport() override;
  SimTransport(const SimTransport&) = delete;
  SimTransport& operator=(const SimTransport&) = delete;

  void SetHandler(Handler* handler) override { handler_ = handler; }
  void Dial(const std::string& address) override;
  void Close(ports::LinkId link, const absl::Status& reason) override;
  absl::Status Send(ports::LinkId link, ports::Frame frame) override;
  int64_t max_queued_bytes() const override {
    return options_.max_queued_bytes;
  }
  int64_t UnsentBytes(ports::LinkId link) const override;

  const SimTransportOptions& options() const { return options_; }
  int64_t link_count() const { return static_cast<int64_t>(links_.size()); }

 private:
  friend class SimConnections;
  friend class SimHosts;
  friend class SimNetwork;

  // Null when the node's loop has stopped: nobody listens any more.
  Handler* handler() const { return loop_.stopped() ? nullptr : handler_; }
  ports::PeerIdentity identity() const;

  SimNetwork& network_;
  SimLoop& loop_;
  const SimTransportOptions options_;
  SimTransportId id_ = 0;
  Handler* handler_ = nullptr;
  // Links that are up: their connection and which end of it they are.
  absl::btree_map<ports::LinkId, std::pair<SimConnections::ConnectionId, int>>
      links_;
  // All connections with an end here, so that a crash or a cut visits no
  // others.
  std::set<SimConnections::ConnectionId> connections_;
};

}  // namespace dfl::simports

#endif  // DFL_SIMPORTS_SIM_TRANSPORT_H_
