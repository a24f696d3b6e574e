// Which s of n values are the largest: the choice of a top-k message.
#ifndef DFL_CODEC_SELECTION_H_
#define DFL_CODEC_SELECTION_H_

#include <cstdint>

#include "absl/types/span.h"

namespace dfl::codec {

// Sets bit l & 63 of words[l >> 6] for the s coordinates l with the largest
// |values[l] - reference[l]|, ties to the lower coordinate. `reference` is
// empty (all zero) or has values.size() entries; all are finite. `words` are 0.
// Requires 1 <= s <= n.
//
// A sample of n/128 values, drawn evenly, gives two bounds between which the
// s-th largest lies all but surely. One pass then marks what is above them, and
// lists what lies between: about 1 % of 10 million values. The rest is chosen
// from those by sorting in part. Where the sample was misleading, which is
// seen, two more passes count instead. The result depends on the values alone.
//
// Memory during the call: less than n/4 bytes and 4 MB.
void MarkLargest(absl::Span<const float> values,
                 absl::Span<const float> reference, int64_t s,
                 absl::Span<uint64_t> words);

}  // namespace dfl::codec

#endif  // DFL_CODEC_SELECTION_H_
