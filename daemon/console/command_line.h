// What a program says about a command line that it does not understand.
#ifndef DFL_CONSOLE_COMMAND_LINE_H_
#define DFL_CONSOLE_COMMAND_LINE_H_

#include <CLI/CLI.hpp>
#include <string>

namespace dfl::console {

// Two lines for stderr: what is wrong, with the nearest command or flag there
// is, and which --help tells more. `app` is the one at the top, named after the
// program, after it failed to parse.
std::string ParseErrorText(const CLI::App& app, const CLI::ParseError& error);

}  // namespace dfl::console

#endif  // DFL_CONSOLE_COMMAND_LINE_H_
