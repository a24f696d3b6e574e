// The loops over bitmaps of coordinates, for each instruction set; see
// value_kernels.h for the dispatch. coordinate_set.h is what uses them.
#ifndef DFL_CODEC_COORDINATE_KERNELS_H_
#define DFL_CODEC_COORDINATE_KERNELS_H_

#include <cstddef>
#include <cstdint>

namespace dfl::codec::kernels {

// How many bits of `count` words are set.
int64_t CountBits(const uint64_t* words, size_t count);

// A place in a bitmap: bits() of word(), and all words after it.
struct BitCursor {
  size_t word = 0;
  uint64_t bits = 0;  // of that word, those not taken yet
};
// Writes the numbers of the next `count` set bits, which must exist.
void TakeBits(const uint64_t* words, BitCursor* cursor, size_t count,
              uint32_t* out);

// What lies between two bounds, in increasing order of the coordinate.
struct Candidates {
  uint32_t* coordinates = nullptr;
  uint32_t* magnitudes = nullptr;
  size_t count = 0;
  size_t room = 0;
};
// For the 64 coordinates from 64 w on, of each of `count` words w: sets the
// bits of those whose magnitude |values[l] - reference[l]|, as a float's bits,
// is above `high`, and appends those from `low` to `high` to the candidates.
// `reference` may be null (all zero). Returns how many words were done: fewer
// where 64 more candidates would not fit.
size_t MarkAbove(const float* values, const float* reference, size_t count,
                 uint32_t low, uint32_t high, uint64_t* words,
                 Candidates* candidates);

}  // namespace dfl::codec::kernels

#endif  // DFL_CODEC_COORDINATE_KERNELS_H_
