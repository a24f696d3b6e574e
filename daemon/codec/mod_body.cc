#include "daemon/codec/mod_body.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/check.h"
#include "daemon/base/status_macros.h"
#include "daemon/codec/small_integers.h"

namespace dfl::codec {
namespace {

using core::kModBlock;

constexpr int64_t kOfferHead = 8 + 4;
constexpr int64_t kAnswerHead = 3 * 8 + 4;
constexpr double kMostBeta = 0x1p40;

int64_t BlocksOf(int64_t n) { return (n + kModBlock - 1) / kModBlock; }

template <typename T>
void Append(T value, std::string* bytes) {
  char raw[sizeof(T)];
  std::memcpy(raw, &value, sizeof(T));
  bytes->append(raw, sizeof(T));
}

// Takes what it reads from the front of `bytes`, which is long enough.
template <typename T>
T Take(absl::string_view* bytes) {
  DFL_CHECK(bytes->size() >= sizeof(T));
  T value;
  std::memcpy(&value, bytes->data(), sizeof(T));
  bytes->remove_prefix(sizeof(T));
  return value;
}

std::vector<uint8_t> TakeBytes(int64_t count, absl::string_view* bytes) {
  const absl::string_view taken = bytes->substr(0, static_cast<size_t>(count));
  bytes->remove_prefix(taken.size());
  return std::vector<uint8_t>(taken.begin(), taken.end());
}

// Bits of a digit where M is a power of two; else 0.
int BitsOf(int modulus) {
  int bits = 0;
  while ((1 << bits) < modulus) ++bits;
  return (1 << bits) == modulus ? bits : 0;
}

// D, and M^D - 1.
struct Word {
  int digits = 0;
  uint64_t largest = 0;
};

Word WordOf(int modulus) {
  Word word;
  const auto m = static_cast<uint64_t>(modulus);
  while (word.largest <= (~uint64_t{0} - (m - 1)) / m) {
    word.largest = word.largest * m + (m - 1);
    ++word.digits;
  }
  return word;
}

absl::Status CheckWindow(double window) {
  if (window > 0 && window <= core::kMostWindow) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the window w is ", window,
                                                 "; allowed: above 0, up to ",
                                                 core::kMostWindow));
}

absl::Status CheckLength(absl::string_view bytes, int64_t least) {
  if (static_cast<int64_t>(bytes.size()) >= least) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the values take ", bytes.size(), " bytes; at least ", least,
                   " are needed"));
}

int64_t WithScale(const std::vector<uint8_t>& scales) {
  return static_cast<int64_t>(scales.size()) -
         std::count(scales.begin(), scales.end(), uint8_t{0});
}

// Copies the blocks with a scale of `from` [blocks B] together, or back.
template <typename T>
std::vector<T> Gather(const std::vector<uint8_t>& scales,
                      const std::vector<T>& from) {
  std::vector<T> gathered;
  gathered.reserve(static_cast<size_t>(WithScale(scales) * kModBlock));
  for (size_t b = 0; b < scales.size(); ++b) {
    if (scales[b] == 0) continue;
    const auto begin = from.begin() + static_cast<int64_t>(b) * kModBlock;
    gathered.insert(gathered.end(), begin, begin + kModBlock);
  }
  return gathered;
}

template <typename T>
std::vector<T> Scatter(const std::vector<uint8_t>& scales,
                       const std::vector<T>& gathered) {
  if (gathered.size() == scales.size() * kModBlock) return gathered;
  std::vector<T> to(scales.size() * kModBlock, T{0});
  auto from = gathered.begin();
  for (size_t b = 0; b < scales.size(); ++b) {
    if (scales[b] == 0) continue;
    std::copy(from, from + kModBlock,
              to.begin() + static_cast<int64_t>(b) * kModBlock);
    from += kModBlock;
  }
  return to;
}

absl::StatusOr<std::vector<uint8_t>> TakeRefused(int64_t blocks,
                                                 absl::string_view* bytes) {
  std::vector<uint8_t> refused(static_cast<size_t>(blocks));
  const std::vector<uint8_t> bits = TakeBytes((blocks + 7) / 8, bytes);
  for (int64_t b = 0; b < blocks; ++b) {
    refused[b] = static_cast<uint8_t>(bits[b / 8] >> (b % 8) & 1);
  }
  if (blocks % 8 != 0 && bits.back() >> (blocks % 8) != 0) {
    return absl::InvalidArgumentError(
        "bits are set behind those that say which blocks are refused");
  }
  return refused;
}

}  // namespace

// ----------------------------------------------------------------- digits ----

int64_t DigitBytes(int modulus, int64_t count) {
  if (const int bits = BitsOf(modulus); bits > 0) return (count * bits + 7) / 8;
  const int64_t digits = WordOf(modulus).digits;
  return (count + digits - 1) / digits * 8;
}

void AppendDigits(int modulus, absl::Span<const uint8_t> digits,
                  std::string* bytes) {
  const int bits = BitsOf(modulus);
  if (bits == 0) {
    const auto each = static_cast<size_t>(WordOf(modulus).digits);
    for (size_t begin = 0; begin < digits.size(); begin += each) {
      uint64_t word = 0;
      for (size_t i = std::min(digits.size(), begin + each); i-- > begin;) {
        word = word * static_cast<uint64_t>(modulus) + digits[i];
      }
      Append(word, bytes);
    }
    return;
  }
  uint64_t waiting = 0;
  int filled = 0;
  for (const uint8_t digit : digits) {
    waiting |= static_cast<uint64_t>(digit) << filled;
    filled += bits;
    if (filled < 32) continue;
    Append(static_cast<uint32_t>(waiting), bytes);
    waiting >>= 32;
    filled -= 32;
  }
  for (; filled > 0; filled -= 8, waiting >>= 8) {
    bytes->push_back(static_cast<char>(waiting & 0xFF));
  }
}

absl::Status ReadDigits(int modulus, absl::string_view bytes,
                        absl::Span<uint8_t> digits) {
  DFL_CHECK(static_cast<int64_t>(bytes.size()) ==
            DigitBytes(modulus, static_cast<int64_t>(digits.size())));
  const int bits = BitsOf(modulus);
  if (bits == 0) {
    const Word layout = WordOf(modulus);
    const auto m = static_cast<uint64_t>(modulus);
    for (size_t i = 0; i < digits.size();) {
      auto word = Take<uint64_t>(&bytes);
      const size_t end =
          std::min(digits.size(), i + static_cast<size_t>(layout.digits));
      const bool fits = word <= layout.largest;
      for (; i < end; ++i, word /= m)
        digits[i] = static_cast<uint8_t>(word % m);
      if (!fits || word != 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("the digits up to value ", i, " are no ",
                         layout.digits, " numbers below ", modulus));
      }
    }
    return absl::OkStatus();
  }
  const auto mask = static_cast<uint64_t>(modulus - 1);
  uint64_t waiting = 0;
  int filled = 0;
  for (uint8_t& digit : digits) {
    for (; filled < bits; filled += 8) {
      waiting |= static_cast<uint64_t>(Take<uint8_t>(&bytes)) << filled;
    }
    digit = static_cast<uint8_t>(waiting & mask);
    waiting >>= bits;
    filled -= bits;
  }
  if (waiting == 0) return absl::OkStatus();
  return absl::InvalidArgumentError("bits are set behind the last digit");
}

// ----------------------------------------------------------------- offers ----

int64_t LeastOfferBytes(int64_t n) { return kOfferHead + BlocksOf(n); }

int64_t MostOfferBytes(int modulus, int64_t n) {
  const int64_t blocks = BlocksOf(n);
  return kOfferHead + 3 * blocks + DigitBytes(modulus, blocks * kModBlock);
}

std::string EncodeOffer(const core::ModOffer& offer) {
  DFL_CHECK(offer.spec.block == kModBlock);
  std::string bytes;
  bytes.reserve(
      static_cast<size_t>(MostOfferBytes(offer.spec.modulus, offer.n)));
  Append(offer.spec.window, &bytes);
  Append(offer.number, &bytes);
  bytes.append(offer.scales.begin(), offer.scales.end());
  for (size_t b = 0; b < offer.scales.size(); ++b) {
    if (offer.scales[b] != 0) Append(offer.checks[b], &bytes);
  }
  if (WithScale(offer.scales) == static_cast<int64_t>(offer.scales.size())) {
    AppendDigits(offer.spec.modulus, offer.codes, &bytes);
  } else {
    AppendDigits(offer.spec.modulus, Gather(offer.scales, offer.codes), &bytes);
  }
  return bytes;
}

absl::StatusOr<core::ModOffer> DecodeOffer(const ModLayout& layout,
                                           absl::string_view bytes) {
  DFL_RETURN_IF_ERROR(CheckLength(bytes, LeastOfferBytes(layout.n)));
  core::ModOffer offer;
  offer.spec.modulus = layout.modulus;
  offer.spec.window = Take<double>(&bytes);
  DFL_RETURN_IF_ERROR(CheckWindow(offer.spec.window));
  offer.n = layout.n;
  offer.seed = layout.seed;
  offer.number = Take<uint32_t>(&bytes);
  const int64_t blocks = BlocksOf(layout.n);
  offer.scales = TakeBytes(blocks, &bytes);
  const int64_t coded = WithScale(offer.scales);
  const int64_t digits = DigitBytes(layout.modulus, coded * kModBlock);
  if (static_cast<int64_t>(bytes.size()) != 2 * coded + digits) {
    return absl::InvalidArgumentError(absl::StrCat(
        coded, " of ", blocks, " blocks have a scale and take ",
        2 * coded + digits, " bytes; ", bytes.size(), " are there"));
  }
  offer.checks.assign(static_cast<size_t>(blocks), 0);
  for (int64_t b = 0; b < blocks; ++b) {
    if (offer.scales[b] != 0) offer.checks[b] = Take<uint16_t>(&bytes);
  }
  std::vector<uint8_t> codes(static_cast<size_t>(coded * kModBlock));
  DFL_RETURN_IF_ERROR(ReadDigits(layout.modulus, bytes, absl::MakeSpan(codes)));
  offer.codes = Scatter(offer.scales, codes);
  return offer;
}

// ---------------------------------------------------------------- answers ----

int64_t LeastAnswerBytes(int64_t n) {
  const int64_t blocks = BlocksOf(n);
  return kAnswerHead + 2 * blocks + (blocks + 7) / 8;
}

int64_t MostAnswerBytes(int64_t n) {
  return LeastAnswerBytes(n) + MostSmallIntegerBytes(BlocksOf(n) * kModBlock);
}

std::string EncodeAnswer(const core::ModAnswer& answer) {
  DFL_CHECK(answer.spec.block == kModBlock);
  std::string bytes;
  Append(answer.spec.window, &bytes);
  Append(answer.gamma, &bytes);
  Append(answer.beta, &bytes);
  Append(answer.number, &bytes);
  bytes.append(answer.scales.begin(), answer.scales.end());
  bytes.append(answer.next_scales.begin(), answer.next_scales.end());
  for (size_t b = 0; b < answer.refused.size(); b += 8) {
    unsigned bits = 0;
    for (size_t i = b; i < std::min(b + 8, answer.refused.size()); ++i) {
      if (answer.refused[i] != 0) bits |= 1U << (i - b);
    }
    bytes.push_back(static_cast<char>(bits));
  }
  bytes += EncodeSmallIntegers(Gather(answer.scales, answer.q), Centre::kZero);
  return bytes;
}

absl::StatusOr<core::ModAnswer> DecodeAnswer(const ModLayout& layout,
                                             absl::string_view bytes) {
  DFL_RETURN_IF_ERROR(CheckLength(bytes, LeastAnswerBytes(layout.n)));
  core::ModAnswer answer;
  answer.spec.modulus = layout.modulus;
  answer.n = layout.n;
  answer.seed = layout.seed;
  answer.spec.window = Take<double>(&bytes);
  DFL_RETURN_IF_ERROR(CheckWindow(answer.spec.window));
  answer.gamma = Take<double>(&bytes);
  answer.beta = Take<double>(&bytes);
  // "Not within" also catches NaN.
  if (!(answer.gamma > 0 && answer.gamma < 1) ||
      !(answer.beta >= 0 && answer.beta <= kMostBeta)) {
    return absl::InvalidArgumentError(
        absl::StrCat("gamma ", answer.gamma, " and beta ", answer.beta,
                     "; allowed: in (0, 1), and in [0, 2^40]"));
  }
  answer.number = Take<uint32_t>(&bytes);
  const int64_t blocks = BlocksOf(layout.n);
  answer.scales = TakeBytes(blocks, &bytes);
  answer.next_scales = TakeBytes(blocks, &bytes);
  DFL_ASSIGN_OR_RETURN(answer.refused, TakeRefused(blocks, &bytes));
  std::vector<int16_t> q(
      static_cast<size_t>(WithScale(answer.scales) * kModBlock));
  DFL_RETURN_IF_ERROR(DecodeSmallIntegers(bytes, absl::MakeSpan(q)));
  const int most = layout.modulus / 2;
  for (const int16_t step : q) {
    if (step < -most || step > most) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a step of ", step, " does not fit a modulus of ", layout.modulus));
    }
  }
  answer.q = Scatter(answer.scales, q);
  return answer;
}

}  // namespace dfl::codec
