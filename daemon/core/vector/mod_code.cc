#include "daemon/core/vector/mod_code.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "daemon/base/check.h"

namespace dfl::core {
namespace {

constexpr uint64_t kGolden = 0x9E3779B97F4A7C15ULL;

// The a-th output, from 0, of splitmix64 started at `start`.
inline uint64_t Output(uint64_t start, uint64_t a) {
  uint64_t x = start + (a + 1) * kGolden;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

inline double DitherOf(uint64_t seed, uint64_t q) {
  const auto high = static_cast<uint32_t>(Output(seed, q) >> 32);
  return (static_cast<double>(high) + 0.5) * 0x1.0p-32 - 0.5;
}

// Adding it leaves a double's rint in the low 32 bits, half to even, for
// magnitudes below 2^31.
constexpr double kRounder = 0x1.8p52;

inline int32_t LowBits(double rounded) {
  int64_t bits;
  std::memcpy(&bits, &rounded, sizeof(bits));
  return static_cast<int32_t>(bits);
}

// floor(k/M): k + 1/2 is never a multiple of M.
inline int32_t FloorOf(double k, double inverse_modulus) {
  return LowBits(((k + 0.5) * inverse_modulus - 0.5) + kRounder);
}

// 2^(j/8).
constexpr std::array<double, 8> kEighths = {
    0x1.0000000000000p+0, 0x1.172b83c7d517bp+0, 0x1.306fe0a31b715p+0,
    0x1.4bfdad5362a27p+0, 0x1.6a09e667f3bcdp+0, 0x1.8ace5422aa0dbp+0,
    0x1.ae89f995ad3adp+0, 0x1.d5818dcfba487p+0};
// 2^((j + 1/2)/4 - 1): between two scales, as squares in [1/2, 1).
constexpr std::array<double, 4> kBetween = {
    0x1.172b83c7d517bp-1, 0x1.4bfdad5362a27p-1, 0x1.8ace5422aa0dbp-1,
    0x1.d5818dcfba487p-1};

using Weights = std::array<uint32_t, kModBlock>;

const Weights& CheckWeights() {
  static const Weights* const kWeights = [] {
    auto* weights = new Weights;
    for (size_t p = 0; p < weights->size(); ++p) {
      (*weights)[p] = static_cast<uint32_t>(Output(0, p) >> 32) | 1U;
    }
    return weights;
  }();
  return *kWeights;
}

// One block with what is drawn for it. Buffers are B long; the rest is unused.
struct Block {
  int size = kModBlock;
  uint64_t first = 0;  // place of its first value in the message
  uint64_t dither_seed = 0;
  std::array<uint64_t, kModBlock / 64 + 1> signs;
  alignas(64) std::array<float, kModBlock> z;
};

// -1 as the sign bit of a float, where the place's bit is 1.
inline uint32_t SignBit(const Block& block, int p) {
  const uint64_t q = block.first + static_cast<uint64_t>(p);
  const uint64_t word = block.signs[q / 64 - block.first / 64];
  return static_cast<uint32_t>((word >> (q % 64)) & 1U) << 31;
}

void BeginBlock(const ModSpec& spec, uint64_t seed, int64_t b, Block& block) {
  block.size = spec.block;
  block.first = static_cast<uint64_t>(b) * static_cast<uint64_t>(spec.block);
  block.dither_seed = Output(seed, 0);
  const uint64_t sign_seed = Output(seed, 1);
  const uint64_t word = block.first / 64;
  const uint64_t words = (block.first + spec.block - 1) / 64 - word + 1;
  for (uint64_t a = 0; a < words; ++a) {
    block.signs[a] = Output(sign_seed, word + a);
  }
}

inline float WithSign(float value, uint32_t sign) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  bits ^= sign;
  std::memcpy(&value, &bits, sizeof(bits));
  return value;
}

// v <- sqrt(B) H v. (a, b) <- (a + b, a - b) at strides 1, 2, 4, ..., B/2.
template <typename T>
void Hadamard(T* v, int size) {
  for (int i = 0; i < size; i += 4) {
    const T a = v[i] + v[i + 1];
    const T b = v[i] - v[i + 1];
    const T c = v[i + 2] + v[i + 3];
    const T d = v[i + 2] - v[i + 3];
    v[i] = a + c;
    v[i + 1] = b + d;
    v[i + 2] = a - c;
    v[i + 3] = b - d;
  }
  for (int stride = 4; stride < size; stride *= 2) {
    for (int i = 0; i < size; i += 2 * stride) {
      T* const low = v + i;
      T* const high = v + i + stride;
      for (int j = 0; j < stride; ++j) {
        const T a = low[j];
        const T b = high[j];
        low[j] = a + b;
        high[j] = a - b;
      }
    }
  }
}

// 1/sqrt(B), exact.
double InverseRoot(int size) {
  double root = 1;
  for (int s = size; s > 1; s /= 4) root /= 2;
  return root;
}

// block.z = H S x, where x is continued with zeros.
void Rotate(absl::Span<const float> x, Block& block) {
  const auto given = static_cast<int>(x.size());
  for (int p = 0; p < given; ++p) {
    block.z[p] = WithSign(x[p], SignBit(block, p));
  }
  std::fill(block.z.begin() + given, block.z.begin() + block.size, 0.0F);
  Hadamard(block.z.data(), block.size);
  const auto factor = static_cast<float>(InverseRoot(block.size));
  for (int p = 0; p < block.size; ++p) block.z[p] *= factor;
}

// The largest |z|; not finite if any is not.
float LargestOf(const Block& block) {
  int32_t most = 0;
  for (int p = 0; p < block.size; ++p) {
    int32_t bits;
    std::memcpy(&bits, &block.z[p], sizeof(bits));
    most = std::max(most, bits & 0x7FFFFFFF);
  }
  float largest;
  std::memcpy(&largest, &most, sizeof(largest));
  return largest;
}

// The least e' >= e whose spacing suffices for `largest`; 0: none does.
uint8_t RaisedScale(const ModSpec& spec, int e, float largest) {
  if (e == 0 || !std::isfinite(largest)) return 0;
  const double least = static_cast<double>(largest) * 0x1.0p-22;
  for (; e <= 255; ++e) {
    if (ModSpacing(spec, static_cast<uint8_t>(e)) >= least) {
      return static_cast<uint8_t>(e);
    }
  }
  return 0;
}

absl::Span<const float> Part(absl::Span<const float> x, const ModSpec& spec,
                             int64_t b) {
  return x.subspan(static_cast<size_t>(b * spec.block),
                   static_cast<size_t>(spec.block));
}

// Codes of one block; returns its check.
uint16_t WriteBlock(const ModSpec& spec, uint8_t e, const Block& block,
                    uint8_t* codes) {
  const double inverse = 1 / ModSpacing(spec, e);
  const double inverse_modulus = 1 / static_cast<double>(spec.modulus);
  const Weights& weights = CheckWeights();
  uint32_t sum = 0;
  for (int p = 0; p < block.size; ++p) {
    const double u =
        DitherOf(block.dither_seed, block.first + static_cast<uint64_t>(p));
    const double scaled = static_cast<double>(block.z[p]) * inverse;
    const double rounded = (scaled + u) + kRounder;
    const int32_t k = LowBits(rounded);
    const int32_t window = FloorOf(rounded - kRounder, inverse_modulus);
    codes[p] = static_cast<uint8_t>(k - window * spec.modulus);
    sum += weights[p] * static_cast<uint32_t>(window);
  }
  return static_cast<uint16_t>(sum >> 16);
}

// What decoding finds of one block.
struct Found {
  uint16_t check = 0;
  double squares = 0;    // mean of d^2/Delta^2
  bool in_reach = true;  // every |t| < 2^30
};

// The step from the own code k' to the received one, in (-M/2, M/2]; of +-M/2
// the one that leads to the nearer point.
inline int32_t Nearest(int32_t step, int32_t modulus, double f) {
  if (2 * step > modulus) step -= modulus;
  if (2 * step < -modulus) step += modulus;
  if (2 * step == modulus || 2 * step == -modulus) {
    step = f <= 0 ? modulus / 2 : -modulus / 2;
  }
  return step;
}

// Sets q, and q + f in `offsets`. Squares go to four sums, place p to sum p mod
// 4, so that lanes can be summed apart.
Found FindSteps(const ModSpec& spec, double inverse, const Block& block,
                const uint8_t* codes, int16_t* q, double* offsets) {
  const double inverse_modulus = 1 / static_cast<double>(spec.modulus);
  const Weights& weights = CheckWeights();
  Found found;
  uint32_t sum = 0;
  std::array<double, 4> squares = {0, 0, 0, 0};
  for (int p = 0; p < block.size; ++p) {
    const double u =
        DitherOf(block.dither_seed, block.first + static_cast<uint64_t>(p));
    double t = static_cast<double>(block.z[p]) * inverse + u;
    const bool in_reach = std::fabs(t) < 0x1.0p30;  // false for NaN
    found.in_reach = found.in_reach && in_reach;
    t = in_reach ? t : 0;
    const double rounded = t + kRounder;
    const double own = rounded - kRounder;
    const double f = own - t;
    const int32_t window = FloorOf(own, inverse_modulus);
    const int32_t code = LowBits(rounded) - window * spec.modulus;
    const int32_t step = Nearest(codes[p] - code, spec.modulus, f);
    const double offset = static_cast<double>(step) + f;
    sum += weights[p] *
           static_cast<uint32_t>(FloorOf(own + step, inverse_modulus));
    squares[p % 4] += offset * offset;
    offsets[p] = offset;
    q[p] = static_cast<int16_t>(step);
  }
  found.check = static_cast<uint16_t>(sum >> 16);
  found.squares = ((squares[0] + squares[1]) + (squares[2] + squares[3])) /
                  static_cast<double>(block.size);
  return found;
}

// Decodes one block; returns what is known of its scale afterwards. A refused
// one keeps only what is well inside the window.
BlockScale ReadBlock(const ModOffer& offer, int64_t b,
                     absl::Span<const float> own, uint8_t refusals_before,
                     ModAnswer& answer) {
  const ModSpec& spec = offer.spec;
  const uint8_t e = offer.scales[b];
  const double spacing = ModSpacing(spec, e);
  int16_t* const q = answer.q.data() + b * spec.block;
  Block block;
  alignas(64) std::array<double, kModBlock> offsets;
  BeginBlock(spec, offer.seed, b, block);
  Rotate(Part(own, spec, b), block);
  const Found found =
      FindSteps(spec, 1 / spacing, block, offer.codes.data() + b * spec.block,
                q, offsets.data());
  if (found.in_reach && found.check == offer.checks[b]) {
    const double squares = std::max(0.0, found.squares - 1.0 / 12);
    return AfterDecoded(e, squares * spacing * spacing);
  }
  answer.refused[b] = 1;
  const double inside = 0.5 * (spec.modulus - 1);
  for (int p = 0; p < spec.block; ++p) {
    if (!found.in_reach || std::fabs(offsets[p]) > inside) q[p] = 0;
  }
  return AfterRefused(e, refusals_before);
}

}  // namespace

int64_t ModBlocks(const ModSpec& spec, int64_t n) {
  return (n + spec.block - 1) / spec.block;
}

double ModScale(uint8_t e) {
  if (e == 0) return 0;
  return std::ldexp(kEighths[e % 8], e / 8 - 24);
}

uint8_t ModScaleCode(double squares) {
  if (!(squares > 0)) return 0;
  if (!std::isfinite(squares)) return 255;
  int exponent;
  const double f = std::frexp(squares, &exponent);  // [1/2, 1)
  int e = 4 * exponent + 188;
  for (const double between : kBetween) e += f >= between ? 1 : 0;
  return static_cast<uint8_t>(std::clamp(e, 1, 255));
}

double ModSpacing(const ModSpec& spec, uint8_t e) {
  return 2 * spec.window * ModScale(e) / spec.modulus;
}

BlockScale AfterDecoded(uint8_t e, double squares) {
  const int kept = std::max(e - 3, 1);
  return {static_cast<uint8_t>(std::max<int>(ModScaleCode(squares), kept)), 0};
}

BlockScale AfterRefused(uint8_t e, uint8_t before) {
  constexpr std::array<int, 5> kGrowth = {5, 9, 19, 37, 75};
  const int grown = e + kGrowth[std::min<int>(before, 4)];
  return {static_cast<uint8_t>(std::min(255, grown)),
          static_cast<uint8_t>(std::min(kMostRefusals, before + 1))};
}

void FirstScales(const ModSpec& spec, absl::Span<const float> x,
                 absl::Span<const float> start, absl::Span<BlockScale> scales) {
  DFL_CHECK(x.size() == start.size());
  for (size_t b = 0; b < scales.size(); ++b) {
    if (scales[b].e != 0) continue;
    const auto now = Part(x, spec, static_cast<int64_t>(b));
    const auto then = Part(start, spec, static_cast<int64_t>(b));
    double squares = 0;
    for (size_t l = 0; l < now.size(); ++l) {
      const double moved = static_cast<double>(now[l]) - then[l];
      squares += moved * moved;
    }
    scales[b].e = ModScaleCode(squares / spec.block);
  }
}

ModOffer WriteMod(const ModSpec& spec, absl::Span<const float> x,
                  absl::Span<const BlockScale> scales, uint64_t seed) {
  ModOffer offer;
  offer.spec = spec;
  offer.n = static_cast<int64_t>(x.size());
  offer.seed = seed;
  const int64_t blocks = ModBlocks(spec, offer.n);
  DFL_CHECK(static_cast<int64_t>(scales.size()) == blocks);
  offer.scales.assign(static_cast<size_t>(blocks), 0);
  offer.checks.assign(static_cast<size_t>(blocks), 0);
  offer.codes.assign(static_cast<size_t>(blocks * spec.block), 0);
  Block block;
  for (int64_t b = 0; b < blocks; ++b) {
    if (scales[b].e == 0) continue;
    BeginBlock(spec, seed, b, block);
    Rotate(Part(x, spec, b), block);
    const uint8_t e = RaisedScale(spec, scales[b].e, LargestOf(block));
    if (e == 0) continue;
    offer.scales[b] = e;
    offer.checks[b] =
        WriteBlock(spec, e, block, offer.codes.data() + b * spec.block);
  }
  return offer;
}

ModAnswer ReadMod(const ModOffer& offer, absl::Span<const float> own,
                  absl::Span<BlockScale> scales) {
  const ModSpec& spec = offer.spec;
  const auto blocks = static_cast<int64_t>(offer.scales.size());
  DFL_CHECK(static_cast<int64_t>(own.size()) == offer.n &&
            static_cast<int64_t>(scales.size()) == blocks);
  ModAnswer answer;
  answer.number = offer.number;
  answer.spec = spec;
  answer.n = offer.n;
  answer.seed = offer.seed;
  answer.scales = offer.scales;
  answer.next_scales.resize(scales.size());
  answer.refused.assign(scales.size(), 0);
  answer.q.assign(offer.codes.size(), 0);
  for (int64_t b = 0; b < blocks; ++b) {
    if (offer.scales[b] != 0) {
      scales[b] = ReadBlock(offer, b, own, scales[b].refusals, answer);
    }
    answer.next_scales[b] = scales[b].e;
  }
  return answer;
}

void FollowScales(const ModAnswer& answer, absl::Span<BlockScale> scales) {
  DFL_CHECK(answer.scales.size() == scales.size());
  for (size_t b = 0; b < scales.size(); ++b) {
    if (answer.scales[b] != 0) {
      const int refusals = scales[b].refusals + 1;
      scales[b].refusals =
          answer.refused[b] != 0
              ? static_cast<uint8_t>(std::min(kMostRefusals, refusals))
              : 0;
    }
    if (answer.next_scales[b] != 0) scales[b].e = answer.next_scales[b];
  }
}

FlatVector ModDifference(const ModAnswer& answer) {
  const ModSpec& spec = answer.spec;
  FlatVector difference(static_cast<size_t>(answer.n), 0.0F);
  Block block;
  alignas(64) std::array<int32_t, kModBlock> steps;
  for (size_t b = 0; b < answer.scales.size(); ++b) {
    if (answer.scales[b] == 0) continue;
    const int16_t* const q = answer.q.data() + b * spec.block;
    std::copy(q, q + spec.block, steps.begin());
    Hadamard(steps.data(), spec.block);
    BeginBlock(spec, answer.seed, static_cast<int64_t>(b), block);
    const double factor =
        ModSpacing(spec, answer.scales[b]) * InverseRoot(spec.block);
    const size_t begin = b * static_cast<size_t>(spec.block);
    const size_t end = std::min(difference.size(), begin + spec.block);
    for (size_t l = begin; l < end; ++l) {
      const auto p = static_cast<int>(l - begin);
      const auto value =
          static_cast<float>(static_cast<double>(steps[p]) * factor);
      difference[l] = WithSign(value, SignBit(block, p));
    }
  }
  return difference;
}

uint16_t ModCheck(int modulus, absl::Span<const int32_t> k) {
  const double inverse_modulus = 1 / static_cast<double>(modulus);
  uint32_t sum = 0;
  for (size_t p = 0; p < k.size(); ++p) {
    sum += CheckWeights()[p] *
           static_cast<uint32_t>(FloorOf(k[p], inverse_modulus));
  }
  return static_cast<uint16_t>(sum >> 16);
}

std::vector<double> ModDither(uint64_t seed, int64_t count) {
  std::vector<double> u;
  for (int64_t q = 0; q < count; ++q) {
    u.push_back(DitherOf(Output(seed, 0), static_cast<uint64_t>(q)));
  }
  return u;
}

std::vector<int> ModSigns(uint64_t seed, int64_t count) {
  std::vector<int> signs;
  for (int64_t q = 0; q < count; ++q) {
    const uint64_t word =
        Output(Output(seed, 1), static_cast<uint64_t>(q / 64));
    signs.push_back(((word >> (q % 64)) & 1) != 0 ? -1 : 1);
  }
  return signs;
}

}  // namespace dfl::core
