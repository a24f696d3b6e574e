#include "client/proto_types.h"

#include <utility>

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

const char* KindName(pb::EventKind kind) {
  switch (kind) {
    case pb::EVENT_KIND_PHASE_CHANGED:
      return "phase-changed";
    case pb::EVENT_KIND_PLAN_ADOPTED:
      return "plan-adopted";
    case pb::EVENT_KIND_STATE_TAKEN:
      return "state-taken";
    case pb::EVENT_KIND_EVALUATED:
      return "evaluated";
    case pb::EVENT_KIND_LINK_UP:
      return "link-up";
    case pb::EVENT_KIND_LINK_DOWN:
      return "link-down";
    case pb::EVENT_KIND_PEER_UNREACHABLE:
      return "peer-unreachable";
    case pb::EVENT_KIND_MESSAGE_REJECTED:
      return "message-rejected";
    case pb::EVENT_KIND_NEIGHBOURS_MISSED:
      return "neighbours-missed";
    case pb::EVENT_KIND_LEARNER_FAILED:
      return "learner-failed";
    default:
      return "";
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
    default:
      return Phase::kUnknown;
  }
}

PeerStatus FromProto(const pb::PeerStatus& in) {
  PeerStatus out;
  out.node = in.node();
  out.address = in.address();
  out.neighbour = in.neighbour();
  out.linked = in.linked();
  out.weight = in.weight();
  out.phase = FromProto(in.phase());
  out.step = in.step();
  out.plan_version = in.plan_version();
  out.bytes_sent = in.bytes_sent();
  out.bytes_received = in.bytes_received();
  out.models_sent = in.models_sent();
  out.models_received = in.models_received();
  out.missed = in.missed();
  out.rejected = in.rejected();
  out.last_error = in.last_error();
  return out;
}

NodeStatus FromProto(const pb::NodeStatus& in) {
  NodeStatus out;
  out.node = in.node();
  out.incarnation = in.incarnation();
  out.phase = FromProto(in.phase());
  out.phase_reason = in.phase_reason();

  out.run_id = in.run_id();
  out.plan_version = in.plan_version();
  out.pending_plan_version = in.pending_plan_version();
  out.algorithm = in.algorithm();
  for (const auto& [name, value] : in.knobs()) {
    out.knobs[name] = FromProto(value);
  }
  out.topology = in.topology();
  out.weights = in.weights();
  out.spectral_gap = in.spectral_gap();
  out.member_count = in.member_count();
  out.format = in.format();

  out.model = in.model();
  out.fingerprint = in.fingerprint();
  out.parameter_count = in.parameter_count();
  out.buffer_count = in.buffer_count();
  out.train_rows = in.train_rows();
  out.test_rows = in.test_rows();

  out.step = in.step();
  out.stop_steps = in.stop_steps();
  out.gradients = in.gradients();
  out.loss = in.loss();
  if (in.has_evaluation()) {
    Evaluation evaluation;
    evaluation.step = in.evaluation().step();
    evaluation.loss = in.evaluation().loss();
    evaluation.accuracy = in.evaluation().accuracy();
    evaluation.macro_f1 = in.evaluation().macro_f1();
    evaluation.rows = in.evaluation().rows();
    out.evaluation = evaluation;
  }
  out.steps_per_second = in.steps_per_second();
  out.training_seconds = in.training_seconds();
  out.longest_step_gap_seconds = in.longest_step_gap_seconds();
  out.gauges.insert(in.gauges().begin(), in.gauges().end());

  out.bytes_sent = in.bytes_sent();
  out.bytes_received = in.bytes_received();
  out.dense_bytes_sent = in.dense_bytes_sent();
  out.models_sent = in.models_sent();
  out.models_received = in.models_received();
  out.missed = in.missed();
  out.rejected.insert(in.rejected().begin(), in.rejected().end());

  out.last_error = in.last_error();
  for (const pb::PeerStatus& peer : in.peers()) {
    out.peers.push_back(FromProto(peer));
  }
  return out;
}

DaemonStatus FromProto(const pb::DaemonStatus& in) {
  DaemonStatus out;
  out.node = FromProto(in.node());
  out.version = in.version();
  out.insecure = in.insecure();
  out.warnings.assign(in.warnings().begin(), in.warnings().end());
  out.uptime_seconds = in.uptime_seconds();
  out.peer_addresses.assign(in.peer_addresses().begin(),
                            in.peer_addresses().end());
  out.memory_bytes = in.memory_bytes();
  out.memory_limit_bytes = in.memory_limit_bytes();
  return out;
}

WatchUpdate FromProto(const pb::WatchResponse& in) {
  WatchUpdate out;
  out.status = FromProto(in.status());
  for (const pb::Event& event : in.events()) {
    Event& added = out.events.emplace_back();
    added.unix_nanos = event.unix_nanos();
    added.kind = KindName(event.kind());
    added.step = event.step();
    added.peer = event.peer();
    added.text = event.text();
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

PeerAddress FromProto(const pb::PeerAddress& in) {
  PeerAddress out;
  out.address = in.address();
  out.node = in.node();
  out.linked = in.linked();
  out.origin = in.origin();
  out.last_error = in.last_error();
  return out;
}

}  // namespace client
}  // namespace dfl
