// The --help of every command of a program, found by following the lists of
// commands in it, and the example that it must end with.
#ifndef DFL_TESTS_SUPPORT_COMMAND_EXAMPLES_H_
#define DFL_TESTS_SUPPORT_COMMAND_EXAMPLES_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace dfl {

inline constexpr absl::string_view kExampleMark = "Example: ";

struct CommandHelp {
  // "dflctl plan apply"; the program alone is the first.
  std::string path;
  // "dflctl plan apply plan.yaml"; "": the help ends otherwise.
  std::string example;
};

// Stdout of the program, called with these arguments.
using ProgramOutput =
    std::function<std::string(const std::vector<std::string>&)>;

// The program and all that is below it, each command before its own.
inline std::vector<CommandHelp> AllCommands(const std::string& program,
                                            const ProgramOutput& output) {
  std::vector<CommandHelp> found;
  std::vector<std::string> waiting = {program};
  while (!waiting.empty()) {
    CommandHelp command{waiting.back(), ""};
    waiting.pop_back();
    std::vector<std::string> arguments = absl::StrSplit(command.path, ' ');
    arguments.erase(arguments.begin());
    arguments.push_back("--help");
    const std::string help = output(arguments);
    bool in_list = false;
    for (const absl::string_view line : absl::StrSplit(help, '\n')) {
      if (absl::EqualsIgnoreCase(line, "subcommands:")) {
        in_list = true;
      } else if (line.empty()) {
        in_list = false;
      } else if (in_list && absl::StartsWith(line, "  ") && line.size() > 2 &&
                 line[2] != ' ') {
        const std::pair<std::string, std::string> name_and_text =
            absl::StrSplit(line.substr(2), absl::MaxSplits(' ', 1));
        waiting.push_back(absl::StrCat(command.path, " ", name_and_text.first));
      }
      // The last line that says something is the one that counts.
      if (!line.empty()) {
        absl::string_view text = line;
        command.example =
            absl::ConsumePrefix(&text, kExampleMark) ? std::string(text) : "";
      }
    }
    found.push_back(std::move(command));
  }
  return found;
}

// Each has an example of its own, which calls it, or for a group something in
// it. One that it shares with another was made for what it belongs to.
inline void ExpectExamples(const std::vector<CommandHelp>& commands) {
  std::set<std::string> seen;
  for (const CommandHelp& command : commands) {
    EXPECT_TRUE(absl::StartsWith(absl::StrCat(command.example, " "),
                                 absl::StrCat(command.path, " ")))
        << "`" << command.path << " --help` ends with no example of it, but: \""
        << command.example << "\"; declare it by console::AddCommand";
    EXPECT_TRUE(seen.insert(command.example).second)
        << "`" << command.path << " --help` has the example of another: \""
        << command.example << "\"; declare it by console::AddCommand";
    EXPECT_LE(command.example.size(), 80 - kExampleMark.size())
        << command.example;
  }
}

// Where a redirection or a pipe begins; npos: nowhere.
inline size_t ShellBegins(const std::string& example) {
  return std::min(example.find(" > "), example.find(" | "));
}

// The example's words after the program's name, up to what is the shell's.
inline std::vector<std::string> ExampleArguments(const CommandHelp& command) {
  std::vector<std::string> words;
  bool quoted = false;
  for (const absl::string_view part : absl::StrSplit(
           command.example.substr(0, ShellBegins(command.example)), '"')) {
    if (quoted) {
      words.emplace_back(part);
    } else {
      for (const absl::string_view word :
           absl::StrSplit(part, ' ', absl::SkipEmpty())) {
        words.emplace_back(word);
      }
    }
    quoted = !quoted;
  }
  if (!words.empty()) words.erase(words.begin());
  return words;
}

}  // namespace dfl

#endif  // DFL_TESTS_SUPPORT_COMMAND_EXAMPLES_H_
