#include "daemon/console/man_page.h"

#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "daemon/config/daemon_command_line.h"
#include "daemon/config/node_settings.h"
#include "daemon/config/settings_table.h"

namespace dfl::console {
namespace {

// ------------------------------------------------------------------- roff ----

// `text` as roff shows it: what it would take for a command is none.
std::string Escaped(absl::string_view text) {
  std::string out;
  bool line_begins = true;
  for (const char c : text) {
    if (line_begins && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
    line_begins = c == '\n';
  }
  return out;
}

std::string Bold(absl::string_view text) {
  return absl::StrCat("\\fB", Escaped(text), "\\fR");
}

std::string Header(const std::string& name, int section) {
  return absl::StrCat(".TH ", absl::AsciiStrToUpper(name), " ", section,
                      " \"\" \"dfld\" \"Decentralised learning\"\n");
}

std::string Section(const std::string& title) {
  return absl::StrCat(".SH ", absl::AsciiStrToUpper(title), "\n");
}

std::string Name(const std::string& name, absl::string_view description) {
  return absl::StrCat(Section("name"), Escaped(name), " \\- ",
                      Escaped(description), "\n");
}

// Lines as they stand.
std::string Verbatim(absl::string_view text) {
  return absl::StrCat(".nf\n", Escaped(text), "\n.fi\n");
}

// `term`, which is roff already, and below it what it means.
std::string Entry(const std::string& term, absl::string_view text) {
  return absl::StrCat(".TP\n", term, "\n", Escaped(text), "\n");
}

// --------------------------------------------------------------- programs ----

// Of CLI11's own help: what stands before and behind an option's name.
const CLI::Formatter& HelpForm() {
  static const CLI::Formatter& form = *new CLI::Formatter();
  return form;
}

std::string Options(const CLI::App& app, bool positional) {
  std::string out;
  for (const CLI::Option* option :
       app.get_options([&app, positional](const CLI::Option* o) {
         return o->nonpositional() != positional && !o->get_group().empty() &&
                o != app.get_help_ptr();
       })) {
    absl::StrAppend(
        &out, Entry(absl::StrCat(
                        Bold(HelpForm().make_option_name(option, positional)),
                        Escaped(HelpForm().make_option_opts(option))),
                    option->get_description()));
  }
  return out;
}

// "plan apply [OPTIONS] FILE".
std::string Usage(const CLI::App& app, const std::string& path) {
  std::string line = Bold(path);
  bool has_options = false;
  for (const CLI::Option* option : app.get_options()) {
    has_options = has_options ||
                  (option->nonpositional() && option != app.get_help_ptr());
  }
  if (has_options) line += " [OPTIONS]";
  for (const CLI::Option* option : app.get_options(
           [](const CLI::Option* o) { return o->get_positional(); })) {
    absl::StrAppend(&line, " ", Escaped(HelpForm().make_option_usage(option)));
  }
  if (!app.get_subcommands([](auto*) { return true; }).empty()) {
    line += " COMMAND";
  }
  return line;
}

// What --help ends with, without what it has from the program's own.
std::string Notes(const CLI::App& app, const std::string& of_program) {
  std::string notes = app.get_footer();
  const size_t shared =
      of_program.empty() ? std::string::npos : notes.find(of_program);
  if (shared != std::string::npos) notes.erase(shared, of_program.size());
  return std::string(absl::StripAsciiWhitespace(notes));
}

// A command and all below it. `shared`: the part of notes that all have.
void AddCommands(const CLI::App& app, const std::string& path,
                 const std::string& shared, std::string& out) {
  for (const CLI::App* command :
       app.get_subcommands([](auto*) { return true; })) {
    const std::string name = absl::StrCat(path, " ", command->get_name());
    absl::StrAppend(&out, ".SS ", Usage(*command, name), "\n",
                    Escaped(command->get_description()), "\n",
                    Options(*command, true), Options(*command, false));
    const std::string notes = Notes(*command, shared);
    if (!notes.empty()) absl::StrAppend(&out, ".PP\n", Verbatim(notes));
    AddCommands(*command, name, shared, out);
  }
}

}  // namespace

std::string ProgramPage(const CLI::App& app, const std::string& also) {
  const std::string name = app.get_name();
  const std::string description = app.get_description();
  // The footer without the example, which each command has of its own.
  const std::string footer = app.get_footer();
  const std::string shared = footer.substr(0, footer.find("\n\nExample: "));
  const std::string first = description.substr(0, description.find(".\n"));
  std::string out = absl::StrCat(
      Header(name, 1),
      Name(name, std::string(absl::StrJoin(absl::StrSplit(first, '\n'), " "))),
      Section("synopsis"), Usage(app, name), "\n", Section("description"),
      Escaped(description), "\n", Section("options"), Options(app, false),
      Section("commands"));
  AddCommands(app, name, shared, out);
  absl::StrAppend(&out, Section("notes"), Verbatim(footer), Section("see also"),
                  Escaped(also), "\n");
  return out;
}

// ------------------------------------------------------------------- dfld ----

std::string DaemonPage() {
  std::string out = absl::StrCat(
      Header("dfld", 8), Name("dfld", "a node of decentralised learning"),
      Section("synopsis"), Bold("dfld"),
      " [\\-\\-config FILE] [\\-\\-conf\\-d DIR] [\\-\\-KEY=VALUE]...\n.br\n",
      Bold("dfld join"), " TOKEN \\-\\-at HOST:PORT\n.br\n", Bold("dfld data"),
      " FILE...\n", Section("description"),
      Escaped(
          "dfld trains a model together with other nodes, without a "
          "server. It reads its settings, serves other nodes and dflctl(1), "
          "and runs until SIGTERM or SIGINT. SIGHUP has it read its "
          "settings again; the log names those that wait for a restart.\n"),
      ".PP\n",
      Escaped("dfld join gets this node's certificate with a join token, and "
              "dfld data guesses the settings that read some files. Each has "
              "a --help of its own.\n"),
      Section("options"));
  for (const config::OwnFlag& flag : config::OwnFlags()) {
    absl::StrAppend(&out,
                    Entry(absl::StrCat(Bold(absl::StrCat("--", flag.name)), " ",
                                       Escaped(flag.argument)),
                          flag.help));
  }
  absl::StrAppend(
      &out, Entry(Bold("--KEY=VALUE"), "a setting, see dfld.yaml(5)"),
      Section("settings"), Escaped(config::kSettingsHelp), "\n",
      Section("exit status"), Escaped(config::kDaemonExitCodes), "\n",
      Section("files"),
      Entry(Bold(config::kDefaultConfigFile), "settings, see dfld.yaml(5)"),
      Entry(Bold(config::kDefaultConfigFolder),
            "*.yaml in it go over the settings"),
      Section("see also"), "dflctl(1), dflsim(1), dfld.yaml(5)\n");
  return out;
}

std::string SettingsPage() {
  std::string out = absl::StrCat(
      Header("dfld.yaml", 5),
      Name("dfld.yaml", "settings of a node of decentralised learning"),
      Section("description"),
      Escaped("The file is YAML: socket in the section control is the setting "
              "control.socket."),
      "\n", Escaped(config::kSettingsHelp), "\n", Section("settings"));
  const config::NodeSettings defaults;
  for (const config::Setting& setting : config::SettingsTable()) {
    absl::StrAppend(&out, Entry(Bold(setting.key), setting.help), ".br\n",
                    Escaped(absl::StrCat("Allowed: ", setting.allowed, ".")),
                    "\n.br\n",
                    Escaped(absl::StrCat("Default: ",
                                         setting.default_note.empty()
                                             ? setting.get(defaults)
                                             : setting.default_note,
                                         ".")),
                    "\n");
    if (!setting.unit.empty()) {
      absl::StrAppend(&out, ".br\n",
                      Escaped(absl::StrCat("Unit: ", setting.unit, ".")), "\n");
    }
  }
  absl::StrAppend(&out, Section("see also"), "dfld(8), dflctl(1)\n");
  return out;
}

}  // namespace dfl::console
