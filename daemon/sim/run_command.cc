#include "daemon/sim/run_command.h"

#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "daemon/base/status_macros.h"
#include "daemon/config/daemon_command_line.h"
#include "daemon/config/plan_yaml.h"
#include "daemon/console/interrupt.h"
#include "daemon/console/side_by_side.h"
#include "daemon/console/units.h"
#include "daemon/sim/plots.h"
#include "daemon/sim/scenario.h"
#include "daemon/sim/simulation.h"
#include "daemon/sim/variants.h"

namespace dfl::sim {
namespace {

using console::Json;

// Between two signs of life.
constexpr absl::Duration kDrawEvery = absl::Milliseconds(200);
constexpr absl::Duration kSayEvery = absl::Seconds(5);

// One of the runs that the command asks for.
struct Run {
  Scenario scenario;
  std::string folder;
  Result result;
  absl::Status status;  // of making it and of writing its results
  double seconds = 0;
  bool began = false;
};

// A bar on a terminal, a line every few seconds elsewhere; of all runs. Safe
// from several threads.
class ProgressLine {
 public:
  ProgressLine(CommandContext& context, size_t runs)
      : context_(context),
        shares_(runs, 0),
        steps_of_(runs, 0),
        began_(context.now()),
        drawn_(began_) {}
  ~ProgressLine() { Clear(); }

  void Show(size_t run, const std::string& variant, const Progress& progress) {
    one_at_a_time_([&] {
      shares_[run] = progress.share;
      steps_ += progress.steps - steps_of_[run];
      steps_of_[run] = progress.steps;
      const absl::Time now = context_.now();
      const bool terminal = context_.io.err_is_terminal;
      if (now - drawn_ < (terminal ? kDrawEvery : kSayEvery)) return;
      drawn_ = now;
      Write(variant, progress, absl::ToDoubleSeconds(now - began_));
    });
  }

  absl::Time Now() {
    return one_at_a_time_([&] { return context_.now(); });
  }
  void Finish(size_t run) {
    one_at_a_time_([&] { shares_[run] = 1; });
  }
  // Prints a line of its own.
  void Say(const std::string& text) {
    one_at_a_time_([&] {
      Clear();
      context_.Say(text);
    });
  }

 private:
  void Write(const std::string& variant, const Progress& progress,
             double seconds) {
    double share = 0;
    for (const double one : shares_) {
      share += one / static_cast<double>(shares_.size());
    }
    std::string text = absl::StrFormat(
        "%s%sstep %d  loss %.4g  consensus %.3g  sent %s  %.0f steps/s",
        variant, variant.empty() ? "" : "  ", progress.last.step,
        progress.last.loss_mean_model, progress.last.consensus_error,
        console::HumanBytes(progress.last.bytes_sent),
        static_cast<double>(steps_) / seconds);
    if (share > 0.01) {
      absl::StrAppend(&text, "  ",
                      console::HumanSeconds(seconds * (1 - share) / share),
                      " left");
    }
    if (context_.io.err_is_terminal) {
      context_.io.err << "\r\x1b[K" << console::ProgressBar(share, 24) << "  "
                      << text << std::flush;
      open_ = true;
    } else {
      context_.Say(
          absl::StrFormat("%3d%%  %s", static_cast<int>(share * 100), text));
    }
  }
  void Clear() {
    if (open_) context_.io.err << "\r\x1b[K" << std::flush;
    open_ = false;
  }

  console::Turnstile one_at_a_time_;
  CommandContext& context_;
  std::vector<double> shares_;
  std::vector<int64_t> steps_of_;
  int64_t steps_ = 0;
  const absl::Time began_;
  absl::Time drawn_;
  bool open_ = false;
};

std::string DefaultFolder(const Scenario& scenario) {
  return absl::StrCat(std::filesystem::path(scenario.file).stem().string(),
                      "-seed-", scenario.plan.seed);
}

// The peak of this process so far, in bytes.
int64_t PeakMemory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} * 1024;
}

// All that the command names, read and checked before any begins.
absl::StatusOr<std::vector<Run>> ReadRuns(const RunCommand& command,
                                          absl::string_view text) {
  DFL_ASSIGN_OR_RETURN(std::vector<std::string> variants,
                       VariantNames(text, command.file));
  if (!command.variants.empty()) variants = command.variants;
  const bool alone = variants.empty();
  if (alone) variants.emplace_back();
  std::vector<Run> runs;
  for (const std::string& variant : variants) {
    Run run;
    DFL_ASSIGN_OR_RETURN(
        run.scenario, ParseScenario(text, command.file, command.seed, variant));
    run.folder =
        command.out.empty() ? DefaultFolder(run.scenario) : command.out;
    if (!alone) {
      run.folder = (std::filesystem::path(run.folder) / variant).string();
    }
    runs.push_back(std::move(run));
  }
  return runs;
}

double MicrosecondsAStep(const Run& run) {
  return run.result.steps == 0
             ? 0
             : 1e6 * run.seconds / static_cast<double>(run.result.steps);
}

void RunOne(const CommandContext& context, Run& run, size_t place,
            ProgressLine& line) {
  const absl::Time began = line.Now();
  absl::StatusOr<std::unique_ptr<Simulation>> made =
      Simulation::Create(run.scenario, context.learners);
  run.status = made.status();
  if (!made.ok()) return;
  run.began = true;
  Simulation& simulation = **made;
  // Before anything can go wrong.
  line.Say(absl::StrCat(simulation.size(), " nodes, seed ",
                        run.scenario.plan.seed,
                        "; again by: ", ReplayCommand(run.scenario)));
  for (const std::string& note : simulation.notes()) {
    line.Say(absl::StrCat("warning: ", note, "; this has no effect"));
  }
  run.result = simulation.Run([&](const Progress& progress) {
    line.Show(place, run.scenario.variant, progress);
    return !console::InterruptScope::Requested();
  });
  run.seconds = absl::ToDoubleSeconds(line.Now() - began);
  run.status = WriteResults(run.folder, run.scenario, run.result);
  if (!run.scenario.variant.empty()) {
    line.Say(absl::StrFormat("%s: %s after %.1f s, %.2f us a step of a node",
                             run.scenario.variant, Name(run.result.end),
                             run.seconds, MicrosecondsAStep(run)));
  }
  if (run.result.failed) {
    line.Say(absl::StrCat("the run failed (", Name(run.result.end),
                          "): ", run.result.why,
                          "; again by: ", ReplayCommand(run.scenario)));
  }
}

void RunAll(CommandContext& context, std::vector<Run>& runs, size_t jobs) {
  const console::InterruptScope interrupt;
  ProgressLine line(context, runs.size());
  console::SideBySide(
      runs.size(), jobs,
      [&](size_t place) {
        RunOne(context, runs[place], place, line);
        line.Finish(place);
      },
      [] { return !console::InterruptScope::Requested(); });
}

std::string RunText(const Run& run) {
  const Result& result = run.result;
  std::vector<std::pair<std::string, std::string>> lines = {
      {"end", absl::StrCat(Name(result.end), ": ", result.why)}};
  if (!result.rows.empty()) {
    const MetricsRow& row = result.rows.back();
    lines.insert(
        lines.end(),
        {{"step", absl::StrCat(row.step, " (", row.lowest_step, " to ",
                               row.highest_step, ") of ", row.nodes, " nodes")},
         {"virtual time", absl::StrFormat("%.6g s", row.time_s)},
         {"loss", absl::StrFormat("%.6g at the mean model, %.6g on average",
                                  row.loss_mean_model, row.mean_loss)},
         {"consensus error", absl::StrFormat("%.6g", row.consensus_error)},
         {"sent", console::HumanBytes(row.bytes_sent)}});
    if (row.accuracy.has_value()) {
      lines.push_back(
          {"accuracy",
           absl::StrFormat("%.4f at the mean model, %.4f on average",
                           *row.accuracy_mean_model, *row.accuracy)});
    }
    for (const auto& [metric, value] : row.extra) {
      lines.emplace_back(metric, absl::StrFormat("%.6g", value));
    }
  }
  lines.insert(
      lines.end(),
      {{"took", absl::StrFormat("%.1f s, %.2f us a step of a node, %s at most",
                                run.seconds, MicrosecondsAStep(run),
                                console::HumanBytes(PeakMemory()))},
       {"results", run.folder},
       {"seed", absl::StrCat(run.scenario.plan.seed)},
       {"digest", DigestText(result.digest)}});
  return console::KeyValueLines(lines);
}

Json RunJson(const Run& run) {
  Json json = SummaryJson(run.scenario, run.result);
  json["results"] = run.folder;
  json["seconds"] = run.seconds;
  json["peak_bytes"] = PeakMemory();
  return json;
}

RecordedRun Recorded(const Run& run) {
  RecordedRun recorded;
  recorded.folder = run.folder;
  recorded.title = std::filesystem::path(run.folder).filename().string();
  recorded.summary = SummaryJson(run.scenario, run.result);
  recorded.rows = run.result.rows;
  return recorded;
}

void Report(CommandContext& context, const RunCommand& command,
            const std::vector<Run>& runs) {
  std::vector<RecordedRun> recorded;
  for (const Run& run : runs) {
    if (run.began && run.status.ok()) recorded.push_back(Recorded(run));
  }
  if (recorded.empty()) return;
  const bool alone = runs.size() == 1 && runs[0].scenario.variant.empty();
  const bool drawn =
      std::any_of(recorded.begin(), recorded.end(),
                  [](const RecordedRun& run) { return run.rows.size() > 1; });
  if (!command.no_plots && drawn) {
    const std::filesystem::path folder(recorded[0].folder);
    Draw(context, alone ? folder.string() : folder.parent_path().string(),
         recorded);
  }
  if (alone) {
    context.Print(RunJson(runs[0]), [&] { return RunText(runs[0]); });
    return;
  }
  Json list = Json::array();
  for (const Run& run : runs) {
    if (run.began && run.status.ok()) {
      list.push_back(
          Json{{"run", run.scenario.variant}, {"summary", RunJson(run)}});
    }
  }
  context.Print(Json{{"runs", std::move(list)}},
                [&] { return CompareText(recorded); });
}

}  // namespace

void Draw(CommandContext& context, const std::string& folder,
          absl::Span<const RecordedRun> runs) {
  const absl::Status drawn = DrawPlots(folder, runs);
  if (!drawn.ok()) context.Say(drawn.message());
}

ExitCode RunScenario(CommandContext& context, const RunCommand& command) {
  const absl::StatusOr<std::string> text =
      config::ReadTextFile(command.file, config::kMaxPlanBytes);
  if (!text.ok()) return context.Fail(text.status());
  absl::StatusOr<std::vector<Run>> runs = ReadRuns(command, *text);
  if (!runs.ok()) return context.Fail(runs.status(), kUsage);
  const size_t jobs = command.jobs > 0 ? static_cast<size_t>(command.jobs)
                                       : console::Processors();
  RunAll(context, *runs, jobs);
  Report(context, command, *runs);
  ExitCode code = kOk;
  for (const Run& run : *runs) {
    if (!run.status.ok()) {
      const bool file = run.began || absl::IsNotFound(run.status);
      code = context.Fail(run.status, file ? kFailed : kUsage);
    } else if (!run.began || run.result.end == End::kInterrupted) {
      return kInterrupted;
    } else if (run.result.failed) {
      code = kFailed;
    }
  }
  return code;
}

}  // namespace dfl::sim
