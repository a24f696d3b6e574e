// dflctl as a function, so that tests can call it.
#ifndef DFL_CLI_DFLCTL_H_
#define DFL_CLI_DFLCTL_H_

#include <string>
#include <vector>

#include "cli/console.h"

namespace dfl::cli {

// `arguments` without the program's name. Returns the exit code.
int Dflctl(const std::vector<std::string>& arguments, Io& io);

}  // namespace dfl::cli

#endif  // DFL_CLI_DFLCTL_H_
