// Frames to send in tests, and to compare.
#ifndef DFL_TESTS_CONTRACT_SAMPLE_FRAMES_H_
#define DFL_TESTS_CONTRACT_SAMPLE_FRAMES_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/ports/frames.h"

namespace dfl::ports::contract {

// A frame as text: equal texts, equal frames.
inline std::string Describe(const Frame& frame) {
  struct Visitor {
    std::string operator()(const StateFrame& f) const {
      return absl::StrCat(f.run_id, ",", absl::StrJoin(f.contract, " "), ",",
                          f.algorithm, ",", f.plan_version, ",", f.step, ",",
                          static_cast<int>(f.phase), ",", f.tracker_epoch, ",",
                          f.wants_answer);
    }
    std::string operator()(const AskFrame& f) const {
      return absl::StrCat(f.ask, ",", static_cast<int>(f.purpose), ",", f.step);
    }
    std::string operator()(const RefuseFrame& f) const {
      return absl::StrCat(f.ask, ",", static_cast<int>(f.reason), ",", f.text);
    }
    std::string operator()(const CancelAskFrame& f) const {
      return absl::StrCat(f.ask);
    }
    std::string operator()(const TransferBegin& f) const {
      return absl::StrCat(f.transfer, ",", static_cast<int>(f.kind), ",", f.ask,
                          ",", f.step, ",", f.header, ",", f.body_bytes, ",",
                          absl::StrJoin(f.scalars, " "), ",", f.tracker_epoch,
                          ",", f.sequence, ",",
                          absl::ToInt64Microseconds(f.age), ",", f.body);
    }
    std::string operator()(const Chunk& f) const {
      return absl::StrCat(f.transfer, ",", f.offset, ",", f.data);
    }
    std::string operator()(const TransferAck& f) const {
      return absl::StrCat(f.transfer, ",", f.received, ",", f.complete, ",",
                          f.taken);
    }
    std::string operator()(const SkipFrame& f) const {
      return absl::StrCat(f.round);
    }
    static std::string Id(const RecordId& id) {
      return absl::StrCat(id.kind, ",", id.subject, ",", id.counter, ",",
                          id.hash);
    }
    std::string operator()(const RecordSummary& f) const {
      return absl::StrJoin(f.records, ";",
                           [](std::string* out, const RecordId& id) {
                             absl::StrAppend(out, Id(id));
                           });
    }
    std::string operator()(const RecordWant& f) const {
      return absl::StrCat(Id(f.record), ",", f.offset);
    }
    std::string operator()(const RecordPart& f) const {
      return absl::StrCat(Id(f.record), ",", f.total_bytes, ",", f.offset, ",",
                          f.data);
    }
    std::string operator()(const ContractWant& f) const {
      return absl::StrCat(core::FieldName(f.field), ",", f.offset);
    }
    std::string operator()(const ContractPart& f) const {
      return absl::StrCat(core::FieldName(f.field), ",", f.total_bytes, ",",
                          f.offset, ",", f.data);
    }
    static std::string Way(const Route& route) {
      return absl::StrCat(route.origin.name(), " to ", route.target.name(),
                          " by ", route.hops);
    }
    static std::string Facts(const MemberFacts& f) {
      return absl::StrCat(
          absl::StrJoin(f.addresses, " "), ",",
          absl::StrJoin(f.labels, " ", absl::PairFormatter("=")), ",", f.rows,
          ",", static_cast<int>(f.participation), ",",
          static_cast<int>(f.condition), ",", f.reason, ",",
          static_cast<int>(f.pace), ",", f.memory, ",", f.plan_version, ",",
          f.plan_hash);
    }
    std::string operator()(const ProbeFrame& f) const {
      return absl::StrCat(Way(f.route), ",", f.number, ",", f.digest);
    }
    std::string operator()(const ProbeAckFrame& f) const {
      return absl::StrCat(Way(f.route), ",", f.number, ",", f.receipt, ",",
                          f.memory, ",", f.digest);
    }
    std::string operator()(const MembersFrame& f) const {
      return absl::StrJoin(
          f.members, ";", [](std::string* out, const MemberUpdate& m) {
            absl::StrAppend(out, m.node.name(), ",", m.incarnation.starts, ",",
                            m.incarnation.refutations, ",",
                            static_cast<int>(m.state), ",", m.by.name(), ",",
                            m.facts ? Facts(*m.facts) : "");
          });
    }
    std::string operator()(const MembersDigestFrame& f) const {
      return absl::StrCat(absl::StrJoin(f.buckets, " "), ",", f.wants_answer);
    }
    std::string operator()(const QueryFrame& f) const {
      return absl::StrCat(Way(f.route), ",", f.number, ",", f.topic, ",",
                          f.offset);
    }
    std::string operator()(const QueryPartFrame& f) const {
      return absl::StrCat(Way(f.route), ",", f.number, ",", f.total_bytes, ",",
                          f.offset, ",", f.data, ",", f.error);
    }
    std::string operator()(const TransferCancel& f) const {
      return absl::StrCat(f.transfer, ",", f.by_sender, ",",
                          static_cast<int>(f.reason), ",", f.text);
    }
  };
  return absl::StrCat(FrameName(frame), "(", std::visit(Visitor(), frame), ")");
}

// One frame of each kind with every field set, and one with none.
inline std::vector<Frame> SampleFrames() {
  std::vector<Frame> frames;
  StateFrame state;
  state.run_id = "run-7";
  state.contract.fill(~uint64_t{0});
  state.algorithm = "d-psgd";
  state.plan_version = 300;
  state.step = 1234567890123;
  state.phase = Phase::kDegraded;
  state.tracker_epoch = 3;
  state.wants_answer = true;
  frames.emplace_back(state);
  frames.emplace_back(StateFrame());
  AskFrame ask;
  ask.ask = ~uint64_t{0};
  ask.purpose = AskPurpose::kState;
  ask.step = 127;
  frames.emplace_back(ask);
  frames.emplace_back(AskFrame());
  RefuseFrame refuse;
  refuse.ask = 128;
  refuse.reason = RefuseReason::kUnknownCodec;
  refuse.text = "version 9 of the codec is unknown; 1 is known";
  frames.emplace_back(refuse);
  frames.emplace_back(RefuseFrame());
  CancelAskFrame cancel_ask;
  cancel_ask.ask = 16384;
  frames.emplace_back(cancel_ask);
  frames.emplace_back(CancelAskFrame());
  TransferBegin begin;
  begin.transfer = 5;
  begin.kind = TransferKind::kPush;
  begin.ask = 6;
  begin.step = 7;
  begin.header = std::string("\x00\xff\x80 header", 10);
  begin.body_bytes = int64_t{1} << 40;
  begin.scalars = {0.25, 0, -3};
  begin.age = absl::Microseconds(1500000);
  frames.emplace_back(begin);
  begin.kind = TransferKind::kMass;
  begin.tracker_epoch = 200;
  begin.sequence = uint64_t{1} << 40;
  frames.emplace_back(begin);
  begin.body = std::string("\x00\x80 body", 7);
  begin.body_bytes = 7;
  frames.emplace_back(begin);
  frames.emplace_back(TransferBegin());
  TransferAck ack;
  ack.transfer = 5;
  ack.received = (int64_t{1} << 40) - 1;
  ack.complete = true;
  frames.emplace_back(ack);
  ack.taken = -0.125;
  frames.emplace_back(ack);
  SkipFrame skip;
  skip.round = 77;
  frames.emplace_back(skip);
  frames.emplace_back(SkipFrame());
  frames.emplace_back(TransferAck());
  TransferCancel cancel;
  cancel.transfer = 5;
  cancel.by_sender = true;
  cancel.reason = RefuseReason::kBusy;
  cancel.text = "enough";
  frames.emplace_back(cancel);
  frames.emplace_back(TransferCancel());
  RecordId record;
  record.kind = 3;
  record.subject = "spiffe://plant-4/node/gateway-07";
  record.counter = ~uint64_t{0};
  record.hash = std::string(31, '\xff') + '\0';
  RecordId least;
  least.kind = 1;
  least.counter = 1;
  least.hash = std::string(kRecordHashBytes, '\0');
  frames.emplace_back(RecordSummary{{record, least}});
  frames.emplace_back(RecordSummary());
  frames.emplace_back(RecordWant{record, 32 << 10});
  frames.emplace_back(RecordWant{least});
  frames.emplace_back(
      RecordPart{record, kMaxRecordBytes, 32 << 10, std::string("\0\xff", 2)});
  frames.emplace_back(RecordPart{least, 0, 0, ""});
  frames.emplace_back(ContractWant{core::ContractField::kModel, 4 << 20});
  frames.emplace_back(ContractWant{});
  frames.emplace_back(ContractPart{core::ContractField::kClasses, 4 << 20,
                                   32 << 10, std::string("\0\xff", 2)});
  frames.emplace_back(ContractPart{});
  const Route near{NodeId("a"), NodeId("b")};
  const Route far{NodeId("box-17"), NodeId(std::string(63, 'x')), kMaxHops};
  frames.emplace_back(ProbeFrame{far, 300, ~uint64_t{0}});
  frames.emplace_back(ProbeFrame{near});
  frames.emplace_back(ProbeAckFrame{far, 300, true, 7, 1});
  frames.emplace_back(ProbeAckFrame{near});
  MemberFacts facts;
  facts.addresses = {"box-17.plant:7600", "[::1]:7600"};
  facts.labels = {{"line", "2"}, {"site", "north"}};
  facts.rows = 60000;
  facts.participation = core::Participation::kMix;
  facts.condition = Condition::kDegraded;
  facts.reason = "the model's file /models/a.pt is missing";
  facts.pace = Pace::kCellular;
  facts.memory = ~uint64_t{0};
  facts.plan_version = 300;
  facts.plan_hash = 1;
  const NodeId box("box-17");
  frames.emplace_back(MembersFrame{
      {{box, {3, 200}, MemberState::kAlive, {}, facts},
       {NodeId("b"), {1, 0}, MemberState::kSuspect, box, {}},
       {NodeId("c"), {1, 0}, MemberState::kAlive, {}, MemberFacts()}}});
  frames.emplace_back(MembersFrame());
  frames.emplace_back(MembersDigestFrame{
      std::vector<uint64_t>(kDigestBuckets, ~uint64_t{0}), true});
  frames.emplace_back(
      MembersDigestFrame{std::vector<uint64_t>(kDigestBuckets, 0), false});
  frames.emplace_back(QueryFrame{far, 300, 1, 32 << 10});
  frames.emplace_back(QueryFrame{near, 0, 1, 0});
  frames.emplace_back(QueryPartFrame{far, 300, 1 << 20, 32 << 10,
                                     std::string("\0\xff", 2), "why not"});
  frames.emplace_back(QueryPartFrame{near, 0, 0, 0, "", ""});
  Chunk chunk;
  chunk.transfer = 5;
  chunk.offset = int64_t{1} << 35;
  chunk.data = std::string("\x00\x01\xfe\xff", 4);
  frames.emplace_back(chunk);
  frames.emplace_back(Chunk());
  return frames;
}

inline Frame AskNumber(uint64_t number) {
  AskFrame ask;
  ask.ask = number;
  return ask;
}

inline Frame ChunkAt(int64_t offset, int64_t size) {
  Chunk chunk;
  chunk.transfer = 1;
  chunk.offset = offset;
  chunk.data.assign(size, static_cast<char>('a' + offset % 23));
  return chunk;
}

}  // namespace dfl::ports::contract

#endif  // DFL_TESTS_CONTRACT_SAMPLE_FRAMES_H_
