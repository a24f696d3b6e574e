#include "daemon/control/status_proto.h"

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "proto/status_fields.h"

namespace dfl::control {

namespace pb = dfl::control::v1;

namespace {

// A value as the wire has it.
template <typename T>
T OnWire(const T& value) {
  return value;
}
std::string OnWire(const NodeId& node) { return node.name(); }
pb::Phase OnWire(ports::Phase phase) { return ToProto(phase); }
double OnWire(absl::Duration time) { return absl::ToDoubleSeconds(time); }

template <typename T>
void Write(const T& value, T& out) {
  out = value;
}
void Write(const core::KnobValue& value, pb::KnobValue& out) {
  ToProto(value, out);
}

template <typename T, typename Field>
void WriteAll(const std::map<std::string, T>& values, Field& out) {
  for (const auto& [name, value] : values) Write(value, out[name]);
}
template <typename Field>
void WriteAll(const std::vector<std::string>& values, Field& out) {
  out.Add(values.begin(), values.end());
}
template <typename Field>
void WriteAll(const std::vector<runtime::PeerStatus>& peers, Field& out) {
  for (const runtime::PeerStatus& peer : peers) ToProto(peer, *out.Add());
}

// Every ToProto of a status has a `from` and an `out`.
#define DFL_WRITE_VALUE(name, source) out.set_##name(OnWire(from.source));
#define DFL_WRITE_OPTIONAL(name) \
  if (from.name.has_value()) out.set_##name(*from.name);
#define DFL_WRITE_MANY(name) WriteAll(from.name, *out.mutable_##name());
#define DFL_WRITE_MAYBE(name) \
  if (from.evaluated) WriteEvaluation(from, *out.mutable_##name());

void WriteEvaluation(const runtime::NodeStatus& node, pb::Evaluation& out) {
  const ports::Evaluation& from = node.evaluation;
  out.set_step(node.evaluated_step);
  DFL_EVALUATION_FIELDS(DFL_WRITE_VALUE, DFL_WRITE_OPTIONAL)
}

}  // namespace

pb::Phase ToProto(ports::Phase phase) {
  switch (phase) {
    case ports::Phase::kIdle:
      return pb::PHASE_IDLE;
    case ports::Phase::kJoining:
      return pb::PHASE_JOINING;
    case ports::Phase::kTraining:
      return pb::PHASE_TRAINING;
    case ports::Phase::kPaused:
      return pb::PHASE_PAUSED;
    case ports::Phase::kFinished:
      return pb::PHASE_FINISHED;
    case ports::Phase::kStopped:
      return pb::PHASE_STOPPED;
    case ports::Phase::kDegraded:
      return pb::PHASE_DEGRADED;
    case ports::Phase::kFailed:
      return pb::PHASE_FAILED;
  }
  return pb::PHASE_UNSPECIFIED;
}

void ToProto(const core::KnobValue& value, pb::KnobValue& out) {
  if (const double* number = std::get_if<double>(&value)) {
    out.set_number(*number);
  } else if (const int64_t* integer = std::get_if<int64_t>(&value)) {
    out.set_integer(*integer);
  } else if (const bool* flag = std::get_if<bool>(&value)) {
    out.set_flag(*flag);
  } else if (const std::string* text = std::get_if<std::string>(&value)) {
    out.set_text(*text);
  } else if (const core::IntRange* range =
                 std::get_if<core::IntRange>(&value)) {
    out.mutable_range()->set_lo(range->lo);
    out.mutable_range()->set_hi(range->hi);
  }
}

void ToProto(const runtime::PeerStatus& from, pb::PeerStatus& out) {
  DFL_PEER_STATUS_FIELDS(DFL_WRITE_VALUE, DFL_WRITE_MANY)
}

void ToProto(const runtime::NodeStatus& from, pb::NodeStatus& out) {
  DFL_NODE_NAME_FIELDS(DFL_WRITE_VALUE)
  DFL_NODE_STATUS_FIELDS(DFL_WRITE_VALUE, DFL_WRITE_MANY, DFL_WRITE_OPTIONAL,
                         DFL_WRITE_MAYBE)
}

void ToProto(const DaemonStatus& from, pb::DaemonStatus& out) {
  ToProto(from.node, *out.mutable_node());
  DFL_DAEMON_STATUS_FIELDS(DFL_WRITE_VALUE, DFL_WRITE_MANY)
}

#undef DFL_WRITE_VALUE
#undef DFL_WRITE_MANY
#undef DFL_WRITE_OPTIONAL
#undef DFL_WRITE_MAYBE

void ToProto(const ModelFacts& facts, pb::ModelFacts& out) {
  out.set_kind(facts.kind);
  out.set_fingerprint(facts.fingerprint);
  out.set_parameter_count(facts.parameter_count);
  out.set_buffer_count(facts.buffer_count);
  for (const std::string& dtype : facts.dtypes) out.add_dtypes(dtype);
  out.set_memory_bytes(facts.memory_bytes);
  out.set_message_bytes(facts.message_bytes);
  out.set_spectral_gap(facts.spectral_gap);
  out.set_first_step_note(facts.first_step_note);
  out.set_train_rows(facts.train_rows);
  out.set_test_rows(facts.test_rows);
  for (const runtime::MemoryPart& part : facts.memory_parts) {
    pb::MemoryPart& added = *out.add_memory_parts();
    added.set_what(part.what);
    added.set_bytes(part.bytes);
  }
  out.set_memory_limit_bytes(facts.memory_limit_bytes);
}

void ToProto(const PeerAddress& address, pb::PeerAddress& out) {
  out.set_address(address.address);
  out.set_node(address.node.name());
  out.set_linked(address.linked);
  out.set_origin(address.origin);
  out.set_last_error(address.last_error);
}

}  // namespace dfl::control
