// Small integers in as many bits as they are worth: the entropy stage for what
// is already coded in steps, such as answers in `mod` (mod_body.h) and
// increments (coded_steps.h). The decoder is total, and its work is bounded by
// the count that it is asked for.
//
// The values are cut into segments of 65,536. Each is coded by rANS (Duda 2013)
// with one of the static tables below, which both ends know, so a message of a
// few hundred values pays for no table of its own:
//
//   table    1 byte: bits 0-5 width j, bit 6 shape, bit 7 centre
//   states   4 bytes each, in [2^15, 2^31): 1 of them, or 4 from 4,096 values
//            on; value i belongs to state i mod 4
//   words    2 bytes each, in the order in which they are read
//   escapes  2 bytes for each value outside the table
//
// All numbers are little-endian. A table has the integers q of [lo, hi], whose
// weights depend on |q - c| with the centre c = 0 or -1/2 (codes without 0),
//
//   normal        exp(-(q - c)^2 / (2 s^2))
//   exponential   exp(-sqrt(2) |q - c| / s)         s = 2^(j/4 - 2), j <= 36
//
// and an escape. Weights become 4,096ths, none below 1, by + - * / and sqrt
// alone, so that every platform has the same tables.
//
// Speed: more than 200 million values a second on one core, either way
// (tests/bench/mod_bench.cc).
#ifndef DFL_CODEC_SMALL_INTEGERS_H_
#define DFL_CODEC_SMALL_INTEGERS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace dfl::codec {

// What the values lie around.
enum class Centre { kZero = 0, kMinusHalf = 1 };

// The bounds of what `count` values take.
int64_t LeastSmallIntegerBytes(int64_t count);
int64_t MostSmallIntegerBytes(int64_t count);

// Any values; those near the centre take the least.
// Cost: O(count); memory during the call: 128 KiB beside the result.
std::string EncodeSmallIntegers(absl::Span<const int16_t> values,
                                Centre centre);

// The inverse; `bytes` are all there is.
// Errors: INVALID_ARGUMENT  no encoder makes such bytes for `out.size()`
// values; `out` is undefined then.
absl::Status DecodeSmallIntegers(absl::string_view bytes,
                                 absl::Span<int16_t> out);

}  // namespace dfl::codec

#endif  // DFL_CODEC_SMALL_INTEGERS_H_
