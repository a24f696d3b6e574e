// The nouns and verbs of dflctl, one file each in cli/commands; those that move
// files are in cli/files, and the full screen in cli/top. Each function
// adds its commands to the parser; a parsed command line leaves what to do in
// `chosen`.
#ifndef DFL_CLI_COMMANDS_H_
#define DFL_CLI_COMMANDS_H_

#include <CLI/CLI.hpp>
#include <functional>

#include "cli/context.h"
#include "daemon/console/command_line.h"

namespace dfl::cli {

using console::AddCommand;
using Chosen = std::function<ExitCode(Context&)>;

void AddStatus(CLI::App& app, Chosen& chosen);
void AddWatch(CLI::App& app, Chosen& chosen);
void AddTop(CLI::App& app, Chosen& chosen);
void AddWait(CLI::App& app, Chosen& chosen);
void AddPing(CLI::App& app, Chosen& chosen);
void AddHealth(CLI::App& app, Chosen& chosen);
void AddEvent(CLI::App& app, Chosen& chosen);
void AddGet(CLI::App& app, Chosen& chosen);
void AddSet(CLI::App& app, Chosen& chosen);
void AddPlan(CLI::App& app, Chosen& chosen);
// history, rollback and diff, below `plan`.
void AddPlanHistory(CLI::App& plan, Chosen& chosen);
void AddTrain(CLI::App& app, Chosen& chosen);
void AddAlgorithm(CLI::App& app, Chosen& chosen);
void AddTopology(CLI::App& app, Chosen& chosen);
void AddParticipation(CLI::App& app, Chosen& chosen);
void AddPeriod(CLI::App& app, Chosen& chosen);
void AddNode(CLI::App& app, Chosen& chosen);
// drain, undrain and label, below `node`.
void AddNodeOrders(CLI::App& node, Chosen& chosen);
void AddPeer(CLI::App& app, Chosen& chosen);
void AddRecord(CLI::App& app, Chosen& chosen);
void AddModel(CLI::App& app, Chosen& chosen);
void AddCheckpoint(CLI::App& app, Chosen& chosen);
void AddConfig(CLI::App& app, Chosen& chosen);
void AddData(CLI::App& app, Chosen& chosen);
void AddCert(CLI::App& app, Chosen& chosen);
// rotate and retire, below `cert`.
void AddCertRotation(CLI::App& cert, Chosen& chosen);
void AddToken(CLI::App& app, Chosen& chosen);
void AddContext(CLI::App& app, Chosen& chosen);
// What goes on, and what is amiss.
void AddMetrics(CLI::App& app, Chosen& chosen);
void AddLog(CLI::App& app, Chosen& chosen);
void AddDoctor(CLI::App& app, Chosen& chosen);
void AddDebug(CLI::App& app, Chosen& chosen);
void AddCompletion(CLI::App& app, Chosen& chosen);
void AddVersion(CLI::App& app, Chosen& chosen);

}  // namespace dfl::cli

#endif  // DFL_CLI_COMMANDS_H_
