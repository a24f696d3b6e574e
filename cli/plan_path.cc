#include "cli/plan_path.h"

#include <yaml-cpp/yaml.h>

#include <exception>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "daemon/base/status_macros.h"
#include "daemon/config/plan_yaml.h"
#include "daemon/core/algorithm/knobs.h"

namespace dfl::cli {
namespace {

// yaml-cpp throws; its exceptions end in the two functions of the header.

Json ToJsonValue(const YAML::Node& node) {
  if (node.IsMap()) {
    Json out = Json::object();
    for (const auto& item : node) {
      out[item.first.as<std::string>()] = ToJsonValue(item.second);
    }
    return out;
  }
  if (node.IsSequence()) {
    Json out = Json::array();
    for (const YAML::Node& item : node) out.push_back(ToJsonValue(item));
    return out;
  }
  if (!node.IsScalar()) return nullptr;
  const std::string& text = node.Scalar();
  // "!" is the tag of a quoted text.
  if (node.Tag() == "!") return text;
  int64_t integer = 0;
  uint64_t positive = 0;
  double number = 0;
  if (absl::SimpleAtoi(text, &integer)) return integer;
  if (absl::SimpleAtoi(text, &positive)) return positive;
  if (absl::SimpleAtod(text, &number)) return number;
  if (text == "true" || text == "false") return text == "true";
  return text;
}

std::vector<std::string> Keys(const YAML::Node& node) {
  std::vector<std::string> keys;
  if (!node.IsMap()) return keys;
  for (const auto& item : node) keys.push_back(item.first.as<std::string>());
  return keys;
}

// The pieces of a path. A node's name may have dots: what stands between
// "nodes." and ".knobs" is one piece.
std::vector<std::string> Pieces(absl::string_view path) {
  constexpr absl::string_view kNodes = "nodes.";
  constexpr absl::string_view kKnobs = ".knobs";
  const size_t knobs = path.rfind(kKnobs);
  if (path.substr(0, kNodes.size()) == kNodes &&
      knobs != absl::string_view::npos && knobs > kNodes.size()) {
    std::vector<std::string> pieces = {
        "nodes", std::string(path.substr(kNodes.size(), knobs - kNodes.size())),
        "knobs"};
    const absl::string_view rest = path.substr(knobs + kKnobs.size());
    if (!rest.empty()) pieces.emplace_back(rest.substr(1));
    return pieces;
  }
  return absl::StrSplit(path, '.', absl::SkipEmpty());
}

absl::StatusOr<Json> Find(const core::RunPlan& plan, absl::string_view path) {
  YAML::Node at = YAML::Load(config::WritePlan(plan));
  std::string walked;
  for (const std::string& piece : Pieces(path)) {
    const std::vector<std::string> keys = Keys(at);
    const YAML::Node next = at.IsMap() ? at[piece] : YAML::Node();
    if (!at.IsMap() || !next.IsDefined()) {
      if (keys.empty()) {
        return absl::NotFoundError(
            absl::StrCat(walked, " is a value and has no \"", piece, "\""));
      }
      const absl::Status unknown =
          UnknownNameError(walked.empty() ? "plan" : walked, piece, keys);
      return absl::NotFoundError(unknown.message());
    }
    at.reset(next);
    absl::StrAppend(&walked, walked.empty() ? "" : ".", piece);
  }
  return ToJsonValue(at);
}

absl::StatusOr<std::string> Edited(const core::RunPlan& plan,
                                   absl::string_view path,
                                   absl::string_view value) {
  const std::vector<std::string> pieces = Pieces(path);
  if (pieces.empty()) {
    return absl::InvalidArgumentError(
        "the path is empty; write one like topology.kind=ring");
  }
  YAML::Node root = YAML::Load(config::WritePlan(plan));
  YAML::Node at = root;
  for (size_t i = 0; i + 1 < pieces.size(); ++i) {
    YAML::Node next = at[pieces[i]];
    if (next.IsDefined() && !next.IsNull() && !next.IsMap()) {
      return absl::InvalidArgumentError(absl::StrCat(
          absl::StrJoin(pieces.begin(), pieces.begin() + i + 1, "."),
          " is a value and has no \"", pieces[i + 1], "\""));
    }
    if (!next.IsDefined() || next.IsNull()) {
      at[pieces[i]] = YAML::Node(YAML::NodeType::Map);
      next = at[pieces[i]];
    }
    at.reset(next);
  }
  at[pieces.back()] = YAML::Load(std::string(value));
  YAML::Emitter emitter;
  emitter << root;
  return absl::StrCat(emitter.c_str(), "\n");
}

}  // namespace

absl::StatusOr<Json> PlanValue(const core::RunPlan& plan,
                               absl::string_view path) {
  try {
    return Find(plan, path);
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("plan: ", error.what()));
  }
}

absl::Status SetPlanValue(absl::string_view path, absl::string_view value,
                          core::RunPlan& plan) {
  std::string text;
  try {
    DFL_ASSIGN_OR_RETURN(text, Edited(plan, path, value));
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": \"", value, "\" is no YAML value (", error.what(),
                     "); quote it"));
  }
  const absl::StatusOr<core::RunPlan> parsed =
      config::ParsePlan(text, "changed plan");
  if (!parsed.ok()) return parsed.status();
  if (parsed->version != plan.version || parsed->run_id != plan.run_id ||
      parsed->seed != plan.seed) {
    return absl::InvalidArgumentError(
        absl::StrCat(path,
                     ": version, run and seed are not set by hand; "
                     "another run begins with `dflctl plan apply --new-run`"));
  }
  plan = *parsed;
  return absl::OkStatus();
}

}  // namespace dfl::cli
