#include "cli/completer.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/context.h"
#include "cli/contexts.h"
#include "cli/plan_path.h"
#include "cli/top/top_view.h"
#include "daemon/config/plan_yaml.h"
#include "daemon/core/algorithms/catalogue.h"

namespace dfl::cli {
namespace {

using Word = Completion::Word;
using Words = std::vector<Word>;

Words Plain(std::initializer_list<const char*> texts) {
  Words words;
  for (const char* text : texts) words.push_back({text, ""});
  return words;
}

// A command line as far as it is typed.
struct Line {
  const CLI::App* command = nullptr;
  std::string path;  // "algorithm set"
  std::vector<std::string> positionals;
  const CLI::Option* open_option = nullptr;  // its value is being typed
  Globals globals;
};

bool TakesValue(const CLI::Option& option) {
  return option.get_expected_max() > 0;
}

// The option that is typed as `name`, of the command or of what is above it.
const CLI::Option* FindOption(const CLI::App& command,
                              const std::string& name) {
  for (const CLI::App* at = &command; at != nullptr; at = at->get_parent()) {
    for (const CLI::Option* option : at->get_options()) {
      if (!option->get_positional() && option->check_name(name)) return option;
    }
  }
  return nullptr;
}

void Note(const CLI::Option& option, const std::string& value,
          Globals& globals) {
  if (option.check_name("--target")) globals.targets.push_back(value);
  if (option.check_name("--all")) globals.targets_file = value;
  if (option.check_name("--context")) globals.context = value;
  if (option.check_name("--identity")) globals.identity = value;
  if (option.check_name("--insecure")) globals.insecure = true;
}

const CLI::App* FindCommand(const CLI::App& app, const std::string& name) {
  for (const CLI::App* command :
       app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_name() == name) return command;
  }
  return nullptr;
}

Line Read(const CLI::App& app, const std::vector<std::string>& typed) {
  Line line;
  line.command = &app;
  for (size_t i = 0; i + 1 < typed.size(); ++i) {
    const std::string& word = typed[i];
    if (line.open_option != nullptr) {
      Note(*line.open_option, word, line.globals);
      line.open_option = nullptr;
      continue;
    }
    if (word.size() > 1 && word[0] == '-') {
      const size_t equals = word.find('=');
      const CLI::Option* option =
          FindOption(*line.command, word.substr(0, equals));
      if (option == nullptr) continue;
      if (TakesValue(*option) && equals == std::string::npos) {
        line.open_option = option;
      } else {
        Note(*option,
             equals == std::string::npos ? "" : word.substr(equals + 1),
             line.globals);
      }
      continue;
    }
    const CLI::App* next = FindCommand(*line.command, word);
    if (next == nullptr) {
      line.positionals.push_back(word);
      continue;
    }
    line.command = next;
    absl::StrAppend(&line.path, line.path.empty() ? "" : " ", word);
  }
  return line;
}

// ------------------------------------------------ what only daemons know ----

// Asks the first target, for a part of kCompletionTime.
class Network {
 public:
  Network(const Globals& globals, Io& io) : silent_io_{in_, out_, err_} {
    silent_io_.environment = io.environment;
    silent_io_.is_root = io.is_root;
    Globals bounded = globals;
    bounded.timeout = absl::FormatDuration(kCompletionTime / 2);
    absl::StatusOr<std::unique_ptr<Context>> context =
        Context::Create(bounded, silent_io_);
    if (context.ok()) context_ = *std::move(context);
  }

  std::optional<core::RunPlan> Plan() {
    if (context_ == nullptr) return std::nullopt;
    const absl::StatusOr<client::PlanDocument> document =
        context_->Client(0).Plan();
    if (!document.ok() || document->yaml.empty()) return std::nullopt;
    absl::StatusOr<core::RunPlan> plan =
        config::ParsePlan(document->yaml, "plan");
    if (!plan.ok()) return std::nullopt;
    return *std::move(plan);
  }

  // Of the nodes that the target knows.
  std::vector<std::string> Nodes() {
    if (context_ == nullptr) return {};
    const absl::StatusOr<client::MemberTable> table =
        context_->Client(0).Members({});
    if (!table.ok()) return {};
    std::vector<std::string> names;
    for (const client::Member& member : table->members) {
      names.push_back(member.node);
    }
    return names;
  }

  // "site=north" of the members that the target knows.
  std::vector<std::string> Labels() {
    if (context_ == nullptr) return {};
    const absl::StatusOr<client::MemberTable> table =
        context_->Client(0).Members({});
    if (!table.ok()) return {};
    std::set<std::string> labels;
    for (const client::Member& member : table->members) {
      for (const auto& [name, value] : member.labels) {
        labels.insert(absl::StrCat(name, "=", value));
      }
    }
    return {labels.begin(), labels.end()};
  }

 private:
  std::istringstream in_;
  std::ostringstream out_;
  std::ostringstream err_;
  Io silent_io_;
  std::unique_ptr<Context> context_;
};

// ----------------------------------------------------- kinds of arguments ----

Words Algorithms() {
  Words words;
  for (const core::AlgorithmInfo& info : core::BuiltInCatalogue().entries()) {
    words.push_back({info.name, info.summary});
  }
  return words;
}

Words TopologyKinds() {
  return Plain({"auto", "hashed", "complete", "ring", "star", "path", "grid",
                "torus", "bipartite", "k-nearest", "erdos-renyi",
                "random-regular", "random-geometric", "explicit",
                "time-varying"});
}

// "nu=" of the algorithm's knobs of one noun, or of all algorithms where
// `algorithm` is none; behind "flag=" its values.
Words Knobs(const std::string& algorithm, core::KnobNoun noun,
            const std::string& typed) {
  Words words;
  std::set<std::string> seen;
  for (const core::AlgorithmInfo& info : core::BuiltInCatalogue().entries()) {
    if (!algorithm.empty() && info.name != algorithm) continue;
    for (const core::KnobSpec& knob : info.knobs) {
      if (knob.noun != noun || !seen.insert(knob.name).second) continue;
      const std::string begin = absl::StrCat(knob.name, "=");
      if (!absl::StartsWith(typed, begin)) {
        words.push_back({begin, knob.help});
        continue;
      }
      std::vector<std::string> values = knob.choices;
      if (knob.type == core::KnobType::kFlag) values = {"true", "false"};
      values.emplace_back("default");
      for (const std::string& value : values) {
        words.push_back({absl::StrCat(begin, value), ""});
      }
    }
  }
  return words;
}

// The paths of values, "topology.kind", with `end` behind each.
void AddPaths(const Json& value, const std::string& path, const char* end,
              bool groups, Words& words) {
  const bool group = value.is_object() && !value.empty();
  if (!path.empty() && (groups || !group)) {
    words.push_back({absl::StrCat(path, end), ""});
  }
  if (!group) return;
  for (const auto& [key, item] : value.items()) {
    AddPaths(item, path.empty() ? key : absl::StrCat(path, ".", key), end,
             groups, words);
  }
}

Words PlanPaths(Network& network, const char* end, bool groups) {
  Words words;
  const std::optional<core::RunPlan> plan = network.Plan();
  if (!plan.has_value()) return words;
  const absl::StatusOr<Json> value = PlanValue(*plan, "");
  if (value.ok()) AddPaths(*value, "", end, groups, words);
  return words;
}

Words ContextNames(const Io& io) {
  Words words;
  const absl::StatusOr<Contexts> contexts = Contexts::Load(io.environment);
  if (!contexts.ok()) return words;
  for (const auto& [name, context] : contexts->all()) {
    words.push_back({name, absl::StrJoin(context.targets, ", ")});
  }
  return words;
}

// Of a list "a,b" the last is being typed.
Words ListItems(const std::vector<std::string>& items,
                const std::string& typed) {
  const size_t comma = typed.rfind(',');
  const std::string begin =
      comma == std::string::npos ? "" : typed.substr(0, comma + 1);
  Words words;
  for (const std::string& item : items) words.push_back({begin + item, ""});
  return words;
}

Completion OptionValues(const CLI::Option& option, const std::string& typed,
                        Network& network, const Io& io) {
  const auto is = [&option](const char* name) {
    return option.check_name(name);
  };
  Completion out;
  if (is("--output")) {
    out.words = Plain({"table", "wide", "json", "jsonl", "yaml"});
  } else if (is("--context")) {
    out.words = ContextNames(io);
  } else if (is("--node")) {
    out.words = ListItems(network.Nodes(), typed);
  } else if (is("--label")) {
    out.words = ListItems(network.Labels(), typed);
  } else if (is("--kind")) {
    out.words = ListItems(client::EventKinds(), typed);
  } else if (is("--sort")) {
    out.words = ListItems(TopSortNames(), "");
  } else if (is("--weights")) {
    out.words = Plain({"metropolis", "laplacian", "uniform", "explicit"});
  } else if (is("--role")) {
    out.words = Plain({"node", "viewer", "operator", "admin"});
  } else if (is("--for")) {
    out.words = Plain({"phase=training", "phase=finished",
                       "step>=", "members>=", "plan=adopted"});
    out.open = absl::EndsWith(typed, "s");
  } else {
    const std::set<std::string> kNumbersAndTexts = {
        "--timeout", "--interval", "--count", "--ttl",    "--reason",
        "--target",  "--within",   "--limit", "--filter", "--round"};
    out.files = std::none_of(
        kNumbersAndTexts.begin(), kNumbersAndTexts.end(),
        [&option](const std::string& name) { return option.check_name(name); });
  }
  return out;
}

// The argument at place `index` of a command.
Completion Argument(const Line& line, const std::string& typed,
                    Network& network, const Io& io) {
  std::vector<std::string> names;
  for (const CLI::Option* option : line.command->get_options()) {
    if (option->get_positional()) names.push_back(option->get_name(true));
  }
  Completion out;
  if (names.empty()) return out;
  const std::string& name =
      names[std::min(line.positionals.size(), names.size() - 1)];
  const std::string what = absl::StrCat(line.path, " ", name);
  if (what == "algorithm show NAME" || what == "algorithm set NAME") {
    out.words = Algorithms();
  } else if (what == "algorithm set SETTING") {
    out.words = Knobs(line.positionals[0], core::KnobNoun::kAlgorithm, typed);
    out.open = typed.find('=') == std::string::npos;
  } else if (what == "participation set SETTING" ||
             what == "period set SETTING") {
    const std::optional<core::RunPlan> plan = network.Plan();
    out.words =
        Knobs(plan.has_value() ? plan->algorithm.name : "",
              line.path == "period set" ? core::KnobNoun::kPeriod
                                        : core::KnobNoun::kParticipation,
              typed);
    out.open = typed.find('=') == std::string::npos;
  } else if (what == "topology set KIND" ||
             (what == "set SETTING" &&
              absl::StartsWith(typed, "topology.kind="))) {
    const char* begin = what == "set SETTING" ? "topology.kind=" : "";
    for (const Word& kind : TopologyKinds()) {
      out.words.push_back({begin + kind.text, ""});
    }
  } else if (what == "set SETTING") {
    out.words = PlanPaths(network, "=", /*groups=*/false);
    out.open = true;
  } else if (what == "get PATH") {
    out.words = PlanPaths(network, "", /*groups=*/true);
  } else if (absl::StartsWith(what, "context ")) {
    if (line.path != "context add") out.words = ContextNames(io);
  } else if (name == "NODE" || name == "WHO") {
    out.words = ListItems(network.Nodes(), typed);
  } else {
    out.files = name == "FILE" || name == "DIR";
  }
  return out;
}

Words Commands(const CLI::App& app) {
  Words words;
  for (const CLI::App* command :
       app.get_subcommands([](const CLI::App*) { return true; })) {
    words.push_back({command->get_name(), command->get_description()});
  }
  return words;
}

Words Flags(const CLI::App& command) {
  Words words;
  std::set<std::string> seen;
  for (const CLI::App* at = &command; at != nullptr; at = at->get_parent()) {
    for (const CLI::Option* option : at->get_options()) {
      for (const std::string& name : option->get_lnames()) {
        if (!seen.insert(name).second) continue;
        words.push_back({absl::StrCat("--", name), option->get_description()});
      }
    }
  }
  return words;
}

}  // namespace

Completion Complete(const CLI::App& app, const std::vector<std::string>& typed,
                    Io& io) {
  const std::string last = typed.empty() ? "" : typed.back();
  const Line line = Read(app, typed);
  Network network(line.globals, io);
  Completion out;
  const size_t equals = last.find('=');
  if (line.open_option != nullptr) {
    out = OptionValues(*line.open_option, last, network, io);
  } else if (absl::StartsWith(last, "--") && equals != std::string::npos) {
    const std::string begin = last.substr(0, equals);
    const CLI::Option* option = FindOption(*line.command, begin);
    if (option != nullptr && TakesValue(*option)) {
      out = OptionValues(*option, last.substr(equals + 1), network, io);
      for (Word& word : out.words) {
        word.text = absl::StrCat(begin, "=", word.text);
      }
    }
  } else if (absl::StartsWith(last, "-")) {
    out.words = Flags(*line.command);
  } else if (Words commands = Commands(*line.command); !commands.empty()) {
    out.words = std::move(commands);
  } else {
    out = Argument(line, last, network, io);
  }
  const auto other = [&last](const Word& word) {
    return !absl::StartsWith(word.text, last);
  };
  out.words.erase(std::remove_if(out.words.begin(), out.words.end(), other),
                  out.words.end());
  return out;
}

std::string CompletionText(const Completion& completion) {
  std::string text;
  for (const Word& word : completion.words) {
    const std::string help = word.help.substr(0, word.help.find(". "));
    absl::StrAppend(&text, Printable(word.text), help.empty() ? "" : "\t",
                    Printable(help), "\n");
  }
  return absl::StrCat(text, ":", completion.files ? "files" : "",
                      completion.open ? " open" : "", "\n");
}

}  // namespace dfl::cli
