// A whole node in virtual time, linked to a peer that sends what the input
// says: asks, models, mass, news of members, records, parts of a data contract.
// The first byte chooses the algorithm. Parts follow (pieces.h), each an order:
//
//   0, 1  a serialised ControlFrame
//   2     a serialised Chunk
//   3     some time passes
//   4     the state that the node says of itself, as the peer's own
//   5     a transfer that begins, with right checksums
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "daemon/base/check.h"
#include "daemon/codec/header.h"
#include "daemon/core/algorithms/catalogue.h"
#include "daemon/core/plan/derived_plan.h"
#include "daemon/core/plan/run_plan.h"
#include "daemon/exchange/proto_frames.h"
#include "daemon/ports/events.h"
#include "daemon/records/unsigned_record_codec.h"
#include "daemon/runtime/linked_node.h"
#include "daemon/simports/analytic_learner.h"
#include "daemon/simports/sim_files.h"
#include "daemon/simports/sim_loop.h"
#include "daemon/simports/sim_network.h"
#include "daemon/simports/sim_scheduler.h"
#include "daemon/simports/sim_trainer.h"
#include "daemon/simports/sim_transport.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/pieces.h"
#include "tests/fuzz/seal.h"
#include "tests/unit/runtime/raw_peer.h"

namespace dfl::fuzz {
namespace {

namespace pb = ::dfl::peer::v1;

constexpr int64_t kParameters = 20;
constexpr int64_t kBuffers = 2;
constexpr uint64_t kIncarnation = 77;
constexpr size_t kMostOrders = 64;

core::DerivedPlan MakePlan(const core::AlgorithmInfo& info) {
  core::RunPlan plan;
  plan.version = 1;
  plan.run_id = "run-1";
  plan.seed = 3;
  for (int i = 0; i < 3; ++i) {
    plan.members.push_back(
        core::MemberSpec{.node = NodeId(absl::StrCat("n", i)), .rows = 12});
  }
  plan.model.kind = "linear";
  plan.model.classes = 2;
  plan.model.hidden.clear();
  plan.batch_size = 4;
  plan.algorithm.name = info.name;
  plan.topology.kind = info.star_graph ? "star" : "complete";
  plan.codec.format = core::MessageFormat{};
  plan.deadline.exchange = absl::Milliseconds(50);
  plan.evaluation.every_steps = 0;
  auto derived = core::CheckAndDerive(plan, NodeId("n0"));
  DFL_CHECK(derived.ok());
  return *std::move(derived);
}

class NoEvents final : public ports::EventSink {
 public:
  void Report(const ports::NodeEvent& /*event*/) override {}
};

// The node n0, which trains, and its peer n1.
class Session {
 public:
  explicit Session(const core::AlgorithmInfo& info)
      : node_(NodeOptions(), loop_, transport_, loop_, events_,
              {.judge = &judge_, .files = &files_}, MembershipOptions()) {
    auto trainer = std::make_unique<simports::SimTrainer>(
        loop_, learner_, absl::Milliseconds(10));
    DFL_CHECK(node_.node().SetPlan(MakePlan(info), std::move(trainer)).ok());
    DFL_CHECK(node_.node().Start().ok());
    scheduler_.RunFor(absl::Seconds(3));
    peer_.Dial("n0:1");
    scheduler_.RunFor(absl::Milliseconds(20));
  }

  void Carry(absl::string_view order) {
    Pieces pieces(order);
    switch (pieces.Byte() % 6) {
      case 0:
      case 1:
        SendParsed<pb::ControlFrame>(pieces.Rest());
        break;
      case 2:
        SendParsed<pb::Chunk>(pieces.Rest());
        break;
      case 3:
        scheduler_.RunFor(absl::Milliseconds(pieces.Number() % 4096));
        break;
      case 4:
        SayState();
        break;
      default:
        BeginTransfer(pieces);
    }
    scheduler_.RunFor(absl::Milliseconds(2));
    Check();
  }

  void End() {
    scheduler_.RunFor(absl::Milliseconds(200));
    Check();
    (void)node_.node().Status();
  }

 private:
  static runtime::NodeOptions NodeOptions() {
    runtime::NodeOptions options;
    options.self = NodeId("n0");
    options.incarnation = kIncarnation;
    options.joining.within = absl::Milliseconds(100);
    return options;
  }
  static runtime::MembershipOptions MembershipOptions() {
    runtime::MembershipOptions options;
    options.enabled = true;
    options.self = NodeId("n0");
    options.starts = 1;
    options.seed = kIncarnation;
    options.facts.addresses = {"n0:1"};
    options.facts.memory = kIncarnation;
    return options;
  }
  static simports::SimTransportOptions TransportOptions() {
    simports::SimTransportOptions options;
    options.node = NodeId("n0");
    options.incarnation = kIncarnation;
    options.address = "n0:1";
    return options;
  }

  // Where the link is gone, nothing is sent.
  void Send(ports::Frame frame) {
    if (peer_.linked()) (void)peer_.Send(std::move(frame));
  }

  template <typename Message>
  void SendParsed(absl::string_view bytes) {
    Message message;
    if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
      return;
    }
    auto frame = exchange::FromProto(&message);
    if (frame.ok()) Send(*std::move(frame));
  }

  void SayState() {
    const auto heard = peer_.Heard<ports::StateFrame>();
    if (heard.empty()) return;
    ports::StateFrame state = heard.back();
    state.phase = ports::Phase::kTraining;
    state.wants_answer = false;
    Send(std::move(state));
  }

  void BeginTransfer(Pieces& pieces) {
    ports::TransferBegin begin;
    begin.kind = static_cast<ports::TransferKind>(1 + pieces.Byte() % 3);
    begin.transfer = pieces.Byte();
    begin.ask = pieces.Byte();
    begin.sequence = pieces.Byte();
    begin.step = pieces.Number();
    begin.tracker_epoch = pieces.Byte();
    for (int left = pieces.Byte() % 4; left > 0; --left) {
      begin.scalars.push_back(pieces.Byte() / 16.0);
    }
    begin.header = std::string(pieces.Take(codec::kHeaderBytes));
    begin.body = std::string(pieces.Rest());
    begin.header.resize(codec::kHeaderBytes);
    SealEnd(&begin.header);
    const auto header = codec::ParseHeader(begin.header);
    if (header.ok() && header->body_bytes() <= ports::kMaxInlineBodyBytes) {
      begin.body.resize(static_cast<size_t>(header->body_bytes()));
      SealMessage(&begin.header, &begin.body);
    }
    begin.body_bytes = static_cast<int64_t>(begin.body.size());
    if (ports::ValidateFrame(begin).ok()) Send(std::move(begin));
  }

  // The node is well, and what it holds is bounded.
  void Check() {
    const runtime::Node& node = node_.node();
    const runtime::TransfersOptions bounds;
    DFL_CHECK(node.transfers().inbound() <= bounds.max_inbound_per_peer);
    DFL_CHECK(node_.records().book().current().size() <=
              runtime::RecordBook::kMaxCurrent);
    DFL_CHECK(node_.membership().members().size() <= runtime::kMostMembers);
    for (const float value : node_.node().parameters()) {
      DFL_CHECK(std::isfinite(value));
    }
  }

  simports::SimScheduler scheduler_;
  simports::SimNetwork network_{scheduler_, 1};
  simports::SimFiles files_;
  const records::UnsignedRecordCodec judge_{""};
  NoEvents events_;
  simports::FakeLearner learner_{kParameters, kBuffers};
  simports::SimLoop loop_{scheduler_};
  simports::SimTransport transport_{network_, loop_, TransportOptions()};
  runtime::LinkedNode node_;
  runtime::RawPeer peer_{network_, "n1"};
};

}  // namespace

DFL_FUZZ_TARGET(peer_session)(absl::string_view bytes) {
  Pieces pieces(bytes);
  const auto algorithms = core::BuiltInCatalogue().entries();
  Session session(algorithms[pieces.Byte() % algorithms.size()]);
  for (size_t i = 0; i < kMostOrders && !pieces.empty(); ++i) {
    session.Carry(pieces.Part());
  }
  session.End();
}

}  // namespace dfl::fuzz
