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

// The same end for the program itself, below the footer it has. Call it before
// the first AddCommand: commands begin with the footer of what they belong to,
// less its example.
void SetExample(CLI::App& app, const std::string& arguments);

// Puts `text` above the example.
void AddHelp(CLI::App& command, const std::string& text);

// Two lines for stderr: what is wrong, with the nearest command or flag there
// is, and which --help tells more. `app` is the one at the top, named after the
// program, after it failed to parse.
std::string ParseErrorText(const CLI::App& app, const CLI::ParseError& error);

}  // namespace dfl::console

#endif  // DFL_CONSOLE_COMMAND_LINE_H_
