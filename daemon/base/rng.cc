#include "daemon/base/rng.h"

#include "daemon/base/check.h"

namespace dfl {
namespace {

constexpr uint64_t kGolden = 0x9E3779B97F4A7C15ULL;

}  // namespace

uint64_t Mix64(uint64_t x) {
  x += kGolden;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

uint64_t DeriveSeed(uint64_t seed, absl::string_view label) {
  uint64_t h = Mix64(seed ^ 0x646C6664ULL);
  for (const char c : label) {
    h = Mix64(h ^ static_cast<unsigned char>(c));
  }
  return Mix64(h ^ label.size());
}

uint64_t DeriveSeed(uint64_t seed, absl::string_view label, uint64_t a,
                    uint64_t b) {
  return Mix64(Mix64(DeriveSeed(seed, label) ^ a) + kGolden * b + 1);
}

Rng::Rng(uint64_t seed) {
  uint64_t x = seed;
  for (uint64_t& word : state_) {
    word = Mix64(x);
    x += kGolden;
  }
}

uint64_t Rng::Below(uint64_t bound) {
  DFL_CHECK(bound >= 1);
  // Lemire's multiplication with rejection: exact.
  uint64_t x = Next();
  __uint128_t product = static_cast<__uint128_t>(x) * bound;
  uint64_t low = static_cast<uint64_t>(product);
  if (low < bound) {
    const uint64_t threshold = (0 - bound) % bound;
    while (low < threshold) {
      x = Next();
      product = static_cast<__uint128_t>(x) * bound;
      low = static_cast<uint64_t>(product);
    }
  }
  return static_cast<uint64_t>(product >> 64);
}

Rng Rng::Fork(absl::string_view purpose) const {
  return Rng(DeriveSeed(Mix64(state_[0]) ^ Mix64(state_[1] + 1) ^
                            Mix64(state_[2] + 2) ^ Mix64(state_[3] + 3),
                        purpose));
}

}  // namespace dfl
