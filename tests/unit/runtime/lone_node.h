// Links and transfers of a node that has no other parts, for tests of a part
// that uses both. Models that come in are counted and dropped.
#ifndef DFL_TESTS_UNIT_RUNTIME_LONE_NODE_H_
#define DFL_TESTS_UNIT_RUNTIME_LONE_NODE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "daemon/runtime/links/links.h"
#include "daemon/runtime/transfers/transfers.h"
#include "daemon/simports/sim_loop.h"
#include "daemon/simports/sim_network.h"
#include "daemon/simports/sim_transport.h"
#include "gtest/gtest.h"
#include "tests/unit/runtime/sim_cluster.h"

namespace dfl::runtime {

class LoneNode : public Links::Listener, public Transfers::Listener {
 public:
  // Its models have n parameters and no buffers. It listens at "NAME:1".
  LoneNode(simports::SimNetwork& network, const std::string& name, int64_t n,
           TransfersOptions options = {})
      : n_(n),
        log(network.scheduler()),
        loop(network.scheduler()),
        transport(network, loop, Options(name)),
        links(LinksOptions{NodeId(name)}, loop, transport, log, *this),
        transfers(options, loop, loop, links, *this) {}

  int64_t models() const { return models_; }

  // Links::Listener
  void OnPeerUp(const NodeId& peer, bool restarted) override {
    transfers.OnPeerUp(peer, restarted);
  }
  void OnPeerDown(const NodeId& peer, const absl::Status&) override {
    transfers.OnPeerDown(peer);
  }
  void OnPeerFrame(const NodeId& peer, ports::Frame frame) override {
    if (auto* begin = std::get_if<ports::TransferBegin>(&frame)) {
      transfers.OnFrame(peer, std::move(*begin));
    } else if (auto* chunk = std::get_if<ports::Chunk>(&frame)) {
      transfers.OnFrame(peer, std::move(*chunk));
    } else if (auto* ack = std::get_if<ports::TransferAck>(&frame)) {
      transfers.OnFrame(peer, *ack);
    } else if (auto* cancel = std::get_if<ports::TransferCancel>(&frame)) {
      transfers.OnFrame(peer, std::move(*cancel));
    }
  }
  void OnPeerWritable(const NodeId& peer) override {
    transfers.OnPeerWritable(peer);
  }
  void OnAddressFailed(const std::string&) override {}

  // Transfers::Listener
  Admission Admit(const NodeId&, const ports::TransferBegin&,
                  const codec::EncodedHeader*) override {
    return ModelLengths{n_, 0};
  }
  std::optional<Refusal> Recheck(const NodeId&, ports::TransferKind, uint64_t,
                                 const ModelLengths&) override {
    return std::nullopt;
  }
  void OnModel(const NodeId&, ports::TransferKind, uint64_t, int64_t,
               std::vector<double>, absl::Duration,
               std::unique_ptr<codec::DecodedMessage>) override {
    ++models_;
  }
  double OnMass(const NodeId&, uint64_t, uint64_t, int64_t, std::vector<double>,
                std::unique_ptr<codec::DecodedMessage>) override {
    return 0;
  }
  void OnTransferLost(const NodeId&, ports::TransferKind, uint64_t,
                      const std::string&) override {}
  void OnBadMessage(const NodeId&, ports::RefuseReason,
                    const std::string& text) override {
    ADD_FAILURE() << text;
  }

 private:
  static simports::SimTransportOptions Options(const std::string& name) {
    simports::SimTransportOptions options;
    options.node = NodeId(name);
    options.incarnation = 1;
    options.address = name + ":1";
    return options;
  }

  const int64_t n_;
  int64_t models_ = 0;

 public:
  EventLog log;
  simports::SimLoop loop;
  simports::SimTransport transport;
  Links links;
  Transfers transfers;
};

}  // namespace dfl::runtime

#endif  // DFL_TESTS_UNIT_RUNTIME_LONE_NODE_H_
