#include "daemon/sim/dflsim.h"
#include "daemon/core/algorithms/catalogue.h"

#include <CLI/CLI.hpp>
#include <exception>
#include <filesystem>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/config/daemon_command_line.h"
#include "daemon/config/plan_yaml.h"
#include "daemon/console/catalogue.h"
#include "daemon/console/command_line.h"
#include "daemon/console/document.h"
#include "daemon/console/man_page.h"
#include "daemon/console/topology_text.h"
#include "daemon/core/algorithm/algorithm.h"
#include "daemon/core/plan/run_plan.h"
#include "daemon/sim/command_context.h"
#include "daemon/sim/results.h"
#include "daemon/sim/run_command.h"
#include "daemon/sim/run_page.h"
#include "daemon/sim/scenario.h"

namespace dfl::sim {
namespace {

using console::AddCommand;
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

using Chosen = std::function<ExitCode(CommandContext&)>;

// ----------------------------------------------------------------- compare
// ----

struct CompareCommand {
  std::vector<std::string> runs;
  std::string out;
};

ExitCode Compare(CommandContext& context, const CompareCommand& command) {
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

// ------------------------------------------------------ algorithm, topology
// ----

ExitCode ShowAlgorithm(CommandContext& context, const std::string& name) {
  const auto info = core::BuiltInCatalogue().Find(name);
  if (!info.ok()) return context.Fail(info.status(), kUsage);
  context.Print(console::AlgorithmJson(**info, nullptr),
                [&] { return console::AlgorithmText(**info, nullptr, ""); });
  return kOk;
}

// Reads a plan, or the plan of a scenario.
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

ExitCode ShowTopology(CommandContext& context, const TopologyCommand& command) {
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

// ------------------------------------------------------------ command line
// ----

void AddRun(CLI::App& app, Chosen& chosen) {
  auto run = std::make_shared<RunCommand>();
  CLI::App* command =
      AddCommand(app, "run", "Runs a scenario and writes a folder",
                 "scenario.yaml --seed 7 --out results");
  command->add_option("SCENARIO", run->file, "A plan with a section `network`")
      ->required();
  command
      ->add_option("--seed", run->seed,
                   "Of everything random, in place of the plan's")
      ->check(CLI::PositiveNumber);
  command->add_option("--out", run->out,
                      "Folder of the results; default: SCENARIO-seed-N");
  command
      ->add_option("--variant", run->variants,
                   "Only this one of the file's variants; several times: these")
      ->allow_extra_args(false);
  command
      ->add_option("--jobs", run->jobs,
                   "Variants at a time; default: one a processor")
      ->check(CLI::PositiveNumber);
  command->add_flag("--no-plots", run->no_plots, "Do not call gnuplot");
  command->callback([&chosen, run] {
    chosen = [run](CommandContext& context) {
      return RunScenario(context, *run);
    };
  });
}

void AddCompare(CLI::App& app, Chosen& chosen) {
  auto compare = std::make_shared<CompareCommand>();
  CLI::App* command = AddCommand(app, "compare", "Lays runs over each other",
                                 "ring-seed-1 star-seed-1 --out plots");
  command->add_option("RUN", compare->runs, "Folders of results")->required();
  command->add_option("--out", compare->out, "Folder of the plots")->required();
  command->callback([&chosen, compare] {
    chosen = [compare](CommandContext& context) {
      return Compare(context, *compare);
    };
  });
}

void AddPage(CLI::App& app, Chosen& chosen) {
  auto page = std::make_shared<PageCommand>();
  CLI::App* command =
      AddCommand(app, "page", "Writes a finished run as one HTML file",
                 "scenario-seed-1 --out run.html");
  command->add_option("RUN", page->run, "A folder of results")->required();
  command->add_option("--out", page->out,
                      "The file; default: page.html in the folder");
  command->callback([&chosen, page] {
    chosen = [page](CommandContext& context) {
      return WritePage(context, *page);
    };
  });
}

void AddAlgorithm(CLI::App& app, Chosen& chosen) {
  CLI::App* noun =
      AddCommand(app, "algorithm", "How nodes learn together", "show d-psgd");
  noun->require_subcommand(1);
  AddCommand(*noun, "list", "All there are", "")->callback([&chosen] {
    chosen = [](CommandContext& context) {
      context.Print(console::CatalogueJson(), console::CatalogueText);
      return kOk;
    };
  });
  auto name = std::make_shared<std::string>();
  CLI::App* show = AddCommand(*noun, "show",
                              "Source, costs, caveats and every knob", "pame");
  show->add_option("NAME", *name, "e.g. pame")->required();
  show->callback([&chosen, name] {
    chosen = [name](CommandContext& context) {
      return ShowAlgorithm(context, *name);
    };
  });
}

void AddTopology(CLI::App& app, Chosen& chosen) {
  CLI::App* noun =
      AddCommand(app, "topology", "Who is whose neighbour, and how they mix",
                 "show scenario.yaml");
  noun->require_subcommand(1);
  auto topology = std::make_shared<TopologyCommand>();
  CLI::App* show = AddCommand(
      *noun, "show", "Graph, weights, spectral gap and connectivity of a plan",
      "plan.yaml --round 12");
  show->add_option("PLAN", topology->file, "A plan or a scenario")->required();
  show->add_option("--round", topology->round,
                   "Of which round, where the graph changes; default 0")
      ->check(CLI::NonNegativeNumber);
  show->callback([&chosen, topology] {
    chosen = [topology](CommandContext& context) {
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
    console::SetExample(app, "run scenario.yaml");
    app.require_subcommand(1);
    app.fallthrough();
    app.set_version_flag("--version", absl::StrCat("dflsim ", DFL_VERSION));
    CommandContext context(io, now, learners);
    Chosen chosen;
    app.add_option("-o,--output", context.output, "table, json or yaml")
        ->capture_default_str()
        ->check(CLI::IsMember({"table", "json", "yaml"}));
    AddRun(app, chosen);
    AddCompare(app, chosen);
    AddPage(app, chosen);
    AddAlgorithm(app, chosen);
    AddTopology(app, chosen);
    if (!arguments.empty() && arguments[0] == console::kManCommand) {
      io.out << console::ProgramPage(app, "dfld(8), dflctl(1)");
      return kOk;
    }
    // CLI11 takes them back to front.
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
    try {
      app.parse(reversed);
    } catch (const CLI::ParseError& error) {
      if (error.get_exit_code() == 0 && !console::HasUnknown(app)) {
        return app.exit(error, io.out, io.err);
      }
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
