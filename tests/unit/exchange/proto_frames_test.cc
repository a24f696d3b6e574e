#include "daemon/exchange/proto_frames.h"

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "tests/contract/sample_frames.h"

namespace dfl::exchange {
namespace {

using ports::contract::Describe;
using ports::contract::SampleFrames;

// What the dialler really writes; the listener's messages have the same layout.
int64_t SerialisedSize(const ports::Frame& frame) {
  if (const auto* chunk = std::get_if<ports::Chunk>(&frame)) {
    pb::BulkRequest message;
    ToProto(*chunk, message.mutable_chunk());
    return message.SerializeAsString().size();
  }
  pb::ControlRequest message;
  ToProto(frame, message.mutable_frame());
  return message.SerializeAsString().size();
}

TEST(ProtoFrames, EncodedSizeIsTheSizeOnTheWire) {
  for (const ports::Frame& frame : SampleFrames()) {
    EXPECT_EQ(ports::EncodedSize(frame), SerialisedSize(frame))
        << Describe(frame);
  }
  // Around every length where a varint grows.
  for (int bits = 0; bits < 63; ++bits) {
    for (const int64_t number :
         {(int64_t{1} << bits) - 1, int64_t{1} << bits}) {
      ports::TransferAck ack;
      ack.transfer = static_cast<uint64_t>(number) * 2 + 1;
      ack.received = number;
      EXPECT_EQ(ports::EncodedSize(ack), SerialisedSize(ack)) << number;
    }
  }
  for (const int64_t length : {1, 100, 127, 128, 16'383, 16'384, 60'000}) {
    ports::TransferBegin begin;
    begin.header.assign(length, 'h');
    EXPECT_EQ(ports::EncodedSize(begin), SerialisedSize(begin)) << length;
    ports::Chunk chunk;
    chunk.data.assign(length, 'c');
    EXPECT_EQ(ports::EncodedSize(chunk), SerialisedSize(chunk)) << length;
  }
}

TEST(ProtoFrames, AChunkCostsAtMost32BytesBesideItsData) {
  ports::Chunk chunk;
  chunk.transfer = ~uint64_t{0};
  chunk.offset = int64_t{1} << 40;
  chunk.data.assign(ports::kMaxChunkBytes, 'x');
  EXPECT_LE(ports::EncodedSize(chunk), ports::kMaxChunkBytes + 32);
}

TEST(ProtoFrames, RequestAndResponseHaveTheSameLayout) {
  pb::ControlRequest request;
  request.mutable_frame()->mutable_ask()->set_ask(7);
  pb::ControlResponse response;
  ASSERT_TRUE(response.ParseFromString(request.SerializeAsString()));
  EXPECT_EQ(response.frame().ask().ask(), 7u);
  pb::BulkRequest bulk;
  bulk.mutable_chunk()->set_data("x");
  pb::BulkResponse answer;
  ASSERT_TRUE(answer.ParseFromString(bulk.SerializeAsString()));
  EXPECT_EQ(answer.chunk().data(), "x");
}

TEST(ProtoFrames, EveryFrameComesBackAsItWas) {
  for (const ports::Frame& frame : SampleFrames()) {
    absl::StatusOr<ports::Frame> back = absl::UnknownError("");
    if (const auto* chunk = std::get_if<ports::Chunk>(&frame)) {
      pb::Chunk message;
      ToProto(*chunk, &message);
      back = FromProto(&message);
    } else {
      pb::ControlFrame message;
      ToProto(frame, &message);
      back = FromProto(&message);
    }
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(Describe(*back), Describe(frame));
  }
}

TEST(ProtoFrames, ChunkBytesAreMovedNotCopied) {
  ports::Chunk chunk;
  chunk.data.assign(1 << 20, 'x');
  const char* bytes = chunk.data.data();
  pb::Chunk message;
  ToProto(std::move(chunk), &message);
  EXPECT_EQ(message.data().data(), bytes);
  const auto frame = FromProto(&message);
  ASSERT_TRUE(frame.ok());
  EXPECT_EQ(std::get<ports::Chunk>(*frame).data.data(), bytes);
}

TEST(ProtoFrames, AMessageKeepsNothingOfTheFrameBefore) {
  pb::ControlFrame message;
  ports::RefuseFrame refuse;
  refuse.ask = 9;
  refuse.text = "old";
  ToProto(refuse, &message);
  ToProto(ports::RefuseFrame(), &message);
  EXPECT_EQ(message.refuse().ask(), 0u);
  EXPECT_EQ(message.refuse().text(), "");
}

TEST(ProtoFrames, TextsForPeopleArePrintableAndKeepTheirLength) {
  ports::RefuseFrame refuse;
  refuse.text = "bad\xff\n\xc3\xa9!";
  pb::ControlFrame message;
  ToProto(refuse, &message);
  EXPECT_EQ(message.refuse().text(), "bad" + std::string(4, '?') + "!");
  message.mutable_refuse()->set_text("two\nlines\x1b[0m");
  const auto back = FromProto(&message);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(std::get<ports::RefuseFrame>(*back).text, "two?lines?[0m");
}

void ExpectRefused(pb::ControlFrame message, const std::string& names) {
  const auto frame = FromProto(&message);
  EXPECT_EQ(frame.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(frame.status().message(), names))
      << frame.status();
}

TEST(ProtoFrames, WhatBreaksABoundIsRefusedWithItsName) {
  pb::ControlFrame m;
  ExpectRefused(m, "no kind");
  m.mutable_state()->set_phase(static_cast<pb::Phase>(0));
  ExpectRefused(m, "phase is 0");
  m.mutable_state()->set_phase(static_cast<pb::Phase>(9));
  ExpectRefused(m, "phase is 9");
  m.mutable_state()->set_phase(pb::PHASE_IDLE);
  m.mutable_state()->set_step(-1);
  ExpectRefused(m, "step is -1");
  m.mutable_state()->set_step(0);
  m.mutable_state()->set_run_id(std::string(257, 'r'));
  ExpectRefused(m, "run_id has 257");
  m.mutable_state()->set_run_id("a\nb");
  ExpectRefused(m, "run_id: byte 2");
  m.mutable_state()->set_run_id("a");
  m.mutable_state()->set_tracker_epoch(~uint64_t{0});
  ExpectRefused(m, "tracker_epoch is 18446744073709551615");
  m.mutable_ask()->set_purpose(static_cast<pb::AskPurpose>(-5));
  ExpectRefused(m, "purpose is -5");
  m.mutable_ask()->set_purpose(pb::ASK_PURPOSE_MIX);
  m.mutable_ask()->set_step(-7);
  ExpectRefused(m, "step is -7");
  m.mutable_refuse()->set_reason(static_cast<pb::RefuseReason>(10));
  ExpectRefused(m, "reason is 10");
  m.mutable_refuse()->set_reason(pb::REFUSE_REASON_BUSY);
  m.mutable_refuse()->set_text(std::string(5000, 't'));
  ExpectRefused(m, "text has 5000");
  m.mutable_transfer_begin()->set_kind(static_cast<pb::TransferKind>(4));
  ExpectRefused(m, "kind is 4");
  m.mutable_transfer_begin()->set_kind(pb::TRANSFER_KIND_PUSH);
  m.mutable_transfer_begin()->set_body_bytes(-1);
  ExpectRefused(m, "body_bytes is -1");
  m.mutable_transfer_begin()->set_body_bytes(0);
  m.mutable_transfer_begin()->set_age_us(-1);
  ExpectRefused(m, "age_us is -1");
  m.mutable_transfer_begin()->set_age_us(0);
  m.mutable_transfer_begin()->add_scalars(std::nan(""));
  ExpectRefused(m, "scalars has nan");
  m.mutable_transfer_begin()->clear_scalars();
  for (int q = 0; q < 9; ++q) m.mutable_transfer_begin()->add_scalars(q);
  ExpectRefused(m, "scalars has 9 numbers");
  m.mutable_transfer_begin()->clear_scalars();
  m.mutable_transfer_begin()->set_tracker_epoch((uint64_t{1} << 53) + 1);
  ExpectRefused(m, "tracker_epoch is 9007199254740993");
  m.mutable_transfer_begin()->set_tracker_epoch(0);
  m.mutable_transfer_begin()->set_header(std::string(70'000, 'h'));
  ExpectRefused(m, "at most 65536");
  m.mutable_transfer_ack()->set_received(-1);
  ExpectRefused(m, "received is -1");
  m.mutable_transfer_ack()->set_received(0);
  m.mutable_transfer_ack()->set_taken(std::nan(""));
  ExpectRefused(m, "taken is nan");
  m.mutable_skip()->set_round(-1);
  ExpectRefused(m, "round is -1");
  m.mutable_transfer_cancel()->set_reason(static_cast<pb::RefuseReason>(0));
  ExpectRefused(m, "reason is 0");

  m.mutable_contract_want()->set_offset(0);
  ExpectRefused(m, "field is 0");
  m.mutable_contract_want()->set_field(static_cast<pb::ContractField>(8));
  ExpectRefused(m, "field is 8");
  m.mutable_contract_want()->set_field(pb::CONTRACT_FIELD_MODEL);
  m.mutable_contract_want()->set_offset(-1);
  ExpectRefused(m, "offset is -1");
  m.mutable_contract_want()->set_offset(ports::kMaxContractBytes + 1);
  ExpectRefused(m, "at most 4194304");
  m.mutable_contract_part()->set_field(pb::CONTRACT_FIELD_TASK);
  m.mutable_contract_part()->set_total_bytes(ports::kMaxContractBytes + 1);
  ExpectRefused(m, "total_bytes is 4194305");
  m.mutable_contract_part()->set_total_bytes(3);
  m.mutable_contract_part()->set_data("abcd");
  ExpectRefused(m, "the end of data is 4");
  m.mutable_contract_part()->set_total_bytes(ports::kMaxContractBytes);
  m.mutable_contract_part()->set_data(
      std::string(ports::kMaxContractPartBytes + 1, 'x'));
  ExpectRefused(m, "data has 32769");

  pb::RecordId* id = m.mutable_record_want()->mutable_record();
  ExpectRefused(m, "kind 0 and counter 0");
  id->set_kind(1);
  id->set_counter(1);
  ExpectRefused(m, "body_sha256 has 0 bytes");
  id->set_body_sha256(std::string(32, 'h'));
  id->set_subject(std::string(513, 's'));
  ExpectRefused(m, "subject has 513");
  id->set_subject("a\n");
  ExpectRefused(m, "subject: byte 2");
  id->set_subject("a");
  m.mutable_record_want()->set_offset(-1);
  ExpectRefused(m, "offset is -1");
  m.mutable_record_want()->set_offset(ports::kMaxRecordBytes + 1);
  ExpectRefused(m, "at most 8454144");
  const pb::RecordId good = *id;
  for (int i = 0; i < 65; ++i)
    *m.mutable_record_summary()->add_records() = good;
  ExpectRefused(m, "number of records is 65");
  *m.mutable_record_part()->mutable_record() = good;
  m.mutable_record_part()->set_total_bytes(ports::kMaxRecordBytes + 1);
  ExpectRefused(m, "total_bytes is 8454145");
  m.mutable_record_part()->set_total_bytes(10);
  m.mutable_record_part()->set_offset(9);
  m.mutable_record_part()->set_data("xy");
  ExpectRefused(m, "the end of data is 11");
  m.mutable_record_part()->set_total_bytes(100'000);
  m.mutable_record_part()->set_data(std::string(32'769, 'x'));
  ExpectRefused(m, "data has 32769");
  m.mutable_record_part()->clear_record();
  ExpectRefused(m, "kind 0");

  pb::Chunk chunk;
  chunk.set_offset(-1);
  EXPECT_FALSE(FromProto(&chunk).ok());
  chunk.set_offset(std::numeric_limits<int64_t>::max());
  EXPECT_FALSE(FromProto(&chunk).ok());
  chunk.set_offset(0);
  chunk.set_data(std::string(ports::kMaxChunkBytes + 1, 'x'));
  EXPECT_FALSE(FromProto(&chunk).ok());
}

pb::Hello GoodHello() {
  ports::PeerIdentity self;
  self.node = NodeId("beta");
  self.incarnation = 5;
  self.advertised = "beta:7400";
  return MakeHello(self, 77);
}

TEST(CheckHello, GivesTheIdentity) {
  const auto peer = CheckHello(GoodHello());
  ASSERT_TRUE(peer.ok()) << peer.status();
  EXPECT_EQ(peer->node.name(), "beta");
  EXPECT_EQ(peer->incarnation, 5u);
  EXPECT_EQ(peer->advertised, "beta:7400");
}

TEST(CheckHello, TakesAnyPeerWithACommonVersion) {
  struct Case {
    uint32_t newest;
    uint32_t oldest;
    bool ok;
  };
  for (const Case& c : {Case{2, 2, true}, Case{2, 0, true}, Case{7, 1, true},
                        Case{7, 2, true}, Case{7, 3, false}, Case{7, 0, false},
                        Case{0, 0, false}, Case{1, 1, false}}) {
    pb::Hello hello = GoodHello();
    hello.set_protocol_version(c.newest);
    hello.set_oldest_protocol_version(c.oldest);
    const absl::Status status = CheckHello(hello).status();
    EXPECT_EQ(status.ok(), c.ok) << c.newest << " " << c.oldest;
    if (!c.ok) {
      EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    }
  }
}

TEST(CheckHello, RefusesWhatIsMissingOrMalformed) {
  const auto code = [](auto change) {
    pb::Hello hello = GoodHello();
    change(hello);
    return CheckHello(hello).status().code();
  };
  EXPECT_EQ(code([](pb::Hello& h) { h.clear_node(); }),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code([](pb::Hello& h) { h.set_node("two words"); }),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code([](pb::Hello& h) { h.set_node(std::string(64, 'n')); }),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code([](pb::Hello& h) { h.clear_incarnation(); }),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code([](pb::Hello& h) { h.clear_link_nonce(); }),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code([](pb::Hello& h) {
              h.set_advertised_address(std::string(301, 'a'));
            }),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace dfl::exchange
