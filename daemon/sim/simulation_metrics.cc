// What a simulation measures while it runs: rows of metrics, progress, digest.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/config/values.h"
#include "daemon/core/algorithms/catalogue.h"
#include "daemon/core/rounds/mass_rounds.h"
#include "daemon/core/rounds/prox.h"
#include "daemon/sim/simulation.h"
#include "daemon/simports/mass_drift.h"

namespace dfl::sim {
namespace {

// What `plan` adds to the loss; none where its algorithm takes no proximal
// step.
absl::StatusOr<std::optional<core::Prox>> PlanPenalty(
    const core::RunPlan& plan) {
  DFL_ASSIGN_OR_RETURN(const core::AlgorithmInfo* info,
                       core::FindAlgorithm(plan.algorithm.name));
  if (info->prox_steps == nullptr) return std::nullopt;
  DFL_ASSIGN_OR_RETURN(const core::Knobs knobs,
                       core::Knobs::Resolve(info->knobs, plan.algorithm.knobs));
  return core::ProxOf(knobs);
}

}  // namespace

absl::Status Simulation::Measure(MetricsRow& row) {
  const auto n = static_cast<size_t>(task_->parameters());
  const auto b = static_cast<size_t>(task_->buffers());
  std::vector<double> mean(n, 0.0);
  std::vector<double> mean_buffers(b, 0.0);
  for (const Slot& slot : slots_) {
    if (!slot.in_run()) continue;
    const absl::Span<const float> w = slot.node->parameters();
    const absl::Span<const float> buffers = slot.node->buffers();
    for (size_t l = 0; l < n; ++l) mean[l] += w[l];
    for (size_t l = 0; l < b; ++l) mean_buffers[l] += buffers[l];
  }
  const auto count = static_cast<double>(in_run_);
  std::vector<float> rounded(n);
  std::vector<float> rounded_buffers(b);
  for (size_t l = 0; l < n; ++l) {
    mean[l] /= count;
    rounded[l] = static_cast<float>(mean[l]);
  }
  for (size_t l = 0; l < b; ++l) {
    rounded_buffers[l] = static_cast<float>(mean_buffers[l] / count);
  }
  DFL_ASSIGN_OR_RETURN(const Score of_mean,
                       task_->ScoreForAll({rounded, rounded_buffers},
                                          versions_[newest_].members));
  row.loss_mean_model = of_mean.loss;
  row.accuracy_mean_model = of_mean.accuracy;
  DFL_ASSIGN_OR_RETURN(const std::optional<core::Prox> penalty,
                       PlanPenalty(newest_plan()));
  if (penalty.has_value() && penalty->h != core::Regulariser::kNone) {
    row.phi_mean_model = of_mean.loss + core::Penalty(*penalty, rounded);
  }
  double accuracies = 0;
  double sparsities = 0;
  result_.nodes.clear();
  for (int64_t i = 0; i < size(); ++i) {
    const Slot& slot = slots_[static_cast<size_t>(i)];
    if (!slot.in_run()) continue;
    const absl::Span<const float> w = slot.node->parameters();
    DFL_ASSIGN_OR_RETURN(const Score own,
                         task_->ScoreForNode(i, {w, slot.node->buffers()}));
    result_.nodes.push_back(
        {name(i), slot.step, slot.plan_in_force, slot.incarnations, own});
    row.mean_loss += own.loss;
    accuracies += own.accuracy.value_or(0);
    if (penalty.has_value()) sparsities += core::Sparsity(w);
    for (size_t l = 0; l < n; ++l) {
      row.consensus_error += (w[l] - mean[l]) * (w[l] - mean[l]);
    }
  }
  row.mean_loss /= count;
  row.consensus_error /= count;
  if (task_->classifies()) row.accuracy = accuracies / count;
  row.mass_drift = Drift();
  if (penalty.has_value()) row.sparsity = sparsities / count;
  return MeasureExtras({rounded, rounded_buffers}, row);
}

// Counts the nodes that run the algorithm of the newest plan in force anywhere.
// During a change of the plan the others conserve something else.
std::optional<double> Simulation::Drift() const {
  std::map<NodeId, const core::MassRounds*> nodes;
  uint64_t in_force = 0;
  for (const Slot& slot : slots_) {
    if (slot.in_run()) in_force = std::max(in_force, slot.plan_in_force);
  }
  if (in_force == 0) return std::nullopt;
  const std::string& algorithm = AlgorithmOf(in_force);
  uint64_t newest = 0;
  for (const Slot& slot : slots_) {
    if (!slot.in_run()) continue;
    const auto* rounds =
        dynamic_cast<const core::MassRounds*>(slot.node->algorithm());
    if (rounds == nullptr || AlgorithmOf(slot.plan_in_force) != algorithm) {
      continue;
    }
    const uint64_t epoch = slot.node->parcels().epoch();
    if (epoch > newest) nodes.clear();
    newest = std::max(newest, epoch);
    if (epoch == newest) nodes[slot.self] = rounds;
  }
  return simports::MassDrift(nodes);
}

void Simulation::TakeRow() {
  MetricsRow row;
  row.time_s = absl::ToDoubleSeconds(scheduler_.Now() - zero_);
  row.bytes_sent = network_->sent().bytes;
  row.nodes = in_run_;
  if (in_run_ > 0) {
    row.step = step_sum_ / in_run_;
    row.lowest_step = INT64_MAX;
    for (const Slot& slot : slots_) {
      if (!slot.in_run()) continue;
      row.lowest_step = std::min(row.lowest_step, slot.step);
      row.highest_step = std::max(row.highest_step, slot.step);
    }
    const absl::Status measured = Measure(row);
    if (!measured.ok()) {
      EndBy(End::kDiverged, std::string(measured.message()));
      return;
    }
  }
  next_row_step_ =
      (row.step / scenario_.metrics_every + 1) * scenario_.metrics_every;
  // The end may fall on a row that is there.
  if (!result_.rows.empty() && result_.rows.back().time_s == row.time_s &&
      result_.rows.back().step == row.step) {
    return;
  }
  result_.rows.push_back(row);
  if (HasSettled()) {
    EndBy(End::kSettled,
          absl::StrCat("f(mean w) moved by less than ",
                       config::WriteNumber(scenario_.settled_below),
                       " over the last three rows"));
  }
}

bool Simulation::HasSettled() const {
  const std::vector<MetricsRow>& rows = result_.rows;
  if (scenario_.settled_below <= 0 || rows.size() < 4) return false;
  double mean = 0;
  for (size_t i = rows.size() - 3; i < rows.size(); ++i) {
    mean += rows[i].loss_mean_model / 3;
  }
  double variance = 0;
  for (size_t i = rows.size() - 3; i < rows.size(); ++i) {
    const double off = rows[i].loss_mean_model - mean;
    variance += off * off / 3;
  }
  return std::sqrt(variance) < scenario_.settled_below;
}

Progress Simulation::MakeProgress() const {
  Progress progress;
  progress.steps = result_.steps;
  if (!result_.rows.empty()) progress.last = result_.rows.back();
  if (!training_began_) return progress;
  if (in_run_ > 0) progress.last.step = step_sum_ / in_run_;
  progress.last.bytes_sent = network_->sent().bytes;
  const core::StopRule& stop = newest_plan().stop;
  const absl::Duration passed = scheduler_.Now() - zero_;
  progress.share =
      absl::FDivDuration(passed, std::min(stop.time, scenario_.limit));
  if (stop.steps > 0 && in_run_ > 0) {
    progress.share =
        std::max(progress.share, static_cast<double>(step_sum_) /
                                     static_cast<double>(in_run_ * stop.steps));
  }
  progress.share = std::min(progress.share, 1.0);
  return progress;
}

uint64_t Simulation::Digest() const {
  simports::TraceDigest digest;
  digest.Add(scheduler_.trace().value());
  for (int64_t i = 0; i < size(); ++i) {
    for (const float value : parameters(i)) {
      uint32_t bits = 0;
      std::memcpy(&bits, &value, sizeof(bits));
      digest.Add(bits);
    }
  }
  return digest.value();
}

}  // namespace dfl::sim
