#include "tests/support/frozen_thread.h"

#include <sys/ptrace.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace dfl::testing_support {
namespace {

// 0: there is none.
pid_t FindThread(pid_t process, const std::string& name) {
  const std::string folder = "/proc/" + std::to_string(process) + "/task";
  std::error_code error;
  for (const auto& thread :
       std::filesystem::directory_iterator(folder, error)) {
    std::string its;
    std::ifstream(thread.path() / "comm") >> its;
    if (its == name) return std::atoi(thread.path().filename().c_str());
  }
  return 0;
}

}  // namespace

std::unique_ptr<FrozenThread> FrozenThread::Freeze(pid_t process,
                                                   const std::string& name) {
  const pid_t thread = FindThread(process, name);
  if (thread == 0) return nullptr;
  if (ptrace(PTRACE_SEIZE, thread, nullptr, nullptr) != 0) return nullptr;
  // From here on it is this object's to let go.
  std::unique_ptr<FrozenThread> frozen(new FrozenThread(thread));
  if (ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr) != 0) return nullptr;
  int status = 0;
  if (waitpid(thread, &status, __WALL) != thread) return nullptr;
  return frozen;
}

FrozenThread::~FrozenThread() {
  ptrace(PTRACE_DETACH, thread_, nullptr, nullptr);
}

}  // namespace dfl::testing_support
