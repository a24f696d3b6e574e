#include "daemon/core/vector/message_format.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "daemon/base/check.h"

namespace dfl::core {

std::string ToString(Coordinates coordinates) {
  switch (coordinates) {
    case Coordinates::kDense:
      return "dense";
    case Coordinates::kRandom:
      return "random";
    case Coordinates::kTopK:
      return "topk";
  }
  return "unknown";
}

std::string ToString(ValueType values) {
  switch (values) {
    case ValueType::kFp32:
      return "fp32";
    case ValueType::kFp16:
      return "fp16";
    case ValueType::kBf16:
      return "bf16";
    case ValueType::kInt8:
      return "int8";
    case ValueType::kSteps:
      return "steps";
    case ValueType::kMod:
      return "mod";
    case ValueType::kModAnswer:
      return "mod-answer";
    case ValueType::kCodedSteps:
      return "coded-steps";
  }
  return "unknown";
}

bool IsSteps(ValueType values) {
  return values == ValueType::kSteps || values == ValueType::kCodedSteps;
}

bool IsMod(ValueType values) {
  return values == ValueType::kMod || values == ValueType::kModAnswer;
}

absl::StatusOr<Coordinates> ParseCoordinates(absl::string_view text) {
  for (const Coordinates c :
       {Coordinates::kDense, Coordinates::kRandom, Coordinates::kTopK}) {
    if (text == ToString(c)) return c;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "\"", text, "\" is no coordinate format; allowed: dense, random, topk"));
}

absl::StatusOr<ValueType> ParseValueType(absl::string_view text) {
  for (const ValueType v : {ValueType::kFp32, ValueType::kFp16,
                            ValueType::kBf16, ValueType::kInt8}) {
    if (text == ToString(v)) return v;
  }
  if (text == ToString(ValueType::kMod)) {
    return absl::InvalidArgumentError(
        "mod is no format of the plan: it is read against the receiver's own "
        "model, at scales that both ends of an exchange keep, and gossip-nids "
        "alone keeps them (and always uses it); allowed: fp32, fp16, bf16, "
        "int8");
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "\"", text, "\" is no value format; allowed: fp32, fp16, bf16, int8"));
}

int64_t SentCoordinates(double rate, int64_t n) {
  DFL_CHECK(n >= 1 && rate > 0 && rate <= 1);
  const auto s =
      static_cast<int64_t>(std::floor(rate * static_cast<double>(n) + 0.5));
  return std::clamp<int64_t>(s, 1, n);
}

}  // namespace dfl::core
