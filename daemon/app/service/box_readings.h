// What this machine's sensors say.
#ifndef DFL_APP_SERVICE_BOX_READINGS_H_
#define DFL_APP_SERVICE_BOX_READINGS_H_

#include <optional>
#include <string>

namespace dfl::app {

struct BoxReadings {
  // Of the hottest sensor, in degrees Celsius; nullopt: none can be read.
  std::optional<double> celsius;
  // Whether the machine lives on its battery; nullopt: it tells of neither
  // battery nor mains.
  std::optional<bool> on_battery;
};

// Reads /sys/class/thermal and /sys/class/power_supply below `root`, which is
// "/" except in tests. Takes milliseconds: sensors are asked over slow buses.
BoxReadings ReadBox(const std::string& root = "/");

}  // namespace dfl::app

#endif  // DFL_APP_SERVICE_BOX_READINGS_H_
