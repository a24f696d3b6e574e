// What the service manager hears of a running daemon: a line on what the node
// does, and, while loop and training move, that all is well.
#ifndef DFL_APP_SERVICE_LIFE_SIGNS_H_
#define DFL_APP_SERVICE_LIFE_SIGNS_H_

#include <optional>
#include <string>

#include "absl/time/time.h"
#include "daemon/app/logger.h"
#include "daemon/app/service/frozen_watch.h"
#include "daemon/runtime/status.h"

namespace dfl::app {

// "training, step 1200, round 120 of 500, loss 0.4321, 2 of 3 neighbours": what
// `systemctl status` shows. One line, whatever the node's texts hold.
std::string StatusLine(const runtime::NodeStatus& status);
// "frozen: ..., usually ...".
std::string FrozenLine(const FrozenWatch::Frozen& frozen);

// Loop only.
class LifeSigns {
 public:
  // `log` must outlive it.
  explicit LifeSigns(Logger& log) : log_(log) {}

  // The loop runs, and the node does this. With `frozen` the watchdog is not
  // fed, so that systemd ends the daemon and starts it again; the log says so
  // once, and once when it moves again.
  void Tell(const runtime::NodeStatus& status,
            const std::optional<FrozenWatch::Frozen>& frozen);

 private:
  Logger& log_;
  bool frozen_ = false;  // at the last call
};

}  // namespace dfl::app

#endif  // DFL_APP_SERVICE_LIFE_SIGNS_H_
