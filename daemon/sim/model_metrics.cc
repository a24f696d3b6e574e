#include "daemon/sim/model_metrics.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>

#include "daemon/base/status_macros.h"
#include "daemon/core/algorithm/algorithm.h"
#include "daemon/core/rounds/prox.h"
#include "daemon/sim/extra_metrics.h"
#include "daemon/simports/mass_drift.h"

namespace dfl::sim {
namespace {

// What a plan adds to the loss; none where its algorithm takes no proximal
// step.
absl::StatusOr<std::optional<core::Prox>> PlanPenalty(
    const PlanVersion& version) {
  const core::AlgorithmInfo& info = *version.algorithm;
  if (info.prox_steps == nullptr) return std::nullopt;
  DFL_ASSIGN_OR_RETURN(
      const core::Knobs knobs,
      core::Knobs::Resolve(info.knobs, version.plan->algorithm.knobs));
  return core::ProxOf(knobs);
}

template <typename Vector>
void AddTo(std::vector<double>& sum, const Vector& vector) {
  for (size_t l = 0; l < sum.size(); ++l) sum[l] += vector[l];
}

FlatVector AuxiliaryAt(const Member& member, absl::string_view symbol) {
  const core::Algorithm* algorithm = member.node->algorithm();
  return algorithm == nullptr ? FlatVector() : algorithm->Auxiliary(symbol);
}

}  // namespace

absl::Status ModelMetrics::Measure(MetricsRow& row,
                                   std::vector<NodeScore>& nodes) {
  const Mean mean = MeanModel();
  DFL_RETURN_IF_ERROR(MeasureMean(mean, row));
  DFL_RETURN_IF_ERROR(MeasureNodes(mean, row, nodes));
  row.mass_drift = Drift();
  return MeasureExtras({mean.parameters, mean.buffers}, row);
}

ModelMetrics::Mean ModelMetrics::MeanModel() const {
  const auto n = static_cast<size_t>(task_.parameters());
  const auto b = static_cast<size_t>(task_.buffers());
  Mean mean{std::vector<double>(n, 0.0), std::vector<float>(n),
            std::vector<float>(b)};
  std::vector<double> buffers(b, 0.0);
  for (const Member& member : members_) {
    if (!member.measured()) continue;
    AddTo(mean.exact, member.node->parameters());
    AddTo(buffers, member.node->buffers());
  }
  const auto count = static_cast<double>(members_.measured());
  for (size_t l = 0; l < n; ++l) {
    mean.exact[l] /= count;
    mean.parameters[l] = static_cast<float>(mean.exact[l]);
  }
  for (size_t l = 0; l < b; ++l) {
    mean.buffers[l] = static_cast<float>(buffers[l] / count);
  }
  return mean;
}

absl::Status ModelMetrics::MeasureMean(const Mean& mean, MetricsRow& row) {
  DFL_ASSIGN_OR_RETURN(const Score score,
                       task_.ScoreForAll({mean.parameters, mean.buffers},
                                         versions_.newest_version().members));
  row.loss_mean_model = score.loss;
  row.accuracy_mean_model = score.accuracy;
  DFL_ASSIGN_OR_RETURN(const std::optional<core::Prox> penalty,
                       PlanPenalty(versions_.newest_version()));
  if (penalty.has_value() && penalty->h != core::Regulariser::kNone) {
    row.phi_mean_model = score.loss + core::Penalty(*penalty, mean.parameters);
  }
  return absl::OkStatus();
}

absl::Status ModelMetrics::MeasureNodes(const Mean& mean, MetricsRow& row,
                                        std::vector<NodeScore>& nodes) {
  DFL_ASSIGN_OR_RETURN(const std::optional<core::Prox> penalty,
                       PlanPenalty(versions_.newest_version()));
  double accuracies = 0;
  double sparsities = 0;
  nodes.clear();
  for (int64_t i = 0; i < members_.size(); ++i) {
    const Member& member = members_[i];
    if (!member.measured()) continue;
    const absl::Span<const float> w = member.node->parameters();
    DFL_ASSIGN_OR_RETURN(const Score own,
                         task_.ScoreForNode(i, {w, member.node->buffers()}));
    nodes.push_back({members_.name(i), member.step, member.round,
                     member.disk.version_in_force(), member.incarnations, own});
    row.mean_loss += own.loss;
    accuracies += own.accuracy.value_or(0);
    if (penalty.has_value()) sparsities += core::Sparsity(w);
    for (size_t l = 0; l < mean.exact.size(); ++l) {
      row.consensus_error += (w[l] - mean.exact[l]) * (w[l] - mean.exact[l]);
    }
  }
  const auto count = static_cast<double>(members_.measured());
  row.mean_loss /= count;
  row.consensus_error /= count;
  if (task_.classifies()) row.accuracy = accuracies / count;
  if (penalty.has_value()) row.sparsity = sparsities / count;
  return absl::OkStatus();
}

// Of the nodes that run the algorithm of the newest plan that any of them runs:
// while a change is under way the others conserve something else.
std::optional<double> ModelMetrics::Drift() const {
  std::map<NodeId, const core::Algorithm*> nodes;
  uint64_t in_force = 0;
  for (const Member& member : members_) {
    if (member.measured()) {
      in_force = std::max(in_force, member.disk.version_in_force());
    }
  }
  if (in_force == 0) return std::nullopt;
  const std::string& algorithm = versions_.Numbered(in_force).algorithm->name;
  uint64_t newest = 0;
  for (const Member& member : members_) {
    if (!member.measured()) continue;
    const core::Algorithm* running = member.node->algorithm();
    if (running == nullptr ||
        versions_.Numbered(member.disk.version_in_force()).algorithm->name !=
            algorithm) {
      continue;
    }
    const uint64_t epoch = member.node->parcels().epoch();
    if (epoch > newest) nodes.clear();
    newest = std::max(newest, epoch);
    if (epoch == newest) nodes[member.self] = running;
  }
  return simports::MassDrift(nodes);
}

absl::Status ModelMetrics::MeasureExtras(const ModelView& mean,
                                         MetricsRow& row) {
  for (const std::string& metric : extra_) {
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

absl::StatusOr<std::optional<double>> ModelMetrics::GradientError() {
  std::vector<double> off(static_cast<size_t>(task_.parameters()), 0.0);
  for (int64_t i = 0; i < members_.size(); ++i) {
    const Member& member = members_[i];
    if (!member.measured()) continue;
    const uint64_t in_force = member.disk.version_in_force();
    if (in_force == 0) return std::nullopt;
    FlatVector estimate = AuxiliaryAt(
        member, versions_.Numbered(in_force).algorithm->gradient_estimate);
    if (estimate.empty()) return std::nullopt;
    DFL_ASSIGN_OR_RETURN(
        const std::vector<double> gradient,
        task_.Gradient(i, {member.node->parameters(), member.node->buffers()}));
    AddTo(off, gradient);
    for (float& value : estimate) value = -value;
    AddTo(off, estimate);
  }
  double error = 0;
  const auto count = static_cast<double>(members_.measured());
  for (const double value : off) error += (value / count) * (value / count);
  return error;
}

absl::StatusOr<double> ModelMetrics::ProximalGradient(const ModelView& mean) {
  const PlanVersion& newest = versions_.newest_version();
  std::vector<double> gradient(mean.parameters.size(), 0.0);
  double count = 0;
  for (int64_t i = 0; i < members_.size(); ++i) {
    if (!newest.members[static_cast<size_t>(i)]) continue;
    DFL_ASSIGN_OR_RETURN(const std::vector<double> own,
                         task_.Gradient(i, mean));
    AddTo(gradient, own);
    ++count;
  }
  for (double& value : gradient) value /= count;
  DFL_ASSIGN_OR_RETURN(const core::Knobs knobs,
                       core::Knobs::Resolve(newest.algorithm->knobs,
                                            newest.plan->algorithm.knobs));
  return SquaredProximalGradient(*newest.algorithm, knobs, mean.parameters,
                                 gradient);
}

std::optional<double> ModelMetrics::AuxiliaryConsensusError(
    absl::string_view symbol) const {
  std::vector<double> mean(static_cast<size_t>(task_.parameters()), 0.0);
  for (const Member& member : members_) {
    if (!member.measured()) continue;
    const FlatVector vector = AuxiliaryAt(member, symbol);
    if (vector.empty()) return std::nullopt;
    AddTo(mean, vector);
  }
  const auto count = static_cast<double>(members_.measured());
  for (double& value : mean) value /= count;
  double error = 0;
  for (const Member& member : members_) {
    if (!member.measured()) continue;
    const FlatVector vector = AuxiliaryAt(member, symbol);
    for (size_t l = 0; l < mean.size(); ++l) {
      error += (vector[l] - mean[l]) * (vector[l] - mean[l]);
    }
  }
  return error / count;
}

}  // namespace dfl::sim
