#include "daemon/app/service_manager.h"

#ifdef DFL_HAVE_SYSTEMD
#include <systemd/sd-daemon.h>
#endif

namespace dfl::app {

#ifdef DFL_HAVE_SYSTEMD

void NotifyReady() { sd_notify(0, "READY=1"); }
void NotifyStopping() { sd_notify(0, "STOPPING=1"); }
void NotifyAlive(const std::string& status) {
  sd_notifyf(0, "WATCHDOG=1\nSTATUS=%s", status.c_str());
}

#else

void NotifyReady() {}
void NotifyStopping() {}
void NotifyAlive(const std::string& /*status*/) {}

#endif

}  // namespace dfl::app
