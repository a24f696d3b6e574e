// Pages of the manual (man(7)), made from what --help is made of: a program's
// command table, and the table of a node's settings.
#ifndef DFL_CONSOLE_MAN_PAGE_H_
#define DFL_CONSOLE_MAN_PAGE_H_

#include <CLI/CLI.hpp>
#include <string>

namespace dfl::console {

// The hidden command of dflctl and dflsim that prints their page.
inline constexpr char kManCommand[] = "__man";

// The page of a program in section 1: its options, then each command with its
// usage, its options and the notes of its --help. `app` is its parser, which
// parses nothing here; `also` follows "SEE ALSO": "dfld(8), dflsim(1)".
std::string ProgramPage(const CLI::App& app, const std::string& also);

// dfld(8): how it is called.
std::string DaemonPage();
// dfld.yaml(5): every setting.
std::string SettingsPage();

}  // namespace dfl::console

#endif  // DFL_CONSOLE_MAN_PAGE_H_
