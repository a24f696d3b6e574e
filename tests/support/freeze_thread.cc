// freeze_thread PID NAME: freezes the thread of that name until this program
// ends. For tests in which the process runs in a container.
#include <unistd.h>

#include <cstdlib>
#include <iostream>

#include "tests/support/frozen_thread.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: freeze_thread PID NAME\n";
    return 2;
  }
  const auto frozen =
      dfl::testing_support::FrozenThread::Freeze(std::atoi(argv[1]), argv[2]);
  if (frozen == nullptr) {
    std::cerr << "freeze_thread: process " << argv[1] << " has no thread "
              << argv[2] << ", or ptrace is not allowed\n";
    return 1;
  }
  std::cout << "frozen" << std::endl;
  pause();
}
