#include "cli/dflctl.h"

#include <CLI/CLI.hpp>
#include <exception>
#include <memory>

#include "cli/commands.h"
#include "cli/completer.h"
#include "cli/console.h"
#include "cli/context.h"
#include "cli/exit_codes.h"
#include "daemon/console/command_line.h"
#include "daemon/console/man_page.h"

namespace dfl::cli {
namespace {

constexpr char kDescription[] =
    "Steers a decentralised training run from any of its nodes.\n"
    "Results go to stdout, everything else to stderr.";

void AddGlobals(CLI::App& app, Globals& globals) {
  const std::string group = "Global options";
  app.add_option("-t,--target", globals.targets,
                 "Daemon: unix:/path/of/control.sock or host:port; repeat for "
                 "several. Default: see `dflctl context --help`")
      ->allow_extra_args(false)
      ->group(group);
  app.add_option("--all,--targets", globals.targets_file,
                 "File with targets, one a line")
      ->group(group);
  app.add_option("--context", globals.context,
                 "Name of the targets and the identity to use, see `dflctl "
                 "context`")
      ->group(group);
  app.add_option("-o,--output", globals.output,
                 "table, wide, json, jsonl or yaml")
      ->capture_default_str()
      ->group(group);
  app.add_option("--timeout", globals.timeout, "Of each call: 500ms, 10s, 2m")
      ->capture_default_str()
      ->group(group);
  app.add_option("--identity", globals.identity,
                 "Folder of your ca.pem, cert.pem and key.pem. Default: that "
                 "of the context, $DFLCTL_IDENTITY, else yours below "
                 "~/.config/dfl")
      ->group(group);
  app.add_flag("--insecure", globals.insecure,
               "Speaks plain text to host:port, for daemons with `security: "
               "insecure`")
      ->group(group);
  app.add_flag("--no-color", globals.no_color,
               "No colours (also: NO_COLOR is set)")
      ->group(group);
}

void AddCommands(CLI::App& app, Chosen& chosen) {
  AddStatus(app, chosen);
  AddTop(app, chosen);
  AddWatch(app, chosen);
  AddWait(app, chosen);
  AddPing(app, chosen);
  AddHealth(app, chosen);
  AddGet(app, chosen);
  AddSet(app, chosen);
  AddPlan(app, chosen);
  AddTrain(app, chosen);
  AddAlgorithm(app, chosen);
  AddTopology(app, chosen);
  AddParticipation(app, chosen);
  AddPeriod(app, chosen);
  AddNode(app, chosen);
  AddPeer(app, chosen);
  AddEvent(app, chosen);
  AddRecord(app, chosen);
  AddModel(app, chosen);
  AddCheckpoint(app, chosen);
  AddData(app, chosen);
  AddConfig(app, chosen);
  AddCert(app, chosen);
  AddToken(app, chosen);
  AddContext(app, chosen);
  AddMetrics(app, chosen);
  AddLog(app, chosen);
  AddDoctor(app, chosen);
  AddDebug(app, chosen);
  AddCompletion(app, chosen);
  AddVersion(app, chosen);
}

}  // namespace

int Dflctl(const std::vector<std::string>& arguments, Io& io) {
  try {
    CLI::App app(kDescription, "dflctl");
    app.footer(ExitCodeHelp());
    console::SetExample(app, "status --target gateway-07:7601");
    app.require_subcommand(1);
    app.fallthrough();
    Globals globals;
    Chosen chosen;
    AddGlobals(app, globals);
    AddCommands(app, chosen);
    if (!arguments.empty() && arguments[0] == kCompleteCommand) {
      io.out << CompletionText(
          Complete(app, {arguments.begin() + 1, arguments.end()}, io));
      return kOk;
    }
    if (!arguments.empty() && arguments[0] == console::kManCommand) {
      io.out << console::ProgramPage(app, "dfld(8), dflsim(1)");
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
    globals.offline =
        app.got_subcommand("context") || app.got_subcommand("completion");
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
