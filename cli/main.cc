// dflctl: see dflctl.h.
#include <csignal>
#include <cstdlib>
#include <string>
#include <vector>

#include "cli/console.h"
#include "cli/dflctl.h"

int main(int argc, char** argv) {
  // gRPC's own lines say nothing that our errors don't.
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  // A reader that left is noticed by the write.
  std::signal(SIGPIPE, SIG_DFL);
  dfl::cli::Io io = dfl::cli::ProcessIo();
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  return dfl::cli::Dflctl(arguments, io);
}
