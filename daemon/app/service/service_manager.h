// What systemd is told, through sd-daemon; nothing where it did not start us.
#ifndef DFL_APP_SERVICE_SERVICE_MANAGER_H_
#define DFL_APP_SERVICE_SERVICE_MANAGER_H_

#include <string>

namespace dfl::app {

// All listeners are up, or a reload is over.
void NotifyReady();
// The settings are being read again; NotifyReady ends that.
void NotifyReloading();
// Shutting down.
void NotifyStopping();
// Loop and training move; `status` is what `systemctl status` shows. Feeds the
// watchdog.
void NotifyAlive(const std::string& status);
// Something does not: `status` is shown, and the watchdog is not fed.
void NotifyStatus(const std::string& status);

}  // namespace dfl::app

#endif  // DFL_APP_SERVICE_SERVICE_MANAGER_H_
