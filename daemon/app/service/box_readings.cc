#include "daemon/app/service/box_readings.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"

namespace dfl::app {
namespace {

// The first word of a file; "": it cannot be read.
std::string Word(const std::filesystem::path& path) {
  std::string word;
  std::ifstream(path) >> word;
  return word;
}

std::optional<double> HottestSensor(const std::string& folder) {
  std::optional<double> hottest;
  std::error_code error;
  for (const auto& zone : std::filesystem::directory_iterator(folder, error)) {
    if (!absl::StartsWith(zone.path().filename().string(), "thermal_zone")) {
      continue;
    }
    int thousandths = 0;
    if (!absl::SimpleAtoi(Word(zone.path() / "temp"), &thousandths)) continue;
    hottest = std::max(hottest.value_or(-273.15), thousandths / 1000.0);
  }
  return hottest;
}

std::optional<bool> OnBattery(const std::string& folder) {
  bool mains = false;
  bool online = false;
  bool battery = false;
  bool discharging = false;
  std::error_code error;
  for (const auto& supply :
       std::filesystem::directory_iterator(folder, error)) {
    const std::filesystem::path& path = supply.path();
    const std::string type = Word(path / "type");
    // A mouse has a battery too.
    if (Word(path / "scope") == "Device") continue;
    if (type == "Mains" || absl::StartsWith(type, "USB")) {
      mains = true;
      online = online || Word(path / "online") == "1";
    } else if (type == "Battery") {
      battery = true;
      discharging = discharging || Word(path / "status") == "Discharging";
    }
  }
  if (battery && discharging) return !online;
  if (battery || (mains && online)) return false;
  return std::nullopt;
}

}  // namespace

BoxReadings ReadBox(const std::string& root) {
  return {HottestSensor(root + "sys/class/thermal"),
          OnBattery(root + "sys/class/power_supply")};
}

}  // namespace dfl::app
