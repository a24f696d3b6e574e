#include "daemon/app/service/service_manager.h"

#include <systemd/sd-daemon.h>
#include <time.h>

#include <cinttypes>
#include <cstdint>

namespace dfl::app {

void NotifyReady() { sd_notify(0, "READY=1"); }

void NotifyReloading() {
  // systemd from 253 on tells by the time (CLOCK_MONOTONIC) which call to
  // reload this answers.
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const int64_t micros = int64_t{now.tv_sec} * 1000000 + now.tv_nsec / 1000;
  sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%" PRId64, micros);
}

void NotifyStopping() { sd_notify(0, "STOPPING=1"); }

void NotifyAlive(const std::string& status) {
  sd_notifyf(0, "WATCHDOG=1\nSTATUS=%s", status.c_str());
}

void NotifyStatus(const std::string& status) {
  sd_notifyf(0, "STATUS=%s", status.c_str());
}

}  // namespace dfl::app
