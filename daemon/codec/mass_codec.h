// Mass in a lossy format (core::MassCode). A parcel counts as what its receiver
// decodes, bit for bit; the giver keeps the rest.
#ifndef DFL_CODEC_MASS_CODEC_H_
#define DFL_CODEC_MASS_CODEC_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/types/span.h"
#include "daemon/core/mass/mass_ledger.h"
#include "daemon/core/vector/message_format.h"

namespace dfl::codec {

// Thread-compatible.
class MassCodec : public core::MassCode {
 public:
  // Takes effect with the next parcel; fp32 is exact. `seed` should differ
  // between nodes. Roundings are drawn from it, the receiver's name and the
  // parcel's number.
  void Set(core::ValueType values, uint64_t seed) {
    values_ = values;
    seed_ = seed;
  }

  // Cost: O(n) time. Memory during the call: n floats and the body.
  std::optional<Written> Write(const NodeId& to, uint64_t sequence,
                               absl::Span<const float> mass) const override;

 private:
  core::ValueType values_ = core::ValueType::kFp32;
  uint64_t seed_ = 0;
};

}  // namespace dfl::codec

#endif  // DFL_CODEC_MASS_CODEC_H_
