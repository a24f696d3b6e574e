// A node with the links it stands on, wired: what dfld, the simulator and tests
// construct. Whoever else takes frames is connected here.
//
// Loop only: construct, call and destroy it on its loop.
#ifndef DFL_RUNTIME_LINKED_NODE_H_
#define DFL_RUNTIME_LINKED_NODE_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "daemon/base/ids.h"
#include "daemon/ports/events.h"
#include "daemon/ports/loop.h"
#include "daemon/ports/transport.h"
#include "daemon/runtime/gossip/record_gossip.h"
#include "daemon/runtime/links/frame_router.h"
#include "daemon/runtime/links/links.h"
#include "daemon/runtime/mass_members.h"
#include "daemon/runtime/membership/membership.h"
#include "daemon/runtime/node.h"

namespace dfl::runtime {

class LinkedNode : private MembershipListener, private MassMembers {
 public:
  // All ports must outlive it.
  LinkedNode(const NodeOptions& options, ports::Loop& loop,
             ports::Transport& transport, ports::Worker& worker,
             ports::EventSink& events, const RecordOptions& records = {},
             MembershipOptions membership = {})
      : links_(LinksOptions{.self = options.self,
                            .seed = options.incarnation,
                            .offences = options.offences},
               loop, transport, events, router_),
        node_(options, loop, links_, worker, events),
        records_(records, loop, links_, events,
                 [this](const NodeId& from, const std::string& text) {
                   node_.NoteBadMessage(from, text);
                 }),
        membership_(std::move(membership), loop, links_, events) {
    // The contracts come first: the node looks at a peer's state with them.
    router_.Connect(node_.contracts(), node_, node_.asks(), node_.pushes(),
                    node_.models(), records_, membership_);
    node_.SetOtherView(
        [this](const NodeId& peer) { membership_.Reconcile(peer); });
    router_.NoteFrames([this](const NodeId& from) { node_.OnSpeech(from); });
    node_.mass().SetMembers(*this);
    membership_.AddListener(this);
  }
  LinkedNode(const LinkedNode&) = delete;
  LinkedNode& operator=(const LinkedNode&) = delete;

  Node& node() { return node_; }
  const Node& node() const { return node_; }
  Links& links() { return links_; }
  RecordGossip& records() { return records_; }
  Membership& membership() { return membership_; }

 private:
  // MembershipListener
  void OnMember(const NodeId& node, const Member* /*member*/) override {
    node_.mass().OnMember(node);
  }

  // MassMembers
  std::optional<uint64_t> MemoryOf(const NodeId& node) const override {
    const auto it = membership_.members().find(node);
    if (it == membership_.members().end() ||
        it->second.state != ports::MemberState::kAlive ||
        it->second.facts.memory == 0) {
      return std::nullopt;
    }
    return it->second.facts.memory;
  }
  void Meet(std::set<NodeId> nodes) override {
    membership_.Meet(std::move(nodes));
  }

  FrameRouter router_;
  Links links_;
  Node node_;
  RecordGossip records_;
  Membership membership_;
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_LINKED_NODE_H_
