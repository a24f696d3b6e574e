#include "daemon/runtime/membership/preset.h"

#include <algorithm>

#include "daemon/base/distributions.h"

namespace dfl::runtime {

namespace {

constexpr int kMostOfLeast = 3;

}  // namespace

const Preset& PresetOf(ports::Pace pace) {
  static const Preset* const kLan = new Preset{
      .period = absl::Seconds(1),
      .probe_timeout = absl::Milliseconds(500),
      .indirect_timeout = absl::Milliseconds(500),
      .suspicion = absl::Milliseconds(1200),
      .batch = absl::Milliseconds(20),
      .forget = absl::Minutes(5),
  };
  static const Preset* const kWan = new Preset{
      .period = absl::Seconds(5),
      .probe_timeout = absl::Seconds(3),
      .indirect_timeout = absl::Seconds(4),
      .suspicion = absl::Seconds(6),
      .batch = absl::Milliseconds(200),
      .forget = absl::Minutes(30),
  };
  static const Preset* const kCellular = new Preset{
      .period = absl::Seconds(15),
      .probe_timeout = absl::Seconds(8),
      .indirect_timeout = absl::Seconds(12),
      .suspicion = absl::Seconds(20),
      .batch = absl::Seconds(1),
      .forget = absl::Hours(2),
  };
  switch (pace) {
    case ports::Pace::kLan:
      return *kLan;
    case ports::Pace::kWan:
      return *kWan;
    case ports::Pace::kCellular:
      break;
  }
  return *kCellular;
}

ports::Pace MorePatient(ports::Pace a, ports::Pace b) { return std::max(a, b); }

absl::Duration LeastSuspicion(const Preset& preset, int64_t members) {
  const double log10 =
      Log(static_cast<double>(std::max<int64_t>(1, members))) / Log(10.0);
  return preset.suspicion * std::max(1.0, log10);
}

absl::Duration SuspicionTime(absl::Duration least, int64_t confirmations) {
  const absl::Duration most = kMostOfLeast * least;
  const double part = Log(static_cast<double>(confirmations) + 1) /
                      Log(static_cast<double>(kMostConfirmations) + 1);
  return std::max(least, most - (most - least) * part);
}

}  // namespace dfl::runtime
