#include "cli/status_json.h"

#include <string>
#include <variant>

#include "absl/strings/str_format.h"

namespace dfl::cli {

Json ToJsonValue(const client::KnobValue& value) {
  if (const auto* range = std::get_if<client::IntRange>(&value)) {
    return Json::array({range->lo, range->hi});
  }
  if (const auto* number = std::get_if<double>(&value)) return *number;
  if (const auto* integer = std::get_if<int64_t>(&value)) return *integer;
  if (const auto* flag = std::get_if<bool>(&value)) return *flag;
  return std::get<std::string>(value);
}

Json ToJsonValue(const client::PeerStatus& peer) {
  return Json{{"node", peer.node},
              {"address", peer.address},
              {"neighbour", peer.neighbour},
              {"linked", peer.linked},
              {"weight", peer.weight},
              {"phase", client::PhaseName(peer.phase)},
              {"step", peer.step},
              {"plan_version", peer.plan_version},
              {"bytes_sent", peer.bytes_sent},
              {"bytes_received", peer.bytes_received},
              {"models_sent", peer.models_sent},
              {"models_received", peer.models_received},
              {"missed", peer.missed},
              {"rejected", peer.rejected},
              {"last_error", peer.last_error}};
}

Json ToJsonValue(const client::DaemonStatus& status) {
  const client::NodeStatus& node = status.node;
  Json knobs = Json::object();
  for (const auto& [name, value] : node.knobs) knobs[name] = ToJsonValue(value);
  Json gauges = Json::object();
  for (const auto& [name, value] : node.gauges) gauges[name] = value;
  Json rejected = Json::object();
  for (const auto& [reason, count] : node.rejected) rejected[reason] = count;
  Json evaluation;  // null: none yet
  if (node.evaluation.has_value()) {
    evaluation = Json{{"step", node.evaluation->step},
                      {"loss", node.evaluation->loss},
                      {"accuracy", node.evaluation->accuracy},
                      {"macro_f1", node.evaluation->macro_f1},
                      {"rows", node.evaluation->rows}};
  }
  Json peers = Json::array();
  for (const client::PeerStatus& peer : node.peers) {
    peers.push_back(ToJsonValue(peer));
  }
  return Json{{"node", node.node},
              // In hex: JSON's numbers don't hold 64 bits everywhere.
              {"incarnation", absl::StrFormat("%016x", node.incarnation)},
              {"version", status.version},
              {"insecure", status.insecure},
              {"warnings", status.warnings},
              {"uptime_seconds", status.uptime_seconds},
              {"peer_addresses", status.peer_addresses},
              {"memory_bytes", status.memory_bytes},
              {"memory_limit_bytes", status.memory_limit_bytes},
              {"phase", client::PhaseName(node.phase)},
              {"phase_reason", node.phase_reason},
              {"run_id", node.run_id},
              {"plan_version", node.plan_version},
              {"pending_plan_version", node.pending_plan_version},
              {"algorithm", node.algorithm},
              {"knobs", std::move(knobs)},
              {"topology", node.topology},
              {"weights", node.weights},
              {"spectral_gap", node.spectral_gap},
              {"member_count", node.member_count},
              {"format", node.format},
              {"model", node.model},
              {"fingerprint", node.fingerprint},
              {"parameter_count", node.parameter_count},
              {"buffer_count", node.buffer_count},
              {"train_rows", node.train_rows},
              {"test_rows", node.test_rows},
              {"step", node.step},
              {"stop_steps", node.stop_steps},
              {"gradients", node.gradients},
              {"loss", node.loss},
              {"evaluation", std::move(evaluation)},
              {"steps_per_second", node.steps_per_second},
              {"training_seconds", node.training_seconds},
              {"longest_step_gap_seconds", node.longest_step_gap_seconds},
              {"gauges", std::move(gauges)},
              {"bytes_sent", node.bytes_sent},
              {"bytes_received", node.bytes_received},
              {"dense_bytes_sent", node.dense_bytes_sent},
              {"models_sent", node.models_sent},
              {"models_received", node.models_received},
              {"missed", node.missed},
              {"rejected", std::move(rejected)},
              {"last_error", node.last_error},
              {"peers", std::move(peers)}};
}

Json ToJsonValue(const client::Event& event) {
  return Json{{"unix_nanos", event.unix_nanos},
              {"kind", event.kind},
              {"step", event.step},
              {"peer", event.peer},
              {"text", event.text}};
}

Json ToJsonValue(const client::ModelFacts& facts) {
  Json parts = Json::array();
  for (const client::MemoryPart& part : facts.memory_parts) {
    parts.push_back(Json{{"what", part.what}, {"bytes", part.bytes}});
  }
  return Json{{"kind", facts.kind},
              {"fingerprint", facts.fingerprint},
              {"parameter_count", facts.parameter_count},
              {"buffer_count", facts.buffer_count},
              {"dtypes", facts.dtypes},
              {"memory_bytes", facts.memory_bytes},
              {"memory_parts", std::move(parts)},
              {"memory_limit_bytes", facts.memory_limit_bytes},
              {"message_bytes", facts.message_bytes},
              {"spectral_gap", facts.spectral_gap},
              {"first_step_note", facts.first_step_note},
              {"train_rows", facts.train_rows},
              {"test_rows", facts.test_rows}};
}

Json ToJsonValue(const client::PeerAddress& address) {
  return Json{{"address", address.address},
              {"node", address.node},
              {"linked", address.linked},
              {"origin", address.origin},
              {"last_error", address.last_error}};
}

}  // namespace dfl::cli
