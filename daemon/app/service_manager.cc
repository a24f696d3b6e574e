#include "daemon/app/service_manager.h"

#include <systemd/sd-daemon.h>

namespace dfl::app {

void NotifyReady() { sd_notify(0, "READY=1"); }

void NotifyStopping() { sd_notify(0, "STOPPING=1"); }

void NotifyAlive(const std::string& status) {
  sd_notifyf(0, "WATCHDOG=1\nSTATUS=%s", status.c_str());
}

}  // namespace dfl::app
