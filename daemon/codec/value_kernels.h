// The loops over values of one format, in vectors (Highway): rounding.h many
// values at a time. value_code.h chooses among them by the format.
//
// Dispatch. value_kernels.cc is compiled once for each instruction set that
// Highway knows on the platform (x86-64: SSSE3, SSE4, AVX2, AVX-512; arm64:
// NEON), and once in plain C++ for processors that have none of them. At the
// first call Highway asks the processor what it has; from then on a call costs
// one jump through a table. hwy::SetSupportedTargetsForTest() chooses by hand.
//
// All give the same bits: integer operations, and the same IEEE operations on
// the same operands as rounding.h. Vectors never change the order of a sum,
// because there are no sums: only maxima, which have no order.
//
// `values` on the sender's side are finite; bytes at `code` may lie anywhere.
#ifndef DFL_CODEC_VALUE_KERNELS_H_
#define DFL_CODEC_VALUE_KERNELS_H_

#include <cstddef>
#include <cstdint>

namespace dfl::codec::kernels {

// The bits of the largest magnitude: of `count` float32, or of as many 16-bit
// numbers with the sign in the top bit. Infinite and NaN count as the largest.
uint32_t LargestBits32(const char* values, size_t count);
uint32_t LargestBits16(const char* values, size_t count);

// counts[k] += 1.
void AddOnes(int32_t* counts, size_t count);

// Codes of `count` values, the first of which is sent value q.
struct Rounding {
  uint64_t seed = 0;
  uint64_t q = 0;
};
void EncodeFp16(Rounding rounding, const float* values, size_t count,
                char* codes);
void EncodeBf16(Rounding rounding, const float* values, size_t count,
                char* codes);
// scale > 0; |values / scale| <= 126.
void EncodeInt8(Rounding rounding, float scale, const float* values,
                size_t count, char* codes);

void DecodeFp16(const char* codes, size_t count, float* values);
void DecodeBf16(const char* codes, size_t count, float* values);
void DecodeInt8(float scale, const char* codes, size_t count, float* values);

// Where the differences to `own` go; `out` may be `own` itself.
struct Sink {
  enum class Mode {
    kSet,   // out[k] = weight * difference
    kAdd,   // out[k] += weight * difference
    kMove,  // out[k] = own[k] + weight * difference; if that is 0, own[k] with
            // every bit, that of -0 too
  };
  const float* own = nullptr;
  float weight = 0;
  float* out = nullptr;
  Mode mode = Mode::kSet;
};
void DifferencesFp32(const char* codes, size_t count, const Sink& sink);
void DifferencesFp16(Rounding rounding, const char* codes, size_t count,
                     const Sink& sink);
void DifferencesBf16(Rounding rounding, const char* codes, size_t count,
                     const Sink& sink);
// scale > 0.
void DifferencesInt8(Rounding rounding, float scale, const char* codes,
                     size_t count, const Sink& sink);

}  // namespace dfl::codec::kernels

#endif  // DFL_CODEC_VALUE_KERNELS_H_
