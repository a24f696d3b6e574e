#include "daemon/codec/value_code.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "daemon/base/check.h"
#include "daemon/base/rng.h"
#include "daemon/codec/rounding.h"
#include "daemon/codec/value_kernels.h"

namespace dfl::codec {
namespace {

using core::ValueType;

constexpr int64_t kInt8BlockBytes = 4 + kBlock;

float BlockScale(absl::Span<const float> values) {
  const float largest = FromBits(kernels::LargestBits32(
      reinterpret_cast<const char*>(values.data()), values.size()));
  if (largest == 0) return 0;
  return std::max(largest / kInt8Steps, kSmallestScale);
}

void EncodeInt8(kernels::Rounding rounding, absl::Span<const float> values,
                char* out) {
  const float scale = BlockScale(values);
  Store(scale, out);
  if (scale == 0) {
    std::memset(out + 4, 0, values.size());
    return;
  }
  kernels::EncodeInt8(rounding, scale, values.data(), values.size(), out + 4);
}

absl::Status NotFinite(int64_t q, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("sent value ", q, " ", what,
                                                 "; only finite values are "
                                                 "taken"));
}

// The first of `count` values of T whose magnitude has all bits of `exponent`,
// or -1.
template <typename T>
int64_t FirstNotFinite(const char* values, int64_t count, T exponent) {
  // Looked for one by one only where a run has one.
  constexpr int64_t kRun = 4096;
  constexpr auto kSize = static_cast<int64_t>(sizeof(T));
  for (int64_t begin = 0; begin < count; begin += kRun) {
    const int64_t end = std::min(count, begin + kRun);
    const auto length = static_cast<size_t>(end - begin);
    const uint32_t largest =
        sizeof(T) == 4 ? kernels::LargestBits32(values + kSize * begin, length)
                       : kernels::LargestBits16(values + kSize * begin, length);
    if (largest < exponent) continue;
    for (int64_t q = begin; q < end; ++q) {
      if ((Load<T>(values + kSize * q) & exponent) == exponent) return q;
    }
  }
  return -1;
}

const char* Int8Block(const char* values, int64_t q) {
  return values + q / kBlock * kInt8BlockBytes;
}

// The values of a vector that starts at coordinate `begin`, side by side: so
// only what came is touched, and that in vectors.
void Gather(const ValueRun& run, const float* from, int64_t begin, float* to) {
  for (size_t k = 0; k < static_cast<size_t>(run.count); ++k) {
    to[k] = from[run.coordinates[k] - static_cast<uint32_t>(begin)];
  }
}

// The differences of a run, to the sink's own values side by side.
void WeighDifferences(core::ValueType type, const ValueRun& run,
                      const kernels::Sink& sink) {
  const auto count = static_cast<size_t>(run.count);
  const kernels::Rounding rounding{run.rounding_seed,
                                   static_cast<uint64_t>(run.q)};
  switch (type) {
    case ValueType::kFp32:
      kernels::DifferencesFp32(run.values + 4 * run.q, count, sink);
      return;
    case ValueType::kFp16:
      kernels::DifferencesFp16(rounding, run.values + 2 * run.q, count, sink);
      return;
    case ValueType::kBf16:
      kernels::DifferencesBf16(rounding, run.values + 2 * run.q, count, sink);
      return;
    case ValueType::kInt8: {
      const char* const block = Int8Block(run.values, run.q);
      const auto scale = Load<float>(block);
      if (scale == 0) {
        // All were 0, whatever the draws are.
        const std::array<float, kBlock> zeros{};
        kernels::DifferencesFp32(reinterpret_cast<const char*>(zeros.data()),
                                 count, sink);
        return;
      }
      kernels::DifferencesInt8(rounding, scale, block + 4 + run.q % kBlock,
                               count, sink);
      return;
    }
    case ValueType::kMod:
    case ValueType::kModAnswer:
    case ValueType::kCodedSteps:
    case ValueType::kSteps:
      break;
  }
  DFL_CHECK(false);
}

}  // namespace

int64_t ValueBytes(core::ValueType type, int64_t count) {
  switch (type) {
    case ValueType::kFp32:
      return 4 * count;
    case ValueType::kFp16:
    case ValueType::kBf16:
      return 2 * count;
    case ValueType::kInt8:
      return count + 4 * ((count + kBlock - 1) / kBlock);
    case ValueType::kMod:
    case ValueType::kModAnswer:
    case ValueType::kCodedSteps:
    case ValueType::kSteps:
      break;  // step_code.h
  }
  DFL_CHECK(false);
}

float LargestMagnitude(core::ValueType type) {
  return type == ValueType::kInt8 ? kLargestInt8
                                  : std::numeric_limits<float>::max();
}

uint64_t RoundingSeed(uint64_t message_seed) {
  return DeriveSeed(message_seed, "rounding");
}

void EncodeBlock(core::ValueType type, uint64_t rounding_seed, int64_t q,
                 absl::Span<const float> values, char* out) {
  DFL_CHECK(q % kBlock == 0 && !values.empty() &&
            static_cast<int64_t>(values.size()) <= kBlock);
  const kernels::Rounding rounding{rounding_seed, static_cast<uint64_t>(q)};
  switch (type) {
    case ValueType::kFp32:
      std::memcpy(out, values.data(), values.size() * 4);
      return;
    case ValueType::kFp16:
      kernels::EncodeFp16(rounding, values.data(), values.size(), out);
      return;
    case ValueType::kBf16:
      kernels::EncodeBf16(rounding, values.data(), values.size(), out);
      return;
    case ValueType::kInt8:
      EncodeInt8(rounding, values, out);
      return;
    case ValueType::kMod:
    case ValueType::kModAnswer:
    case ValueType::kCodedSteps:
    case ValueType::kSteps:
      break;
  }
  DFL_CHECK(false);
}

absl::Status CheckValues(core::ValueType type, const char* values,
                         int64_t count) {
  int64_t bad = -1;
  switch (type) {
    case ValueType::kFp32:
      bad = FirstNotFinite<uint32_t>(values, count, kInfinity);
      break;
    case ValueType::kFp16:
      bad = FirstNotFinite<uint16_t>(values, count, 0x7C00);
      break;
    case ValueType::kBf16:
      bad = FirstNotFinite<uint16_t>(values, count, 0x7F80);
      break;
    case ValueType::kInt8:
      for (int64_t q = 0; q < count; q += kBlock) {
        const auto scale = Load<float>(Int8Block(values, q));
        // "Not within" also catches NaN.
        const bool in_range =
            scale >= kSmallestScale && scale <= kLargestInt8 / kInt8Steps;
        if (!in_range && Bits(scale) != 0) {
          return absl::InvalidArgumentError(
              absl::StrCat("the scale of block ", q / kBlock, " is ", scale,
                           "; allowed: 0, or from 2^-126 to 2^126 / 126"));
        }
      }
      return absl::OkStatus();
    case ValueType::kMod:
    case ValueType::kModAnswer:
    case ValueType::kCodedSteps:
    case ValueType::kSteps:
      break;
  }
  if (bad >= 0) return NotFinite(bad, "is infinite or not a number");
  return absl::OkStatus();
}

void DecodeRun(core::ValueType type, const char* values, int64_t q,
               absl::Span<float> out) {
  switch (type) {
    case ValueType::kFp32:
      std::memcpy(out.data(), values + 4 * q, out.size() * 4);
      return;
    case ValueType::kFp16:
      kernels::DecodeFp16(values + 2 * q, out.size(), out.data());
      return;
    case ValueType::kBf16:
      kernels::DecodeBf16(values + 2 * q, out.size(), out.data());
      return;
    case ValueType::kInt8: {
      const char* const block = Int8Block(values, q);
      kernels::DecodeInt8(Load<float>(block), block + 4 + q % kBlock,
                          out.size(), out.data());
      return;
    }
    case ValueType::kMod:
    case ValueType::kModAnswer:
    case ValueType::kCodedSteps:
    case ValueType::kSteps:
      break;
  }
  DFL_CHECK(false);
}

void AddDifferences(core::ValueType type, const ValueRun& run,
                    const DifferenceSink& sink) {
  const auto count = static_cast<size_t>(run.count);
  if (run.coordinates == nullptr) {
    const int64_t offset = run.first - sink.begin;
    WeighDifferences(type, run,
                     {sink.own + offset, sink.weight, sink.sum + offset,
                      kernels::Sink::Mode::kAdd});
    if (sink.counts != nullptr) kernels::AddOnes(sink.counts + offset, count);
    return;
  }
  std::array<float, kBlock> own;
  std::array<float, kBlock> moved;
  Gather(run, sink.own, sink.begin, own.data());
  WeighDifferences(
      type, run,
      {own.data(), sink.weight, moved.data(), kernels::Sink::Mode::kSet});
  const auto begin = static_cast<uint32_t>(sink.begin);
  for (size_t k = 0; k < count; ++k) {
    sink.sum[run.coordinates[k] - begin] += moved[k];
  }
  if (sink.counts == nullptr) return;
  for (size_t k = 0; k < count; ++k) {
    sink.counts[run.coordinates[k] - begin] += 1;
  }
}

void MoveByDifferences(core::ValueType type, const ValueRun& run, float weight,
                       int64_t begin, float* own) {
  constexpr auto kMove = kernels::Sink::Mode::kMove;
  if (run.coordinates == nullptr) {
    float* const at = own + (run.first - begin);
    WeighDifferences(type, run, {at, weight, at, kMove});
    return;
  }
  std::array<float, kBlock> moved;
  Gather(run, own, begin, moved.data());
  WeighDifferences(type, run, {moved.data(), weight, moved.data(), kMove});
  for (size_t k = 0; k < static_cast<size_t>(run.count); ++k) {
    own[run.coordinates[k] - static_cast<uint32_t>(begin)] = moved[k];
  }
}

}  // namespace dfl::codec
