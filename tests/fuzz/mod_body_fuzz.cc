// Offers and answers in `mod` (daemon/codec/mod_body.h), of a peer. The first
// bytes say which, the modulus, the length and the seed.
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "daemon/base/check.h"
#include "daemon/codec/mod_body.h"
#include "daemon/core/vector/mod_code.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/pieces.h"

namespace dfl::fuzz {
namespace {

using core::BlockScale;

void CheckDifference(const core::ModAnswer& answer) {
  for (const float d : core::ModDifference(answer)) DFL_CHECK(std::isfinite(d));
}

// An offer has one form; what a receiver makes of it is bounded.
void CheckOffer(const codec::ModLayout& layout, const std::string& body) {
  const auto offer = codec::DecodeOffer(layout, body);
  if (!offer.ok()) return;
  DFL_CHECK(codec::EncodeOffer(*offer) == body);
  std::vector<float> own(static_cast<size_t>(layout.n));
  for (size_t l = 0; l < own.size(); ++l) {
    own[l] = 0.01F * static_cast<float>(l % 17) - 0.05F;
  }
  std::vector<BlockScale> scales(offer->scales.size());
  const core::ModAnswer answer =
      core::ReadMod(*offer, own, absl::MakeSpan(scales));
  for (const int16_t q : answer.q) {
    DFL_CHECK(2 * q <= layout.modulus && 2 * q >= -layout.modulus);
  }
  CheckDifference(answer);
  // A vector that is read against itself stays as it is.
  for (BlockScale& scale : scales) scale = {160, 0};
  const core::ModOffer same =
      core::WriteMod(offer->spec, own, scales, layout.seed);
  for (const float d :
       core::ModDifference(core::ReadMod(same, own, absl::MakeSpan(scales)))) {
    DFL_CHECK(d == 0);
  }
}

void CheckAnswer(const codec::ModLayout& layout, const std::string& body) {
  const auto answer = codec::DecodeAnswer(layout, body);
  if (!answer.ok()) return;
  CheckDifference(*answer);
  const auto again = codec::DecodeAnswer(layout, codec::EncodeAnswer(*answer));
  DFL_CHECK(again.ok());
  DFL_CHECK(again->number == answer->number && again->gamma == answer->gamma &&
            again->beta == answer->beta && again->q == answer->q &&
            again->scales == answer->scales &&
            again->next_scales == answer->next_scales &&
            again->refused == answer->refused);
}

}  // namespace

DFL_FUZZ_TARGET(mod_body)(absl::string_view bytes) {
  Pieces pieces(bytes);
  const bool offer = pieces.Byte() % 2 == 0;
  codec::ModLayout layout;
  layout.modulus =
      core::kLeastModulus +
      pieces.Byte() % (core::kMostModulus - core::kLeastModulus + 1);
  layout.n = 1 + pieces.Number() % 1100;
  layout.seed = pieces.Number();
  const std::string body(pieces.Rest());
  if (offer) {
    CheckOffer(layout, body);
  } else {
    CheckAnswer(layout, body);
  }
}

}  // namespace dfl::fuzz
