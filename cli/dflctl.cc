#include "cli/dflctl.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/commands.h"
#include "cli/context.h"
#include "cli/exit_codes.h"
#include "daemon/core/knobs.h"

namespace dfl::cli {
namespace {

constexpr char kDescription[] =
    "Steers a decentralised training run from any of its nodes.\n"
    "Results go to stdout, everything else to stderr.";

void AddGlobals(CLI::App& app, Globals& globals) {
  const std::string group = "Global options";
  app.add_option("-t,--target", globals.targets,
                 "Daemon: unix:/path/of/control.sock or host:port; repeat for "
                 "several. Default: $DFLCTL_TARGET, else this machine's socket")
      ->allow_extra_args(false)
      ->group(group);
  app.add_option("--all,--targets", globals.targets_file,
                 "File with targets, one a line")
      ->group(group);
  app.add_option("-o,--output", globals.output, "table, json or yaml")
      ->capture_default_str()
      ->group(group);
  app.add_option("--timeout", globals.timeout, "Of each call: 500ms, 10s, 2m")
      ->capture_default_str()
      ->group(group);
  app.add_flag("--no-color", globals.no_color,
               "No colours (also: NO_COLOR is set)")
      ->group(group);
}

void AddCommands(CLI::App& app, Chosen& chosen) {
  AddStatus(app, chosen);
  AddWatch(app, chosen);
  AddGet(app, chosen);
  AddSet(app, chosen);
  AddPlan(app, chosen);
  AddTrain(app, chosen);
  AddAlgorithm(app, chosen);
  AddTopology(app, chosen);
  AddParticipation(app, chosen);
  AddPeriod(app, chosen);
  AddPeer(app, chosen);
  AddModel(app, chosen);
  AddConfig(app, chosen);
  AddCompletion(app, chosen);
  AddVersion(app, chosen);
}

// "dflctl plan" of the deepest command that was recognised.
std::string PathOf(const CLI::App& app) {
  return app.get_parent() == nullptr
             ? app.get_name()
             : absl::StrCat(PathOf(*app.get_parent()), " ", app.get_name());
}

const CLI::App& Deepest(const CLI::App& app) {
  const std::vector<CLI::App*> parsed = app.get_subcommands();
  return parsed.empty() ? app : Deepest(*parsed.back());
}

std::vector<std::string> CommandNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command :
       app.get_subcommands([](auto*) { return true; })) {
    names.push_back(command->get_name());
  }
  return names;
}

// Flags of `app` and of everything above it, as they are typed.
std::vector<std::string> FlagNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* at = &app; at != nullptr; at = at->get_parent()) {
    for (const CLI::Option* option : at->get_options()) {
      for (const std::string& name : option->get_lnames()) {
        names.push_back(absl::StrCat("--", name));
      }
      for (const std::string& name : option->get_snames()) {
        names.push_back(absl::StrCat("-", name));
      }
    }
  }
  return names;
}

// What the command line has that nobody knows, in one sentence.
std::string UnknownText(const CLI::App& at, const std::string& word) {
  const bool flag = absl::StartsWith(word, "-");
  const std::string name = word.substr(0, word.find('='));
  const std::vector<std::string> known =
      flag ? FlagNames(at) : CommandNames(at);
  const std::string nearest = core::NearestName(flag ? name : word, known);
  const std::string hint =
      nearest.empty() ? "" : absl::StrCat("; did you mean \"", nearest, "\"?");
  if (flag) {
    return absl::StrCat("unknown flag \"", name, "\"", hint);
  }
  if (known.empty()) {
    return absl::StrCat("\"", word, "\" is one argument too many");
  }
  return absl::StrCat("unknown command \"", word, "\"", hint,
                      hint.empty() ? "; " : " ",
                      "commands: ", absl::StrJoin(known, ", "));
}

int ReportParseError(const CLI::App& app, const CLI::ParseError& error,
                     Io& io) {
  const CLI::App& at = Deepest(app);
  const std::vector<std::string> unknown = app.remaining(true);
  std::string text;
  if (!unknown.empty()) {
    text = UnknownText(at, unknown.front());
  } else if (!CommandNames(at).empty()) {
    text = absl::StrCat("a command is missing: ",
                        absl::StrJoin(CommandNames(at), ", "));
  } else {
    text = error.what();
  }
  io.err << "dflctl: " << text << "\ndflctl: see `" << PathOf(at)
         << " --help`\n";
  return kUsage;
}

}  // namespace

int Dflctl(const std::vector<std::string>& arguments, Io& io) {
  try {
    CLI::App app(kDescription, "dflctl");
    app.footer(ExitCodeHelp());
    app.require_subcommand(1);
    app.fallthrough();
    Globals globals;
    Chosen chosen;
    AddGlobals(app, globals);
    AddCommands(app, chosen);
    // CLI11 takes them back to front.
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
    try {
      app.parse(reversed);
    } catch (const CLI::ParseError& error) {
      if (error.get_exit_code() == 0) return app.exit(error, io.out, io.err);
      return ReportParseError(app, error, io);
    }
    const absl::StatusOr<std::unique_ptr<Context>> context =
        Context::Create(globals, io);
    if (!context.ok()) {
      io.err << "dflctl: " << context.status().message() << "\n";
      return absl::IsInvalidArgument(context.status()) ? kUsage : kFailed;
    }
    return chosen(**context);
  } catch (const std::exception& error) {
    io.err << "dflctl: this is a bug of dflctl: " << error.what()
           << "; please report it with the command\n";
    return kOurBug;
  }
}

}  // namespace dfl::cli
