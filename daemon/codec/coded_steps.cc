#include "daemon/codec/coded_steps.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/codec/small_integers.h"

namespace dfl::codec {
namespace {

using core::kStepBlock;

constexpr char kEach = 0;
constexpr char kOneForAll = 1;

void AppendStep(float step, std::string* bytes) {
  char raw[sizeof(step)];
  std::memcpy(raw, &step, sizeof(step));
  bytes->append(raw, sizeof(step));
}

// Calls block(its step, first value, count) for each block of all vectors.
template <typename Block>
void ForEachBlock(int vectors, int64_t n, absl::Span<const float> steps,
                  Block block) {
  const int64_t length = n / vectors;
  size_t at = 0;
  for (int64_t q = 0; q < vectors; ++q) {
    for (int64_t begin = 0; begin < length; begin += kStepBlock) {
      block(steps[at++], q * length + begin,
            std::min(kStepBlock, length - begin));
    }
  }
}

// Takes one vector's steps from the front of `bytes`.
absl::Status TakeSteps(int64_t count, absl::string_view* bytes,
                       std::vector<float>* steps) {
  const char kind = bytes->empty() ? kEach : bytes->front();
  if (kind != kEach && kind != kOneForAll) {
    return absl::InvalidArgumentError(absl::StrCat(
        "steps of the kind ", static_cast<int>(kind), "; allowed: 0 and 1"));
  }
  const int64_t here = kind == kOneForAll ? 1 : count;
  if (static_cast<int64_t>(bytes->size()) < 1 + 4 * here) {
    return absl::InvalidArgumentError(
        absl::StrCat("the steps take ", bytes->size(), " bytes; ", 1 + 4 * here,
                     " are needed"));
  }
  for (int64_t i = 0; i < here; ++i) {
    float step;
    std::memcpy(&step, bytes->data() + 1 + 4 * i, sizeof(step));
    // "Not within" also catches NaN.
    const bool in_range = step >= core::kLeastStep && step <= core::kMostStep;
    if (!in_range && !(step == 0 && !std::signbit(step))) {
      return absl::InvalidArgumentError(absl::StrCat(
          "step ", i, " is ", step, "; allowed: 0, or from 2^-100 to 2^100"));
    }
    steps->insert(steps->end(), static_cast<size_t>(count / here), step);
  }
  bytes->remove_prefix(static_cast<size_t>(1 + 4 * here));
  return absl::OkStatus();
}

}  // namespace

int64_t LeastCodedStepBytes(int vectors, int64_t /*n*/) { return 5 * vectors; }

int64_t MostCodedStepBytes(int vectors, int64_t n) {
  return vectors * (1 + 4 * core::StepCount(n / vectors)) +
         MostSmallIntegerBytes(n);
}

std::string EncodeCodedSteps(const core::StepCodes& codes) {
  const auto n = static_cast<int64_t>(codes.values.size());
  const int64_t blocks = core::StepCount(n / codes.vectors);
  std::string bytes;
  for (int64_t q = 0; q < codes.vectors; ++q) {
    const auto first = codes.steps.begin() + q * blocks;
    const bool one = std::all_of(first, first + blocks,
                                 [&](float step) { return step == *first; });
    bytes.push_back(one ? kOneForAll : kEach);
    std::for_each(first, one ? first + 1 : first + blocks,
                  [&](float step) { AppendStep(step, &bytes); });
  }
  std::vector<int16_t> integers;
  integers.reserve(codes.values.size());
  ForEachBlock(codes.vectors, n, codes.steps,
               [&](float step, int64_t begin, int64_t count) {
                 if (step == 0) return;
                 for (int64_t l = begin; l < begin + count; ++l) {
                   integers.push_back(static_cast<int16_t>(std::nearbyint(
                       codes.values[l] / static_cast<double>(step) - 0.5)));
                 }
               });
  return bytes + EncodeSmallIntegers(integers, Centre::kMinusHalf);
}

absl::Status DecodeCodedSteps(int bits, int vectors, absl::string_view bytes,
                              absl::Span<float> out) {
  const auto n = static_cast<int64_t>(out.size());
  std::vector<float> steps;
  for (int q = 0; q < vectors; ++q) {
    DFL_RETURN_IF_ERROR(
        TakeSteps(core::StepCount(n / vectors), &bytes, &steps));
  }
  int64_t coded = 0;
  ForEachBlock(vectors, n, steps, [&](float step, int64_t, int64_t count) {
    if (step != 0) coded += count;
  });
  std::vector<int16_t> integers(static_cast<size_t>(coded));
  DFL_RETURN_IF_ERROR(DecodeSmallIntegers(bytes, absl::MakeSpan(integers)));
  const int32_t half = int32_t{1} << (bits - 1);
  for (const int16_t code : integers) {
    if (code < -half || code >= half) {
      return absl::InvalidArgumentError(
          absl::StrCat("the code ", code, " does not fit ", bits, " bits"));
    }
  }
  auto next = integers.begin();
  ForEachBlock(vectors, n, steps,
               [&](float step, int64_t begin, int64_t count) {
                 for (int64_t l = begin; l < begin + count; ++l) {
                   out[l] = step == 0 ? 0 : core::StepValue(*next++, step);
                 }
               });
  return absl::OkStatus();
}

}  // namespace dfl::codec
