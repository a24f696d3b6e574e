// One thread of another process that stands still while the others run: a
// stand-in for a driver or a model that hangs.
#ifndef DFL_TESTS_SUPPORT_FROZEN_THREAD_H_
#define DFL_TESTS_SUPPORT_FROZEN_THREAD_H_

#include <sys/types.h>

#include <memory>
#include <string>

namespace dfl::testing_support {

// Used on one thread. It runs on once this is destroyed.
class FrozenThread {
 public:
  // Freezes the thread called `name` (as in /proc/PID/task/*/comm) of `process`.
  // Null: there is none, or this process may not (ptrace(2)).
  static std::unique_ptr<FrozenThread> Freeze(pid_t process,
                                              const std::string& name);
  ~FrozenThread();
  FrozenThread(const FrozenThread&) = delete;
  FrozenThread& operator=(const FrozenThread&) = delete;

 private:
  explicit FrozenThread(pid_t thread) : thread_(thread) {}

  const pid_t thread_;
};

}  // namespace dfl::testing_support

#endif  // DFL_TESTS_SUPPORT_FROZEN_THREAD_H_
