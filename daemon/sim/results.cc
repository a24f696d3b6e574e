#include "daemon/sim/results.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "daemon/base/atomic_file.h"
#include "daemon/base/status_macros.h"
#include "daemon/config/daemon_command_line.h"
#include "daemon/console/table.h"
#include "daemon/console/units.h"

namespace dfl::sim {
namespace {

using console::Json;

constexpr char kScenarioFile[] = "scenario.yaml";
constexpr char kMetricsFile[] = "metrics.csv";
constexpr char kSummaryFile[] = "summary.json";
constexpr size_t kMaxFileBytes = size_t{256} << 20;

std::string InFolder(const std::string& folder, const char* name) {
  return (std::filesystem::path(folder) / name).string();
}

// A number of a summary; 0 when it is not there.
double Figure(const Json& summary, const char* key) {
  const auto last = summary.find("last");
  if (last == summary.end() || !last->is_object()) return 0;
  const auto found = last->find(key);
  return found != last->end() && found->is_number() ? found->get<double>() : 0;
}

void AddIfThere(Json& object, const char* key,
                const std::optional<double>& value) {
  if (value.has_value()) object[key] = *value;
}

// By node: its p, and its p_hat by the neighbour it sends to.
Json DrawnJson(const Result& result) {
  Json nodes = Json::object();
  for (const auto& [node, drawn] : result.drawn) {
    Json entry = Json::object();
    AddIfThere(entry, "p", drawn.p);
    for (const auto& [peer, p_hat] : drawn.p_hat) {
      entry["p_hat"][peer.name()] = p_hat;
    }
    nodes[node.name()] = std::move(entry);
  }
  return nodes;
}

// A figure as text; "-" when it is not there.
std::string FigureText(const Json& summary, const char* key) {
  const auto last = summary.find("last");
  const bool there = last != summary.end() && last->is_object() &&
                     last->find(key) != last->end();
  return there ? absl::StrFormat("%.4g", Figure(summary, key)) : "-";
}

std::string Text(const Json& summary, const char* key) {
  const auto found = summary.find(key);
  if (found == summary.end()) return "";
  return found->is_string() ? found->get<std::string>() : found->dump();
}

// A word of a shell's command line.
std::string ShellWord(const std::string& text) {
  const bool plain =
      !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
        return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
               absl::StrContains("_-./:@%+,=", c);
      });
  if (plain) return text;
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

std::string Short(double value) { return absl::StrFormat("%.4g", value); }

}  // namespace

std::string DigestText(uint64_t digest) {
  return absl::StrFormat("%016x", digest);
}

std::string ReplayCommand(const Scenario& scenario) {
  return absl::StrCat(
      "dflsim run ", ShellWord(scenario.file), " --seed ", scenario.plan.seed,
      scenario.variant.empty() ? "" : " --variant ", scenario.variant);
}

Json SummaryJson(const Scenario& scenario, const Result& result) {
  Json last = nullptr;
  if (!result.rows.empty()) {
    const MetricsRow& row = result.rows.back();
    last = Json{{"step", row.step},
                {"time_s", row.time_s},
                {"loss_mean_model", row.loss_mean_model},
                {"mean_loss", row.mean_loss},
                {"consensus_error", row.consensus_error},
                {"bytes_sent", row.bytes_sent},
                {"nodes", row.nodes},
                {"lowest_step", row.lowest_step},
                {"highest_step", row.highest_step}};
    AddIfThere(last, "accuracy", row.accuracy);
    AddIfThere(last, "accuracy_mean_model", row.accuracy_mean_model);
    AddIfThere(last, "mass_drift", row.mass_drift);
    AddIfThere(last, "sparsity", row.sparsity);
    AddIfThere(last, "phi_mean_model", row.phi_mean_model);
    for (const auto& [metric, value] : row.extra) last[metric] = value;
  }
  Json nodes = Json::array();
  for (const NodeScore& node : result.nodes) {
    Json entry = {{"name", node.name},
                  {"step", node.step},
                  {"round", node.round},
                  {"plan_version", node.plan_version},
                  {"loss", node.own.loss}};
    AddIfThere(entry, "accuracy", node.own.accuracy);
    nodes.push_back(std::move(entry));
  }
  Json changes = Json::array();
  for (const PlanChange& change : result.changes) {
    Json entry = {{"plan_version", change.version}, {"time_s", change.time_s}};
    AddIfThere(entry, "in_force_s", change.in_force_s);
    changes.push_back(std::move(entry));
  }
  Json summary = {{"scenario", scenario.file},
                  {"variant", scenario.variant},
                  {"seed", scenario.plan.seed},
                  {"digest", DigestText(result.digest)},
                  {"end", Name(result.end)},
                  {"why", result.why},
                  {"failed", result.failed},
                  {"replay", ReplayCommand(scenario)},
                  {"algorithm", scenario.plan.algorithm.name},
                  {"topology", scenario.plan.topology.kind},
                  {"nodes", scenario.plan.members.size()},
                  {"edges", result.edges},
                  {"parameters", result.parameters},
                  {"steps", result.steps},
                  {"events", result.events},
                  {"crashes", result.crashes},
                  {"writes_failed", result.writes_failed},
                  {"states_lost", result.states_lost},
                  {"links_lost", result.links_lost},
                  {"neighbours_missed", result.neighbours_missed},
                  {"messages_rejected", result.messages_rejected},
                  {"models_received", result.models_received},
                  {"changes", std::move(changes)},
                  {"last", std::move(last)},
                  {"last_nodes", std::move(nodes)}};
  if (!result.drawn.empty()) summary["drawn"] = DrawnJson(result);
  return summary;
}

absl::Status WriteResults(const std::string& folder, const Scenario& scenario,
                          const Result& result) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error || !std::filesystem::is_directory(folder, error)) {
    return absl::FailedPreconditionError(
        absl::StrCat(folder, ": cannot be made a folder",
                     error ? absl::StrCat(" (", error.message(), ")") : "",
                     "; choose another by --out"));
  }
  DFL_RETURN_IF_ERROR(
      AtomicFile::Write(InFolder(folder, kScenarioFile), scenario.text));
  DFL_RETURN_IF_ERROR(AtomicFile::Write(InFolder(folder, kMetricsFile),
                                        ToCsv(result.rows, scenario.metrics)));
  return AtomicFile::Write(InFolder(folder, kSummaryFile),
                           console::ToJson(SummaryJson(scenario, result)));
}

absl::StatusOr<RecordedRun> ReadRun(const std::string& folder) {
  RecordedRun run;
  run.folder = folder;
  std::filesystem::path path(folder);
  if (!path.has_filename()) path = path.parent_path();  // "out/"
  run.title = path.filename().string();
  const std::string summary = InFolder(folder, kSummaryFile);
  const std::string metrics = InFolder(folder, kMetricsFile);
  DFL_ASSIGN_OR_RETURN(const std::string text,
                       config::ReadTextFile(summary, kMaxFileBytes));
  run.summary = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!run.summary.is_object()) {
    return absl::InvalidArgumentError(absl::StrCat(
        summary, ": is no summary of `dflsim run`; name the folder of a run"));
  }
  DFL_ASSIGN_OR_RETURN(const std::string csv,
                       config::ReadTextFile(metrics, kMaxFileBytes));
  DFL_ASSIGN_OR_RETURN(run.rows, ParseCsv(csv, metrics));
  return run;
}

Json CompareJson(absl::Span<const RecordedRun> runs) {
  Json list = Json::array();
  for (const RecordedRun& run : runs) {
    list.push_back(Json{{"run", run.title}, {"summary", run.summary}});
  }
  return Json{{"runs", std::move(list)}};
}

std::string CompareText(absl::Span<const RecordedRun> runs) {
  console::Table table({"RUN", "ALGORITHM", ">NODES", ">SEED", "END", ">STEP",
                        ">TIME", ">LOSS", ">MEAN LOSS", ">ACCURACY",
                        ">CONSENSUS", ">SENT"});
  for (const RecordedRun& run : runs) {
    const Json& s = run.summary;
    table.Add(
        {run.title, Text(s, "algorithm"), Text(s, "nodes"), Text(s, "seed"),
         Text(s, "end"), Short(Figure(s, "step")),
         absl::StrCat(Short(Figure(s, "time_s")), " s"),
         Short(Figure(s, "loss_mean_model")), Short(Figure(s, "mean_loss")),
         FigureText(s, "accuracy"), Short(Figure(s, "consensus_error")),
         console::HumanBytes(static_cast<int64_t>(Figure(s, "bytes_sent")))});
  }
  return table.ToString();
}

}  // namespace dfl::sim
