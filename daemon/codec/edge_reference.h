// What a neighbour is known to have been sent: the vector that the top-k
// format ranks against, one for each directed edge. Values travel, not
// differences, so a reference that lags (a message lost, an acknowledgement
// late) costs a poorer choice of coordinates and nothing else.
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
