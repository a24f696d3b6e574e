// What a neighbour is known to have received: the vector against which the
// top-k format ranks coordinates. There is one for each directed edge. Messages
// carry values, not differences. A reference that lags, because a message was
// lost or an acknowledgement is late, only makes the choice of coordinates
// poorer.
//
// Thread-compatible.
#ifndef DFL_CODEC_EDGE_REFERENCE_H_
#define DFL_CODEC_EDGE_REFERENCE_H_

#include <cstdint>

#include "absl/types/span.h"
#include "daemon/base/aligned_vector.h"
#include "daemon/codec/encoder.h"

namespace dfl::codec {

class EdgeReference {
 public:
  // All zero, of length n: nothing was sent yet.
  explicit EdgeReference(int64_t n);

  // [n], for EncoderInput::reference.
  absl::Span<const float> values() const { return values_; }

  // The neighbour has acknowledged the message that carried `sent`.
  void Commit(const SentValues& sent);

 private:
  FlatVector values_;
};

}  // namespace dfl::codec

#endif  // DFL_CODEC_EDGE_REFERENCE_H_
