#include "daemon/console/io.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <iostream>

#include "daemon/config/daemon_command_line.h"

namespace dfl::console {

Io ProcessIo() {
  Io io{std::cin, std::cout, std::cerr};
  io.in_is_terminal = isatty(STDIN_FILENO) != 0;
  io.out_is_terminal = isatty(STDOUT_FILENO) != 0;
  io.err_is_terminal = isatty(STDERR_FILENO) != 0;
  io.environment = config::ProcessEnvironment();
  io.is_root = geteuid() == 0;
  return io;
}

int TerminalWidth() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) {
    return 80;
  }
  return size.ws_col;
}

}  // namespace dfl::console
