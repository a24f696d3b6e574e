#include "daemon/control/status_proto.h"

#include <string>
#include <variant>

namespace dfl::control {

namespace pb = dfl::control::v1;

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

void ToProto(const runtime::PeerStatus& peer, pb::PeerStatus& out) {
  out.set_node(peer.node.name());
  out.set_address(peer.address);
  out.set_neighbour(peer.neighbour);
  out.set_linked(peer.linked);
  out.set_weight(peer.weight);
  out.set_phase(ToProto(peer.phase));
  out.set_step(peer.step);
  out.set_plan_version(peer.plan_version);
  out.set_bytes_sent(peer.bytes_sent);
  out.set_bytes_received(peer.bytes_received);
  out.set_models_sent(peer.models_sent);
  out.set_models_received(peer.models_received);
  out.set_missed(peer.missed);
  out.set_rejected(peer.rejected);
  out.set_last_error(peer.last_error);
}

void ToProto(const runtime::NodeStatus& node, pb::NodeStatus& out) {
  out.set_node(node.node.name());
  out.set_incarnation(node.incarnation);
  out.set_phase(ToProto(node.phase));
  out.set_phase_reason(node.phase_reason);

  out.set_run_id(node.run_id);
  out.set_plan_version(node.plan_version);
  out.set_pending_plan_version(node.pending_plan_version);
  out.set_algorithm(node.algorithm);
  for (const auto& [name, value] : node.knobs) {
    ToProto(value, (*out.mutable_knobs())[name]);
  }
  out.set_topology(node.topology);
  out.set_weights(node.weights);
  out.set_spectral_gap(node.spectral_gap);
  out.set_member_count(node.member_count);
  out.set_format(node.format);

  out.set_model(node.model);
  out.set_fingerprint(node.fingerprint);
  out.set_parameter_count(node.parameter_count);
  out.set_buffer_count(node.buffer_count);
  out.set_train_rows(node.train_rows);
  out.set_test_rows(node.test_rows);

  out.set_step(node.step);
  out.set_stop_steps(node.stop_steps);
  out.set_gradients(node.gradients);
  out.set_loss(node.loss);
  if (node.evaluated) {
    pb::Evaluation& evaluation = *out.mutable_evaluation();
    evaluation.set_step(node.evaluated_step);
    evaluation.set_loss(node.evaluation.loss);
    evaluation.set_accuracy(node.evaluation.accuracy);
    evaluation.set_macro_f1(node.evaluation.macro_f1);
    evaluation.set_rows(node.evaluation.rows);
  }
  out.set_steps_per_second(node.steps_per_second);
  out.set_training_seconds(absl::ToDoubleSeconds(node.training_time));
  out.set_longest_step_gap_seconds(
      absl::ToDoubleSeconds(node.longest_step_gap));
  for (const auto& [name, value] : node.gauges) {
    (*out.mutable_gauges())[name] = value;
  }

  out.set_bytes_sent(node.bytes_sent);
  out.set_bytes_received(node.bytes_received);
  out.set_dense_bytes_sent(node.dense_bytes_sent);
  out.set_models_sent(node.models_sent);
  out.set_models_received(node.models_received);
  out.set_missed(node.missed);
  for (const auto& [reason, count] : node.rejected) {
    (*out.mutable_rejected())[reason] = count;
  }

  out.set_last_error(node.last_error);
  for (const runtime::PeerStatus& peer : node.peers) {
    ToProto(peer, *out.add_peers());
  }
}

void ToProto(const DaemonStatus& status, pb::DaemonStatus& out) {
  ToProto(status.node, *out.mutable_node());
  out.set_version(status.version);
  out.set_insecure(status.insecure);
  for (const std::string& warning : status.warnings) {
    out.add_warnings(warning);
  }
  out.set_uptime_seconds(absl::ToDoubleSeconds(status.uptime));
  for (const std::string& address : status.peer_addresses) {
    out.add_peer_addresses(address);
  }
  out.set_memory_bytes(status.memory_bytes);
  out.set_memory_limit_bytes(status.memory_limit_bytes);
}

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
