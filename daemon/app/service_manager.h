// What systemd is told, through sd-daemon; nothing where it did not start us.
#ifndef DFL_APP_SERVICE_MANAGER_H_
#define DFL_APP_SERVICE_MANAGER_H_

#include <string>

namespace dfl::app {

// All listeners are up.
void NotifyReady();
// Shutting down.
void NotifyStopping();
// The loop moves; `status` is what `systemctl status` shows. Feeds the
// watchdog.
void NotifyAlive(const std::string& status);

}  // namespace dfl::app

#endif  // DFL_APP_SERVICE_MANAGER_H_
