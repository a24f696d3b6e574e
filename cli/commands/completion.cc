// dflctl completion bash|zsh|fish: made from the parser itself, so that it
// knows every command there is.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "cli/commands.h"

namespace dfl::cli {
namespace {

struct Entry {
  std::string path;  // "plan", "plan apply"; "" = dflctl itself
  std::vector<std::pair<std::string, std::string>> commands;  // name, help
  std::vector<std::pair<std::string, std::string>> flags;
};

void Collect(const CLI::App& app, const std::string& path,
             std::vector<Entry>& out) {
  Entry entry;
  entry.path = path;
  std::vector<std::pair<const CLI::App*, std::string>> below;
  for (const CLI::App* command :
       app.get_subcommands([](const CLI::App*) { return true; })) {
    entry.commands.emplace_back(command->get_name(),
                                command->get_description());
    below.emplace_back(
        command, path.empty() ? command->get_name()
                              : absl::StrCat(path, " ", command->get_name()));
  }
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      entry.flags.emplace_back(absl::StrCat("--", name),
                               option->get_description());
    }
  }
  out.push_back(std::move(entry));
  for (const auto& [command, name] : below) Collect(*command, name, out);
}

std::string Words(const Entry& entry, const Entry& top) {
  std::vector<std::string> words;
  for (const auto& [name, help] : entry.commands) words.push_back(name);
  for (const auto& [name, help] : entry.flags) words.push_back(name);
  if (&entry != &top) {
    for (const auto& [name, help] : top.flags) {
      if (name != "--help") words.push_back(name);
    }
  }
  return absl::StrJoin(words, " ");
}

// One `case` over the commands typed so far.
std::string Bash(const std::vector<Entry>& entries) {
  std::string out =
      "# bash completion of dflctl: source <(dflctl completion bash)\n"
      "_dflctl() {\n"
      "  local cur=\"${COMP_WORDS[COMP_CWORD]}\" path= word i\n"
      "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
      "    word=\"${COMP_WORDS[i]}\"\n"
      "    case \"${path:+$path }$word\" in\n      ";
  std::vector<std::string> paths;
  for (const Entry& entry : entries) {
    if (!entry.path.empty()) {
      paths.push_back(absl::StrCat("'", entry.path, "'"));
    }
  }
  absl::StrAppend(&out, absl::StrJoin(paths, " | "),
                  ")\n        path=\"${path:+$path }$word\" ;;\n"
                  "    esac\n  done\n"
                  "  local words=\n  case \"$path\" in\n");
  for (const Entry& entry : entries) {
    absl::StrAppend(&out, "    '", entry.path, "') words='",
                    Words(entry, entries[0]), "' ;;\n");
  }
  out +=
      "  esac\n"
      "  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
      "  [[ $cur == -* || ${#COMPREPLY[@]} -gt 0 ]] ||\n"
      "    mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
      "}\n"
      "complete -F _dflctl dflctl\n";
  return out;
}

std::string Zsh(const std::vector<Entry>& entries) {
  return absl::StrCat(
      "#compdef dflctl\n"
      "# zsh completion of dflctl: source <(dflctl completion zsh)\n"
      "autoload -U +X bashcompinit && bashcompinit\n",
      Bash(entries));
}

std::string FishQuoted(const std::string& text) {
  return absl::StrCat(
      "'", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"'", "\\'"}}), "'");
}

std::string Fish(const std::vector<Entry>& entries) {
  std::string out =
      "# fish completion of dflctl: dflctl completion fish | source\n"
      "function __dflctl_at\n"
      "  set -l words (string match -v -- '-*' (commandline -opc)[2..-1])\n"
      "  test \"$words\" = \"$argv[1]\"\n"
      "end\n";
  for (const Entry& entry : entries) {
    const std::string condition = absl::StrCat(
        "complete -c dflctl -n ",
        FishQuoted(absl::StrCat("__dflctl_at \"", entry.path, "\"")));
    for (const auto& [name, help] : entry.commands) {
      absl::StrAppend(&out, condition, " -f -a ", name, " -d ",
                      FishQuoted(help), "\n");
    }
    for (const auto& [name, help] : entry.flags) {
      absl::StrAppend(&out,
                      entry.path.empty() ? "complete -c dflctl" : condition,
                      " -l ", name.substr(2), " -d ", FishQuoted(help), "\n");
    }
  }
  return out;
}

}  // namespace

void AddCompletion(CLI::App& app, Chosen& chosen) {
  CLI::App* noun =
      AddCommand(app, "completion", "Completion for bash, zsh or fish", "bash");
  noun->require_subcommand(1);
  const auto add = [&](const char* shell, const char* example, auto write) {
    AddCommand(*noun, shell, absl::StrCat("For ", shell), example)
        ->callback([&app, &chosen, write] {
          chosen = [&app, write](Context& context) {
            std::vector<Entry> entries;
            Collect(app, "", entries);
            context.io().out << write(entries) << std::flush;
            return kOk;
          };
        });
  };
  add("bash", "> ~/.dflctl.bash && source ~/.dflctl.bash", Bash);
  add("zsh", "> ~/.dflctl.zsh && source ~/.dflctl.zsh", Zsh);
  add("fish", "| source", Fish);
}

}  // namespace dfl::cli
