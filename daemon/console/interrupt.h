// Ctrl-C as a question, for as long as one of these lives.
#ifndef DFL_CONSOLE_INTERRUPT_H_
#define DFL_CONSOLE_INTERRUPT_H_

#include <signal.h>

namespace dfl::console {

// Takes SIGINT, SIGTERM and SIGHUP; the former handlers come back with its end.
// One at a time.
class InterruptScope {
 public:
  InterruptScope();
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

  // Any thread.
  static bool Requested();

 private:
  struct sigaction former_[3];
};

}  // namespace dfl::console

#endif  // DFL_CONSOLE_INTERRUPT_H_
