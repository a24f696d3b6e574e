// The surroundings of a command, which tests can replace.
#ifndef DFL_CONSOLE_IO_H_
#define DFL_CONSOLE_IO_H_

#include <istream>
#include <map>
#include <ostream>
#include <string>

namespace dfl::console {

struct Io {
  std::istream& in;
  std::ostream& out;  // one document
  std::ostream& err;  // everything else
  bool in_is_terminal = false;
  bool out_is_terminal = false;
  bool err_is_terminal = false;
  std::map<std::string, std::string> environment = {};
  bool is_root = false;
};

// The surroundings of this process.
Io ProcessIo();

// Columns of the terminal at stdout; 80 if unknown.
int TerminalWidth();

}  // namespace dfl::console

#endif  // DFL_CONSOLE_IO_H_
