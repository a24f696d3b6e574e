#include "daemon/web/page/status_json.h"

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "daemon/core/algorithm/knobs.h"
#include "proto/status_fields.h"

namespace dfl::web {
namespace {

// A field's value. It is a template, so that a number does not become a knob's
// value.
template <typename T>
Json Tell(const T& value) {
  return value;
}
Json Tell(ports::Phase phase) { return std::string(ports::PhaseName(phase)); }
Json Tell(absl::Duration time) { return absl::ToDoubleSeconds(time); }
Json Tell(const NodeId& node) { return node.name(); }
Json Tell(const std::optional<double>& value) {
  return value.has_value() ? Json(*value) : Json();
}
Json Tell(const core::KnobValue& value) {
  return std::visit(
      [](const auto& held) -> Json {
        if constexpr (std::is_same_v<std::decay_t<decltype(held)>,
                                     core::IntRange>) {
          return Json::array({held.lo, held.hi});
        } else {
          return held;
        }
      },
      value);
}
Json Tell(const runtime::PeerStatus& from);

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
#define DFL_TELL_VALUE(name, source) out[#name] = Tell(from.source);
#define DFL_TELL(name) out[#name] = Tell(from.name);
// Told by hand.
#define DFL_TELL_NOTHING(name)

Json Tell(const runtime::PeerStatus& from) {
  Json out;
  DFL_PEER_STATUS_FIELDS(DFL_TELL_VALUE, DFL_TELL)
  return out;
}

// Null: there is none yet.
Json EvaluationJson(const runtime::NodeStatus& node) {
  if (!node.evaluated) return Json();
  const ports::Evaluation& from = node.evaluation;
  Json out;
  out["step"] = node.evaluated_step;
  DFL_EVALUATION_FIELDS(DFL_TELL_VALUE, DFL_TELL)
  return out;
}

void TellName(const runtime::NodeStatus& from, Json& out) {
  DFL_NODE_NAME_FIELDS(DFL_TELL_VALUE)
  // In hex: JSON's numbers don't hold 64 bits everywhere.
  out["incarnation"] = absl::StrFormat("%016x", from.incarnation);
}

void TellDaemon(const control::DaemonStatus& from, Json& out) {
  DFL_DAEMON_STATUS_FIELDS(DFL_TELL_VALUE, DFL_TELL)
}

void TellNode(const runtime::NodeStatus& from, Json& out) {
  DFL_NODE_STATUS_FIELDS(DFL_TELL_VALUE, DFL_TELL, DFL_TELL, DFL_TELL_NOTHING)
  out["evaluation"] = EvaluationJson(from);
}

#undef DFL_TELL_VALUE
#undef DFL_TELL
#undef DFL_TELL_NOTHING

}  // namespace

Json StatusJson(const control::DaemonStatus& status) {
  Json out;
  TellName(status.node, out);
  TellDaemon(status, out);
  TellNode(status.node, out);
  return out;
}

}  // namespace dfl::web
