#include "daemon/ports/frames.h"

#include <cmath>
#include <iterator>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"

namespace dfl::ports {
namespace {

// Protobuf's sizes. Field numbers in proto/dfl/peer/v1/peer.proto are all below
// 16, so a tag is one byte; a field that holds its default is not written.
int64_t VarintSize(uint64_t value) {
  int64_t size = 1;
  while (value >= 128) {
    value >>= 7;
    ++size;
  }
  return size;
}

int64_t NumberField(uint64_t value) {
  return value == 0 ? 0 : 1 + VarintSize(value);
}

int64_t BytesField(int64_t length) {
  return length == 0 ? 0 : 1 + VarintSize(length) + length;
}

int64_t FlagField(bool value) { return value ? 2 : 0; }

// -0.0 is written.
int64_t DoubleField(double value) {
  return value == 0 && !std::signbit(value) ? 0 : 9;
}

// int64 fields are written as their two's complement.
int64_t SignedField(int64_t value) {
  return NumberField(static_cast<uint64_t>(value));
}

// Of a message of `inner` bytes as a field of another.
int64_t WrappedSize(int64_t inner) { return 1 + VarintSize(inner) + inner; }

int64_t SizeOf(const RecordId& id) {
  return SignedField(id.kind) + BytesField(id.subject.size()) +
         NumberField(id.counter) + BytesField(id.hash.size());
}

template <typename Enum>
int64_t EnumField(Enum value) {
  return NumberField(static_cast<uint64_t>(value));
}

int64_t FixedField(uint64_t value) { return value == 0 ? 0 : 9; }

int64_t SizeOf(const MemberFacts& facts) {
  int64_t size = SignedField(facts.rows) + EnumField(facts.participation) +
                 EnumField(facts.condition) + BytesField(facts.reason.size()) +
                 EnumField(facts.pace) + FixedField(facts.memory) +
                 NumberField(facts.plan_version) + FixedField(facts.plan_hash);
  // Elements of lists are written also where they are empty.
  for (const std::string& address : facts.addresses) {
    size += WrappedSize(address.size());
  }
  for (const auto& [key, value] : facts.labels) {
    size += WrappedSize(key.size() + 1 + value.size());
  }
  return size;
}

int64_t SizeOf(const MemberUpdate& update) {
  return BytesField(update.node.name().size()) +
         NumberField(update.incarnation.starts) +
         NumberField(update.incarnation.refutations) + EnumField(update.state) +
         BytesField(update.by.name().size()) +
         (update.facts ? WrappedSize(SizeOf(*update.facts)) : 0);
}

int64_t SizeOf(const Route& route) {
  return WrappedSize(BytesField(route.origin.name().size()) +
                     BytesField(route.target.name().size()) +
                     SignedField(route.hops));
}

// On the wire, where 0 is no field.
uint64_t NumberOf(core::ContractField field) {
  return static_cast<uint64_t>(field) + 1;
}

int64_t SizeOf(const core::EdgeBooks& books) {
  const auto fixed = [](double value) { return value == 0 ? 0 : 9; };
  return NumberField(books.delivered) + fixed(books.given) +
         NumberField(books.out) + fixed(books.given_out) +
         NumberField(books.taken_sequence) + fixed(books.taken);
}

struct Sizer {
  int64_t operator()(const StateFrame& f) const {
    return BytesField(f.run_id.size()) + BytesField(f.algorithm.size()) +
           NumberField(f.plan_version) + SignedField(f.step) +
           NumberField(static_cast<uint64_t>(f.phase)) +
           NumberField(f.tracker_epoch) + FlagField(f.wants_answer) +
           BytesField(f.contract == core::ContractDigest{}
                          ? 0
                          : static_cast<int64_t>(sizeof(f.contract))) +
           (f.books ? WrappedSize(SizeOf(*f.books)) : 0);
  }
  int64_t operator()(const AskFrame& f) const {
    return NumberField(f.ask) + NumberField(static_cast<uint64_t>(f.purpose)) +
           SignedField(f.step);
  }
  int64_t operator()(const RefuseFrame& f) const {
    return NumberField(f.ask) + NumberField(static_cast<uint64_t>(f.reason)) +
           BytesField(f.text.size());
  }
  int64_t operator()(const CancelAskFrame& f) const {
    return NumberField(f.ask);
  }
  int64_t operator()(const TransferBegin& f) const {
    return NumberField(f.transfer) +
           NumberField(static_cast<uint64_t>(f.kind)) + NumberField(f.ask) +
           SignedField(f.step) + BytesField(f.header.size()) +
           SignedField(f.body_bytes) +
           BytesField(static_cast<int64_t>(f.scalars.size() * sizeof(double))) +
           NumberField(f.tracker_epoch) + NumberField(f.sequence) +
           SignedField(absl::ToInt64Microseconds(f.age)) +
           BytesField(f.body.size());
  }
  int64_t operator()(const Chunk& f) const {
    return NumberField(f.transfer) + SignedField(f.offset) +
           BytesField(f.data.size());
  }
  int64_t operator()(const TransferAck& f) const {
    return NumberField(f.transfer) + SignedField(f.received) +
           FlagField(f.complete) + DoubleField(f.taken);
  }
  int64_t operator()(const TransferCancel& f) const {
    return NumberField(f.transfer) + FlagField(f.by_sender) +
           NumberField(static_cast<uint64_t>(f.reason)) +
           BytesField(f.text.size());
  }
  int64_t operator()(const SkipFrame& f) const { return SignedField(f.round); }
  int64_t operator()(const RecordSummary& f) const {
    int64_t size = 0;
    for (const RecordId& id : f.records) size += WrappedSize(SizeOf(id));
    return size;
  }
  int64_t operator()(const RecordWant& f) const {
    return WrappedSize(SizeOf(f.record)) + SignedField(f.offset);
  }
  int64_t operator()(const RecordPart& f) const {
    return WrappedSize(SizeOf(f.record)) + SignedField(f.total_bytes) +
           SignedField(f.offset) + BytesField(f.data.size());
  }
  int64_t operator()(const ContractWant& f) const {
    return NumberField(NumberOf(f.field)) + SignedField(f.offset);
  }
  int64_t operator()(const ContractPart& f) const {
    return NumberField(NumberOf(f.field)) + SignedField(f.total_bytes) +
           SignedField(f.offset) + BytesField(f.data.size());
  }
  // Those of membership stand in a message of their own.
  int64_t operator()(const ProbeFrame& f) const {
    return WrappedSize(SizeOf(f.route) + NumberField(f.number) +
                       FixedField(f.digest));
  }
  int64_t operator()(const ProbeAckFrame& f) const {
    return WrappedSize(SizeOf(f.route) + NumberField(f.number) +
                       FlagField(f.receipt) + FixedField(f.memory) +
                       FixedField(f.digest));
  }
  int64_t operator()(const MembersFrame& f) const {
    int64_t size = 0;
    for (const MemberUpdate& m : f.members) size += WrappedSize(SizeOf(m));
    return WrappedSize(size);
  }
  int64_t operator()(const MembersDigestFrame& f) const {
    return WrappedSize(
        BytesField(static_cast<int64_t>(f.buckets.size() * sizeof(uint64_t))) +
        FlagField(f.wants_answer));
  }
  int64_t operator()(const QueryFrame& f) const {
    return WrappedSize(SizeOf(f.route) + NumberField(f.number) +
                       SignedField(f.topic) + SignedField(f.offset));
  }
  int64_t operator()(const QueryPartFrame& f) const {
    return WrappedSize(SizeOf(f.route) + NumberField(f.number) +
                       SignedField(f.total_bytes) + SignedField(f.offset) +
                       BytesField(f.data.size()) + BytesField(f.error.size()));
  }
};

absl::Status CheckNumber(const char* field, int64_t value) {
  if (value >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, " is ", value, "; it must not be negative"));
}

absl::Status CheckLength(const char* field, const std::string& value,
                         int64_t bound) {
  if (static_cast<int64_t>(value.size()) <= bound) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      field, " has ", value.size(), " bytes; at most ", bound, " are allowed"));
}

absl::Status CheckPrintable(const char* field, const std::string& value,
                            int64_t bound) {
  DFL_RETURN_IF_ERROR(CheckLength(field, value, bound));
  for (size_t i = 0; i < value.size(); ++i) {
    if (!absl::ascii_isprint(static_cast<unsigned char>(value[i]))) {
      return absl::InvalidArgumentError(
          absl::StrCat(field, ": byte ", i + 1, " is ",
                       static_cast<int>(static_cast<unsigned char>(value[i])),
                       "; only printable ASCII is allowed"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckName(const char* field, const std::string& value) {
  return CheckPrintable(field, value, kMaxNameBytes);
}

absl::Status CheckAtMost(const char* field, int64_t value, int64_t bound) {
  DFL_RETURN_IF_ERROR(CheckNumber(field, value));
  if (value <= bound) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, " is ", value, "; allowed: at most ", bound));
}

absl::Status CheckRecordId(const RecordId& id) {
  if (id.kind < 1 || id.counter < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("a record has kind ", id.kind, " and counter ", id.counter,
                     "; both are from 1"));
  }
  if (static_cast<int64_t>(id.hash.size()) != kRecordHashBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("body_sha256 has ", id.hash.size(),
                     " bytes; it must have ", kRecordHashBytes));
  }
  return CheckPrintable("subject", id.subject, kMaxSubjectBytes);
}

absl::Status CheckEpoch(uint64_t epoch) {
  if (epoch <= kMaxTrackerEpoch) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "tracker_epoch is ", epoch, "; allowed: at most ", kMaxTrackerEpoch));
}

template <typename Enum>
absl::Status CheckEnum(const char* field, Enum value, Enum last) {
  const int number = static_cast<int>(value);
  if (number >= 1 && number <= static_cast<int>(last)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      field, " is ", number, "; known are 1 to ", static_cast<int>(last)));
}

absl::Status CheckField(core::ContractField field) {
  const int index = static_cast<int>(field);
  const auto count = static_cast<int>(core::kContractFields.size());
  if (index >= 0 && index < count) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("field is ", index + 1, "; known are 1 to ", count));
}

absl::Status CheckNode(const char* field, const NodeId& node) {
  return Annotate(ValidateNodeName(node.name()), field);
}

absl::Status CheckCount(const char* what, size_t count, size_t bound) {
  return CheckAtMost(what, static_cast<int64_t>(count),
                     static_cast<int64_t>(bound));
}

absl::Status CheckRoute(const Route& route) {
  DFL_RETURN_IF_ERROR(CheckNode("route.origin", route.origin));
  DFL_RETURN_IF_ERROR(CheckNode("route.target", route.target));
  return CheckAtMost("route.hops", route.hops, kMaxHops);
}

absl::Status CheckFacts(const MemberFacts& facts) {
  DFL_RETURN_IF_ERROR(CheckCount("the number of addresses",
                                 facts.addresses.size(), kMaxMemberAddresses));
  for (const std::string& address : facts.addresses) {
    DFL_RETURN_IF_ERROR(CheckPrintable("address", address, kMaxAddressBytes));
    if (address.empty()) {
      return absl::InvalidArgumentError("an address is empty");
    }
  }
  DFL_RETURN_IF_ERROR(
      CheckCount("the number of labels", facts.labels.size(), kMaxLabels));
  for (const auto& [key, value] : facts.labels) {
    DFL_RETURN_IF_ERROR(Annotate(ValidateNodeName(key), "label"));
    DFL_RETURN_IF_ERROR(Annotate(ValidateNodeName(value), "label"));
  }
  DFL_RETURN_IF_ERROR(CheckNumber("rows", facts.rows));
  DFL_RETURN_IF_ERROR(CheckEnum("participation", facts.participation,
                                core::Participation::kObserve));
  DFL_RETURN_IF_ERROR(
      CheckEnum("condition", facts.condition, Condition::kDraining));
  DFL_RETURN_IF_ERROR(CheckPrintable("reason", facts.reason, kMaxReasonBytes));
  return CheckEnum("pace", facts.pace, Pace::kCellular);
}

absl::Status CheckUpdate(const MemberUpdate& update) {
  DFL_RETURN_IF_ERROR(CheckNode("node", update.node));
  if (update.incarnation.starts == 0) {
    return absl::InvalidArgumentError("starts is 0; it is from 1");
  }
  DFL_RETURN_IF_ERROR(CheckEnum("state", update.state, MemberState::kLeft));
  if (!update.by.empty()) DFL_RETURN_IF_ERROR(CheckNode("by", update.by));
  if (update.facts) return CheckFacts(*update.facts);
  if (update.state == MemberState::kAlive) {
    return absl::InvalidArgumentError(absl::StrCat(
        "facts of ", update.node.name(), ", who is alive, are missing"));
  }
  return absl::OkStatus();
}

absl::Status CheckBooks(const core::EdgeBooks& books) {
  for (const double sum : {books.given, books.given_out, books.taken}) {
    if (std::isfinite(sum)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("a sum of books is ", sum, "; allowed: finite ones"));
  }
  return absl::OkStatus();
}

struct Validator {
  absl::Status operator()(const StateFrame& f) const {
    DFL_RETURN_IF_ERROR(CheckName("run_id", f.run_id));
    DFL_RETURN_IF_ERROR(CheckName("algorithm", f.algorithm));
    DFL_RETURN_IF_ERROR(CheckNumber("step", f.step));
    DFL_RETURN_IF_ERROR(CheckEpoch(f.tracker_epoch));
    if (f.books) DFL_RETURN_IF_ERROR(CheckBooks(*f.books));
    return CheckEnum("phase", f.phase, Phase::kFailed);
  }
  absl::Status operator()(const AskFrame& f) const {
    DFL_RETURN_IF_ERROR(CheckEnum("purpose", f.purpose, AskPurpose::kState));
    return CheckNumber("step", f.step);
  }
  absl::Status operator()(const RefuseFrame& f) const {
    DFL_RETURN_IF_ERROR(
        CheckEnum("reason", f.reason, RefuseReason::kOlderEpoch));
    return CheckLength("text", f.text, kMaxTextBytes);
  }
  absl::Status operator()(const CancelAskFrame&) const {
    return absl::OkStatus();
  }
  absl::Status operator()(const TransferBegin& f) const {
    DFL_RETURN_IF_ERROR(CheckEnum("kind", f.kind, TransferKind::kMass));
    DFL_RETURN_IF_ERROR(CheckNumber("step", f.step));
    DFL_RETURN_IF_ERROR(CheckNumber("body_bytes", f.body_bytes));
    DFL_RETURN_IF_ERROR(CheckEpoch(f.tracker_epoch));
    DFL_RETURN_IF_ERROR(
        CheckNumber("age_us", absl::ToInt64Microseconds(f.age)));
    if (static_cast<int64_t>(f.scalars.size()) > kMaxScalars) {
      return absl::InvalidArgumentError(
          absl::StrCat("scalars has ", f.scalars.size(),
                       " numbers; allowed: at most ", kMaxScalars));
    }
    for (const double scalar : f.scalars) {
      if (std::isfinite(scalar)) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("scalars has ", scalar, "; allowed: finite numbers"));
    }
    DFL_RETURN_IF_ERROR(CheckLength("body", f.body, kMaxInlineBodyBytes));
    if (!f.body.empty() &&
        static_cast<int64_t>(f.body.size()) != f.body_bytes) {
      return absl::InvalidArgumentError(absl::StrCat(
          "body has ", f.body.size(), " bytes where body_bytes is ",
          f.body_bytes, "; allowed: all of them or none"));
    }
    return absl::OkStatus();
  }
  absl::Status operator()(const Chunk& f) const {
    DFL_RETURN_IF_ERROR(CheckLength("data", f.data, kMaxChunkBytes));
    DFL_RETURN_IF_ERROR(CheckNumber("offset", f.offset));
    if (f.offset > std::numeric_limits<int64_t>::max() - kMaxChunkBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("offset is ", f.offset, "; no body is that long"));
    }
    return absl::OkStatus();
  }
  absl::Status operator()(const TransferAck& f) const {
    if (!std::isfinite(f.taken)) {
      return absl::InvalidArgumentError(
          absl::StrCat("taken is ", f.taken, "; allowed: finite numbers"));
    }
    return CheckNumber("received", f.received);
  }
  absl::Status operator()(const SkipFrame& f) const {
    return CheckNumber("round", f.round);
  }
  absl::Status operator()(const RecordSummary& f) const {
    DFL_RETURN_IF_ERROR(CheckAtMost("the number of records",
                                    static_cast<int64_t>(f.records.size()),
                                    kMaxSummarisedRecords));
    for (const RecordId& id : f.records) DFL_RETURN_IF_ERROR(CheckRecordId(id));
    return absl::OkStatus();
  }
  absl::Status operator()(const RecordWant& f) const {
    DFL_RETURN_IF_ERROR(CheckRecordId(f.record));
    return CheckAtMost("offset", f.offset, kMaxRecordBytes);
  }
  absl::Status operator()(const RecordPart& f) const {
    DFL_RETURN_IF_ERROR(CheckRecordId(f.record));
    DFL_RETURN_IF_ERROR(
        CheckAtMost("total_bytes", f.total_bytes, kMaxRecordBytes));
    DFL_RETURN_IF_ERROR(CheckLength("data", f.data, kMaxRecordPartBytes));
    DFL_RETURN_IF_ERROR(CheckAtMost("offset", f.offset, kMaxRecordBytes));
    return CheckAtMost("the end of data",
                       f.offset + static_cast<int64_t>(f.data.size()),
                       f.total_bytes);
  }
  absl::Status operator()(const ContractWant& f) const {
    DFL_RETURN_IF_ERROR(CheckField(f.field));
    return CheckAtMost("offset", f.offset, kMaxContractBytes);
  }
  absl::Status operator()(const ContractPart& f) const {
    DFL_RETURN_IF_ERROR(CheckField(f.field));
    DFL_RETURN_IF_ERROR(
        CheckAtMost("total_bytes", f.total_bytes, kMaxContractBytes));
    DFL_RETURN_IF_ERROR(CheckLength("data", f.data, kMaxContractPartBytes));
    DFL_RETURN_IF_ERROR(CheckAtMost("offset", f.offset, kMaxContractBytes));
    return CheckAtMost("the end of data",
                       f.offset + static_cast<int64_t>(f.data.size()),
                       f.total_bytes);
  }
  absl::Status operator()(const TransferCancel& f) const {
    DFL_RETURN_IF_ERROR(
        CheckEnum("reason", f.reason, RefuseReason::kOlderEpoch));
    return CheckLength("text", f.text, kMaxTextBytes);
  }
  absl::Status operator()(const ProbeFrame& f) const {
    return CheckRoute(f.route);
  }
  absl::Status operator()(const ProbeAckFrame& f) const {
    return CheckRoute(f.route);
  }
  absl::Status operator()(const MembersFrame& f) const {
    DFL_RETURN_IF_ERROR(CheckCount("the number of members", f.members.size(),
                                   kMaxMembersInFrame));
    for (const MemberUpdate& m : f.members) DFL_RETURN_IF_ERROR(CheckUpdate(m));
    return absl::OkStatus();
  }
  absl::Status operator()(const MembersDigestFrame& f) const {
    if (f.buckets.size() == kDigestBuckets) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "has ", f.buckets.size(), " buckets; it must have ", kDigestBuckets));
  }
  absl::Status operator()(const QueryFrame& f) const {
    DFL_RETURN_IF_ERROR(CheckRoute(f.route));
    if (f.topic < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("topic is ", f.topic, "; it is from 1"));
    }
    return CheckAtMost("offset", f.offset, kMaxAnswerBytes);
  }
  absl::Status operator()(const QueryPartFrame& f) const {
    DFL_RETURN_IF_ERROR(CheckRoute(f.route));
    DFL_RETURN_IF_ERROR(
        CheckAtMost("total_bytes", f.total_bytes, kMaxAnswerBytes));
    DFL_RETURN_IF_ERROR(CheckLength("data", f.data, kMaxAnswerPartBytes));
    DFL_RETURN_IF_ERROR(CheckAtMost("offset", f.offset, kMaxAnswerBytes));
    DFL_RETURN_IF_ERROR(CheckLength("error", f.error, kMaxTextBytes));
    return CheckAtMost("the end of data",
                       f.offset + static_cast<int64_t>(f.data.size()),
                       f.total_bytes);
  }
};

}  // namespace

int64_t EncodedSize(const Frame& frame) {
  // A Chunk stands in the oneof of Bulk{Request,Response}; the others in that
  // of ControlFrame, and this one in Control{Request,Response}'s. A member of a
  // oneof is written even when it is empty.
  int64_t size = WrappedSize(std::visit(Sizer{}, frame));
  if (!std::holds_alternative<Chunk>(frame)) size = WrappedSize(size);
  return size;
}

absl::Status ValidateFrame(const Frame& frame) {
  absl::Status status = std::visit(Validator{}, frame);
  if (status.ok() && !std::holds_alternative<Chunk>(frame)) {
    const int64_t size = EncodedSize(frame);
    if (size > kMaxControlFrameBytes) {
      status = absl::InvalidArgumentError(
          absl::StrCat("has ", size, " bytes; at most ", kMaxControlFrameBytes,
                       " are allowed"));
    }
  }
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat("frame ", FrameName(frame),
                                                  ": ", status.message()));
}

const char* FrameName(const Frame& frame) {
  static constexpr const char* kNames[] = {"state",
                                           "ask",
                                           "refuse",
                                           "cancel-ask",
                                           "transfer-begin",
                                           "chunk",
                                           "ack",
                                           "cancel",
                                           "skip",
                                           "record-summary",
                                           "record-want",
                                           "record-part",
                                           "contract-want",
                                           "contract-part",
                                           "probe",
                                           "probe-ack",
                                           "members",
                                           "members-digest",
                                           "query",
                                           "query-part"};
  static_assert(std::size(kNames) == std::variant_size_v<Frame>);
  return kNames[frame.index()];
}

const char* PhaseName(Phase phase) {
  switch (phase) {
    case Phase::kIdle:
      return "idle";
    case Phase::kJoining:
      return "joining";
    case Phase::kTraining:
      return "training";
    case Phase::kPaused:
      return "paused";
    case Phase::kFinished:
      return "finished";
    case Phase::kStopped:
      return "stopped";
    case Phase::kDegraded:
      return "degraded";
    case Phase::kFailed:
      return "failed";
  }
  return "unknown";
}

const char* MemberStateName(MemberState state) {
  switch (state) {
    case MemberState::kAlive:
      return "alive";
    case MemberState::kSuspect:
      return "suspect";
    case MemberState::kDead:
      return "dead";
    case MemberState::kLeft:
      return "left";
  }
  return "unknown";
}

const char* ConditionName(Condition condition) {
  switch (condition) {
    case Condition::kJoining:
      return "joining";
    case Condition::kWell:
      return "well";
    case Condition::kDegraded:
      return "degraded";
    case Condition::kDraining:
      return "draining";
  }
  return "unknown";
}

const char* PaceName(Pace pace) {
  switch (pace) {
    case Pace::kLan:
      return "lan";
    case Pace::kWan:
      return "wan";
    case Pace::kCellular:
      return "cellular";
  }
  return "unknown";
}

const char* RefuseReasonName(RefuseReason reason) {
  switch (reason) {
    case RefuseReason::kOtherRun:
      return "other-run";
    case RefuseReason::kOtherModel:
      return "other-model";
    case RefuseReason::kOtherAlgorithm:
      return "other-algorithm";
    case RefuseReason::kNotReady:
      return "not-ready";
    case RefuseReason::kBusy:
      return "busy";
    case RefuseReason::kBadMessage:
      return "bad-message";
    case RefuseReason::kNotANeighbour:
      return "not-a-neighbour";
    case RefuseReason::kUnknownCodec:
      return "unknown-codec";
    case RefuseReason::kOlderEpoch:
      return "older-epoch";
  }
  return "unknown";
}

}  // namespace dfl::ports
