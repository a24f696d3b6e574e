// Every instruction set of this machine gives the bits of the scalar form.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/checksum.h"
#include "daemon/base/rng.h"
#include "daemon/codec/coordinate_kernels.h"
#include "daemon/codec/decoder.h"
#include "daemon/codec/rounding.h"
#include "daemon/codec/value_code.h"
#include "daemon/codec/value_kernels.h"
#include "daemon/core/vector/flat_vector.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/each_target.h"
#include "tests/unit/codec/naive_codec.h"

namespace dfl::codec {
namespace {

using kernels::Rounding;

constexpr uint64_t kSeed = 0xFEDCBA9876543210u;

// Where runs begin and how long they are: all that is left over by vectors of
// any width, and whole blocks.
struct Stretch {
  uint64_t q = 0;
  size_t count = 0;
};
std::vector<Stretch> Stretches() {
  std::vector<Stretch> runs;
  for (size_t count = 0; count <= 67; ++count) runs.push_back({count, count});
  runs.push_back({256, 256});
  runs.push_back({0xFFFFFF00u, 255});
  return runs;
}

// Finite values of all sizes, most of them where formats change: around 2^-14,
// 65504, the smallest numbers and the largest.
float Assorted(Rng* rng) {
  uint32_t bits = 0;
  switch (rng->Below(6)) {
    case 0:
      bits = static_cast<uint32_t>(rng->Next());
      break;
    case 1:  // 2^-15 to 2^-13
      bits = 0x38000000u + static_cast<uint32_t>(rng->Below(0x01000000));
      break;
    case 2:  // around 65504
      bits = 0x477F0000u + static_cast<uint32_t>(rng->Below(0x20000));
      break;
    case 3:
      bits = static_cast<uint32_t>(rng->Below(0x01000000));
      break;
    case 4:
      bits = kInfinity - 1 - static_cast<uint32_t>(rng->Below(0x20000));
      break;
    default:
      return static_cast<float>(rng->Uniform() - 0.5);
  }
  bits ^= static_cast<uint32_t>(rng->Below(2)) << 31;
  if ((bits & kInfinity) == kInfinity) bits &= kSign;
  return FromBits(bits);
}

std::vector<float> AssortedValues(size_t count, uint64_t seed) {
  Rng rng(seed);
  std::vector<float> values(count);
  for (float& v : values) v = Assorted(&rng);
  return values;
}

template <typename T>
std::string Bytes(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()),
                     values.size() * sizeof(T));
}

// Codes of `size` bytes each as a kernel writes them, at an odd address.
std::string Codes(size_t count, size_t size,
                  const std::function<void(char*)>& encode) {
  std::string bytes(count * size + 1, '\0');
  encode(&bytes[1]);
  return bytes.substr(1);
}

TEST(Targets, TheMachineHasSome) {
  EXPECT_FALSE(hwy::SupportedAndGeneratedTargets().empty());
}

TEST(Targets, EncodeHalves) {
  for (const Stretch& run : Stretches()) {
    const std::vector<float> values = AssortedValues(run.count, run.count);
    std::vector<uint16_t> fp16;
    std::vector<uint16_t> bf16;
    for (size_t k = 0; k < run.count; ++k) {
      const uint32_t draw = RoundingDraw(kSeed, run.q + k);
      fp16.push_back(PackFp16(RoundFp16(values[k], draw)));
      bf16.push_back(PackBf16(RoundBf16(values[k], draw)));
    }
    ForEachTarget([&] {
      const Rounding rounding{kSeed, run.q};
      EXPECT_EQ(Codes(run.count, 2,
                      [&](char* out) {
                        kernels::EncodeFp16(rounding, values.data(), run.count,
                                            out);
                      }),
                Bytes(fp16))
          << run.count;
      EXPECT_EQ(Codes(run.count, 2,
                      [&](char* out) {
                        kernels::EncodeBf16(rounding, values.data(), run.count,
                                            out);
                      }),
                Bytes(bf16))
          << run.count;
    });
  }
}

// x with x * factor = y modulo 2^64; `factor` is odd.
uint64_t Divided(uint64_t y, uint64_t factor) {
  uint64_t inverse = factor;  // right in 3 bits, then in 6, 12, ...
  for (int i = 0; i < 5; ++i) inverse *= 2 - factor * inverse;
  return y * inverse;
}

// x with x ^ (x >> shift) = y.
uint64_t Unshifted(uint64_t y, int shift) {
  uint64_t x = y;
  for (int done = shift; done < 64; done += shift) x = y ^ (x >> shift);
  return x;
}

// A seed under which the q-th draw is the largest.
uint64_t SeedOfLargestDraw(uint64_t q) {
  uint64_t x = 0xFFFFFFFE00000000u;
  x = Unshifted(Divided(x, 0x94D049BB133111EBu), 27);
  x = Unshifted(Divided(x, 0xBF58476D1CE4E5B9u), 30);
  return x - (q + 1) * 0x9E3779B97F4A7C15u;
}

// The sum of a small value and its draw may lie so little below a whole number
// that a double cannot tell. It is then rounded up, in each lane alike.
TEST(Targets, EncodeSmallFp16WhereADoubleRoundsUp) {
  constexpr uint64_t kQ = 16;
  const uint64_t seed = SeedOfLargestDraw(kQ);
  ASSERT_EQ(RoundingDraw(seed, kQ), 0xFFFFFFFFu);
  // What is missing to one step, and a little less each time.
  float value = 0x1.0p-56F;
  int ups = 0;
  for (int i = 0; i < 16; ++i) {
    const uint16_t expected = PackFp16(RoundFp16(value, 0xFFFFFFFFu));
    ups += expected;
    const std::vector<float> same(16, value);
    ForEachTarget([&] {
      for (uint64_t lane = 0; lane < 16; ++lane) {
        const std::string codes = Codes(16, 2, [&](char* out) {
          kernels::EncodeFp16({seed, kQ - lane}, same.data(), 16, out);
        });
        EXPECT_EQ(Load<uint16_t>(&codes[2 * lane]), expected)
            << value << " in lane " << lane;
      }
    });
    value = std::nextafter(value, 0.0F);
  }
  // Only the first reaches the step, but more are rounded up to it.
  EXPECT_GT(ups, 1);
  EXPECT_LT(ups, 16);
}

TEST(Targets, EncodeInt8) {
  for (const Stretch& run : Stretches()) {
    std::vector<float> values =
        NormalValues(static_cast<int64_t>(run.count), 0.1F, run.count + 1);
    float largest = 1e-20F;
    for (const float v : values) largest = std::max(largest, std::fabs(v));
    const float scale = largest / kInt8Steps;
    const double inverse = 1.0 / static_cast<double>(scale);
    std::vector<int8_t> expected;
    for (size_t k = 0; k < run.count; ++k) {
      expected.push_back(static_cast<int8_t>(
          RoundSteps(static_cast<double>(values[k]) * inverse,
                     RoundingDraw(kSeed, run.q + k))));
    }
    ForEachTarget([&] {
      EXPECT_EQ(Codes(run.count, 1,
                      [&](char* out) {
                        kernels::EncodeInt8({kSeed, run.q}, scale,
                                            values.data(), run.count, out);
                      }),
                Bytes(expected))
          << run.count;
    });
  }
}

TEST(Targets, DecodeEveryCode) {
  std::string fp16;
  std::string bf16;
  std::vector<float> from_fp16;
  std::vector<float> from_bf16;
  for (uint32_t code = 0; code < 0x10000; ++code) {
    char bytes[2];
    Store(static_cast<uint16_t>(code), bytes);
    if ((code & 0x7C00) != 0x7C00) {
      fp16.append(bytes, 2);
      from_fp16.push_back(UnpackFp16(static_cast<uint16_t>(code)));
    }
    if ((code & 0x7F80) != 0x7F80) {
      bf16.append(bytes, 2);
      from_bf16.push_back(UnpackBf16(static_cast<uint16_t>(code)));
    }
  }
  std::string int8;
  std::vector<float> from_int8;
  for (int code = -128; code < 128; ++code) {
    int8.push_back(static_cast<char>(code));
    from_int8.push_back(static_cast<float>(code) * 0.0123F);
  }
  ForEachTarget([&] {
    std::vector<float> values(from_fp16.size());
    kernels::DecodeFp16(fp16.data(), values.size(), values.data());
    EXPECT_EQ(Bytes(values), Bytes(from_fp16));
    values.resize(from_bf16.size());
    kernels::DecodeBf16(bf16.data(), values.size(), values.data());
    EXPECT_EQ(Bytes(values), Bytes(from_bf16));
    values.resize(from_int8.size());
    kernels::DecodeInt8(0.0123F, int8.data(), values.size(), values.data());
    EXPECT_EQ(Bytes(values), Bytes(from_int8));
  });
}

// What each kernel adds, or sets, beside what the scalar form says.
void ExpectDifferences(const Stretch& run, const std::vector<float>& own,
                       const std::function<void(const kernels::Sink&)>& kernel,
                       const std::function<float(size_t)>& difference) {
  constexpr float kWeight = 0.3F;
  const std::vector<float> before =
      NormalValues(static_cast<int64_t>(run.count), 1.0F, 3);
  using Mode = kernels::Sink::Mode;
  for (const Mode mode : {Mode::kSet, Mode::kAdd, Mode::kMove}) {
    std::vector<float> expected = before;
    for (size_t k = 0; k < run.count; ++k) {
      const float moved = kWeight * difference(k);
      if (mode == Mode::kSet) expected[k] = moved;
      if (mode == Mode::kAdd) expected[k] += moved;
      if (mode == Mode::kMove) {
        expected[k] = moved == 0 ? own[k] : own[k] + moved;
      }
    }
    ForEachTarget([&] {
      std::vector<float> out = before;
      kernel({own.data(), kWeight, out.data(), mode});
      EXPECT_EQ(Bytes(out), Bytes(expected))
          << run.count << " mode " << static_cast<int>(mode);
      if (mode != Mode::kMove) return;
      // In place.
      out = own;
      kernel({out.data(), kWeight, out.data(), mode});
      EXPECT_EQ(Bytes(out), Bytes(expected)) << run.count << " in place";
    });
  }
}

TEST(Targets, DifferencesOfFloats) {
  for (const Stretch& run : Stretches()) {
    const std::vector<float> own = AssortedValues(run.count, 7);
    const std::vector<float> remote = AssortedValues(run.count, 8);
    const std::string codes = '\1' + Bytes(remote);
    ExpectDifferences(
        run, own,
        [&](const kernels::Sink& sink) {
          kernels::DifferencesFp32(&codes[1], run.count, sink);
        },
        [&](size_t k) { return remote[k] - own[k]; });
  }
}

TEST(Targets, DifferencesOfHalves) {
  Rng rng(9);
  for (const Stretch& run : Stretches()) {
    const Rounding rounding{kSeed, run.q};
    // Some are equal, some beyond fp16 on either side.
    std::vector<float> own = AssortedValues(run.count, run.count + 10);
    std::vector<uint16_t> fp16;
    std::vector<uint16_t> bf16;
    for (size_t k = 0; k < run.count; ++k) {
      const uint32_t draw = RoundingDraw(kSeed, run.q + k);
      const float remote = rng.Bernoulli(0.3) ? own[k] : Assorted(&rng);
      fp16.push_back(PackFp16(RoundFp16(remote, draw)));
      bf16.push_back(PackBf16(RoundBf16(remote, draw)));
    }
    if (run.count > 0) own[run.count / 2] = HUGE_VALF;
    const std::string fp16_codes = '\1' + Bytes(fp16);
    const std::string bf16_codes = '\1' + Bytes(bf16);
    ExpectDifferences(
        run, own,
        [&](const kernels::Sink& sink) {
          kernels::DifferencesFp16(rounding, &fp16_codes[1], run.count, sink);
        },
        [&](size_t k) {
          return DifferenceFp16(fp16[k], own[k],
                                RoundingDraw(kSeed, run.q + k));
        });
    ExpectDifferences(
        run, own,
        [&](const kernels::Sink& sink) {
          kernels::DifferencesBf16(rounding, &bf16_codes[1], run.count, sink);
        },
        [&](size_t k) {
          return DifferenceBf16(bf16[k], own[k],
                                RoundingDraw(kSeed, run.q + k));
        });
  }
}

TEST(Targets, DifferencesOfInt8) {
  Rng rng(11);
  // With own values near, far out, and at the bound between the two.
  for (const float scale : {0.01F, 1e-30F, kSmallestScale, 0x1.0p100F}) {
    const double inverse = 1.0 / static_cast<double>(scale);
    for (const Stretch& run : Stretches()) {
      std::vector<float> own(run.count);
      std::string codes(1, '\1');
      for (float& v : own) {
        const double steps = rng.Bernoulli(0.9)
                                 ? 300 * (rng.Uniform() - 0.5)
                                 : kFarOut + 4 * (rng.Uniform() - 0.5);
        v = static_cast<float>(steps * static_cast<double>(scale));
        if (rng.Bernoulli(0.02)) v = Assorted(&rng);
        codes.push_back(static_cast<char>(rng.Below(256)));
      }
      ExpectDifferences(
          run, own,
          [&](const kernels::Sink& sink) {
            kernels::DifferencesInt8({kSeed, run.q}, scale, &codes[1],
                                     run.count, sink);
          },
          [&](size_t k) {
            return DifferenceInt8(static_cast<int8_t>(codes[k + 1]), scale,
                                  inverse, own[k],
                                  RoundingDraw(kSeed, run.q + k));
          });
    }
  }
}

TEST(Targets, LargestMagnitudes) {
  for (size_t count = 0; count < 300; ++count) {
    std::vector<float> values = AssortedValues(count, count);
    // Alone in each place, where nothing else can hide it.
    if (count > 0) values[count * 7 % count] = -HUGE_VALF;
    std::vector<uint16_t> halves;
    uint32_t most = 0;
    uint32_t most_of_halves = 0;
    for (const float v : values) {
      most = std::max(most, Bits(v) & kMagnitude);
      halves.push_back(PackBf16(v));
      most_of_halves =
          std::max<uint32_t>(most_of_halves, halves.back() & 0x7FFFu);
    }
    const std::string bytes = '\1' + Bytes(values);
    const std::string half_bytes = '\1' + Bytes(halves);
    ForEachTarget([&] {
      EXPECT_EQ(kernels::LargestBits32(&bytes[1], count), most);
      EXPECT_EQ(kernels::LargestBits16(&half_bytes[1], count), most_of_halves);
    });
  }
}

TEST(Targets, OnesAreAdded) {
  for (size_t count = 0; count < 70; ++count) {
    std::vector<int32_t> expected(count);
    for (size_t k = 0; k < count; ++k) expected[k] = static_cast<int32_t>(k);
    std::vector<int32_t> before = expected;
    for (int32_t& c : expected) c += 1;
    ForEachTarget([&] {
      std::vector<int32_t> counts = before;
      kernels::AddOnes(counts.data(), count);
      EXPECT_EQ(counts, expected);
    });
  }
}

TEST(Targets, BitsAreTakenInOrder) {
  Rng rng(12);
  for (const double share : {0.001, 0.1, 0.5, 0.98}) {
    std::vector<uint64_t> words(50);
    std::vector<uint32_t> members;
    for (uint32_t l = 0; l < words.size() * 64; ++l) {
      if (!rng.Bernoulli(share)) continue;
      words[l >> 6] |= uint64_t{1} << (l & 63);
      members.push_back(l);
    }
    ForEachTarget([&] {
      EXPECT_EQ(kernels::CountBits(words.data(), words.size()),
                static_cast<int64_t>(members.size()));
      for (const size_t step : {1, 3, 8, 29, 256}) {
        kernels::BitCursor cursor;
        cursor.bits = words[0];
        std::vector<uint32_t> taken(members.size());
        for (size_t at = 0; at < taken.size(); at += step) {
          kernels::TakeBits(words.data(), &cursor,
                            std::min(step, taken.size() - at), &taken[at]);
        }
        EXPECT_EQ(taken, members) << share << " in steps of " << step;
      }
    });
  }
}

// Whole messages of every format, mixed by either rule: one checksum of all.
TEST(Targets, MessagesAndModelsAreTheSame) {
  constexpr int64_t kN = 70'003;
  std::vector<std::string> results;
  ForEachTarget([&] {
    uint32_t sum = 0;
    const auto add = [&sum](const std::string& bytes) {
      sum = ExtendCrc32c(sum, bytes);
    };
    for (const core::MessageFormat& format : AllFormats()) {
      std::vector<std::unique_ptr<DecodedMessage>> messages;
      std::vector<core::RemoteVector*> all;
      std::vector<core::WeightedVector> weighted;
      for (uint64_t seed = 1; seed <= 3; ++seed) {
        const std::vector<float> values = NormalValues(kN, 0.1F, seed);
        EncoderInput input;
        input.format = format;
        input.sent = kN / 10;
        input.seed = seed;
        input.values = values;
        const Message message = EncodeWhole(input);
        add(message.header + message.body);
        auto opened = OpenWhole(message, kN, 0);
        ASSERT_TRUE(opened.ok()) << opened.status();
        messages.push_back(*std::move(opened));
        all.push_back(messages.back().get());
        weighted.push_back({all.back(), 0.2});
      }
      std::vector<float> own = NormalValues(kN, 0.1F, 4);
      core::PartialMean(all, absl::MakeSpan(own));
      add(Bytes(own));
      core::MixDifferences(weighted, absl::MakeSpan(own));
      add(Bytes(own));
      core::PartialMean({all[0]}, absl::MakeSpan(own));
      add(Bytes(own));
    }
    results.push_back(absl::StrCat(sum));
  });
  for (const std::string& result : results) EXPECT_EQ(result, results[0]);
}

}  // namespace
}  // namespace dfl::codec
