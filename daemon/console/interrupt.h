// Turns Ctrl-C into a question that a command may ask while this object lives.
#ifndef DFL_CONSOLE_INTERRUPT_H_
#define DFL_CONSOLE_INTERRUPT_H_

#include <signal.h>

namespace dfl::console {

// Handles SIGINT, SIGTERM and SIGHUP. Its destructor restores the former
// handlers. Only one may live at a time.
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
