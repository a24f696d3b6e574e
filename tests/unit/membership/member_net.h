// A network of memberships in virtual time, with no node behind them.
#ifndef DFL_TESTS_UNIT_MEMBERSHIP_MEMBER_NET_H_
#define DFL_TESTS_UNIT_MEMBERSHIP_MEMBER_NET_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "daemon/ports/events.h"
#include "daemon/ports/transport.h"
#include "daemon/runtime/links/frame_router.h"
#include "daemon/runtime/links/links.h"
#include "daemon/runtime/membership/membership.h"
#include "daemon/simports/sim_loop.h"
#include "daemon/simports/sim_network.h"
#include "daemon/simports/sim_transport.h"
#include "tests/unit/membership/throttled.h"

namespace dfl::runtime {

// Receives all frames that are not about members, and drops them, but says
// that it lives as every node does.
class ForeignFrames
    : public FrameReceivers<
          ports::StateFrame, ports::AskFrame, ports::RefuseFrame,
          ports::CancelAskFrame, ports::TransferBegin, ports::Chunk,
          ports::TransferAck, ports::TransferCancel, ports::SkipFrame,
          ports::ContractWant, ports::ContractPart, ports::RecordSummary,
          ports::RecordWant, ports::RecordPart> {
  void OnFrame(const NodeId&, ports::StateFrame) override {}
  void OnFrame(const NodeId&, ports::AskFrame) override {}
  void OnFrame(const NodeId&, ports::RefuseFrame) override {}
  void OnFrame(const NodeId&, ports::CancelAskFrame) override {}
  void OnFrame(const NodeId&, ports::TransferBegin) override {}
  void OnFrame(const NodeId&, ports::Chunk) override {}
  void OnFrame(const NodeId&, ports::TransferAck) override {}
  void OnFrame(const NodeId&, ports::TransferCancel) override {}
  void OnFrame(const NodeId&, ports::SkipFrame) override {}
  void OnFrame(const NodeId& from, ports::ContractWant) override {
    (void)links_.Send(from, ports::ContractPart{});
  }
  void OnFrame(const NodeId&, ports::ContractPart) override {}
  void OnFrame(const NodeId&, ports::RecordSummary) override {}
  void OnFrame(const NodeId&, ports::RecordWant) override {}
  void OnFrame(const NodeId&, ports::RecordPart) override {}

 public:
  explicit ForeignFrames(Links& links) : links_(links) {}

 private:
  Links& links_;
};

struct MemberNodeOptions {
  uint64_t starts = 1;
  uint64_t memory = 1;
  ports::Pace pace = ports::Pace::kLan;
  absl::Duration cost = absl::ZeroDuration();  // of each thing it handles
  bool enabled = true;
  // Others can dial it, so it has standing links.
  bool dialable = true;
  std::string address = "";  // where it listens; "": at its name
  bool accepts_dials = true;
};

// Listens at "NAME:1".
class MemberNode final : private ports::EventSink, private MembershipListener {
 public:
  struct Change {
    absl::Time when;
    NodeId node;
    bool present = false;
    std::string text;
  };

  MemberNode(simports::SimNetwork& network, const std::string& name,
             const MemberNodeOptions& options)
      : name_(name),
        loop_(network.scheduler()),
        slow_loop_(loop_, options.cost),
        transport_(network, loop_, TransportOf(name, options)),
        slow_transport_(transport_, slow_loop_),
        links_(LinksOptions{.self = NodeId(name), .seed = options.memory},
               slow_loop_, slow_transport_, *this, router_),
        membership_(MembershipOf(name, options), slow_loop_, links_, *this) {
    router_.Connect(foreign_, membership_);
    membership_.AddListener(this);
  }

  const std::string& name() const { return name_; }
  void Dial(const std::string& name) { (void)links_.AddAddress(name + ":1"); }
  simports::SimLoop& loop() { return loop_; }
  Links& links() { return links_; }
  Membership& membership() { return membership_; }
  const std::map<NodeId, Member>& members() const {
    return membership_.members();
  }
  // Null: not known.
  const Member* Find(const std::string& name) const {
    const auto found = members().find(NodeId(name));
    return found == members().end() ? nullptr : &found->second;
  }
  bool Sees(const std::string& name) const {
    const Member* member = Find(name);
    return member != nullptr && member->present();
  }
  // Names of those that are present, itself included.
  std::set<std::string> Present() const {
    std::set<std::string> present;
    for (const auto& [node, member] : members()) {
      if (member.present()) present.insert(node.name());
    }
    return present;
  }

  // What was reported.
  const std::vector<Change>& changes() const { return changes_; }
  int64_t CountOf(const std::string& name, bool present) const {
    return std::count_if(changes_.begin(), changes_.end(),
                         [&](const Change& c) {
                           return c.node.name() == name && c.present == present;
                         });
  }
  void ForgetChanges() { changes_.clear(); }
  // What the listener was told, by name: the last state; nothing: forgotten.
  const std::map<NodeId, ports::MemberState>& told() const { return told_; }

 private:
  static std::string AddressOf(const std::string& name,
                               const MemberNodeOptions& options) {
    return options.address.empty() ? name + ":1" : options.address;
  }
  static simports::SimTransportOptions TransportOf(
      const std::string& name, const MemberNodeOptions& options) {
    simports::SimTransportOptions transport;
    transport.node = NodeId(name);
    transport.incarnation = options.memory;
    transport.address = AddressOf(name, options);
    transport.accepts_dials = options.accepts_dials;
    return transport;
  }
  static MembershipOptions MembershipOf(const std::string& name,
                                        const MemberNodeOptions& options) {
    MembershipOptions membership;
    membership.enabled = options.enabled;
    membership.self = NodeId(name);
    membership.starts = options.starts;
    membership.facts.pace = options.pace;
    membership.facts.memory = options.memory;
    if (options.dialable) {
      membership.facts.addresses = {AddressOf(name, options)};
    }
    return membership;
  }

  void Report(const ports::NodeEvent& event) override {
    if (const auto* e = std::get_if<ports::MemberChanged>(&event)) {
      changes_.push_back({loop_.Now(), e->node, e->present, e->text});
    }
  }
  void OnMember(const NodeId& node, const Member* member) override {
    if (member == nullptr) {
      told_.erase(node);
    } else {
      told_[node] = member->state;
    }
  }

  const std::string name_;
  std::vector<Change> changes_;
  std::map<NodeId, ports::MemberState> told_;
  simports::SimLoop loop_;
  ThrottledLoop slow_loop_;
  simports::SimTransport transport_;
  ThrottledTransport slow_transport_;
  FrameRouter router_;
  Links links_;
  ForeignFrames foreign_{links_};
  Membership membership_;
};

// The network.
class MemberNet {
 public:
  explicit MemberNet(uint64_t seed = 1,
                     simports::SimNetworkOptions options = {})
      : rng_(DeriveSeed(seed, "net")), network_(scheduler_, seed, options) {}

  simports::SimScheduler& scheduler() { return scheduler_; }
  simports::SimNetwork& network() { return network_; }
  Rng& rng() { return rng_; }
  std::map<std::string, std::unique_ptr<MemberNode>>& nodes() { return nodes_; }
  MemberNode& node(const std::string& name) { return *nodes_.at(name); }
  static std::string NameOf(int64_t i) { return absl::StrFormat("n%04d", i); }

  MemberNode& Boot(const std::string& name, MemberNodeOptions options = {}) {
    if (options.memory == 1) options.memory = rng_.Next() | 1;
    auto& place = nodes_[name];
    place = nullptr;  // of two processes one address
    place = std::make_unique<MemberNode>(network_, name, options);
    return *place;
  }
  // As kill -9 of its process.
  void Kill(const std::string& name) { nodes_.erase(name); }

  // As Boot; the node has found the addresses of the first two.
  MemberNode& BootSeeded(const std::string& name,
                         const MemberNodeOptions& options = {}) {
    MemberNode& booted = Boot(name, options);
    booted.membership().SetCandidates("seeds",
                                      {NameOf(0) + ":1", NameOf(1) + ":1"});
    return booted;
  }
  // Starts n nodes together, NameOf(0) and so on. Returns their names.
  std::vector<std::string> BootMany(int64_t n,
                                    const MemberNodeOptions& options = {}) {
    std::vector<std::string> names;
    for (int64_t i = 0; i < n; ++i) {
      names.push_back(NameOf(i));
      BootSeeded(names.back(), options);
    }
    return names;
  }
  // The links that are up, each once.
  std::vector<std::pair<std::string, std::string>> LinkedPairs() {
    std::vector<std::pair<std::string, std::string>> pairs;
    for (const auto& [name, n] : nodes_) {
      for (const auto& [peer, state] : n->links().peers()) {
        if (state.link != 0 && name < peer.name()) {
          pairs.emplace_back(name, peer.name());
        }
      }
    }
    return pairs;
  }
  // Calls `f` with the addresses of `name` and of each other one.
  template <typename F>
  void ForEachPair(const std::string& name, F f) {
    for (const auto& [other, n] : nodes_) {
      if (other != name) f(name + ":1", other + ":1");
    }
  }

  // Whether every node sees all nodes that run, and nobody else.
  bool Agree() const {
    return std::all_of(nodes_.begin(), nodes_.end(), [&](const auto& entry) {
      size_t present = 0;
      for (const auto& [node, member] : entry.second->members()) {
        if (!member.present()) continue;
        if (nodes_.count(node.name()) == 0) return false;
        ++present;
      }
      return present == nodes_.size();
    });
  }
  bool AgreeWithin(absl::Duration limit) {
    return Within(limit, [this] { return Agree(); });
  }
  // Asks each 20 ms.
  template <typename F>
  bool Within(absl::Duration limit, F done) {
    const absl::Time end = scheduler_.Now() + limit;
    while (!done()) {
      if (scheduler_.Now() >= end) return false;
      scheduler_.RunFor(absl::Milliseconds(20));
    }
    return true;
  }
  // Until no running node sees `name`.
  bool GoneWithin(const std::string& name, absl::Duration limit) {
    return Within(limit, [&] {
      return std::none_of(nodes_.begin(), nodes_.end(), [&](const auto& entry) {
        return entry.first != name && entry.second->Sees(name);
      });
    });
  }
  void RunFor(absl::Duration duration) { scheduler_.RunFor(duration); }

  // "OBSERVER: NODE TEXT" of everyone that was said to be gone.
  std::vector<std::string> Losses() const {
    std::vector<std::string> losses;
    for (const auto& [name, n] : nodes_) {
      for (const MemberNode::Change& change : n->changes()) {
        if (change.present) continue;
        losses.push_back(
            absl::StrCat(name, ": ", change.node.name(), " ", change.text));
      }
    }
    return losses;
  }
  void ForgetChanges() {
    for (auto& [name, n] : nodes_) n->ForgetChanges();
  }

 private:
  Rng rng_;
  simports::SimScheduler scheduler_;
  simports::SimNetwork network_;
  std::map<std::string, std::unique_ptr<MemberNode>> nodes_;
};

}  // namespace dfl::runtime

#endif  // DFL_TESTS_UNIT_MEMBERSHIP_MEMBER_NET_H_
