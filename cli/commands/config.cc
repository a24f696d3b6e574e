// dflctl config validate|show: a node's own settings.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "daemon/base/status_macros.h"
#include "daemon/config/daemon_command_line.h"
#include "daemon/config/node_settings.h"

namespace dfl::cli {
namespace {

struct ConfigCommand {
  std::string file;
  std::string folder;
  bool effective = false;
  bool origin = false;
};

// The file and its folder alone: what this shell's environment has is not what
// the daemon will see.
absl::StatusOr<config::LoadedSettings> Load(const ConfigCommand& command) {
  config::DaemonCommandLine line;
  line.config_file = command.file;
  line.config_folder = command.folder;
  DFL_ASSIGN_OR_RETURN(const config::SettingsSources sources,
                       config::GatherSources(line, {}));
  return config::LoadNodeSettings(sources);
}

ExitCode Validate(Context& context, const ConfigCommand& command) {
  const absl::StatusOr<config::LoadedSettings> loaded = Load(command);
  const absl::Status status =
      loaded.ok() ? config::CheckStartable(*loaded) : loaded.status();
  Json json{{"file", command.file},
            {"valid", status.ok()},
            {"errors", Json::array()}};
  if (!status.ok()) {
    for (absl::string_view line : absl::StrSplit(status.message(), '\n')) {
      json["errors"].push_back(std::string(line));
    }
  }
  context.Print(json, [&] {
    return status.ok() ? absl::StrCat(command.file, ": valid\n")
                       : std::string();
  });
  return status.ok() ? kOk : context.Fail(status);
}

using Settings = std::vector<client::Setting>;

// What is not a default, unless all of it is wanted.
Settings Wanted(const Settings& all, bool effective) {
  Settings out;
  for (const client::Setting& setting : all) {
    if (effective || setting.origin != "default") out.push_back(setting);
  }
  return out;
}

Json ToJsonValue(const Settings& settings) {
  Json out = Json::array();
  for (const client::Setting& setting : settings) {
    out.push_back(Json{{"key", setting.key},
                       {"value", setting.value},
                       {"origin", setting.origin}});
  }
  return out;
}

std::string ToText(const Settings& settings, bool origin) {
  Table table(origin ? std::vector<std::string>{"KEY", "VALUE", "ORIGIN"}
                     : std::vector<std::string>{"KEY", "VALUE"});
  for (const client::Setting& setting : settings) {
    std::vector<std::string> row = {setting.key, setting.value};
    if (origin) row.push_back(setting.origin);
    table.Add(std::move(row));
  }
  return table.ToString();
}

ExitCode ShowFile(Context& context, const ConfigCommand& command) {
  const absl::StatusOr<config::LoadedSettings> loaded = Load(command);
  if (!loaded.ok()) return context.Fail(loaded.status());
  Settings settings;
  for (const config::EffectiveSetting& setting : loaded->effective) {
    settings.push_back({setting.key, setting.value, setting.origin});
  }
  settings = Wanted(settings, command.effective);
  context.Print(
      Json{{"file", command.file}, {"settings", ToJsonValue(settings)}},
      [&] { return ToText(settings, command.origin); });
  return kOk;
}

ExitCode Show(Context& context, const ConfigCommand& command) {
  if (!command.file.empty()) return ShowFile(context, command);
  const auto answers = context.AskAll<Settings>(
      [](client::ControlClient& daemon) { return daemon.Settings(); });
  context.Print(Context::TargetsJson<Settings>(
                    answers,
                    [&](const Settings& settings, Json& entry) {
                      entry["settings"] =
                          ToJsonValue(Wanted(settings, command.effective));
                    }),
                [&] {
                  std::string out;
                  for (const auto& answer : answers) {
                    if (!answer.result.ok()) continue;
                    if (!out.empty()) out += "\n";
                    if (answers.size() > 1) out += answer.target + ":\n";
                    out += ToText(Wanted(*answer.result, command.effective),
                                  command.origin);
                  }
                  return out;
                });
  return context.Conclude(answers);
}

}  // namespace

void AddConfig(CLI::App& app, Chosen& chosen) {
  CLI::App* noun =
      AddCommand(app, "config", "A node's own settings", "show --effective");
  noun->require_subcommand(1);

  auto checked = std::make_shared<ConfigCommand>();
  CLI::App* command = AddCommand(*noun, "validate",
                                 "Check a configuration file; needs no daemon",
                                 "/etc/dfld/dfld.yaml");
  command->add_option("FILE", checked->file, "e.g. /etc/dfld/dfld.yaml")
      ->required();
  command->add_option("--conf-d", checked->folder,
                      "Folder of *.yaml files that go on top");
  command->callback([&chosen, checked] {
    chosen = [checked](Context& context) {
      return Validate(context, *checked);
    };
  });

  auto shown = std::make_shared<ConfigCommand>();
  command =
      AddCommand(*noun, "show", "Settings of the running daemons, or of FILE",
                 "--origin --target gateway-07:7601");
  command->add_option("FILE", shown->file,
                      "A configuration file; nothing: ask the daemons");
  command->add_option("--conf-d", shown->folder,
                      "Folder of *.yaml files that go on top of FILE");
  command->add_flag("--effective", shown->effective, "Defaults too");
  command->add_flag("--origin", shown->origin, "Where each value comes from");
  command->callback([&chosen, shown] {
    chosen = [shown](Context& context) { return Show(context, *shown); };
  });
}

}  // namespace dfl::cli
