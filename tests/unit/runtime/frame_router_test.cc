// Which part gets which frame.
#include "daemon/runtime/links/frame_router.h"

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace dfl::runtime {
namespace {

using ports::AskFrame;
using ports::CancelAskFrame;
using ports::Chunk;
using ports::ContractPart;
using ports::ContractWant;
using ports::RecordPart;
using ports::RecordSummary;
using ports::RecordWant;
using ports::RefuseFrame;
using ports::SkipFrame;
using ports::StateFrame;
using ports::TransferAck;
using ports::TransferBegin;
using ports::TransferCancel;

// Writes down what it is given.
template <typename F>
class Receiver : public FrameReceiver<F> {
 public:
  explicit Receiver(std::vector<std::string>& heard) : heard_(heard) {}
  void OnFrame(const NodeId& from, F frame) override {
    heard_.push_back(
        absl::StrCat(from.name(), " ", ports::FrameName(std::move(frame))));
  }

 private:
  std::vector<std::string>& heard_;
};

class Observer : public LinkObserver {
 public:
  Observer(std::string name, std::vector<std::string>& heard)
      : name_(std::move(name)), heard_(heard) {}
  void OnPeerUp(const NodeId& peer, bool restarted) override {
    Hear("up ", peer.name(), restarted ? " restarted" : "");
  }
  void OnPeerDown(const NodeId& peer, const absl::Status& reason) override {
    Hear("down ", peer.name(), std::string(reason.message()));
  }
  void OnPeerWritable(const NodeId& peer) override {
    Hear("writable ", peer.name(), "");
  }
  void OnAddressFailed(const std::string& address) override {
    Hear("failed ", address, "");
  }

 private:
  void Hear(const std::string& what, const std::string& who,
            const std::string& more) {
    heard_.push_back(absl::StrCat(name_, ": ", what, who, more));
  }

  const std::string name_;
  std::vector<std::string>& heard_;
};

// Receives what no Receiver below does.
class Rest
    : public FrameReceivers<
          StateFrame, AskFrame, RefuseFrame, CancelAskFrame, TransferBegin,
          TransferAck, TransferCancel, RecordSummary, RecordWant, RecordPart,
          ContractWant, ContractPart, ports::ProbeFrame, ports::ProbeAckFrame,
          ports::MembersFrame, ports::MembersDigestFrame, ports::QueryFrame,
          ports::QueryPartFrame>,
      public Observer {
 public:
  explicit Rest(std::vector<std::string>& heard)
      : Observer("rest", heard), heard_(heard) {}
  void OnFrame(const NodeId&, StateFrame) override { Hear("state"); }
  void OnFrame(const NodeId&, AskFrame) override { Hear("ask"); }
  void OnFrame(const NodeId&, RefuseFrame) override { Hear("refuse"); }
  void OnFrame(const NodeId&, CancelAskFrame) override { Hear("cancel ask"); }
  void OnFrame(const NodeId&, TransferBegin begin) override {
    Hear(absl::StrCat("begin ", begin.body));
  }
  void OnFrame(const NodeId&, TransferAck) override { Hear("ack"); }
  void OnFrame(const NodeId&, TransferCancel) override { Hear("cancel"); }
  void OnFrame(const NodeId&, RecordSummary) override { Hear("summary"); }
  void OnFrame(const NodeId&, RecordWant) override { Hear("want"); }
  void OnFrame(const NodeId&, RecordPart) override { Hear("part"); }
  void OnFrame(const NodeId&, ContractWant) override { Hear("contract want"); }
  void OnFrame(const NodeId&, ContractPart) override { Hear("contract part"); }
  void OnFrame(const NodeId&, ports::ProbeFrame) override { Hear("probe"); }
  void OnFrame(const NodeId&, ports::ProbeAckFrame) override {
    Hear("probe ack");
  }
  void OnFrame(const NodeId&, ports::MembersFrame) override { Hear("members"); }
  void OnFrame(const NodeId&, ports::MembersDigestFrame) override {
    Hear("digest");
  }
  void OnFrame(const NodeId&, ports::QueryFrame) override { Hear("query"); }
  void OnFrame(const NodeId&, ports::QueryPartFrame) override {
    Hear("query part");
  }

 private:
  void Hear(const std::string& what) {
    heard_.push_back(absl::StrCat("rest: ", what));
  }

  std::vector<std::string>& heard_;
};

TEST(FrameRouterTest, HandsEveryKindToItsReceiver) {
  std::vector<std::string> heard;
  Rest rest(heard);
  Receiver<Chunk> chunks(heard);
  Receiver<SkipFrame> skips(heard);
  FrameRouter router;
  router.Connect(rest, chunks, skips);
  const NodeId a("a");
  TransferBegin begin;
  begin.body = "xyz";
  for (const ports::Frame& frame :
       std::vector<ports::Frame>{StateFrame(),
                                 AskFrame(),
                                 RefuseFrame(),
                                 CancelAskFrame(),
                                 begin,
                                 Chunk(),
                                 TransferAck(),
                                 TransferCancel(),
                                 SkipFrame(),
                                 RecordSummary(),
                                 RecordWant(),
                                 RecordPart(),
                                 ContractWant(),
                                 ContractPart(),
                                 ports::ProbeFrame(),
                                 ports::ProbeAckFrame(),
                                 ports::MembersFrame(),
                                 ports::MembersDigestFrame(),
                                 ports::QueryFrame(),
                                 ports::QueryPartFrame()}) {
    router.OnPeerFrame(a, frame);
  }
  EXPECT_EQ(heard, (std::vector<std::string>{
                       "rest: state",
                       "rest: ask",
                       "rest: refuse",
                       "rest: cancel ask",
                       "rest: begin xyz",
                       absl::StrCat("a ", ports::FrameName(Chunk())),
                       "rest: ack",
                       "rest: cancel",
                       absl::StrCat("a ", ports::FrameName(SkipFrame())),
                       "rest: summary",
                       "rest: want",
                       "rest: part",
                       "rest: contract want",
                       "rest: contract part",
                       "rest: probe",
                       "rest: probe ack",
                       "rest: members",
                       "rest: digest",
                       "rest: query",
                       "rest: query part"}));
}

TEST(FrameRouterTest, TellsEveryObserverOfLinksInOrder) {
  struct Chunks : Receiver<Chunk>, Observer {
    explicit Chunks(std::vector<std::string>& heard)
        : Receiver<Chunk>(heard), Observer("chunks", heard) {}
  };
  std::vector<std::string> heard;
  Chunks chunks(heard);
  Rest rest(heard);
  Receiver<SkipFrame> skips(heard);
  FrameRouter router;
  router.Connect(chunks, rest, skips);
  const NodeId a("a");
  router.OnPeerUp(a, true);
  router.OnPeerDown(a, absl::UnavailableError(" why"));
  router.OnPeerWritable(a);
  router.OnAddressFailed("b:1");
  EXPECT_EQ(heard,
            (std::vector<std::string>{
                "chunks: up a restarted", "rest: up a restarted",
                "chunks: down a why", "rest: down a why", "chunks: writable a",
                "rest: writable a", "chunks: failed b:1", "rest: failed b:1"}));
}

// What Connect() asserts when it is compiled.
TEST(FrameRouterTest, AKindWithoutAReceiverOrWithTwoIsRefused) {
  using Kinds = std::variant<Chunk, SkipFrame>;
  static_assert(
      kEachKindReceivedOnce<Kinds, Receiver<Chunk>, Receiver<SkipFrame>>);
  static_assert(!kEachKindReceivedOnce<Kinds, Receiver<Chunk>>);
  static_assert(!kEachKindReceivedOnce<Kinds>);
  static_assert(!kEachKindReceivedOnce<Kinds, Receiver<Chunk>, Receiver<Chunk>,
                                       Receiver<SkipFrame>>);
  // One that is more than what is needed does no harm.
  static_assert(kEachKindReceivedOnce<Kinds, Receiver<Chunk>,
                                      Receiver<SkipFrame>, Receiver<AskFrame>>);
  static_assert(!kEachKindReceivedOnce<ports::Frame, Receiver<Chunk>, Rest>);
}

}  // namespace
}  // namespace dfl::runtime
