// dflctl context add|use|list|show|remove: names for networks. They speak to no
// daemon.
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "cli/commands.h"
#include "cli/contexts.h"
#include "client/person.h"

namespace dfl::cli {
namespace {

struct ContextCommand {
  std::string name;
  bool use = false;
  bool replace = false;
};

Json ToJsonValue(const Contexts& contexts, const std::string& name,
                 const NamedContext& context) {
  return Json{
      {"name", name},
      {"current", name == contexts.current()},
      {"targets", context.targets},
      {"identity", context.identity.empty() ? Json() : Json(context.identity)}};
}

std::string Absolute(const std::string& path) {
  std::error_code failed;
  const std::filesystem::path full = std::filesystem::absolute(path, failed);
  return failed ? path : full.lexically_normal().string();
}

// As --target takes it in any folder, whatever --insecure is then.
std::string Lasting(const std::string& target, bool insecure) {
  absl::string_view path = target;
  if (absl::ConsumePrefix(&path, "unix:")) {
    return absl::StrCat("unix:", Absolute(std::string(path)));
  }
  if (!insecure || absl::StartsWith(target, "insecure:")) return target;
  return absl::StrCat("insecure:", target);
}

ExitCode Saved(Context& context, const Contexts& contexts, const Json& json,
               const std::string& text) {
  const absl::Status saved = contexts.Save();
  if (!saved.ok()) return context.Fail(saved);
  context.Print(json, [&] { return text; });
  return kOk;
}

ExitCode Add(Context& context, const ContextCommand& command) {
  absl::StatusOr<Contexts> contexts = Contexts::Load(context.io().environment);
  if (!contexts.ok()) return context.Fail(contexts.status());
  const Globals& globals = context.globals();
  if (globals.targets.empty() && globals.targets_file.empty()) {
    return context.Usage(absl::InvalidArgumentError(absl::StrCat(
        "a context needs a target: `dflctl context add ", command.name,
        " --target HOST:PORT`; several may be given")));
  }
  if (contexts->all().count(command.name) > 0 && !command.replace) {
    return context.Fail(absl::AlreadyExistsError(
        absl::StrCat("there is a context \"", command.name,
                     "\"; see it with `dflctl context show ", command.name,
                     "`, or give --replace")));
  }
  NamedContext added;
  for (const std::string& target : context.targets()) {
    added.targets.push_back(Lasting(target, globals.insecure));
  }
  if (!globals.identity.empty()) {
    added.identity = Absolute(globals.identity);
    const auto identity = client::ReadIdentity(added.identity);
    if (!identity.ok()) context.Warn(identity.status().message());
  }
  const absl::Status put = contexts->Put(command.name, added);
  if (!put.ok()) return context.Usage(put);
  if (command.use) {
    const absl::Status used = contexts->Use(command.name);
    if (!used.ok()) return context.Fail(used);
  }
  const bool current = contexts->current() == command.name;
  return Saved(context, *contexts, ToJsonValue(*contexts, command.name, added),
               absl::StrCat("context ", command.name, ": ",
                            absl::StrJoin(added.targets, ", "),
                            current ? ", the current one" : "", "\n"));
}

ExitCode Use(Context& context, const std::string& name) {
  absl::StatusOr<Contexts> contexts = Contexts::Load(context.io().environment);
  if (!contexts.ok()) return context.Fail(contexts.status());
  const absl::Status used = contexts->Use(name);
  if (!used.ok()) return context.Usage(used);
  const char* variable = "DFLCTL_TARGET";
  if (context.io().environment.count(variable) > 0) {
    context.Warn(absl::StrCat("$", variable,
                              " is set and goes before the current context"));
  }
  return Saved(context, *contexts,
               ToJsonValue(*contexts, name, contexts->all().at(name)),
               absl::StrCat("the current context is ", name, "\n"));
}

ExitCode Remove(Context& context, const std::string& name) {
  absl::StatusOr<Contexts> contexts = Contexts::Load(context.io().environment);
  if (!contexts.ok()) return context.Fail(contexts.status());
  const bool was_current = contexts->current() == name;
  const absl::Status removed = contexts->Remove(name);
  if (!removed.ok()) return context.Usage(removed);
  if (was_current && !contexts->all().empty()) {
    context.Say(
        "no context is current now; choose one with `dflctl context use`");
  }
  return Saved(context, *contexts, Json{{"name", name}, {"removed", true}},
               absl::StrCat("context ", name, " is removed\n"));
}

ExitCode List(Context& context) {
  const absl::StatusOr<Contexts> contexts =
      Contexts::Load(context.io().environment);
  if (!contexts.ok()) return context.Fail(contexts.status());
  Json json{{"file", contexts->path()},
            {"current",
             contexts->current().empty() ? Json() : Json(contexts->current())},
            {"contexts", Json::array()}};
  Table table({"CURRENT", "NAME", "TARGETS", "IDENTITY"});
  for (const auto& [name, value] : contexts->all()) {
    json["contexts"].push_back(ToJsonValue(*contexts, name, value));
    table.Add({name == contexts->current() ? "*" : "", name,
               absl::StrJoin(value.targets, ", "),
               value.identity.empty() ? "-" : value.identity});
  }
  context.Print(json, [&] { return table.ToString(); });
  return kOk;
}

ExitCode Show(Context& context, const std::string& name) {
  const absl::StatusOr<Contexts> contexts =
      Contexts::Load(context.io().environment);
  if (!contexts.ok()) return context.Fail(contexts.status());
  const std::string shown = name.empty() ? contexts->current() : name;
  if (shown.empty()) {
    return context.Fail(absl::NotFoundError(
        "no context is current; choose one with `dflctl context use NAME`"));
  }
  const absl::StatusOr<NamedContext> found = contexts->Find("context", shown);
  if (!found.ok()) return context.Usage(found.status());
  context.Print(ToJsonValue(*contexts, shown, *found), [&] {
    return KeyValueLines(
        {{"name", shown},
         {"current", shown == contexts->current() ? "yes" : "no"},
         {"targets", absl::StrJoin(found->targets, ", ")},
         {"identity", found->identity.empty() ? "-" : found->identity}});
  });
  return kOk;
}

}  // namespace

void AddContext(CLI::App& app, Chosen& chosen) {
  CLI::App* noun =
      AddCommand(app, "context",
                 "Names for networks: their targets, and who you are there",
                 "add plant-4 --target gateway-07:7601");
  noun->require_subcommand(1);
  console::AddHelp(*noun, ContextHelp());
  auto parsed = std::make_shared<ContextCommand>();
  CLI::App* add =
      AddCommand(*noun, "add",
                 "Name the targets and the identity given; the first is used",
                 "lab --target lab-1:7601 --identity ~/lab");
  add->add_option("NAME", parsed->name, "e.g. plant-4")->required();
  add->add_flag("--use", parsed->use, "Make it the current one");
  add->add_flag("--replace", parsed->replace, "Also where the name is taken");
  add->callback([&chosen, parsed] {
    chosen = [parsed](Context& context) { return Add(context, *parsed); };
  });
  const auto with_name = [&](const char* name, const char* help,
                             const char* example, bool required, auto run) {
    CLI::App* command = AddCommand(*noun, name, help, example);
    CLI::Option* option =
        command->add_option("NAME", parsed->name, "Of the context");
    if (required) option->required();
    command->callback([&chosen, parsed, run] {
      chosen = [parsed, run](Context& context) {
        return run(context, parsed->name);
      };
    });
  };
  with_name("use", "Make it the current one", "lab", true, Use);
  AddCommand(*noun, "list", "All of them; * marks the current one", "-o json")
      ->callback([&chosen] { chosen = List; });
  with_name("show", "One of them, by default the current one", "lab", false,
            Show);
  with_name("remove", "Forget it; nothing else is removed", "lab", true,
            Remove);
}

}  // namespace dfl::cli
