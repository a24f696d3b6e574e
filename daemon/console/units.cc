#include "daemon/console/units.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace dfl::console {

std::string HumanBytes(int64_t bytes) {
  if (bytes < 1000) return absl::StrCat(bytes, " B");
  static constexpr const char* kUnits[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
  double value = static_cast<double>(bytes) / 1000;
  int unit = 0;
  while (value >= 999.5 && unit < 5) {
    value /= 1000;
    ++unit;
  }
  const int digits = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return absl::StrFormat("%.*f %s", digits, value, kUnits[unit]);
}

std::string HumanSeconds(double seconds) {
  if (!(seconds >= 0)) return "-";
  const int64_t all = static_cast<int64_t>(std::min(seconds, 1e15));
  if (all < 60) return absl::StrCat(all, " s");
  if (all < 3600) return absl::StrCat(all / 60, " min ", all % 60, " s");
  if (all < 86400) {
    return absl::StrCat(all / 3600, " h ", all % 3600 / 60, " min");
  }
  return absl::StrCat(all / 86400, " d ", all % 86400 / 3600, " h");
}

std::string Fixed(double value, int digits) {
  return absl::StrFormat("%.*f", digits, value);
}

std::string ProgressBar(double share, int width) {
  const double inside = std::clamp(std::isnan(share) ? 0.0 : share, 0.0, 1.0);
  const int full = static_cast<int>(inside * width);
  std::string bar(static_cast<size_t>(full), '=');
  if (full < width) bar += inside > 0 ? '>' : ' ';
  bar.resize(static_cast<size_t>(width), ' ');
  // Not 100 % before it is.
  return absl::StrFormat("[%s] %3d%%", bar, static_cast<int>(inside * 100));
}

}  // namespace dfl::console
