#include "cli/apply_report.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/console.h"
#include "cli/status_json.h"

namespace dfl::cli {
namespace {

void FillJson(const client::ApplyPlanResult& result, Json& entry) {
  entry["version"] = result.version;
  entry["run_id"] = result.run_id;
  entry["unchanged"] = result.unchanged;
  entry["warnings"] = result.warnings;
  if (result.facts.has_value()) entry["facts"] = ToJsonValue(*result.facts);
}

// "1.2 GB in the worst case, of 4.0 GB".
std::string MemoryText(const client::ModelFacts& facts) {
  return absl::StrCat(
      HumanBytes(facts.memory_bytes), " in the worst case",
      facts.memory_limit_bytes > 0
          ? absl::StrCat(", of ", HumanBytes(facts.memory_limit_bytes))
          : "");
}

std::string FactsText(const client::ModelFacts& facts) {
  std::vector<std::pair<std::string, std::string>> lines = {
      {"  model", facts.kind},
      {"  parameters", absl::StrCat(facts.parameter_count)},
      {"  buffers", absl::StrCat(facts.buffer_count)},
      {"  types", absl::StrJoin(facts.dtypes, ", ")}};
  if (facts.memory_bytes > 0) {
    lines.emplace_back("  memory", MemoryText(facts));
    for (const client::MemoryPart& part : facts.memory_parts) {
      lines.emplace_back("",
                         absl::StrCat(HumanBytes(part.bytes), " ", part.what));
    }
  }
  if (facts.message_bytes > 0) {
    lines.emplace_back("  one message", HumanBytes(facts.message_bytes));
  }
  lines.emplace_back("  spectral gap", Fixed(facts.spectral_gap, 4));
  lines.emplace_back("  rows", absl::StrCat(facts.train_rows, " to train on, ",
                                            facts.test_rows, " to test on"));
  if (!facts.first_step_note.empty()) {
    lines.emplace_back("  first steps", facts.first_step_note);
  }
  return KeyValueLines(lines);
}

}  // namespace

void ReportApplied(Context& context,
                   const std::vector<Answer<client::ApplyPlanResult>>& answers,
                   bool dry_run, const std::optional<Adoption>& adoption) {
  Json json = Context::TargetsJson<client::ApplyPlanResult>(answers, FillJson);
  json["dry_run"] = dry_run;
  if (adoption.has_value()) {
    json["adopted"] = adoption->adopted;
    json["not_adopted"] = Json::array();
    for (const NotAdopted& missing : adoption->missing) {
      json["not_adopted"].push_back(
          Json{{"node", missing.node}, {"reason", missing.why}});
    }
  }
  context.Print(json, [&] {
    std::string out;
    for (const auto& answer : answers) {
      if (!answer.result.ok()) continue;
      const client::ApplyPlanResult& result = *answer.result;
      absl::StrAppend(&out, answer.target, ": plan version ", result.version,
                      dry_run            ? " would be taken"
                      : result.unchanged ? " was there already"
                                         : " taken",
                      "\n");
      if (result.facts.has_value()) out += FactsText(*result.facts);
    }
    if (adoption.has_value() && adoption->adopted > 0) {
      absl::StrAppend(&out, "in force on ", adoption->adopted, " of ",
                      adoption->adopted + adoption->missing.size(),
                      " members\n");
    }
    return out;
  });
  for (const auto& answer : answers) {
    if (!answer.result.ok()) continue;
    for (const std::string& warning : answer.result->warnings) {
      context.Warn(warning);
    }
  }
}

}  // namespace dfl::cli
