// A node that only passes records on, and one that says what a test wants.
#ifndef DFL_TESTS_UNIT_GOSSIP_GOSSIP_NODE_H_
#define DFL_TESTS_UNIT_GOSSIP_GOSSIP_NODE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "daemon/ports/events.h"
#include "daemon/ports/transport.h"
#include "daemon/runtime/gossip/record_gossip.h"
#include "daemon/runtime/links/frame_router.h"
#include "daemon/runtime/links/links.h"
#include "daemon/simports/sim_files.h"
#include "daemon/simports/sim_loop.h"
#include "daemon/simports/sim_network.h"
#include "daemon/simports/sim_transport.h"
#include "tests/unit/gossip/fake_judge.h"

namespace dfl::runtime {

inline simports::SimTransportOptions TransportOf(const std::string& name,
                                                 uint64_t incarnation) {
  simports::SimTransportOptions options;
  options.node = NodeId(name);
  options.incarnation = incarnation;
  options.address = name + ":1";
  return options;
}

// Receives all frames that are not about records, and drops them.
class OtherFrames
    : public FrameReceivers<
          ports::StateFrame, ports::AskFrame, ports::RefuseFrame,
          ports::CancelAskFrame, ports::TransferBegin, ports::Chunk,
          ports::TransferAck, ports::TransferCancel, ports::SkipFrame,
          ports::ContractWant, ports::ContractPart, ports::ProbeFrame,
          ports::ProbeAckFrame, ports::MembersFrame, ports::MembersDigestFrame,
          ports::QueryFrame, ports::QueryPartFrame> {
  void OnFrame(const NodeId&, ports::StateFrame) override {}
  void OnFrame(const NodeId&, ports::AskFrame) override {}
  void OnFrame(const NodeId&, ports::RefuseFrame) override {}
  void OnFrame(const NodeId&, ports::CancelAskFrame) override {}
  void OnFrame(const NodeId&, ports::TransferBegin) override {}
  void OnFrame(const NodeId&, ports::Chunk) override {}
  void OnFrame(const NodeId&, ports::TransferAck) override {}
  void OnFrame(const NodeId&, ports::TransferCancel) override {}
  void OnFrame(const NodeId&, ports::SkipFrame) override {}
  void OnFrame(const NodeId&, ports::ContractWant) override {}
  void OnFrame(const NodeId&, ports::ContractPart) override {}
  void OnFrame(const NodeId&, ports::ProbeFrame) override {}
  void OnFrame(const NodeId&, ports::ProbeAckFrame) override {}
  void OnFrame(const NodeId&, ports::MembersFrame) override {}
  void OnFrame(const NodeId&, ports::MembersDigestFrame) override {}
  void OnFrame(const NodeId&, ports::QueryFrame) override {}
  void OnFrame(const NodeId&, ports::QueryPartFrame) override {}
};

// Listens at "NAME:1".
class GossipNode final : private RecordListener, private ports::EventSink {
 public:
  // The disk and the judge are the test's, which keeps them over a restart.
  GossipNode(simports::SimNetwork& network, const std::string& name,
             const RecordJudge* judge, ports::Files* files,
             uint64_t incarnation = 1)
      : loop_(network.scheduler()),
        transport_(network, loop_, TransportOf(name, incarnation)),
        links_(LinksOptions{NodeId(name)}, loop_, transport_, *this, router_),
        gossip_(RecordOptions{judge, files, this}, loop_, links_, *this,
                [this](const NodeId& from, const std::string& text) {
                  bad_.push_back(from.name() + ": " + text);
                }) {
    router_.Connect(others_, gossip_);
    loaded_ = gossip_.Load().status();
  }

  void Dial(const std::string& name) { (void)links_.AddAddress(name + ":1"); }
  RecordGossip& gossip() { return gossip_; }
  const RecordBook& book() const { return gossip_.book(); }
  bool Holds(const FakeRecord& record) const {
    return book().Find(IdOf(record)) != nullptr;
  }
  bool IsLinked(const std::string& name) const {
    return links_.IsUp(NodeId(name));
  }
  const absl::Status& loaded() const { return loaded_; }
  // "FROM TEXT" of each record that was taken.
  const std::vector<std::string>& taken() const { return taken_; }
  // "FROM: TEXT" of each bad message.
  const std::vector<std::string>& bad() const { return bad_; }
  const std::vector<ports::RecordCame>& came() const { return came_; }

 private:
  void OnRecordTaken(const Record& record, const NodeId& from) override {
    taken_.push_back(from.name() + " " + record.text);
  }
  void Report(const ports::NodeEvent& event) override {
    if (const auto* e = std::get_if<ports::RecordCame>(&event)) {
      came_.push_back(*e);
    }
  }

  std::vector<std::string> taken_;
  std::vector<std::string> bad_;
  std::vector<ports::RecordCame> came_;
  absl::Status loaded_;
  simports::SimLoop loop_;
  simports::SimTransport transport_;
  FrameRouter router_;
  Links links_;
  OtherFrames others_;
  RecordGossip gossip_;
};

}  // namespace dfl::runtime

#endif  // DFL_TESTS_UNIT_GOSSIP_GOSSIP_NODE_H_
