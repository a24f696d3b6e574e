// dflctl: see dflctl.h.
#include <sys/time.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "cli/completer.h"
#include "cli/console.h"
#include "cli/dflctl.h"

namespace {

// Ends the program without a word after `limit`.
void EndAfter(absl::Duration limit) {
  std::signal(SIGALRM, [](int) { _exit(0); });
  itimerval timer{};
  timer.it_value = absl::ToTimeval(limit);
  setitimer(ITIMER_REAL, &timer, nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  // gRPC's own lines say nothing that our errors don't.
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  // A reader that left is noticed by the write.
  std::signal(SIGPIPE, SIG_DFL);
  dfl::cli::Io io = dfl::cli::ProcessIo();
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (!arguments.empty() && arguments[0] == dfl::cli::kCompleteCommand) {
    EndAfter(dfl::cli::kCompletionTime);
  }
  return dfl::cli::Dflctl(arguments, io);
}
