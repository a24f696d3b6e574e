// How a model crosses the network: which coordinates, and how each value is
// written. A field of every message header, never guessed. Part of the run
// plan (`codec:`); the bytes are made in codec/.
#ifndef DFL_CORE_VECTOR_MESSAGE_FORMAT_H_
#define DFL_CORE_VECTOR_MESSAGE_FORMAT_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace dfl::core {

enum class Coordinates {
  kDense = 1,   // all n
  kRandom = 2,  // s of n, uniformly without replacement, named by a seed
  kTopK = 3,    // the s with the largest |value - reference| of this edge
};

enum class ValueType {
  kFp32 = 1,
  kFp16 = 2,  // stochastic rounding
  kBf16 = 3,  // stochastic rounding
  kInt8 = 4,  // stochastic rounding, one scale for each 256 sent values
  // Increments of replicas, a few bits each (step_codes.h). Never model values.
  kSteps = 5,
  // To be read against the receiver's own vector (mod_code.h): an offer, and
  // the answer to one.
  kMod = 6,
  kModAnswer = 7,
  // As kSteps, entropy coded.
  kCodedSteps = 8,
};

struct MessageFormat {
  Coordinates coordinates = Coordinates::kDense;
  ValueType values = ValueType::kFp32;
  // kSteps and kCodedSteps only, else 0: StepCodes::bits and vectors.
  int bits = 0;
  int vectors = 0;
  // kMod and kModAnswer only, else 0: M.
  int modulus = 0;

  friend bool operator==(const MessageFormat& a, const MessageFormat& b) {
    return a.coordinates == b.coordinates && a.values == b.values &&
           a.bits == b.bits && a.vectors == b.vectors && a.modulus == b.modulus;
  }
};

// Whether the values are increments of replicas; and whether they are written
// for a receiver that has a vector of its own to read them against.
bool IsSteps(ValueType values);
bool IsMod(ValueType values);

// "dense", "random", "topk"; "fp32", "fp16", "bf16", "int8", "steps", "mod",
// "mod-answer", "coded-steps".
std::string ToString(Coordinates coordinates);
std::string ToString(ValueType values);
// For models, so "steps" is none. "mod" is refused with its reason: only
// gossip-nids keeps the scales that it needs.
// Errors: INVALID_ARGUMENT names the text found and what is allowed.
absl::StatusOr<Coordinates> ParseCoordinates(absl::string_view text);
absl::StatusOr<ValueType> ParseValueType(absl::string_view text);

// s = max(1, floor(rate n + 1/2)) for a transmission rate in (0, 1] and n >= 1.
// [PaME] sec. II, |T_j|.
int64_t SentCoordinates(double rate, int64_t n);

}  // namespace dfl::core

#endif  // DFL_CORE_VECTOR_MESSAGE_FORMAT_H_
