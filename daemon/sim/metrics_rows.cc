#include "daemon/sim/metrics_rows.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "daemon/base/status_macros.h"

namespace dfl::sim {

bool MetricsRows::Due() const {
  return members_.in_run() > 0 && Counted() >= next_row_;
}

absl::Status MetricsRows::Take(absl::Duration passed) {
  MetricsRow row;
  row.time_s = absl::ToDoubleSeconds(passed);
  row.bytes_sent = network_.sent().bytes;
  row.nodes = members_.in_run();
  if (members_.in_run() > 0) {
    row.step = members_.step_sum() / members_.in_run();
    row.lowest_step = INT64_MAX;
    for (const Member& member : members_) {
      if (!member.in_run()) continue;
      row.lowest_step = std::min(row.lowest_step, member.step);
      row.highest_step = std::max(row.highest_step, member.step);
    }
  }
  if (members_.measured() > 0) {
    DFL_RETURN_IF_ERROR(models_.Measure(row, nodes_));
  }
  const int64_t counted = members_.in_run() > 0 ? Counted() : 0;
  next_row_ = (counted / scenario_.metrics_every + 1) * scenario_.metrics_every;
  // The end may fall on a row that is there.
  if (rows_.empty() || rows_.back().time_s != row.time_s ||
      rows_.back().step != row.step) {
    rows_.push_back(row);
  }
  return absl::OkStatus();
}

bool MetricsRows::HasSettled() const {
  if (scenario_.settled_below <= 0 || rows_.size() < 4) return false;
  double mean = 0;
  for (size_t i = rows_.size() - 3; i < rows_.size(); ++i) {
    mean += rows_[i].loss_mean_model / 3;
  }
  double variance = 0;
  for (size_t i = rows_.size() - 3; i < rows_.size(); ++i) {
    const double off = rows_[i].loss_mean_model - mean;
    variance += off * off / 3;
  }
  return std::sqrt(variance) < scenario_.settled_below;
}

Progress MetricsRows::MakeProgress(int64_t steps) const {
  Progress progress;
  progress.steps = steps;
  if (!rows_.empty()) progress.last = rows_.back();
  return progress;
}

Progress MetricsRows::MakeProgress(int64_t steps, absl::Duration passed,
                                   const core::StopRule& stop) const {
  Progress progress = MakeProgress(steps);
  const int64_t in_run = members_.in_run();
  if (in_run > 0) progress.last.step = members_.step_sum() / in_run;
  progress.last.bytes_sent = network_.sent().bytes;
  progress.share =
      absl::FDivDuration(passed, std::min(stop.time, scenario_.limit));
  const auto share = [&](int64_t sum, int64_t limit) {
    if (limit <= 0 || in_run <= 0) return;
    progress.share = std::max(progress.share, static_cast<double>(sum) /
                                                  static_cast<double>(in_run) /
                                                  static_cast<double>(limit));
  };
  share(members_.step_sum(), stop.steps);
  share(members_.round_sum(), stop.rounds);
  progress.share = std::min(progress.share, 1.0);
  return progress;
}

}  // namespace dfl::sim
