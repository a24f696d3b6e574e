#include "daemon/core/vector/step_codes.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "daemon/base/check.h"

namespace dfl::core {
namespace {

// What is not a number stays so: the encoder names it.
float WithinBounds(float step) {
  if (step < kLeastStep) return 0;
  return step > kMostStep ? kMostStep : step;
}

// Sets the steps and values of the q-th vector: step_of(begin, end) of a block,
// code_of(l, step) as a double.
template <typename StepOf, typename CodeOf>
void Code(int64_t q, StepCodes& codes, StepOf step_of, CodeOf code_of) {
  const auto n = static_cast<int64_t>(codes.values.size()) / codes.vectors;
  float* const values = codes.values.data() + q * n;
  float* const steps = codes.steps.data() + q * StepCount(n);
  for (int64_t begin = 0; begin < n; begin += kStepBlock) {
    const int64_t end = std::min(n, begin + kStepBlock);
    const float step = WithinBounds(step_of(begin, end));
    steps[begin / kStepBlock] = step;
    for (int64_t l = begin; l < end; ++l) {
      values[l] = step == 0 ? 0
                            : static_cast<float>((code_of(l, step) + 0.5) *
                                                 static_cast<double>(step));
    }
  }
}

}  // namespace

StepCodes::StepCodes(int bits, int vectors, int64_t n)
    : bits(bits), vectors(vectors) {
  DFL_CHECK(1 <= bits && bits <= kMostStepBits && 1 <= vectors &&
            vectors <= kMostStepVectors);
  steps.assign(static_cast<size_t>(vectors * StepCount(n)), 0.0F);
  values.assign(static_cast<size_t>(vectors * n), 0.0F);
}

int64_t StepCount(int64_t n) { return (n + kStepBlock - 1) / kStepBlock; }

float StepValue(int32_t code, float step) {
  return static_cast<float>((code + 0.5) * static_cast<double>(step));
}

void CodeSigns(int64_t q, absl::Span<const float> target,
               absl::Span<const float> base, StepCodes& codes) {
  DFL_CHECK(codes.bits == 1);
  const auto difference = [&](int64_t l) {
    return static_cast<double>(target[l]) - base[l];
  };
  Code(
      q, codes,
      [&](int64_t begin, int64_t end) {
        double sum = 0;
        for (int64_t l = begin; l < end; ++l) sum += std::fabs(difference(l));
        return static_cast<float>(2 * sum / static_cast<double>(end - begin));
      },
      [&](int64_t l, float) { return difference(l) < 0 ? -1.0 : 0.0; });
}

void CodeSteps(int64_t q, absl::Span<const float> target,
               absl::Span<const float> base, float step, StepCodes& codes) {
  const double half = static_cast<double>(int64_t{1} << (codes.bits - 1));
  Code(
      q, codes, [&](int64_t, int64_t) { return step; },
      [&](int64_t l, float rounded) {
        const double difference = static_cast<double>(target[l]) - base[l];
        return std::clamp(std::nearbyint(difference / rounded - 0.5), -half,
                          half - 1);
      });
}

void AddIncrements(absl::Span<const float> increments,
                   absl::Span<float> replica) {
  constexpr float kMost = std::numeric_limits<float>::max();
  for (size_t l = 0; l < replica.size(); ++l) {
    if (increments[l] == 0) continue;
    float sum = replica[l] + increments[l];
    if (sum > kMost) sum = kMost;
    if (sum < -kMost) sum = -kMost;
    if (sum == 0) sum = std::numeric_limits<float>::min();
    replica[l] = sum;
  }
}

}  // namespace dfl::core
