#include "client/proto_types.h"

#include <map>
#include <string>
#include <type_traits>
#include <vector>

#include "daemon/base/names.h"
#include "proto/status_fields.h"

namespace dfl {
namespace client {
namespace {

namespace pb = dfl::control::v1;

KnobValue FromProto(const pb::KnobValue& in) {
  switch (in.value_case()) {
    case pb::KnobValue::kNumber:
      return in.number();
    case pb::KnobValue::kInteger:
      return in.integer();
    case pb::KnobValue::kFlag:
      return in.flag();
    case pb::KnobValue::kText:
      return in.text();
    case pb::KnobValue::kRange:
      return IntRange{in.range().lo(), in.range().hi()};
    case pb::KnobValue::VALUE_NOT_SET:
      break;
  }
  return std::string();
}

struct KindName {
  pb::EventKind kind;
  const char* name;
};
constexpr KindName kKindNames[] = {
    {pb::EVENT_KIND_PHASE_CHANGED, "phase-changed"},
    {pb::EVENT_KIND_PLAN_ADOPTED, "plan-adopted"},
    {pb::EVENT_KIND_STATE_TAKEN, "state-taken"},
    {pb::EVENT_KIND_EVALUATED, "evaluated"},
    {pb::EVENT_KIND_LINK_UP, "link-up"},
    {pb::EVENT_KIND_LINK_DOWN, "link-down"},
    {pb::EVENT_KIND_PEER_UNREACHABLE, "peer-unreachable"},
    {pb::EVENT_KIND_MESSAGE_REJECTED, "message-rejected"},
    {pb::EVENT_KIND_NEIGHBOURS_MISSED, "neighbours-missed"},
    {pb::EVENT_KIND_LEARNER_FAILED, "learner-failed"},
    {pb::EVENT_KIND_SECURITY, "security"},
    {pb::EVENT_KIND_RECORD, "record"},
    {pb::EVENT_KIND_DISAGREES, "disagrees"},
    {pb::EVENT_KIND_LEARNS_ALONE, "learns-alone"},
    {pb::EVENT_KIND_MEMBER, "member"},
    {pb::EVENT_KIND_CHECKPOINT, "checkpoint"},
    {pb::EVENT_KIND_DATA, "data"},
};

const char* NameOf(pb::EventKind kind) {
  for (const KindName& known : kKindNames) {
    if (known.kind == kind) return known.name;
  }
  return "";
}

Event FromProto(const pb::Event& in) {
  Event out;
  out.unix_nanos = in.unix_nanos();
  out.kind = NameOf(in.kind());
  out.step = in.step();
  out.peer = in.peer();
  out.text = in.text();
  return out;
}

MemberState FromProto(pb::MemberState state) {
  switch (state) {
    case pb::MEMBER_STATE_ALONE:
      return MemberState::kAlone;
    case pb::MEMBER_STATE_JOINING:
      return MemberState::kJoining;
    case pb::MEMBER_STATE_MEMBER:
      return MemberState::kMember;
    case pb::MEMBER_STATE_DEGRADED:
      return MemberState::kDegraded;
    case pb::MEMBER_STATE_DRAINING:
      return MemberState::kDraining;
    case pb::MEMBER_STATE_LEFT:
      return MemberState::kLeft;
    case pb::MEMBER_STATE_DEAD:
      return MemberState::kDead;
    default:
      return MemberState::kUnknown;
  }
}

Participation FromProto(pb::Participation participation) {
  switch (participation) {
    case pb::PARTICIPATION_TRAIN:
      return Participation::kTrain;
    case pb::PARTICIPATION_MIX:
      return Participation::kMix;
    case pb::PARTICIPATION_OBSERVE:
      return Participation::kObserve;
    default:
      return Participation::kUnknown;
  }
}

}  // namespace

Phase FromProto(pb::Phase phase) {
  switch (phase) {
    case pb::PHASE_IDLE:
      return Phase::kIdle;
    case pb::PHASE_JOINING:
      return Phase::kJoining;
    case pb::PHASE_TRAINING:
      return Phase::kTraining;
    case pb::PHASE_PAUSED:
      return Phase::kPaused;
    case pb::PHASE_FINISHED:
      return Phase::kFinished;
    case pb::PHASE_STOPPED:
      return Phase::kStopped;
    case pb::PHASE_DEGRADED:
      return Phase::kDegraded;
    case pb::PHASE_FAILED:
      return Phase::kFailed;
    default:
      return Phase::kUnknown;
  }
}

namespace {

using client::FromProto;  // beside KnobValue's, which would hide them

template <typename From, typename To>
void Read(const From& in, To& out) {
  if constexpr (std::is_assignable_v<To&, const From&>) {
    out = in;
  } else {
    out = FromProto(in);
  }
}
template <typename Field, typename T>
void ReadAll(const Field& in, std::vector<T>& out) {
  for (const auto& value : in) Read(value, out.emplace_back());
}
template <typename Field, typename T>
void ReadAll(const Field& in, std::map<std::string, T>& out) {
  for (const auto& [name, value] : in) Read(value, out[name]);
}

// Every FromProto of a status has an `in` and an `out`.
#define DFL_READ_VALUE(name, source) Read(in.name(), out.name);
#define DFL_READ_OPTIONAL(name) \
  if (in.has_##name()) out.name = in.name();
#define DFL_READ_MANY(name) ReadAll(in.name(), out.name);
#define DFL_READ_MAYBE(name) \
  if (in.has_##name()) out.name = FromProto(in.name());

Evaluation FromProto(const pb::Evaluation& in) {
  Evaluation out;
  out.step = in.step();
  DFL_EVALUATION_FIELDS(DFL_READ_VALUE, DFL_READ_OPTIONAL)
  return out;
}

}  // namespace

PeerStatus FromProto(const pb::PeerStatus& in) {
  PeerStatus out;
  DFL_PEER_STATUS_FIELDS(DFL_READ_VALUE, DFL_READ_MANY)
  return out;
}

NodeStatus FromProto(const pb::NodeStatus& in) {
  NodeStatus out;
  DFL_NODE_NAME_FIELDS(DFL_READ_VALUE)
  DFL_NODE_STATUS_FIELDS(DFL_READ_VALUE, DFL_READ_MANY, DFL_READ_OPTIONAL,
                         DFL_READ_MAYBE)
  return out;
}

DaemonStatus FromProto(const pb::DaemonStatus& in) {
  DaemonStatus out;
  out.node = FromProto(in.node());
  DFL_DAEMON_STATUS_FIELDS(DFL_READ_VALUE, DFL_READ_MANY)
  return out;
}

#undef DFL_READ_VALUE
#undef DFL_READ_MANY
#undef DFL_READ_OPTIONAL
#undef DFL_READ_MAYBE

WatchUpdate FromProto(const pb::WatchResponse& in) {
  WatchUpdate out;
  out.status = FromProto(in.status());
  for (const pb::Event& event : in.events()) {
    out.events.push_back(FromProto(event));
  }
  out.events_dropped = in.events_dropped();
  return out;
}

ModelFacts FromProto(const pb::ModelFacts& in) {
  ModelFacts out;
  out.kind = in.kind();
  out.fingerprint = in.fingerprint();
  out.parameter_count = in.parameter_count();
  out.buffer_count = in.buffer_count();
  out.dtypes.assign(in.dtypes().begin(), in.dtypes().end());
  out.memory_bytes = in.memory_bytes();
  out.message_bytes = in.message_bytes();
  out.spectral_gap = in.spectral_gap();
  out.first_step_note = in.first_step_note();
  out.train_rows = in.train_rows();
  out.test_rows = in.test_rows();
  for (const pb::MemoryPart& part : in.memory_parts()) {
    out.memory_parts.push_back({part.what(), part.bytes()});
  }
  out.memory_limit_bytes = in.memory_limit_bytes();
  return out;
}

DataContract FromProto(const pb::DataContract& in) {
  DataContract out;
  out.task = in.task();
  out.classes.assign(in.classes().begin(), in.classes().end());
  out.features.assign(in.features().begin(), in.features().end());
  out.shape.assign(in.shape().begin(), in.shape().end());
  out.input.divide = in.input().divide();
  out.input.per = in.input().per();
  out.input.over = in.input().over();
  out.input.mean.assign(in.input().mean().begin(), in.input().mean().end());
  out.input.std.assign(in.input().std().begin(), in.input().std().end());
  out.loss = in.loss();
  out.model = in.model();
  return out;
}

NodeData FromProto(const pb::GetDataResponse& in) {
  NodeData out;
  out.node = in.node();
  out.offer = FromProto(in.offer());
  out.classes_stated = in.classes_stated();
  out.class_places.assign(in.class_places().begin(), in.class_places().end());
  out.shape_is_at_least = in.shape_is_at_least();
  out.divide_stated = in.divide_stated();
  out.standardise_stated = in.standardise_stated();
  const pb::DataMoments& moments = in.moments();
  out.moments.count = moments.count();
  out.moments.sums.assign(moments.sums().begin(), moments.sums().end());
  out.moments.squares.assign(moments.squares().begin(),
                             moments.squares().end());
  if (in.has_contract()) out.contract = FromProto(in.contract());
  out.format = in.format();
  out.train_rows = in.train_rows();
  out.test_rows = in.test_rows();
  for (const pb::ClassCount& count : in.classes()) {
    out.classes.push_back(
        {count.name(), count.train_rows(), count.test_rows()});
  }
  for (const pb::FeatureRange& range : in.features()) {
    out.features.push_back({range.name(), range.min(), range.max(),
                            range.mean(), range.missing()});
  }
  out.feature_count = in.feature_count();
  out.warnings.assign(in.warnings().begin(), in.warnings().end());
  return out;
}

RecordInfo FromProto(const pb::RecordInfo& in) {
  RecordInfo out;
  out.kind = in.kind();
  out.subject = in.subject();
  out.counter = in.counter();
  out.author = in.author();
  out.unix_nanos = in.unix_nanos();
  out.summary = in.summary();
  out.current = in.current();
  out.body_sha256 = in.body_sha256();
  return out;
}

PeerAddress FromProto(const pb::PeerAddress& in) {
  PeerAddress out;
  out.address = in.address();
  out.node = in.node();
  out.linked = in.linked();
  out.origin = in.origin();
  out.last_error = in.last_error();
  return out;
}

Member FromProto(const pb::Member& in) {
  Member out;
  out.node = in.node();
  out.state = FromProto(in.state());
  out.reason = in.reason();
  out.suspect = in.suspect();
  out.labels.insert(in.labels().begin(), in.labels().end());
  out.addresses.assign(in.addresses().begin(), in.addresses().end());
  out.rows = in.rows();
  out.participation = FromProto(in.participation());
  out.plan_version = in.plan_version();
  out.plan_hash = in.plan_hash();
  out.linked = in.linked();
  out.seconds_in_state = in.seconds_in_state();
  out.pace = in.pace();
  out.starts = in.starts();
  out.self = in.self();
  return out;
}

MemberTable FromProto(const pb::ListMembersResponse& in) {
  MemberTable out;
  out.node = in.node();
  out.membership_off = in.membership_off();
  for (const pb::Member& member : in.members()) {
    out.members.push_back(FromProto(member));
  }
  return out;
}

MemberAnswer FromProto(const pb::AskMembersResponse& in) {
  MemberAnswer out;
  out.member = FromProto(in.member());
  if (in.has_status()) {
    out.status = FromProto(in.status());
  } else {
    // A failure without a code is of a newer daemon, and no success.
    const auto code = static_cast<absl::StatusCode>(in.failure().code());
    out.status = absl::Status(
        code == absl::StatusCode::kOk ? absl::StatusCode::kUnknown : code,
        in.failure().text());
  }
  out.age_seconds = in.age_seconds();
  out.asked = in.asked();
  return out;
}

EventList FromProto(const pb::ListEventsResponse& in) {
  EventList out;
  for (const pb::Event& event : in.events()) {
    out.events.push_back(FromProto(event));
  }
  out.forgotten = in.forgotten();
  return out;
}

CheckpointInfo FromProto(const pb::CheckpointInfo& in) {
  CheckpointInfo out;
  out.file = in.file();
  out.bytes = in.bytes();
  out.unix_nanos = in.written_unix_nanos();
  out.node = in.node();
  out.run_id = in.run_id();
  out.plan_version = in.plan_version();
  out.algorithm = in.algorithm();
  out.iteration = in.iteration();
  out.steps = in.steps();
  out.rounds = in.rounds();
  out.tracker_epoch = in.tracker_epoch();
  return out;
}

CheckpointList FromProto(const pb::ListCheckpointsResponse& in) {
  CheckpointList out;
  out.node = in.node();
  for (const pb::CheckpointInfo& info : in.checkpoints()) {
    out.checkpoints.push_back(FromProto(info));
  }
  for (const pb::AsideCheckpoint& aside : in.aside()) {
    out.aside.push_back({aside.file(), aside.bytes(), aside.reason()});
  }
  return out;
}

LogLevel FromProto(pb::LogLevel level) {
  // Ours have the numbers of the contract.
  return pb::LogLevel_IsValid(level) ? static_cast<LogLevel>(level)
                                     : LogLevel::kUnknown;
}

LogList FromProto(const pb::GetLogResponse& in) {
  LogList out;
  for (const pb::LogLine& line : in.lines()) {
    LogLine& read = out.lines.emplace_back();
    read.id = line.id();
    read.unix_nanos = line.unix_nanos();
    read.level = FromProto(line.level());
    read.event = line.event();
    read.text = line.text();
    for (const auto& [name, value] : line.fields()) read.fields[name] = value;
  }
  out.forgotten = in.forgotten();
  out.level = FromProto(in.level());
  out.seconds_left = in.seconds_left();
  return out;
}

Diagnosis FromProto(const pb::DiagnoseResponse& in) {
  Diagnosis out;
  for (const pb::Finding& finding : in.findings()) {
    // Kinds have the numbers of the contract.
    out.findings.push_back({finding.check(),
                            pb::FindingKind_IsValid(finding.kind())
                                ? static_cast<Finding::Kind>(finding.kind())
                                : Finding::Kind::kUnknown,
                            finding.text(), finding.remedy()});
  }
  out.unix_nanos = in.unix_nanos();
  return out;
}

void ToProto(const MemberSelection& selection, pb::MemberSelection& out) {
  out.mutable_nodes()->Add(selection.nodes.begin(), selection.nodes.end());
  out.mutable_labels()->Add(selection.labels.begin(), selection.labels.end());
}

const std::vector<std::string>& EventKinds() {
  static const auto* kinds = [] {
    auto* names = new std::vector<std::string>;
    for (const KindName& known : kKindNames) names->push_back(known.name);
    return names;
  }();
  return *kinds;
}

absl::StatusOr<pb::EventKind> EventKindOf(const std::string& name) {
  for (const KindName& known : kKindNames) {
    if (name == known.name) return known.kind;
  }
  return UnknownNameError("event kind", name, EventKinds());
}

}  // namespace client
}  // namespace dfl
