#include "cli/status_json.h"

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_format.h"
#include "proto/status_fields.h"

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

namespace {

// A field's value. It is a template, so that a number does not become a
// KnobValue.
template <typename T>
Json Tell(const T& value) {
  return value;
}
Json Tell(client::Phase phase) { return client::PhaseName(phase); }
Json Tell(const client::KnobValue& value) { return ToJsonValue(value); }
Json Tell(const client::PeerStatus& peer) { return ToJsonValue(peer); }
Json Tell(const std::optional<client::Evaluation>& evaluation);

template <typename T>
Json Tell(const std::vector<T>& values) {
  Json array = Json::array();
  for (const T& value : values) array.push_back(Tell(value));
  return array;
}
template <typename T>
Json Tell(const std::map<std::string, T>& values) {
  Json object = Json::object();
  for (const auto& [name, value] : values) object[name] = Tell(value);
  return object;
}

// Whoever tells a status has a `from` and an `out`.
#define DFL_TELL_VALUE(name, source) out[#name] = Tell(from.name);
#define DFL_TELL(name) out[#name] = Tell(from.name);

Json Tell(const std::optional<double>& value) {
  return value.has_value() ? Json(*value) : Json();
}

// Null: there is none yet.
Json Tell(const std::optional<client::Evaluation>& evaluation) {
  if (!evaluation.has_value()) return Json();
  const client::Evaluation& from = *evaluation;
  Json out;
  out["step"] = from.step;
  DFL_EVALUATION_FIELDS(DFL_TELL_VALUE, DFL_TELL)
  return out;
}

void TellName(const client::NodeStatus& from, Json& out) {
  DFL_NODE_NAME_FIELDS(DFL_TELL_VALUE)
  // In hex: JSON's numbers don't hold 64 bits everywhere.
  out["incarnation"] = absl::StrFormat("%016x", from.incarnation);
}

void TellDaemon(const client::DaemonStatus& from, Json& out) {
  DFL_DAEMON_STATUS_FIELDS(DFL_TELL_VALUE, DFL_TELL)
}

void TellNode(const client::NodeStatus& from, Json& out) {
  DFL_NODE_STATUS_FIELDS(DFL_TELL_VALUE, DFL_TELL, DFL_TELL, DFL_TELL)
}

}  // namespace

Json ToJsonValue(const client::PeerStatus& from) {
  Json out;
  DFL_PEER_STATUS_FIELDS(DFL_TELL_VALUE, DFL_TELL)
  return out;
}

#undef DFL_TELL_VALUE
#undef DFL_TELL

Json ToJsonValue(const client::DaemonStatus& status) {
  Json out;
  TellName(status.node, out);
  TellDaemon(status, out);
  TellNode(status.node, out);
  return out;
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
