// The project's own random numbers: the same bits on every platform, for ever.
//
// xoshiro256** (Blackman and Vigna, public domain), seeded through splitmix64.
// One generator per purpose: Fork(label) gives an independent child, so that
// drawing more neighbours never changes which coordinates are drawn.
// std::*_distribution and absl::BitGen differ between platforms and are not
// used anywhere in base, core, codec, runtime and sim.
#ifndef DFL_BASE_RNG_H_
#define DFL_BASE_RNG_H_

#include <array>
#include <cstdint>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace dfl {

// One step of splitmix64 as a pure function: a 64-bit mix of `x`.
uint64_t Mix64(uint64_t x);

// A seed derived from a parent seed and a label or numbers; order matters.
uint64_t DeriveSeed(uint64_t seed, absl::string_view label);
uint64_t DeriveSeed(uint64_t seed, absl::string_view label, uint64_t a,
                    uint64_t b = 0);

class Rng {
 public:
  explicit Rng(uint64_t seed);

  // The next 64 uniform bits.
  uint64_t Next() {
    const uint64_t result = RotateLeft(state_[1] * 5, 7) * 9;
    const uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = RotateLeft(state_[3], 45);
    return result;
  }

  // Uniform in [0, bound), exactly (rejection); bound >= 1.
  uint64_t Below(uint64_t bound);

  // Uniform in [0, 1) with 53 bits.
  double Uniform() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }

  // True with probability p.
  bool Bernoulli(double p) { return Uniform() < p; }

  // An independent generator for one purpose. The parent does not move.
  Rng Fork(absl::string_view purpose) const;

  // Fisher-Yates.
  template <typename T>
  void Shuffle(absl::Span<T> values) {
    for (size_t i = values.size(); i > 1; --i) {
      using std::swap;
      swap(values[i - 1], values[Below(i)]);
    }
  }

  // For checkpoints.
  const std::array<uint64_t, 4>& state() const { return state_; }
  void set_state(const std::array<uint64_t, 4>& state) { state_ = state; }

 private:
  static uint64_t RotateLeft(uint64_t x, int k) {
    return (x << k) | (x >> (64 - k));
  }

  std::array<uint64_t, 4> state_;
};

}  // namespace dfl

#endif  // DFL_BASE_RNG_H_
