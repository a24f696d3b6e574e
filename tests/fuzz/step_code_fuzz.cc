// Increments of replicas in a few bits each (daemon/codec/step_code.h). The
// first bytes say how many bits and vectors, and of what length.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "daemon/base/check.h"
#include "daemon/codec/step_code.h"
#include "daemon/core/vector/step_codes.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/pieces.h"

namespace dfl::fuzz {
namespace {

// The steps of all blocks, as they stand in `bytes`.
std::vector<float> StepsIn(const core::StepCodes& codes, int64_t n,
                           const std::string& bytes) {
  std::vector<float> steps;
  size_t at = 0;
  for (int vector = 0; vector < codes.vectors; ++vector) {
    for (int64_t begin = 0; begin < n; begin += core::kStepBlock) {
      float step;
      std::memcpy(&step, &bytes[at], sizeof(step));
      steps.push_back(step);
      at += static_cast<size_t>(codec::StepCodeBytes(
          codes.bits, 1, std::min(core::kStepBlock, n - begin)));
    }
  }
  return steps;
}

}  // namespace

DFL_FUZZ_TARGET(step_code)(absl::string_view bytes) {
  Pieces pieces(bytes);
  const uint8_t form = pieces.Byte();
  const int64_t n = 1 + pieces.Number() % 600;
  core::StepCodes codes(1 + form % core::kMostStepBits,
                        1 + form / 16 % core::kMostStepVectors, n);
  std::string body(pieces.Rest());
  body.resize(static_cast<size_t>(
      codec::StepCodeBytes(codes.bits, codes.vectors, n * codes.vectors)));
  const absl::Status decoded = codec::DecodeSteps(
      codes.bits, codes.vectors, body, absl::MakeSpan(codes.values));
  if (!decoded.ok()) return;
  for (const float value : codes.values) DFL_CHECK(std::isfinite(value));
  codes.steps = StepsIn(codes, n, body);
  DFL_CHECK(codec::EncodeSteps(codes) == body);
}

}  // namespace dfl::fuzz
