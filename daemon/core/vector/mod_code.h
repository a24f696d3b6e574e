// The value format `mod`: a vector written for receivers that hold a similar
// one. Its receiver finds the whole value next to its own.
//
// The values are cut into blocks of B = 256, the last one filled up with zeros.
// For a block x_b with the scale sigma, one byte e in the message:
//
//   z     = H S x_b                 signs S from the message's seed, then the
//                                   Hadamard matrix H, H_pa = +-1/sqrt(B)
//   Delta = 2 w sigma / M           the spacing; the sender raises e until it
//                                   is at least 2^-22 max |z|
//   k     = rint(z/Delta + u)       dither u in (-1/2, 1/2) from the seed
//   sent    k mod M, and a check C(k) of 16 bits
//
// The receiver does the same to its own vector y = H S x_own, t = y/Delta + u,
// k' = rint(t), f = k' - t, and takes
//
//   q     = k - k' mod M, |q| <= M/2;  d = (q + f) Delta  leads from y to the
//           point that was sent, if that is less than w sigma away
//   d^    = S H (Delta q)           what both ends apply, [n]
//
// E d^ = x - x_own, and d^ is exactly 0 for equal vectors. Where C(k' + q) is
// not the check, the block is *refused*: q becomes 0 wherever |q + f| > (M-1)/2
// so that only what is well inside the window is used. The next scale comes
// from d, or grows with each refusal in a row.
//
// Modulo quantisation with side information: [Moniqua], [Davies et al. 2021].
// The rules are those of docs/papers/gossip-nids.md, "The value format".
//
// All decisions are in double, each operation rounded, and what both ends must
// agree on is made of integers: every platform makes the same bits.
#ifndef DFL_CORE_VECTOR_MOD_CODE_H_
#define DFL_CORE_VECTOR_MOD_CODE_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "daemon/base/aligned_vector.h"

namespace dfl::core {

inline constexpr int kModBlock = 256;
inline constexpr int kLeastModulus = 4;
inline constexpr int kMostModulus = 256;
inline constexpr double kMostWindow = 64;
inline constexpr int kMostRefusals = 255;

struct ModSpec {
  int modulus = 8;        // M, in [4, 256]
  double window = 5;      // w, in (0, 64]: half the window in rms differences
  int block = kModBlock;  // B, a power of 4 up to 256; 256 but in tests

  friend bool operator==(const ModSpec& a, const ModSpec& b) {
    return a.modulus == b.modulus && a.window == b.window && a.block == b.block;
  }
};

// Blocks of a vector of n.
int64_t ModBlocks(const ModSpec& spec, int64_t n);

// ---- scales. A state holds e, never sigma, so every update is exact.

// sigma = 2^(e/8 - 24) for e in [1, 255], 6.5e-8 to 235; 0 for 0: no scale.
double ModScale(uint8_t e);
// The e whose sigma is nearest to s = sqrt(squares), in [1, 255]; 0 for s = 0.
uint8_t ModScaleCode(double squares);
// Delta.
double ModSpacing(const ModSpec& spec, uint8_t e);

// What is known of one block from one message to the next.
struct BlockScale {
  uint8_t e = 0;
  uint8_t refusals = 0;  // in a row, up to kMostRefusals

  friend bool operator==(const BlockScale& a, const BlockScale& b) {
    return a.e == b.e && a.refusals == b.refusals;
  }
};
// After a block that was decoded with e; `squares` is s^2, the mean of d^2
// without the dither's Delta^2/12.
BlockScale AfterDecoded(uint8_t e, double squares);
// After a refused one; `before` counts those in a row before it.
BlockScale AfterRefused(uint8_t e, uint8_t before);

// The first scales: of the blocks without one, from how far `x` is from
// `start`, both [n]. A block that has not moved stays without.
void FirstScales(const ModSpec& spec, absl::Span<const float> x,
                 absl::Span<const float> start, absl::Span<BlockScale> scales);

// ---- one message

// What a sender sends of its vector.
struct ModOffer {
  uint32_t number = 0;  // o, on its edge; 0: it is none of an exchange
  ModSpec spec;
  int64_t n = 0;
  uint64_t seed = 0;
  std::vector<uint8_t> scales;   // [blocks] e as sent; 0: nothing of the block
  std::vector<uint16_t> checks;  // [blocks]; 0 without a scale
  std::vector<uint8_t> codes;    // [blocks B] k mod M; 0 without a scale
};

// Writes `x` at the scales `scales`, [blocks]. A block that is not finite, or
// beyond what 255 can scale, is sent without one.
// Cost: O(n), no temporary beyond the result.
ModOffer WriteMod(const ModSpec& spec, absl::Span<const float> x,
                  absl::Span<const BlockScale> scales, uint64_t seed);

// What a receiver makes of an offer: both ends apply the difference, with
// opposite signs.
struct ModAnswer {
  uint32_t number = 0;  // the offer's
  double gamma = 0;     // how both apply it: docs/papers/gossip-nids.md
  double beta = 0;
  ModSpec spec;
  int64_t n = 0;
  uint64_t seed = 0;
  std::vector<uint8_t> scales;       // [blocks] e of the offer
  std::vector<uint8_t> next_scales;  // [blocks] e'
  std::vector<uint8_t> refused;      // [blocks] 0 or 1
  std::vector<int16_t> q;            // [blocks B]
};

// Decodes `offer` against `own`, [n]. `scales` [blocks] are the receiver's and
// become the next ones; a block that the offer has no scale for keeps its own.
ModAnswer ReadMod(const ModOffer& offer, absl::Span<const float> own,
                  absl::Span<BlockScale> scales);

// The sender's scales after an answer: e' where there is one, and the refusals
// in a row.
void FollowScales(const ModAnswer& answer, absl::Span<BlockScale> scales);

// d^, [n]: the same bits for all who know e, q and the seed.
FlatVector ModDifference(const ModAnswer& answer);

// C(k): upper 16 bits of the sum of a_p floor(k_p/M) mod 2^32. k has B values.
uint16_t ModCheck(int modulus, absl::Span<const int32_t> k);

// u and S of places [0, count): for tests.
std::vector<double> ModDither(uint64_t seed, int64_t count);
std::vector<int> ModSigns(uint64_t seed, int64_t count);

}  // namespace dfl::core

#endif  // DFL_CORE_VECTOR_MOD_CODE_H_
