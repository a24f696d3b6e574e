#include "daemon/sim/dflsim.h"

#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <exception>
#include <filesystem>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "daemon/base/status_macros.h"
#include "daemon/config/daemon_command_line.h"
#include "daemon/config/plan_yaml.h"
#include "daemon/console/catalogue.h"
#include "daemon/console/command_line.h"
#include "daemon/console/document.h"
#include "daemon/console/interrupt.h"
#include "daemon/console/table.h"
#include "daemon/console/topology_text.h"
#include "daemon/console/units.h"
#include "daemon/core/algorithm.h"
#include "daemon/core/run_plan.h"
#include "daemon/sim/plots.h"
#include "daemon/sim/results.h"
#include "daemon/sim/scenario.h"
#include "daemon/sim/simulation.h"

namespace dfl::sim {
namespace {

using console::Io;
using console::Json;

constexpr char kDescription[] =
    "Runs whole networks of dfld's own nodes in one process, in virtual time,\n"
    "bit for bit from a seed. Results go to stdout, everything else to stderr.";

constexpr char kExitCodes[] =
    "Exit codes:\n"
    "  0    ok\n"
    "  1    the run failed, or a file could not be read or written\n"
    "  2    the command line or the scenario is wrong\n"
    "  70   a bug of dflsim\n"
    "  130  interrupted; what there was is written";

// Between two signs of life.
constexpr absl::Duration kDrawEvery = absl::Milliseconds(200);
constexpr absl::Duration kSayEvery = absl::Seconds(5);

// What every command works with.
class Context {
 public:
  Context(Io& io, const std::function<absl::Time()>& now,
          const OpenDataLearners& learners)
      : io(io), now(now), learners(learners) {}

  void Say(absl::string_view text) {
    for (const absl::string_view line : absl::StrSplit(text, '\n')) {
      io.err << "dflsim: " << console::Printable(std::string(line)) << "\n";
    }
  }
  ExitCode Fail(const absl::Status& status, ExitCode code = kFailed) {
    Say(status.message());
    return code;
  }
  void Print(const Json& json, const std::function<std::string()>& table) {
    io.out << (output == "json"   ? console::ToJson(json)
               : output == "yaml" ? console::ToYaml(json)
                                  : table());
    io.out.flush();
  }

  Io& io;
  const std::function<absl::Time()>& now;
  const OpenDataLearners& learners;
  std::string output = "table";
};

using Chosen = std::function<ExitCode(Context&)>;

// --------------------------------------------------------------------- run ----

struct RunCommand {
  std::string file;
  uint64_t seed = 0;
  std::string out;
  bool no_plots = false;
};

// A bar on a terminal, a line every few seconds elsewhere.
class ProgressLine {
 public:
  explicit ProgressLine(Context& context)
      : context_(context), began_(context.now()), drawn_(began_) {}
  ~ProgressLine() { Clear(); }

  void Show(const Progress& progress) {
    const absl::Time now = context_.now();
    const bool terminal = context_.io.err_is_terminal;
    if (now - drawn_ < (terminal ? kDrawEvery : kSayEvery)) return;
    drawn_ = now;
    const double seconds = absl::ToDoubleSeconds(now - began_);
    std::string text = absl::StrFormat(
        "step %d  loss %.4g  consensus %.3g  sent %s  %s steps/s",
        progress.last.step, progress.last.loss_mean_model,
        progress.last.consensus_error,
        console::HumanBytes(progress.last.bytes_sent),
        absl::StrFormat("%.0f", static_cast<double>(progress.steps) / seconds));
    if (progress.share > 0.01) {
      absl::StrAppend(&text, "  ",
                      console::HumanSeconds(seconds * (1 - progress.share) /
                                            progress.share),
                      " left");
    }
    if (terminal) {
      context_.io.err << "\r\x1b[K" << console::ProgressBar(progress.share, 24)
                      << "  " << text << std::flush;
      open_ = true;
    } else {
      context_.Say(absl::StrFormat(
          "%3d%%  %s", static_cast<int>(progress.share * 100), text));
    }
  }

  void Clear() {
    if (open_) context_.io.err << "\r\x1b[K" << std::flush;
    open_ = false;
  }
  absl::Duration elapsed() const { return context_.now() - began_; }

 private:
  Context& context_;
  const absl::Time began_;
  absl::Time drawn_;
  bool open_ = false;
};

std::string DefaultFolder(const Scenario& scenario) {
  return absl::StrCat(std::filesystem::path(scenario.file).stem().string(),
                      "-seed-", scenario.plan.seed);
}

// Of this process so far, in bytes.
int64_t PeakMemory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} * 1024;
}

std::string RunText(const Scenario& scenario, const Result& result,
                    const std::string& folder, double seconds) {
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
  }
  const double a_step =
      result.steps == 0 ? 0 : 1e6 * seconds / static_cast<double>(result.steps);
  lines.insert(
      lines.end(),
      {{"took",
        absl::StrFormat("%.1f s, %.2f us a step of a node, %s at most", seconds,
                        a_step, console::HumanBytes(PeakMemory()))},
       {"results", folder},
       {"seed", absl::StrCat(scenario.plan.seed)},
       {"digest", DigestText(result.digest)}});
  return console::KeyValueLines(lines);
}

void Draw(Context& context, const std::string& folder,
          absl::Span<const RecordedRun> runs) {
  const absl::Status drawn = DrawPlots(folder, runs);
  if (!drawn.ok()) context.Say(drawn.message());
}

ExitCode RunScenario(Context& context, const RunCommand& command) {
  const absl::StatusOr<std::string> text =
      config::ReadTextFile(command.file, config::kMaxPlanBytes);
  if (!text.ok()) return context.Fail(text.status());
  absl::StatusOr<Scenario> scenario =
      ParseScenario(*text, command.file, command.seed);
  if (!scenario.ok()) return context.Fail(scenario.status(), kUsage);
  const std::string folder =
      command.out.empty() ? DefaultFolder(*scenario) : command.out;
  absl::StatusOr<std::unique_ptr<Simulation>> made =
      Simulation::Create(*std::move(scenario), context.learners);
  if (!made.ok()) {
    return context.Fail(made.status(),
                        absl::IsNotFound(made.status()) ? kFailed : kUsage);
  }
  Simulation& simulation = **made;
  // Before anything can go wrong.
  context.Say(absl::StrCat(
      simulation.size(), " nodes, seed ", simulation.scenario().plan.seed,
      "; again by: ", ReplayCommand(simulation.scenario())));
  for (const std::string& note : simulation.notes()) {
    context.Say(absl::StrCat("warning: ", note, "; this has no effect"));
  }
  ProgressLine line(context);
  const Result result = [&] {
    const console::InterruptScope interrupt;
    return simulation.Run([&line](const Progress& progress) {
      line.Show(progress);
      return !console::InterruptScope::Requested();
    });
  }();
  const double seconds = absl::ToDoubleSeconds(line.elapsed());
  line.Clear();
  const absl::Status written =
      WriteResults(folder, simulation.scenario(), result);
  if (!written.ok()) return context.Fail(written);
  if (!command.no_plots && result.rows.size() > 1) {
    RecordedRun run;
    run.title = std::filesystem::path(folder).filename().string();
    run.rows = result.rows;
    Draw(context, folder, {&run, 1});
  }
  Json json = SummaryJson(simulation.scenario(), result);
  json["results"] = folder;
  json["seconds"] = seconds;
  json["peak_bytes"] = PeakMemory();
  context.Print(json, [&] {
    return RunText(simulation.scenario(), result, folder, seconds);
  });
  if (result.failed) {
    context.Say(
        absl::StrCat("the run failed (", Name(result.end), "): ", result.why,
                     "; again by: ", ReplayCommand(simulation.scenario())));
    return kFailed;
  }
  return result.end == End::kInterrupted ? kInterrupted : kOk;
}

// ----------------------------------------------------------------- compare ----

struct CompareCommand {
  std::vector<std::string> runs;
  std::string out;
};

ExitCode Compare(Context& context, const CompareCommand& command) {
  std::vector<RecordedRun> runs;
  for (const std::string& folder : command.runs) {
    absl::StatusOr<RecordedRun> run = ReadRun(folder);
    if (!run.ok()) return context.Fail(run.status());
    runs.push_back(*std::move(run));
  }
  std::error_code error;
  std::filesystem::create_directories(command.out, error);
  if (error) {
    return context.Fail(absl::FailedPreconditionError(
        absl::StrCat(command.out, ": ", error.message(),
                     "; choose another folder by --out")));
  }
  Draw(context, command.out, runs);
  context.Print(CompareJson(runs), [&] { return CompareText(runs); });
  return kOk;
}

// ------------------------------------------------------ algorithm, topology ----

ExitCode ShowAlgorithm(Context& context, const std::string& name) {
  const auto info = core::FindAlgorithm(name);
  if (!info.ok()) return context.Fail(info.status(), kUsage);
  context.Print(console::AlgorithmJson(**info, nullptr),
                [&] { return console::AlgorithmText(**info, nullptr, ""); });
  return kOk;
}

// A plan by itself, or that of a scenario.
absl::StatusOr<core::RunPlan> ReadAnyPlan(const std::string& file) {
  DFL_ASSIGN_OR_RETURN(const std::string text,
                       config::ReadTextFile(file, config::kMaxPlanBytes));
  DFL_ASSIGN_OR_RETURN(const config::YamlNode root,
                       config::ParseYaml(text, file));
  if (root.Find("network") == nullptr) return config::ReadPlan(root, file);
  DFL_ASSIGN_OR_RETURN(Scenario scenario, ParseScenario(text, file));
  return std::move(scenario.plan);
}

struct TopologyCommand {
  std::string file;
  int64_t round = 0;
};

ExitCode ShowTopology(Context& context, const TopologyCommand& command) {
  const absl::StatusOr<core::RunPlan> plan = ReadAnyPlan(command.file);
  if (!plan.ok()) {
    return context.Fail(plan.status(), absl::IsInvalidArgument(plan.status())
                                           ? kUsage
                                           : kFailed);
  }
  const auto report = console::ReportTopology(*plan, command.round);
  if (!report.ok()) return context.Fail(report.status(), kUsage);
  context.Print(console::TopologyJson(*plan, *report),
                [&] { return console::TopologyText(*plan, *report); });
  return kOk;
}

// ------------------------------------------------------------ command line ----

void AddRun(CLI::App& app, Chosen& chosen) {
  auto run = std::make_shared<RunCommand>();
  CLI::App* command =
      app.add_subcommand("run", "Runs a scenario and writes a folder");
  command->add_option("SCENARIO", run->file, "A plan with a section `network`")
      ->required();
  command
      ->add_option("--seed", run->seed,
                   "Of everything random, in place of the plan's")
      ->check(CLI::PositiveNumber);
  command->add_option("--out", run->out,
                      "Folder of the results; default: SCENARIO-seed-N");
  command->add_flag("--no-plots", run->no_plots, "Do not call gnuplot");
  command->callback([&chosen, run] {
    chosen = [run](Context& context) { return RunScenario(context, *run); };
  });
}

void AddCompare(CLI::App& app, Chosen& chosen) {
  auto compare = std::make_shared<CompareCommand>();
  CLI::App* command =
      app.add_subcommand("compare", "Lays runs over each other");
  command->add_option("RUN", compare->runs, "Folders of results")->required();
  command->add_option("--out", compare->out, "Folder of the plots")->required();
  command->callback([&chosen, compare] {
    chosen = [compare](Context& context) { return Compare(context, *compare); };
  });
}

void AddAlgorithm(CLI::App& app, Chosen& chosen) {
  CLI::App* noun = app.add_subcommand("algorithm", "How nodes learn together");
  noun->require_subcommand(1);
  noun->add_subcommand("list", "All there are")->callback([&chosen] {
    chosen = [](Context& context) {
      context.Print(console::CatalogueJson(), console::CatalogueText);
      return kOk;
    };
  });
  auto name = std::make_shared<std::string>();
  CLI::App* show =
      noun->add_subcommand("show", "Source, costs, caveats and every knob");
  show->add_option("NAME", *name, "e.g. pame")->required();
  show->callback([&chosen, name] {
    chosen = [name](Context& context) { return ShowAlgorithm(context, *name); };
  });
}

void AddTopology(CLI::App& app, Chosen& chosen) {
  CLI::App* noun = app.add_subcommand(
      "topology", "Who is whose neighbour, and how they mix");
  noun->require_subcommand(1);
  auto topology = std::make_shared<TopologyCommand>();
  CLI::App* show = noun->add_subcommand(
      "show", "Graph, weights, spectral gap and connectivity of a plan");
  show->add_option("PLAN", topology->file, "A plan or a scenario")->required();
  show->add_option("--round", topology->round,
                   "Of which round, where the graph changes; default 0")
      ->check(CLI::NonNegativeNumber);
  show->callback([&chosen, topology] {
    chosen = [topology](Context& context) {
      return ShowTopology(context, *topology);
    };
  });
}

}  // namespace

int Dflsim(const std::vector<std::string>& arguments, Io& io,
           const std::function<absl::Time()>& now,
           const OpenDataLearners& learners) {
  try {
    CLI::App app(kDescription, "dflsim");
    app.footer(kExitCodes);
    app.require_subcommand(1);
    app.fallthrough();
    app.set_version_flag("--version", absl::StrCat("dflsim ", DFL_VERSION));
    Context context(io, now, learners);
    Chosen chosen;
    app.add_option("-o,--output", context.output, "table, json or yaml")
        ->capture_default_str()
        ->check(CLI::IsMember({"table", "json", "yaml"}));
    AddRun(app, chosen);
    AddCompare(app, chosen);
    AddAlgorithm(app, chosen);
    AddTopology(app, chosen);
    // CLI11 takes them back to front.
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
    try {
      app.parse(reversed);
    } catch (const CLI::ParseError& error) {
      if (error.get_exit_code() == 0) return app.exit(error, io.out, io.err);
      io.err << console::ParseErrorText(app, error);
      return kUsage;
    }
    return chosen(context);
  } catch (const std::exception& error) {
    io.err << "dflsim: this is a bug of dflsim: " << error.what()
           << "; please report it with the command\n";
    return kOurBug;
  }
}

}  // namespace dfl::sim
