// The commands of a program, each with an example, and what the program says
// about a command line that it does not understand.
#ifndef DFL_CONSOLE_COMMAND_LINE_H_
#define DFL_CONSOLE_COMMAND_LINE_H_

#include <CLI/CLI.hpp>
#include <string>

namespace dfl::console {

// Adds a command to `parent`. Its --help ends with "Example: PROGRAM COMMAND
// ARGUMENTS", a call as it is typed in a shell: `arguments` is what follows the
// command's name, "" nothing.
CLI::App* AddCommand(CLI::App& parent, const std::string& name,
                     const std::string& description,
                     const std::string& arguments);

// Adds an example to the program itself, below its footer. Call it before the
// first AddCommand: a command starts with the footer of its parent, without the
// example.
void SetExample(CLI::App& app, const std::string& arguments);

// Puts `text` above the example.
void AddHelp(CLI::App& command, const std::string& text);

// Whether the command line has a word or a flag that nobody knows. A call for
// help that has one gets an error, not help: `dflctl stauts --help`. `app` has
// failed to parse, or was asked for help.
bool HasUnknown(const CLI::App& app);

// Two lines for stderr: what is wrong, with the nearest command or flag, and
// which --help says more. `app` is the top one, named after the program, and
// has failed to parse.
std::string ParseErrorText(const CLI::App& app, const CLI::ParseError& error);

}  // namespace dfl::console

#endif  // DFL_CONSOLE_COMMAND_LINE_H_
