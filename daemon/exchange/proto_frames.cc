#include "daemon/exchange/proto_frames.h"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/check.h"
#include "daemon/base/ids.h"
#include "daemon/base/status_macros.h"

namespace dfl::exchange {
namespace {

// Keeps the length, so that EncodedSize stays true, and keeps a peer's text
// from forging log lines.
std::string Printable(std::string text) {
  for (char& c : text) {
    if (!absl::ascii_isprint(static_cast<unsigned char>(c))) c = '?';
  }
  return text;
}

void ToProto(ports::RecordId id, pb::RecordId* message) {
  message->set_kind(id.kind);
  message->set_subject(std::move(id.subject));
  message->set_counter(id.counter);
  message->set_body_sha256(std::move(id.hash));
}

ports::RecordId FromProto(pb::RecordId* message) {
  return {message->kind(), std::move(*message->mutable_subject()),
          message->counter(), std::move(*message->mutable_body_sha256())};
}

pb::ContractField ToProto(core::ContractField field) {
  return static_cast<pb::ContractField>(static_cast<int>(field) + 1);
}

core::ContractField FromProto(pb::ContractField field) {
  // 0, unset, and any other number stay none of the fields.
  return static_cast<core::ContractField>(static_cast<int64_t>(field) - 1);
}

void ToProto(const ports::Route& route, pb::Route* message) {
  message->set_origin(route.origin.name());
  message->set_target(route.target.name());
  message->set_hops(route.hops);
}

ports::Route FromProto(pb::Route* message) {
  return {NodeId(std::move(*message->mutable_origin())),
          NodeId(std::move(*message->mutable_target())), message->hops()};
}

void ToProto(ports::MemberFacts facts, pb::MemberFacts* message) {
  for (std::string& address : facts.addresses) {
    message->add_addresses(std::move(address));
  }
  for (const auto& [key, value] : facts.labels) {
    message->add_labels(absl::StrCat(key, "=", value));
  }
  message->set_rows(facts.rows);
  message->set_participation(
      static_cast<pb::Participation>(facts.participation));
  message->set_condition(static_cast<pb::Condition>(facts.condition));
  message->set_reason(Printable(std::move(facts.reason)));
  message->set_pace(static_cast<pb::Pace>(facts.pace));
  message->set_memory(facts.memory);
  message->set_plan_version(facts.plan_version);
  message->set_plan_hash(facts.plan_hash);
}

ports::MemberFacts FromProto(pb::MemberFacts* message) {
  ports::MemberFacts facts;
  for (std::string& address : *message->mutable_addresses()) {
    facts.addresses.push_back(std::move(address));
  }
  for (const std::string& label : message->labels()) {
    // One without "=" has an empty value, which is refused.
    const size_t at = std::min(label.find('='), label.size());
    facts.labels[label.substr(0, at)] =
        at == label.size() ? "" : label.substr(at + 1);
  }
  facts.rows = message->rows();
  facts.participation =
      static_cast<core::Participation>(message->participation());
  facts.condition = static_cast<ports::Condition>(message->condition());
  facts.reason = Printable(std::move(*message->mutable_reason()));
  facts.pace = static_cast<ports::Pace>(message->pace());
  facts.memory = message->memory();
  facts.plan_version = message->plan_version();
  facts.plan_hash = message->plan_hash();
  return facts;
}

void ToProto(ports::MemberUpdate update, pb::MemberUpdate* message) {
  message->set_node(update.node.name());
  message->set_starts(update.incarnation.starts);
  message->set_refutations(update.incarnation.refutations);
  message->set_state(static_cast<pb::MemberState>(update.state));
  message->set_by(update.by.name());
  if (update.facts) {
    ToProto(*std::move(update.facts), message->mutable_facts());
  }
}

ports::MemberUpdate FromProto(pb::MemberUpdate* message) {
  ports::MemberUpdate update;
  update.node = NodeId(std::move(*message->mutable_node()));
  update.incarnation = {message->starts(), message->refutations()};
  update.state = static_cast<ports::MemberState>(message->state());
  update.by = NodeId(std::move(*message->mutable_by()));
  if (message->has_facts()) update.facts = FromProto(message->mutable_facts());
  return update;
}

void ToProto(const core::EdgeBooks& books, pb::EdgeBooks& out) {
  out.set_delivered(books.delivered);
  out.set_given(books.given);
  out.set_out(books.out);
  out.set_given_out(books.given_out);
  out.set_taken_sequence(books.taken_sequence);
  out.set_taken(books.taken);
}

core::EdgeBooks FromProto(const pb::EdgeBooks& message) {
  core::EdgeBooks books;
  books.delivered = message.delivered();
  books.given = message.given();
  books.out = message.out();
  books.given_out = message.given_out();
  books.taken_sequence = message.taken_sequence();
  books.taken = message.taken();
  return books;
}

struct ToControl {
  pb::ControlFrame* out;

  void operator()(ports::StateFrame f) const {
    pb::State* m = out->mutable_state();
    m->set_run_id(std::move(f.run_id));
    m->set_algorithm(std::move(f.algorithm));
    m->set_plan_version(f.plan_version);
    m->set_step(f.step);
    m->set_phase(static_cast<pb::Phase>(f.phase));
    m->set_tracker_epoch(f.tracker_epoch);
    m->set_wants_answer(f.wants_answer);
    if (f.books) ToProto(*f.books, *m->mutable_books());
    if (f.contract == core::ContractDigest{}) return;
    m->mutable_contract()->Add(f.contract.begin(), f.contract.end());
  }
  void operator()(const ports::AskFrame& f) const {
    pb::Ask* m = out->mutable_ask();
    m->set_ask(f.ask);
    m->set_purpose(static_cast<pb::AskPurpose>(f.purpose));
    m->set_step(f.step);
  }
  void operator()(ports::RefuseFrame f) const {
    pb::Refuse* m = out->mutable_refuse();
    m->set_ask(f.ask);
    m->set_reason(static_cast<pb::RefuseReason>(f.reason));
    m->set_text(Printable(std::move(f.text)));
  }
  void operator()(const ports::CancelAskFrame& f) const {
    out->mutable_cancel_ask()->set_ask(f.ask);
  }
  void operator()(ports::TransferBegin f) const {
    pb::TransferBegin* m = out->mutable_transfer_begin();
    m->set_transfer(f.transfer);
    m->set_kind(static_cast<pb::TransferKind>(f.kind));
    m->set_ask(f.ask);
    m->set_step(f.step);
    m->set_header(std::move(f.header));
    m->set_body_bytes(f.body_bytes);
    for (const double scalar : f.scalars) m->add_scalars(scalar);
    m->set_tracker_epoch(f.tracker_epoch);
    m->set_sequence(f.sequence);
    m->set_age_us(absl::ToInt64Microseconds(f.age));
    m->set_body(std::move(f.body));
  }
  void operator()(const ports::Chunk&) const { DFL_CHECK(!"chunk"); }
  void operator()(const ports::TransferAck& f) const {
    pb::TransferAck* m = out->mutable_transfer_ack();
    m->set_transfer(f.transfer);
    m->set_received(f.received);
    m->set_complete(f.complete);
    m->set_taken(f.taken);
  }
  void operator()(ports::TransferCancel f) const {
    pb::TransferCancel* m = out->mutable_transfer_cancel();
    m->set_transfer(f.transfer);
    m->set_by_sender(f.by_sender);
    m->set_reason(static_cast<pb::RefuseReason>(f.reason));
    m->set_text(Printable(std::move(f.text)));
  }
  void operator()(const ports::SkipFrame& f) const {
    out->mutable_skip()->set_round(f.round);
  }
  void operator()(ports::RecordSummary f) const {
    pb::RecordSummary* m = out->mutable_record_summary();
    for (ports::RecordId& id : f.records) {
      ToProto(std::move(id), m->add_records());
    }
  }
  void operator()(ports::RecordWant f) const {
    pb::RecordWant* m = out->mutable_record_want();
    ToProto(std::move(f.record), m->mutable_record());
    m->set_offset(f.offset);
  }
  void operator()(ports::RecordPart f) const {
    pb::RecordPart* m = out->mutable_record_part();
    ToProto(std::move(f.record), m->mutable_record());
    m->set_total_bytes(f.total_bytes);
    m->set_offset(f.offset);
    m->set_data(std::move(f.data));
  }
  void operator()(const ports::ContractWant& f) const {
    pb::ContractWant* m = out->mutable_contract_want();
    m->set_field(ToProto(f.field));
    m->set_offset(f.offset);
  }
  void operator()(ports::ContractPart f) const {
    pb::ContractPart* m = out->mutable_contract_part();
    m->set_field(ToProto(f.field));
    m->set_total_bytes(f.total_bytes);
    m->set_offset(f.offset);
    m->set_data(std::move(f.data));
  }
  void operator()(const ports::ProbeFrame& f) const {
    pb::Probe* m = out->mutable_membership()->mutable_probe();
    ToProto(f.route, m->mutable_route());
    m->set_number(f.number);
    m->set_digest(f.digest);
  }
  void operator()(const ports::ProbeAckFrame& f) const {
    pb::ProbeAck* m = out->mutable_membership()->mutable_probe_ack();
    ToProto(f.route, m->mutable_route());
    m->set_number(f.number);
    m->set_receipt(f.receipt);
    m->set_memory(f.memory);
    m->set_digest(f.digest);
  }
  void operator()(ports::MembersFrame f) const {
    pb::Members* m = out->mutable_membership()->mutable_members();
    for (ports::MemberUpdate& update : f.members) {
      ToProto(std::move(update), m->add_members());
    }
  }
  void operator()(const ports::MembersDigestFrame& f) const {
    pb::MembersDigest* m = out->mutable_membership()->mutable_members_digest();
    m->mutable_buckets()->Add(f.buckets.begin(), f.buckets.end());
    m->set_wants_answer(f.wants_answer);
  }
  void operator()(const ports::QueryFrame& f) const {
    pb::Query* m = out->mutable_membership()->mutable_query();
    ToProto(f.route, m->mutable_route());
    m->set_number(f.number);
    m->set_topic(f.topic);
    m->set_offset(f.offset);
  }
  void operator()(ports::QueryPartFrame f) const {
    pb::QueryPart* m = out->mutable_membership()->mutable_query_part();
    ToProto(f.route, m->mutable_route());
    m->set_number(f.number);
    m->set_total_bytes(f.total_bytes);
    m->set_offset(f.offset);
    m->set_data(std::move(f.data));
    m->set_error(Printable(std::move(f.error)));
  }
};

absl::StatusOr<ports::Frame> Checked(ports::Frame frame) {
  DFL_RETURN_IF_ERROR(ports::ValidateFrame(frame));
  return frame;
}

absl::StatusOr<ports::Frame> FromProto(pb::MembershipFrame* message) {
  switch (message->frame_case()) {
    case pb::MembershipFrame::kProbe: {
      pb::Probe* m = message->mutable_probe();
      return Checked(ports::ProbeFrame{FromProto(m->mutable_route()),
                                       m->number(), m->digest()});
    }
    case pb::MembershipFrame::kProbeAck: {
      pb::ProbeAck* m = message->mutable_probe_ack();
      return Checked(ports::ProbeAckFrame{FromProto(m->mutable_route()),
                                          m->number(), m->receipt(),
                                          m->memory(), m->digest()});
    }
    case pb::MembershipFrame::kMembers: {
      ports::MembersFrame f;
      for (pb::MemberUpdate& update :
           *message->mutable_members()->mutable_members()) {
        f.members.push_back(FromProto(&update));
      }
      return Checked(std::move(f));
    }
    case pb::MembershipFrame::kMembersDigest: {
      const pb::MembersDigest& m = message->members_digest();
      return Checked(ports::MembersDigestFrame{
          {m.buckets().begin(), m.buckets().end()}, m.wants_answer()});
    }
    case pb::MembershipFrame::kQuery: {
      pb::Query* m = message->mutable_query();
      return Checked(ports::QueryFrame{FromProto(m->mutable_route()),
                                       m->number(), m->topic(), m->offset()});
    }
    case pb::MembershipFrame::kQueryPart: {
      pb::QueryPart* m = message->mutable_query_part();
      return Checked(ports::QueryPartFrame{
          FromProto(m->mutable_route()), m->number(), m->total_bytes(),
          m->offset(), std::move(*m->mutable_data()),
          Printable(std::move(*m->mutable_error()))});
    }
    case pb::MembershipFrame::FRAME_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError(
      "a frame of membership of no kind that this node knows");
}

}  // namespace

void ToProto(ports::Frame frame, pb::ControlFrame* message) {
  message->Clear();
  std::visit(ToControl{message}, std::move(frame));
}

void ToProto(ports::Chunk chunk, pb::Chunk* message) {
  message->set_transfer(chunk.transfer);
  message->set_offset(chunk.offset);
  message->set_data(std::move(chunk.data));
}

absl::StatusOr<ports::Frame> FromProto(pb::Chunk* message) {
  ports::Chunk f;
  f.transfer = message->transfer();
  f.offset = message->offset();
  f.data = std::move(*message->mutable_data());
  return Checked(std::move(f));
}

absl::StatusOr<ports::Frame> FromProto(pb::ControlFrame* message) {
  // Unknown fields count as well.
  if (message->ByteSizeLong() > ports::kMaxControlFrameBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a control frame has ", message->ByteSizeLong(), " bytes; at most ",
        ports::kMaxControlFrameBytes, " are allowed"));
  }
  switch (message->frame_case()) {
    case pb::ControlFrame::kState: {
      pb::State* m = message->mutable_state();
      ports::StateFrame f;
      f.run_id = std::move(*m->mutable_run_id());
      f.algorithm = std::move(*m->mutable_algorithm());
      f.plan_version = m->plan_version();
      f.step = m->step();
      f.phase = static_cast<ports::Phase>(m->phase());
      f.tracker_epoch = m->tracker_epoch();
      f.wants_answer = m->wants_answer();
      if (m->has_books()) f.books = FromProto(m->books());
      // Of another length: it is compared with as none.
      if (m->contract_size() == static_cast<int>(f.contract.size())) {
        std::copy(m->contract().begin(), m->contract().end(),
                  f.contract.begin());
      }
      return Checked(std::move(f));
    }
    case pb::ControlFrame::kAsk: {
      const pb::Ask& m = message->ask();
      ports::AskFrame f;
      f.ask = m.ask();
      f.purpose = static_cast<ports::AskPurpose>(m.purpose());
      f.step = m.step();
      return Checked(f);
    }
    case pb::ControlFrame::kRefuse: {
      pb::Refuse* m = message->mutable_refuse();
      ports::RefuseFrame f;
      f.ask = m->ask();
      f.reason = static_cast<ports::RefuseReason>(m->reason());
      f.text = Printable(std::move(*m->mutable_text()));
      return Checked(std::move(f));
    }
    case pb::ControlFrame::kCancelAsk: {
      ports::CancelAskFrame f;
      f.ask = message->cancel_ask().ask();
      return Checked(f);
    }
    case pb::ControlFrame::kTransferBegin: {
      pb::TransferBegin* m = message->mutable_transfer_begin();
      ports::TransferBegin f;
      f.transfer = m->transfer();
      f.kind = static_cast<ports::TransferKind>(m->kind());
      f.ask = m->ask();
      f.step = m->step();
      f.header = std::move(*m->mutable_header());
      f.body_bytes = m->body_bytes();
      f.scalars.assign(m->scalars().begin(), m->scalars().end());
      f.tracker_epoch = m->tracker_epoch();
      f.sequence = m->sequence();
      f.age = absl::Microseconds(m->age_us());
      f.body = std::move(*m->mutable_body());
      return Checked(std::move(f));
    }
    case pb::ControlFrame::kTransferAck: {
      const pb::TransferAck& m = message->transfer_ack();
      ports::TransferAck f;
      f.transfer = m.transfer();
      f.received = m.received();
      f.complete = m.complete();
      f.taken = m.taken();
      return Checked(f);
    }
    case pb::ControlFrame::kTransferCancel: {
      pb::TransferCancel* m = message->mutable_transfer_cancel();
      ports::TransferCancel f;
      f.transfer = m->transfer();
      f.by_sender = m->by_sender();
      f.reason = static_cast<ports::RefuseReason>(m->reason());
      f.text = Printable(std::move(*m->mutable_text()));
      return Checked(std::move(f));
    }
    case pb::ControlFrame::kSkip: {
      ports::SkipFrame f;
      f.round = message->skip().round();
      return Checked(f);
    }
    case pb::ControlFrame::kRecordSummary: {
      ports::RecordSummary f;
      for (pb::RecordId& id :
           *message->mutable_record_summary()->mutable_records()) {
        f.records.push_back(FromProto(&id));
      }
      return Checked(std::move(f));
    }
    case pb::ControlFrame::kRecordWant: {
      pb::RecordWant* m = message->mutable_record_want();
      ports::RecordWant f;
      f.record = FromProto(m->mutable_record());
      f.offset = m->offset();
      return Checked(std::move(f));
    }
    case pb::ControlFrame::kRecordPart: {
      pb::RecordPart* m = message->mutable_record_part();
      ports::RecordPart f;
      f.record = FromProto(m->mutable_record());
      f.total_bytes = m->total_bytes();
      f.offset = m->offset();
      f.data = std::move(*m->mutable_data());
      return Checked(std::move(f));
    }
    case pb::ControlFrame::kContractWant: {
      const pb::ContractWant& m = message->contract_want();
      ports::ContractWant f;
      f.field = FromProto(m.field());
      f.offset = m.offset();
      return Checked(f);
    }
    case pb::ControlFrame::kContractPart: {
      pb::ContractPart* m = message->mutable_contract_part();
      ports::ContractPart f;
      f.field = FromProto(m->field());
      f.total_bytes = m->total_bytes();
      f.offset = m->offset();
      f.data = std::move(*m->mutable_data());
      return Checked(std::move(f));
    }
    case pb::ControlFrame::kMembership:
      return FromProto(message->mutable_membership());
    case pb::ControlFrame::FRAME_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError(
      "a control frame of no kind that this node knows");
}

pb::Hello MakeHello(const ports::PeerIdentity& self, uint64_t link_nonce) {
  pb::Hello hello;
  hello.set_protocol_version(kProtocolVersion);
  hello.set_oldest_protocol_version(kOldestProtocolVersion);
  hello.set_node(self.node.name());
  hello.set_incarnation(self.incarnation);
  hello.set_advertised_address(self.advertised);
  hello.set_link_nonce(link_nonce);
  return hello;
}

absl::StatusOr<ports::PeerIdentity> CheckHello(const pb::Hello& hello) {
  const uint32_t newest = hello.protocol_version();
  const uint32_t oldest = hello.oldest_protocol_version() == 0
                              ? newest
                              : hello.oldest_protocol_version();
  if (newest < kOldestProtocolVersion || oldest > kProtocolVersion ||
      oldest > newest) {
    return absl::FailedPreconditionError(
        absl::StrCat("the peer speaks protocol versions ", oldest, " to ",
                     newest, ", this node ", kOldestProtocolVersion, " to ",
                     kProtocolVersion, "; upgrade the older of the two"));
  }
  DFL_RETURN_IF_ERROR(
      Annotate(ValidateNodeName(Printable(hello.node())), "hello"));
  if (hello.incarnation() == 0) {
    return absl::InvalidArgumentError("hello: the incarnation is missing");
  }
  if (hello.link_nonce() == 0) {
    return absl::InvalidArgumentError("hello: the link nonce is missing");
  }
  if (static_cast<int64_t>(hello.advertised_address().size()) >
      ports::kMaxAddressBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "hello: the advertised address has ", hello.advertised_address().size(),
        " bytes; at most ", ports::kMaxAddressBytes, " are allowed"));
  }
  ports::PeerIdentity peer;
  peer.node = NodeId(hello.node());
  peer.incarnation = hello.incarnation();
  peer.advertised = Printable(hello.advertised_address());
  return peer;
}

}  // namespace dfl::exchange
