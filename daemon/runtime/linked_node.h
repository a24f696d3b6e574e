// A node with the links it stands on, wired: what dfld, the simulator and tests
// construct. Whoever else takes frames is connected here.
//
// Loop only: construct, call and destroy it on its loop.
#ifndef DFL_RUNTIME_LINKED_NODE_H_
#define DFL_RUNTIME_LINKED_NODE_H_

#include "daemon/ports/events.h"
#include "daemon/ports/loop.h"
#include "daemon/ports/transport.h"
#include "daemon/runtime/links/frame_router.h"
#include "daemon/runtime/links/links.h"
#include "daemon/runtime/node.h"

namespace dfl::runtime {

class LinkedNode {
 public:
  // All ports must outlive it.
  LinkedNode(const NodeOptions& options, ports::Loop& loop,
             ports::Transport& transport, ports::Worker& worker,
             ports::EventSink& events)
      : links_(LinksOptions{options.self, options.incarnation}, loop, transport,
               events, router_),
        node_(options, loop, links_, worker, events) {
    router_.Connect(node_, node_.asks(), node_.pushes(), node_.models());
  }

  Node& node() { return node_; }
  const Node& node() const { return node_; }
  Links& links() { return links_; }

 private:
  FrameRouter router_;
  Links links_;
  Node node_;
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_LINKED_NODE_H_
