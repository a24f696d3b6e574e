// Nodes in virtual time that are made of links and the ways between members,
// with a table that the test writes: nobody detects or gossips anything.
#ifndef DFL_TESTS_UNIT_MEMBERSHIP_PATH_NODE_H_
#define DFL_TESTS_UNIT_MEMBERSHIP_PATH_NODE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "daemon/ports/events.h"
#include "daemon/runtime/links/frame_router.h"
#include "daemon/runtime/links/links.h"
#include "daemon/runtime/membership/heartbeats.h"
#include "daemon/runtime/membership/membership.h"
#include "daemon/runtime/membership/pings.h"
#include "daemon/runtime/membership/queries.h"
#include "daemon/runtime/membership/routes.h"
#include "daemon/runtime/membership/standing_links.h"
#include "daemon/simports/sim_loop.h"
#include "daemon/simports/sim_network.h"
#include "daemon/simports/sim_transport.h"

namespace dfl::runtime {

// Receives and drops what is not of membership.
class FramesOfNodes
    : public FrameReceivers<
          ports::StateFrame, ports::AskFrame, ports::RefuseFrame,
          ports::CancelAskFrame, ports::TransferBegin, ports::Chunk,
          ports::TransferAck, ports::TransferCancel, ports::SkipFrame,
          ports::RecordSummary, ports::RecordWant, ports::RecordPart,
          ports::ContractWant, ports::ContractPart> {
  void OnFrame(const NodeId&, ports::StateFrame) override {}
  void OnFrame(const NodeId&, ports::AskFrame) override {}
  void OnFrame(const NodeId&, ports::RefuseFrame) override {}
  void OnFrame(const NodeId&, ports::CancelAskFrame) override {}
  void OnFrame(const NodeId&, ports::TransferBegin) override {}
  void OnFrame(const NodeId&, ports::Chunk) override {}
  void OnFrame(const NodeId&, ports::TransferAck) override {}
  void OnFrame(const NodeId&, ports::TransferCancel) override {}
  void OnFrame(const NodeId&, ports::SkipFrame) override {}
  void OnFrame(const NodeId&, ports::RecordSummary) override {}
  void OnFrame(const NodeId&, ports::RecordWant) override {}
  void OnFrame(const NodeId&, ports::RecordPart) override {}
  void OnFrame(const NodeId&, ports::ContractWant) override {}
  void OnFrame(const NodeId&, ports::ContractPart) override {}
};

struct PathNodeOptions {
  uint64_t memory = 1;
  std::string address = "";  // "": NAME and ":1"
  bool dialable = true;
  RouteAllowance allowance = {};
  StandingLinksOptions standing = {};
};

// Listens at "NAME:1".
class PathNode final
    : public FrameReceivers<ports::ProbeFrame, ports::ProbeAckFrame,
                            ports::MembersFrame, ports::MembersDigestFrame,
                            ports::QueryFrame, ports::QueryPartFrame>,
      public LinkObserver,
      private ports::EventSink {
 public:
  PathNode(simports::SimNetwork& network, const std::string& name,
           PathNodeOptions options = {})
      : id(name),
        loop(network.scheduler()),
        transport(network, loop, TransportOf(name, options)),
        links(LinksOptions{.self = id, .seed = options.memory}, loop, transport,
              *this, router_),
        standing(StandingOf(id, options), loop, links),
        routes(id, loop, links, standing.overlay(), options.allowance),
        pings(id, loop, routes,
              [this](const NodeId& node) { return Find(node); }),
        queries(id, loop, routes,
                [this](const NodeId& node) { return Find(node) != nullptr; }),
        heartbeats(id, loop, links,
                   [this](const NodeId& node) {
                     return Find(node) == nullptr
                                ? absl::ZeroDuration()
                                : HeartbeatOf(ports::Pace::kLan);
                   }),
        memory_(options.memory) {
    router_.Connect(*this, others_);
    links.SetDistant(&pings);
  }
  ~PathNode() override { links.SetDistant(nullptr); }

  // Writes the table; this node itself belongs into it, too.
  void Set(const NodeId& node, Member member) {
    members_[node] = std::move(member);
    standing.OnMember(node, &members_[node]);
  }
  void Forget(const NodeId& node) {
    members_.erase(node);
    standing.OnMember(node, nullptr);
  }
  const Member* Find(const NodeId& node) const {
    const auto it = members_.find(node);
    return it == members_.end() ? nullptr : &it->second;
  }
  Links::Peer Link(const std::string& name) const {
    const auto it = links.peers().find(NodeId(name));
    return it == links.peers().end() ? Links::Peer() : it->second;
  }
  bool IsLinked(const std::string& name) const { return Link(name).link != 0; }

  void OnFrame(const NodeId& from, ports::ProbeFrame frame) override {
    if (deaf || !routes.Take(from, frame)) return;
    ++((frame.number & Heartbeats::kNumberBit) == 0 ? probes : beats);
    if (!answers) return;
    ports::ProbeAckFrame ack;
    ack.route = {.origin = id, .target = frame.route.origin};
    ack.number = frame.number;
    ack.memory = memory_;
    (void)routes.SendBack(from, std::move(ack));
  }
  void OnFrame(const NodeId& from, ports::ProbeAckFrame frame) override {
    if (deaf || !routes.Take(from, frame)) return;
    acks.push_back(frame);
    pings.OnAck(frame);
  }
  void OnFrame(const NodeId&, ports::MembersFrame) override {}
  void OnFrame(const NodeId&, ports::MembersDigestFrame) override {}
  void OnFrame(const NodeId& from, ports::QueryFrame frame) override {
    if (deaf) return;
    if (lose_queries > 0) {
      --lose_queries;
      return;
    }
    if (routes.Take(from, frame)) queries.OnFrame(from, frame);
  }
  void OnFrame(const NodeId& from, ports::QueryPartFrame frame) override {
    if (!deaf && routes.Take(from, frame)) queries.OnFrame(std::move(frame));
  }

  void OnPeerUp(const NodeId& peer, bool) override {
    ups.push_back(peer.name());
    standing.OnPeerUp(peer);
    heartbeats.OnPeerUp();
  }
  void OnPeerDown(const NodeId& peer, const absl::Status& reason) override {
    downs.emplace_back(peer.name(), reason);
    standing.OnPeerDown();
  }
  void OnPeerWritable(const NodeId&) override {}
  void OnAddressFailed(const std::string& address) override {
    failed.emplace_back(loop.Now(), address);
    standing.OnAddressFailed(address);
  }

  const NodeId id;

 private:
  static simports::SimTransportOptions TransportOf(
      const std::string& name, const PathNodeOptions& options) {
    simports::SimTransportOptions made;
    made.node = NodeId(name);
    made.incarnation = options.memory;
    made.address = options.address.empty() ? name + ":1" : options.address;
    made.accepts_dials = options.dialable;
    return made;
  }
  static StandingLinksOptions StandingOf(const NodeId& id,
                                         const PathNodeOptions& options) {
    StandingLinksOptions made = options.standing;
    made.self = id;
    return made;
  }
  void Report(const ports::NodeEvent& event) override {
    if (const auto* e = std::get_if<ports::PeerUnreachable>(&event)) {
      unreachable.push_back(*e);
    }
  }

  FrameRouter router_;
  FramesOfNodes others_;
  std::map<NodeId, Member> members_;

 public:
  simports::SimLoop loop;
  simports::SimTransport transport;
  Links links;
  StandingLinks standing;
  Routes routes;
  Pings pings;
  Queries queries;
  Heartbeats heartbeats;

  bool answers = true;   // probes
  bool deaf = false;     // takes no frame of membership
  int lose_queries = 0;  // the next ones, on their way or at their end
  int64_t probes = 0;    // that were for this node
  int64_t beats = 0;     // of those, what Heartbeats asked
  std::vector<ports::ProbeAckFrame> acks;
  std::vector<std::string> ups;
  std::vector<std::pair<std::string, absl::Status>> downs;
  std::vector<std::pair<absl::Time, std::string>> failed;
  std::vector<ports::PeerUnreachable> unreachable;

 private:
  const uint64_t memory_;
};

// A member that says it listens at `address`; "": it only dials out.
inline Member MemberAt(const std::string& address, uint64_t memory = 1) {
  Member member;
  member.incarnation.starts = 1;
  if (!address.empty()) member.facts.addresses = {address};
  member.facts.memory = memory;
  return member;
}

// Nodes n00, n01, ... that all know each other.
class PathNetwork {
 public:
  // Every `undialable`-th cannot be dialled; 0: all can.
  PathNetwork(simports::SimNetwork& network, int size, int undialable = 0,
              const PathNodeOptions& options = {})
      : network_(network) {
    for (int i = 0; i < size; ++i) {
      PathNodeOptions own = options;
      own.dialable = undialable == 0 || i % undialable != undialable - 1;
      nodes.push_back(std::make_unique<PathNode>(network, NameOf(i), own));
    }
    for (const auto& node : nodes) {
      for (const auto& other : nodes) node->Set(other->id, MemberOf(*other));
    }
  }

  static std::string NameOf(int i) {
    return std::string("n") + static_cast<char>('0' + i / 10) +
           static_cast<char>('0' + i % 10);
  }
  static Member MemberOf(const PathNode& node) {
    const simports::SimTransportOptions& options = node.transport.options();
    return MemberAt(options.accepts_dials ? options.address : "",
                    options.incarnation);
  }

  // Until all who should be linked are.
  bool Settle() {
    return network_.scheduler().RunUntil(
        [this] {
          for (const auto& node : nodes) {
            for (const NodeId& other :
                 node->standing.overlay().LinksOf(node->id)) {
              if (!node->IsLinked(other.name())) return false;
            }
          }
          return true;
        },
        absl::Seconds(20));
  }

  PathNode& operator[](size_t i) { return *nodes[i]; }

  std::vector<std::unique_ptr<PathNode>> nodes;

 private:
  simports::SimNetwork& network_;
};

}  // namespace dfl::runtime

#endif  // DFL_TESTS_UNIT_MEMBERSHIP_PATH_NODE_H_
