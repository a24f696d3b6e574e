#include "daemon/core/rounds/local_optimizer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "daemon/core/vector/flat_vector.h"
#include "daemon/core/vector/powers.h"

namespace dfl::core {
namespace {

constexpr double kPi = 3.14159265358979323846;

// cos(pi x) for x in [0, 1], by its series: libm's cos is not the same
// everywhere.
double CosPi(double x) {
  if (x > 0.5) return -CosPi(1 - x);
  const double square = kPi * x * kPi * x;
  double term = 1;
  double sum = 1;
  for (int k = 1; k <= 12; ++k) {
    term *= -square / ((2 * k - 1) * (2 * k));
    sum += term;
  }
  return sum;
}

// What a gradient is multiplied by, so that it is no longer than `most`.
float ClipScale(double most, absl::Span<const float> gradient) {
  if (most <= 0) return 1;
  double square = 0;
  for (const float g : gradient) {
    square += static_cast<double>(g) * static_cast<double>(g);
  }
  const double norm = std::sqrt(square);
  return norm > most ? static_cast<float>(most / norm) : 1.0F;
}

}  // namespace

double ScheduledShare(const ScheduleSpec& schedule, int64_t steps) {
  if (steps < schedule.warmup) {
    return static_cast<double>(steps + 1) /
           static_cast<double>(schedule.warmup);
  }
  const int64_t s = steps - schedule.warmup;
  if (schedule.kind == "cosine") {
    const double passed = static_cast<double>(std::min(s, schedule.length)) /
                          static_cast<double>(schedule.length);
    return schedule.floor + (1 - schedule.floor) * (1 + CosPi(passed)) / 2;
  }
  if (schedule.kind == "step") {
    return Power(schedule.factor, s / schedule.every);
  }
  return 1;
}

LocalOptimizer::LocalOptimizer(OptimizerSpec spec) : spec_(std::move(spec)) {}

void LocalOptimizer::SetSpec(OptimizerSpec spec) {
  const bool another = spec.name != spec_.name;
  spec_ = std::move(spec);
  if (another) Reset();
}

void LocalOptimizer::Reset() {
  taken_ = 0;
  first_.clear();
  second_.clear();
}

void LocalOptimizer::BeginRound() {
  if (spec_.fresh_each_round) Reset();
}

void LocalOptimizer::Step(double eta, int64_t steps,
                          absl::Span<const float> gradient,
                          absl::Span<float> parameters) {
  const auto rate = static_cast<float>(StepSize(eta, steps));
  const float scale = ClipScale(spec_.clip_norm, gradient);
  const auto decay = static_cast<float>(spec_.weight_decay);
  ++taken_;
  if (adaptive()) {
    StepAdaptively(rate, scale, gradient, parameters);
    return;
  }
  const bool momentum = spec_.name == "momentum";
  if (!momentum && scale == 1 && decay == 0) {
    AddScaled(-rate, gradient, parameters);
    return;
  }
  if (!momentum) {
    for (size_t l = 0; l < parameters.size(); ++l) {
      parameters[l] -= rate * (scale * gradient[l] + decay * parameters[l]);
    }
    return;
  }
  first_.resize(parameters.size());
  const auto mu = static_cast<float>(spec_.momentum);
  for (size_t l = 0; l < parameters.size(); ++l) {
    first_[l] = mu * first_[l] + (scale * gradient[l] + decay * parameters[l]);
    parameters[l] -= rate * first_[l];
  }
}

void LocalOptimizer::StepAdaptively(float rate, float scale,
                                    absl::Span<const float> gradient,
                                    absl::Span<float> parameters) {
  first_.resize(parameters.size());
  second_.resize(parameters.size());
  const bool decoupled = spec_.name == "adamw";
  const auto decay = static_cast<float>(spec_.weight_decay);
  const float added = decoupled ? 0 : decay;
  const float kept = decoupled ? 1 - rate * decay : 1;
  const auto beta1 = static_cast<float>(spec_.beta1);
  const auto beta2 = static_cast<float>(spec_.beta2);
  const auto epsilon = static_cast<float>(spec_.epsilon);
  const auto step = static_cast<float>(static_cast<double>(rate) /
                                       (1 - Power(spec_.beta1, taken_)));
  const auto root =
      static_cast<float>(1 / std::sqrt(1 - Power(spec_.beta2, taken_)));
  for (size_t l = 0; l < parameters.size(); ++l) {
    const float g = scale * gradient[l] + added * parameters[l];
    first_[l] = beta1 * first_[l] + (1 - beta1) * g;
    second_[l] = beta2 * second_[l] + (1 - beta2) * g * g;
    parameters[l] = kept * parameters[l] -
                    step * first_[l] / (std::sqrt(second_[l]) * root + epsilon);
  }
}

void LocalOptimizer::VisitState(StateFields& fields, size_t n) {
  if (!on()) return;
  fields.Count("optimizer_steps", taken_);
  if (OptimizerVectors(spec_.name) >= 1) {
    first_.resize(n);
    fields.Vector("optimizer_first", first_, n);
  }
  if (OptimizerVectors(spec_.name) >= 2) {
    second_.resize(n);
    fields.Vector("optimizer_second", second_, n);
  }
}

}  // namespace dfl::core
