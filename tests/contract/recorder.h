// A Transport::Handler for tests.
#ifndef DFL_TESTS_CONTRACT_RECORDER_H_
#define DFL_TESTS_CONTRACT_RECORDER_H_

#include <map>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "daemon/ports/frames.h"
#include "daemon/ports/transport.h"
#include "gtest/gtest.h"

namespace dfl::ports::contract {

// Writes down what a transport tells its node. Touched on that node's loop
// only.
class Recorder final : public Transport::Handler {
 public:
  struct Link {
    PeerIdentity peer;
    std::string dialled;
    std::vector<Frame> control;
    std::vector<Frame> chunks;
    int writable = 0;
    int downs = 0;
    absl::Status reason;
  };

  void OnLinkUp(LinkId link, const PeerIdentity& peer,
                const std::string& dialled_address) override {
    Outside();
    EXPECT_NE(link, 0u);
    EXPECT_EQ(links.count(link), 0u) << "link id " << link << " came twice";
    links[link].peer = peer;
    links[link].dialled = dialled_address;
    order.push_back(link);
  }
  void OnDialFailed(const std::string& address,
                    const absl::Status& status) override {
    Outside();
    failures.emplace_back(address, status);
  }
  void OnFrame(LinkId link, Frame frame) override {
    Link& l = Up(link);
    EXPECT_EQ(closed.count(link), 0u) << "a frame after Close";
    (std::holds_alternative<Chunk>(frame) ? l.chunks : l.control)
        .push_back(std::move(frame));
  }
  void OnWritable(LinkId link) override {
    ++Up(link).writable;
    EXPECT_EQ(closed.count(link), 0u) << "OnWritable after Close";
  }
  void OnLinkDown(LinkId link, const absl::Status& reason) override {
    Link& l = Up(link);
    ++l.downs;
    l.reason = reason;
  }

  Link& Up(LinkId link) {
    Outside();
    EXPECT_EQ(links.count(link), 1u) << "link " << link << " never came up";
    EXPECT_EQ(links[link].downs, 0) << "link " << link << " is down";
    return links[link];
  }

  // The youngest link, 0 without one.
  LinkId last() const { return order.empty() ? 0 : order.back(); }
  int up() const {
    int up = 0;
    for (const auto& [id, link] : links) up += link.downs == 0;
    return up;
  }

  bool in_call = false;  // inside a call to the transport
  std::map<LinkId, Link> links;
  std::vector<LinkId> order;
  std::vector<std::pair<std::string, absl::Status>> failures;
  std::set<LinkId> closed;  // by us

 private:
  void Outside() {
    EXPECT_FALSE(in_call) << "a handler call from inside a transport call";
  }
};

}  // namespace dfl::ports::contract

#endif  // DFL_TESTS_CONTRACT_RECORDER_H_
