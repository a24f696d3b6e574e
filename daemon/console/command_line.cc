#include "daemon/console/command_line.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/core/algorithm/knobs.h"

namespace dfl::console {
namespace {

constexpr char kExample[] = "\n\nExample: ";

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
  const std::string nearest = NearestName(flag ? name : word, known);
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

}  // namespace

CLI::App* AddCommand(CLI::App& parent, const std::string& name,
                     const std::string& description,
                     const std::string& arguments) {
  CLI::App* command = parent.add_subcommand(name, description);
  SetExample(*command, arguments);
  return command;
}

void SetExample(CLI::App& app, const std::string& arguments) {
  const std::string footer = app.get_footer();
  app.footer(absl::StrCat(footer.substr(0, footer.find(kExample)), kExample,
                          PathOf(app), arguments.empty() ? "" : " ",
                          arguments));
}

void AddHelp(CLI::App& command, const std::string& text) {
  command.footer(absl::StrCat(text, "\n", command.get_footer()));
}

bool HasUnknown(const CLI::App& app) { return !app.remaining(true).empty(); }

std::string ParseErrorText(const CLI::App& app, const CLI::ParseError& error) {
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
  return absl::StrCat(app.get_name(), ": ", text, "\n", app.get_name(),
                      ": see `", PathOf(at), " --help`\n");
}

}  // namespace dfl::console
