#include "daemon/learner/catalogue/regulariser.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "daemon/base/check.h"

namespace dfl::learner {

double AddRegulariser(double l2, absl::Span<const float> parameters,
                      absl::Span<float> gradient) {
  DFL_CHECK(parameters.size() == gradient.size());
  if (l2 == 0) return 0;
  const float factor = static_cast<float>(l2);
  double squares = 0;
  for (size_t i = 0; i < parameters.size(); ++i) {
    gradient[i] += factor * parameters[i];
    squares += static_cast<double>(parameters[i]) * parameters[i];
  }
  return l2 / 2 * squares;
}

bool AllFinite(absl::Span<const float> values) {
  // Finite means that the exponent is not all ones, that is, that the bits
  // without the sign are below infinity's. Their maximum vectorises; a sum of
  // floats would not.
  constexpr int32_t kInfinity = 0x7F800000;
  int32_t largest = 0;
  for (const float value : values) {
    int32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    largest = std::max(largest, bits & 0x7FFFFFFF);
  }
  return largest < kInfinity;
}

}  // namespace dfl::learner
