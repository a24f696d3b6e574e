// What a simulation measures on request: extra_metrics.h.
#include <cstddef>
#include <utility>

#include "daemon/base/status_macros.h"
#include "daemon/core/algorithms/catalogue.h"
#include "daemon/sim/extra_metrics.h"
#include "daemon/sim/simulation.h"

namespace dfl::sim {
namespace {

template <typename Vector>
void AddTo(std::vector<double>& sum, const Vector& vector) {
  for (size_t l = 0; l < sum.size(); ++l) sum[l] += vector[l];
}

}  // namespace

absl::Status Simulation::MeasureExtras(const ModelView& mean, MetricsRow& row) {
  for (const std::string& metric : scenario_.metrics) {
    std::optional<double> value;
    if (metric == kGradientError) {
      DFL_ASSIGN_OR_RETURN(value, GradientError());
    } else if (metric == kProximalGradient) {
      DFL_ASSIGN_OR_RETURN(value, ProximalGradient(mean));
    } else {
      value = AuxiliaryConsensusError(AuxiliaryOf(metric));
    }
    if (value.has_value()) row.extra[metric] = *value;
  }
  return absl::OkStatus();
}

FlatVector Simulation::AuxiliaryAt(const Slot& slot,
                                   absl::string_view symbol) const {
  const core::Algorithm* algorithm = slot.node->algorithm();
  return algorithm == nullptr ? FlatVector() : algorithm->Auxiliary(symbol);
}

absl::StatusOr<std::optional<double>> Simulation::GradientError() {
  std::vector<double> off(static_cast<size_t>(task_->parameters()), 0.0);
  for (int64_t i = 0; i < size(); ++i) {
    const Slot& slot = slots_[static_cast<size_t>(i)];
    if (!slot.in_run()) continue;
    if (slot.plan_in_force == 0) return std::nullopt;
    DFL_ASSIGN_OR_RETURN(const core::AlgorithmInfo* info,
                         core::FindAlgorithm(AlgorithmOf(slot.plan_in_force)));
    FlatVector estimate = AuxiliaryAt(slot, info->gradient_estimate);
    if (estimate.empty()) return std::nullopt;
    DFL_ASSIGN_OR_RETURN(
        const std::vector<double> gradient,
        task_->Gradient(i, {slot.node->parameters(), slot.node->buffers()}));
    AddTo(off, gradient);
    for (float& value : estimate) value = -value;
    AddTo(off, estimate);
  }
  double error = 0;
  const auto count = static_cast<double>(in_run_);
  for (const double value : off) error += (value / count) * (value / count);
  return error;
}

absl::StatusOr<double> Simulation::ProximalGradient(const ModelView& mean) {
  const Version& newest = versions_[newest_];
  std::vector<double> gradient(mean.parameters.size(), 0.0);
  double count = 0;
  for (int64_t i = 0; i < size(); ++i) {
    if (!newest.members[static_cast<size_t>(i)]) continue;
    DFL_ASSIGN_OR_RETURN(const std::vector<double> own,
                         task_->Gradient(i, mean));
    AddTo(gradient, own);
    ++count;
  }
  for (double& value : gradient) value /= count;
  const core::AlgorithmSpec& algorithm = newest.plan->algorithm;
  DFL_ASSIGN_OR_RETURN(const core::AlgorithmInfo* info,
                       core::FindAlgorithm(algorithm.name));
  DFL_ASSIGN_OR_RETURN(const core::Knobs knobs,
                       core::Knobs::Resolve(info->knobs, algorithm.knobs));
  return SquaredProximalGradient(*info, knobs, mean.parameters, gradient);
}

std::optional<double> Simulation::AuxiliaryConsensusError(
    absl::string_view symbol) const {
  std::vector<double> mean(static_cast<size_t>(task_->parameters()), 0.0);
  for (const Slot& slot : slots_) {
    if (!slot.in_run()) continue;
    const FlatVector vector = AuxiliaryAt(slot, symbol);
    if (vector.empty()) return std::nullopt;
    AddTo(mean, vector);
  }
  const auto count = static_cast<double>(in_run_);
  for (double& value : mean) value /= count;
  double error = 0;
  for (const Slot& slot : slots_) {
    if (!slot.in_run()) continue;
    const FlatVector vector = AuxiliaryAt(slot, symbol);
    for (size_t l = 0; l < mean.size(); ++l) {
      error += (vector[l] - mean[l]) * (vector[l] - mean[l]);
    }
  }
  return error / count;
}

}  // namespace dfl::sim
