// Offers and answers in `mod` (core/vector/mod_code.h) as bytes. All numbers
// are little-endian; the modulus M, n and the seed are in the message's header.
//
// Offer, 12 bytes and about 0.4 n of them:
//   window   8 bytes, fp64: w
//   number   4 bytes: o
//   scales   1 byte a block: e
//   checks   2 bytes for each block with a scale
//   digits   k mod M of these blocks, in order
//
//   M a power of two: log2(M) bits each, the first one lowest. Else 64-bit
//   words of D digits, the first one least, D the most with M^D <= 2^64.
//
// Answer, 28 bytes and about 0.25 n of them:
//   window   8 bytes, fp64: w
//   gamma    8 bytes, fp64
//   beta     8 bytes, fp64
//   number   4 bytes: o
//   scales   1 byte a block: e of the offer
//   next     1 byte a block: e'
//   refused  1 bit a block, the first one lowest
//   q        of the blocks with a scale: small_integers.h
#ifndef DFL_CODEC_MOD_BODY_H_
#define DFL_CODEC_MOD_BODY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/core/vector/mod_code.h"

namespace dfl::codec {

// What a message's header says of its body.
struct ModLayout {
  int modulus = 8;  // in [4, 256]
  int64_t n = 0;
  uint64_t seed = 0;
};

// The bounds of what an offer or an answer of `n` values takes.
int64_t LeastOfferBytes(int64_t n);
int64_t MostOfferBytes(int modulus, int64_t n);
int64_t LeastAnswerBytes(int64_t n);
int64_t MostAnswerBytes(int64_t n);

// Requires blocks of 256.
std::string EncodeOffer(const core::ModOffer& offer);
std::string EncodeAnswer(const core::ModAnswer& answer);

// Errors: INVALID_ARGUMENT  the length is not what the scales ask for, w is not
// in (0, 64], a digit or q is beyond M, or unused bits are set.
absl::StatusOr<core::ModOffer> DecodeOffer(const ModLayout& layout,
                                           absl::string_view bytes);
// The same, and gamma is not in (0, 1) or beta not in [0, 2^40].
absl::StatusOr<core::ModAnswer> DecodeAnswer(const ModLayout& layout,
                                             absl::string_view bytes);

// The digits alone, each below `modulus`.
int64_t DigitBytes(int modulus, int64_t count);
void AppendDigits(int modulus, absl::Span<const uint8_t> digits,
                  std::string* bytes);
// `bytes` has the length that DigitBytes gives.
// Errors: INVALID_ARGUMENT  a word is too large, or padding is not 0.
absl::Status ReadDigits(int modulus, absl::string_view bytes,
                        absl::Span<uint8_t> digits);

}  // namespace dfl::codec

#endif  // DFL_CODEC_MOD_BODY_H_
