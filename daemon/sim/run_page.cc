#include "daemon/sim/run_page.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/base/atomic_file.h"
#include "daemon/base/status_macros.h"
#include "daemon/config/daemon_command_line.h"
#include "daemon/config/plan_yaml.h"
#include "daemon/config/values.h"
#include "daemon/core/plan/plan_topology.h"
#include "daemon/core/vector/message_format.h"
#include "daemon/page/graph_json.h"
#include "daemon/page/page_html.h"

namespace dfl::sim {
namespace {

using console::Json;

// The columns of metrics that every run may have, beside time and extras.
struct PointColumn {
  const char* name;
  std::optional<double> (*value)(const MetricsRow& row);
};
constexpr PointColumn kColumns[] = {
    {"t", [](const MetricsRow& row) { return std::optional(row.time_s); }},
    {"step",
     [](const MetricsRow& row) {
       return std::optional(static_cast<double>(row.step));
     }},
    {"loss_mean_model",
     [](const MetricsRow& row) { return std::optional(row.loss_mean_model); }},
    {"mean_loss",
     [](const MetricsRow& row) { return std::optional(row.mean_loss); }},
    {"accuracy", [](const MetricsRow& row) { return row.accuracy; }},
    {"accuracy_mean_model",
     [](const MetricsRow& row) { return row.accuracy_mean_model; }},
    {"consensus_error",
     [](const MetricsRow& row) { return std::optional(row.consensus_error); }},
    {"bytes_sent",
     [](const MetricsRow& row) {
       return std::optional(static_cast<double>(row.bytes_sent));
     }},
    {"nodes",
     [](const MetricsRow& row) {
       return std::optional(static_cast<double>(row.nodes));
     }},
    {"mass_drift", [](const MetricsRow& row) { return row.mass_drift; }},
    {"sparsity", [](const MetricsRow& row) { return row.sparsity; }},
    {"phi_mean_model",
     [](const MetricsRow& row) { return row.phi_mean_model; }},
};

// Evenly, with the first and the last.
std::vector<MetricsRow> Thinned(const std::vector<MetricsRow>& rows) {
  if (rows.size() <= kMostPoints) return rows;
  std::vector<MetricsRow> kept;
  kept.reserve(kMostPoints);
  for (size_t i = 0; i < kMostPoints; ++i) {
    kept.push_back(rows[i * (rows.size() - 1) / (kMostPoints - 1)]);
  }
  return kept;
}

Json OrNull(const std::optional<double>& value) {
  return value.has_value() ? Json(*value) : Json();
}

Json PointsJson(const std::vector<MetricsRow>& all) {
  const std::vector<MetricsRow> rows = Thinned(all);
  Json points = Json::object();
  const auto add = [&](const std::string& name, const auto& value) {
    Json column = Json::array();
    bool empty = true;
    for (const MetricsRow& row : rows) {
      const std::optional<double> held = value(row);
      empty = empty && !held.has_value();
      column.push_back(OrNull(held));
    }
    if (!empty || name == "t") points[name] = std::move(column);
  };
  for (const PointColumn& column : kColumns) add(column.name, column.value);
  std::set<std::string> extras;
  for (const MetricsRow& row : rows) {
    for (const auto& [name, value] : row.extra) extras.insert(name);
  }
  for (const std::string& name : extras) {
    add(name, [&](const MetricsRow& row) -> std::optional<double> {
      const auto found = row.extra.find(name);
      if (found == row.extra.end()) return std::nullopt;
      return found->second;
    });
  }
  return points;
}

// ----------------------------------------------------------------- events ----

class EventTexts {
 public:
  explicit EventTexts(const Scenario& scenario)
      : members_(scenario.plan.members) {}

  std::string Of(const NetworkEvent& event) const {
    switch (event.kind) {
      case NetworkEvent::Kind::kCrash:
        return absl::StrCat(Names(event), " crashes");
      case NetworkEvent::Kind::kJoin:
        return absl::StrCat(Names(event), " joins");
      case NetworkEvent::Kind::kCut:
        return absl::StrCat("the link of ", Names(event), " is cut");
      case NetworkEvent::Kind::kBlackHole:
        return absl::StrCat("nothing arrives any more between ", Names(event));
      case NetworkEvent::Kind::kPartition:
        return absl::StrCat("the network falls into ", Groups(event), " parts");
      case NetworkEvent::Kind::kSlow:
        return absl::StrCat(Names(event), " is ", event.amount,
                            " times slower");
      case NetworkEvent::Kind::kLoss:
        return absl::StrCat("links lose ", event.amount, " more of all frames");
      case NetworkEvent::Kind::kChange:
        return "the plan changes";
      case NetworkEvent::Kind::kLeave:
        return absl::StrCat(Names(event), " leaves");
      case NetworkEvent::Kind::kDisk:
        return absl::StrCat("the disk of ", Names(event),
                            event.fault == DiskFault::kTorn   ? " tears"
                            : event.fault == DiskFault::kFull ? " is full"
                                                              : " is lost");
    }
    return "";
  }

 private:
  std::string Names(const NetworkEvent& event) const {
    return absl::StrJoin(
        event.members, " and ", [this](std::string* out, int64_t member) {
          out->append(members_[static_cast<size_t>(member)].node.name());
        });
  }
  static size_t Groups(const NetworkEvent& event) {
    return std::set<int64_t>(event.group.begin(), event.group.end()).size();
  }

  const std::vector<core::MemberSpec>& members_;
};

struct TimedText {
  double time_s;
  const char* kind;
  std::string text;
};

void AddNetworkEvents(const Scenario& scenario, double end_s,
                      std::vector<TimedText>& events) {
  const EventTexts texts(scenario);
  for (const NetworkEvent& event : scenario.events) {
    const double at = absl::ToDoubleSeconds(event.at);
    const char* kind = event.plan != nullptr ? "plan" : "network";
    if (at <= end_s) events.push_back({at, kind, texts.Of(event)});
    const double over = absl::ToDoubleSeconds(event.at + event.lasts);
    if (over <= end_s) {
      events.push_back({over, kind, absl::StrCat(texts.Of(event), ": over")});
    }
  }
}

void AddPlanChanges(const Json& changes, std::vector<TimedText>& events) {
  for (const Json& change : changes) {
    const std::string version =
        absl::StrCat("plan version ", change.value("plan_version", 0));
    events.push_back({change.value("time_s", 0.0), "plan",
                      absl::StrCat(version, " is given out")});
    if (change.contains("in_force_s")) {
      events.push_back({change.value("in_force_s", 0.0), "plan",
                        absl::StrCat(version, " is in force everywhere")});
    }
  }
}

Json EventsJson(const RecordedRun& run, const Scenario& scenario) {
  const double end_s = run.rows.empty() ? 0 : run.rows.back().time_s;
  std::vector<TimedText> events;
  AddNetworkEvents(scenario, end_s, events);
  AddPlanChanges(run.summary.value("changes", Json::array()), events);
  std::stable_sort(events.begin(), events.end(),
                   [](const TimedText& a, const TimedText& b) {
                     return a.time_s < b.time_s;
                   });
  events.push_back({end_s, "end",
                    absl::StrCat(run.summary.value("end", ""), ": ",
                                 run.summary.value("why", ""))});
  Json out = Json::array();
  for (const TimedText& event : events) {
    out.push_back(Json{{"number", out.size()},
                       {"t", event.time_s},
                       {"kind", event.kind},
                       {"text", event.text}});
  }
  return out;
}

// ------------------------------------------------------------------ parts ----

Json MembersJson(const RecordedRun& run, const Scenario& scenario) {
  std::map<std::string, const Json*> scores;
  static const Json kNone = Json::array();
  const auto nodes = run.summary.find("last_nodes");
  for (const Json& node : nodes == run.summary.end() ? kNone : *nodes) {
    scores[node.value("name", "")] = &node;
  }
  std::set<std::string> hostile;
  for (const int64_t member : scenario.hostile.nodes) {
    hostile.insert(
        scenario.plan.members[static_cast<size_t>(member)].node.name());
  }
  Json members = Json::array();
  for (const core::MemberSpec& member : scenario.plan.members) {
    if (members.size() >= kMostMembers) break;
    const std::string& name = member.node.name();
    Json entry{{"node", name}, {"hostile", hostile.count(name) > 0}};
    const auto score = scores.find(name);
    entry["state"] = score == scores.end() ? "gone" : "member";
    for (const char* key :
         {"step", "round", "plan_version", "loss", "accuracy"}) {
      if (score == scores.end() || !score->second->contains(key)) continue;
      entry[key] = (*score->second)[key];
    }
    members.push_back(std::move(entry));
  }
  return members;
}

// The first plan, and one for each event that changes it.
std::vector<const core::RunPlan*> PlansOf(const Scenario& scenario) {
  std::vector<const core::RunPlan*> plans = {&scenario.plan};
  for (const NetworkEvent& event : scenario.events) {
    if (event.plan != nullptr) plans.push_back(event.plan.get());
  }
  std::sort(plans.begin(), plans.end(),
            [](const core::RunPlan* a, const core::RunPlan* b) {
              return a->version < b->version;
            });
  return plans;
}

Json PlansJson(const RecordedRun& run, const Scenario& scenario) {
  std::map<uint64_t, double> given;
  for (const Json& change : run.summary.value("changes", Json::array())) {
    given[change.value("plan_version", uint64_t{0})] =
        change.value("time_s", 0.0);
  }
  Json versions = Json::array();
  for (const core::RunPlan* plan : PlansOf(scenario)) {
    const bool first = versions.empty();
    if (!first && given.count(plan->version) == 0) continue;
    versions.push_back(Json{{"version", plan->version},
                            {"t", first ? 0 : given[plan->version]},
                            {"yaml", config::WritePlan(*plan)}});
  }
  return versions;
}

Json HeadJson(const RecordedRun& run, const Scenario& scenario) {
  const core::RunPlan& plan = scenario.plan;
  Json head = Json::object();
  head["title"] = run.title;
  for (const char* key :
       {"scenario", "variant", "seed", "digest", "end", "why", "failed",
        "replay", "algorithm", "topology", "nodes", "edges", "parameters",
        "steps", "crashes", "links_lost", "neighbours_missed",
        "messages_rejected", "models_received"}) {
    if (run.summary.contains(key)) head[key] = run.summary[key];
  }
  // As text: JavaScript's numbers do not hold 64 bits.
  if (head.contains("seed")) head["seed"] = head["seed"].dump();
  head["format"] = absl::StrCat(core::ToString(plan.codec.format.coordinates),
                                " ", core::ToString(plan.codec.format.values));
  head["spectral_gap"] = core::SpectralGapIfSmall(plan);
  return head;
}

absl::StatusOr<std::string> PageOf(const std::string& folder) {
  DFL_ASSIGN_OR_RETURN(const RecordedRun run, ReadRun(folder));
  const std::string file =
      (std::filesystem::path(folder) / "scenario.yaml").string();
  DFL_ASSIGN_OR_RETURN(const std::string text,
                       config::ReadTextFile(file, config::kMaxPlanBytes));
  DFL_ASSIGN_OR_RETURN(
      const Scenario scenario,
      ParseScenario(text, file, run.summary.value("seed", uint64_t{0}),
                    run.summary.value("variant", "")));
  return page::HtmlWith(console::ToJsonLine(RunDocument(run, scenario)));
}

}  // namespace

Json RunDocument(const RecordedRun& run, const Scenario& scenario) {
  Json document{{"schema", 1}, {"kind", "run"}};
  document["run"] = HeadJson(run, scenario);
  document["points"] = PointsJson(run.rows);
  document["members"] = MembersJson(run, scenario);
  document["graph"] = page::GraphJson(scenario.plan, 0, std::nullopt);
  document["plans"] = PlansJson(run, scenario);
  document["events"] = EventsJson(run, scenario);
  return document;
}

ExitCode WritePage(CommandContext& context, const PageCommand& command) {
  const absl::StatusOr<std::string> html = PageOf(command.run);
  if (!html.ok()) return context.Fail(html.status());
  const std::string out =
      command.out.empty()
          ? (std::filesystem::path(command.run) / "page.html").string()
          : command.out;
  const absl::Status written = AtomicFile::Write(out, *html);
  if (!written.ok()) return context.Fail(written);
  context.Print(Json{{"page", out}, {"bytes", html->size()}},
                [&] { return absl::StrCat(out, "\n"); });
  return kOk;
}

}  // namespace dfl::sim
