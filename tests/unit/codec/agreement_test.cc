// Agreement is a fixed point, and mixing leads to it, in every format.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/rng.h"
#include "daemon/codec/decoder.h"
#include "daemon/codec/edge_reference.h"
#include "daemon/codec/encoder.h"
#include "gtest/gtest.h"
#include "tests/unit/codec/naive_codec.h"

namespace dfl::codec {
namespace {

// Nodes on a complete graph that do nothing but mix, through bytes.
class Mixers {
 public:
  Mixers(core::MessageFormat format, std::vector<std::vector<float>> models,
         int64_t sent)
      : format_(format), sent_(sent), models_(std::move(models)) {
    const auto n = static_cast<int64_t>(models_[0].size());
    for (size_t e = 0; e < models_.size() * models_.size(); ++e) {
      references_.emplace_back(n);
    }
  }

  // One round: w_i += sum over j of W (w_j - w_i), W = 1 / nodes. The seed is
  // drawn per (edge, round), the same in both directions.
  void Round(uint64_t round) {
    const size_t nodes = models_.size();
    const size_t n = models_[0].size();
    std::vector<std::vector<float>> sums(nodes, std::vector<float>(n));
    for (size_t i = 0; i < nodes; ++i) {
      for (size_t j = 0; j < nodes; ++j) {
        if (i == j) continue;
        EdgeReference& reference = references_[j * nodes + i];
        EncoderInput input;
        input.format = format_;
        input.sent = sent_;
        input.seed = DeriveSeed(round, "edge", std::min(i, j), std::max(i, j));
        input.values = models_[j];
        const bool topk = format_.coordinates == core::Coordinates::kTopK;
        if (topk) input.reference = reference.values();
        input.keep_sent = topk;
        auto encoder = Encoder::Create(input);
        ASSERT_TRUE(encoder.ok()) << encoder.status();
        Message message;
        message.header = (*encoder)->header_bytes();
        message.body = (*encoder)->Next(int64_t{1} << 30);
        if (topk) reference.Commit((*encoder)->TakeSent());
        auto remote = OpenWhole(message, static_cast<int64_t>(n), 0);
        ASSERT_TRUE(remote.ok()) << remote.status();
        core::CoordinateRange range;
        range.end = static_cast<int64_t>(n);
        (*remote)->AddDifference(range, models_[i],
                                 1.0f / static_cast<float>(nodes),
                                 absl::MakeSpan(sums[i]), {});
      }
    }
    for (size_t i = 0; i < nodes; ++i) {
      for (size_t l = 0; l < n; ++l) models_[i][l] += sums[i][l];
    }
  }

  const std::vector<std::vector<float>>& models() const { return models_; }

  // Largest distance of a coordinate of any node from `target`.
  float Spread(const std::vector<double>& target) const {
    double spread = 0;
    for (const auto& model : models_) {
      for (size_t l = 0; l < model.size(); ++l) {
        spread = std::max(spread, std::fabs(model[l] - target[l]));
      }
    }
    return static_cast<float>(spread);
  }

 private:
  core::MessageFormat format_;
  int64_t sent_;
  std::vector<std::vector<float>> models_;
  std::vector<EdgeReference> references_;
};

TEST(Agreement, EqualModelsStayBitIdenticalInEveryFormat) {
  constexpr int64_t kN = 700;
  std::vector<float> model = NormalValues(kN, 0.05f, 81);
  // All sizes: float32 and fp16 subnormals, beyond fp16, whole blocks of zeros.
  for (size_t l = 0; l < 40; ++l) {
    model[l] = std::ldexp(model[l], static_cast<int>(l) * 6 - 135);
  }
  for (size_t l = 400; l < 700; ++l) model[l] = 0;
  for (const core::MessageFormat format : AllFormats()) {
    SCOPED_TRACE(Name(format));
    Mixers mixers(format, std::vector<std::vector<float>>(4, model), 300);
    for (uint64_t round = 0; round < 100; ++round) mixers.Round(round);
    for (const auto& after : mixers.models()) {
      EXPECT_EQ(std::memcmp(after.data(), model.data(), kN * 4), 0);
    }
  }
}

// Different models come together to within the format's noise, at the mean of
// where they began (top-k gives no such promise: its coordinates differ by
// direction).
TEST(Agreement, DifferentModelsComeTogetherAtTheirMean) {
  constexpr int64_t kN = 500;
  for (const core::MessageFormat format : AllFormats()) {
    SCOPED_TRACE(Name(format));
    std::vector<std::vector<float>> models;
    for (uint64_t i = 0; i < 4; ++i) {
      models.push_back(NormalValues(kN, 1, 90 + i));
    }
    std::vector<double> mean(kN);
    for (const auto& model : models) {
      for (size_t l = 0; l < kN; ++l) mean[l] += model[l] / 4.0;
    }
    Mixers mixers(format, models, 250);
    for (uint64_t round = 0; round < 150; ++round) mixers.Round(round);
    std::vector<double> now(kN);
    for (const auto& model : mixers.models()) {
      for (size_t l = 0; l < kN; ++l) now[l] += model[l] / 4.0;
    }
    const bool lossy = format.values != core::ValueType::kFp32;
    EXPECT_LT(mixers.Spread(now), lossy ? 1e-2f : 1e-5f);
    if (format.coordinates == core::Coordinates::kTopK) continue;
    // fp16 and bf16 with one seed for both directions add equal and opposite
    // differences; int8's scales differ by direction.
    EXPECT_LT(mixers.Spread(mean),
              format.values == core::ValueType::kInt8 ? 0.1f : 0.01f);
  }
}

}  // namespace
}  // namespace dfl::codec
