// Tables of the value format `mod`.
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "daemon/codec/mod_body.h"
#include "daemon/core/algorithms/gossip_nids.h"
#include "daemon/core/vector/mod_code.h"
#include "gtest/gtest.h"
#include "tests/golden/golden_case.h"
#include "tests/golden/table_checks.h"

namespace dfl::golden {
namespace {

using core::BlockScale;
using nlohmann::json;

template <typename T>
std::vector<T> Flat(const json& rows) {
  std::vector<T> flat;
  for (const json& row : rows) {
    for (const json& value : row) flat.push_back(value.get<T>());
  }
  return flat;
}

// Outputs have 12 digits.
bool Near(double a, double b) {
  return std::fabs(a - b) <= 1e-10 * std::fabs(b);
}

core::ModSpec SpecOf(const json& table) {
  core::ModSpec spec;
  spec.modulus = table.at("M").get<int>();
  spec.window = table.at("w").get<double>();
  if (table.contains("block")) spec.block = table.at("block").get<int>();
  return spec;
}

std::string Digits(int modulus, const std::vector<uint8_t>& codes) {
  std::string bytes;
  codec::AppendDigits(modulus, codes, &bytes);
  EXPECT_EQ(static_cast<int64_t>(bytes.size()),
            codec::DigitBytes(modulus, static_cast<int64_t>(codes.size())));
  std::vector<uint8_t> back(codes.size());
  EXPECT_TRUE(codec::ReadDigits(modulus, bytes, absl::MakeSpan(back)).ok());
  EXPECT_EQ(back, codes);
  return absl::BytesToHexString(bytes);
}

void CheckDraws(uint64_t seed, const json& table) {
  const json& u = table.at("u");
  const auto count = static_cast<int64_t>(u.size());
  const std::vector<double> dither = core::ModDither(seed, count);
  const std::vector<int> signs = core::ModSigns(seed, count);
  const auto want = table.at("S").get<std::string>();
  ASSERT_EQ(want.size(), u.size());
  for (size_t q = 0; q < u.size(); ++q) {
    EXPECT_NEAR(dither[q], u.at(q).get<double>(), 1e-15) << q;
    EXPECT_EQ(signs[q], want[q] == '+' ? 1 : -1) << q;
  }
}

// The codes of the blocks that have a scale.
std::vector<uint8_t> Coded(const core::ModOffer& offer) {
  std::vector<uint8_t> codes;
  for (size_t b = 0; b < offer.scales.size(); ++b) {
    if (offer.scales[b] == 0) continue;
    const auto begin =
        offer.codes.begin() + static_cast<int64_t>(b) * offer.spec.block;
    codes.insert(codes.end(), begin, begin + offer.spec.block);
  }
  return codes;
}

void CheckRoundTrip(const json& table) {
  SCOPED_TRACE(table.at("label").get<std::string>());
  const core::ModSpec spec = SpecOf(table);
  const auto seed = table.at("seed").get<uint64_t>();
  CheckDraws(seed, table);
  const auto x = table.at("x").get<std::vector<float>>();
  const auto own = table.at("own").get<std::vector<float>>();
  std::vector<BlockScale> sender;
  std::vector<BlockScale> receiver;
  for (size_t b = 0; b < table.at("e").size(); ++b) {
    sender.push_back({table.at("e").at(b).get<uint8_t>(), 0});
    receiver.push_back({0, table.at("r").at(b).get<uint8_t>()});
  }
  const core::ModOffer offer = core::WriteMod(spec, x, sender, seed);
  EXPECT_EQ(json(offer.scales), table.at("e_sent"));
  EXPECT_EQ(offer.codes, Flat<uint8_t>(table.at("code")));
  EXPECT_EQ(json(offer.checks), table.at("check"));
  EXPECT_EQ(Digits(spec.modulus, Coded(offer)), table.at("digits"));
  for (size_t b = 0; b < offer.scales.size(); ++b) {
    if (offer.scales[b] == 0) continue;
    const auto k = table.at("k").at(b).get<std::vector<int32_t>>();
    EXPECT_EQ(core::ModCheck(spec.modulus, k), offer.checks[b]);
  }
  const core::ModAnswer answer =
      core::ReadMod(offer, own, absl::MakeSpan(receiver));
  EXPECT_EQ(answer.q, Flat<int16_t>(table.at("q")));
  for (size_t b = 0; b < receiver.size(); ++b) {
    EXPECT_EQ(answer.refused[b] != 0, table.at("refused").at(b).get<bool>());
    EXPECT_EQ(receiver[b].e, table.at("e_new").at(b).get<int>());
    EXPECT_EQ(receiver[b].refusals, table.at("r_new").at(b).get<int>());
    if (offer.scales[b] == 0 || answer.refused[b] != 0) continue;
    const double rms = table.at("rms").at(b).get<double>();
    EXPECT_EQ(core::AfterDecoded(offer.scales[b], rms * rms).e, receiver[b].e);
  }
  EXPECT_EQ(answer.next_scales.size(), receiver.size());
  EXPECT_EQ(Difference("d_hat", core::ModDifference(answer), table.at("d_hat")),
            "");
}

void CheckScales(const json& table) {
  const json& sigma = table.at("sigma");
  ASSERT_EQ(sigma.size(), 256U);
  for (size_t e = 0; e < sigma.size(); ++e) {
    const double s = core::ModScale(static_cast<uint8_t>(e));
    EXPECT_TRUE(e == 0 ? s == 0 : Near(s, sigma.at(e).get<double>())) << e;
    EXPECT_EQ(core::ModScaleCode(s * s), e);
  }
}

void CheckRow(const std::string& kind, const json& row) {
  if (kind == "code") {
    const double s = row.at("sigma").get<double>();
    EXPECT_EQ(core::ModScaleCode(s * s), row.at("e").get<int>()) << row;
  } else if (kind == "spacing") {
    EXPECT_TRUE(Near(core::ModSpacing(SpecOf(row), row.at("e").get<uint8_t>()),
                     row.at("delta").get<double>()))
        << row;
  } else if (kind == "bound") {
    EXPECT_TRUE(Near(core::GossipNidsBound(row.at("M").get<int64_t>(),
                                           row.at("w").get<double>()),
                     row.at("bound").get<double>()))
        << row;
  } else if (kind == "check") {
    const auto k = row.at("k").get<std::vector<int32_t>>();
    EXPECT_EQ(core::ModCheck(row.at("M").get<int>(), k),
              row.at("check").get<int>())
        << row;
  } else if (kind == "digits") {
    EXPECT_EQ(Digits(row.at("M").get<int>(),
                     row.at("code").get<std::vector<uint8_t>>()),
              row.at("bytes"))
        << row;
  } else {
    FAIL() << "no check for " << kind;
  }
}

void CheckWeights(const json& table) {
  // One place at a time, one window up: the upper half of its weight.
  const json& weights = table.at("weights");
  for (size_t p = 0; p < weights.size(); ++p) {
    std::vector<int32_t> k(weights.size(), 0);
    k[p] = 8;
    EXPECT_EQ(core::ModCheck(8, k), weights.at(p).get<uint32_t>() >> 16) << p;
    k[p] = 8 * 65536;
    EXPECT_EQ(core::ModCheck(8, k), weights.at(p).get<uint32_t>() & 65535) << p;
  }
}

void CheckGains(const json& table) {
  const json& gains = table.at("c_k");
  for (size_t k = 0; k < gains.size(); ++k) {
    EXPECT_TRUE(Near(core::GossipNidsGain(table.at("c").get<double>(),
                                          table.at("c0").get<double>(),
                                          static_cast<int64_t>(k)),
                     gains.at(k).get<double>()))
        << k;
  }
}

}  // namespace

void CheckModTable(const json& table) {
  if (!table.contains("kind")) return CheckRoundTrip(table);
  const std::string kind = table.at("kind");
  SCOPED_TRACE(kind);
  if (kind == "sigma") {
    CheckScales(table);
  } else if (kind == "check_weights") {
    CheckWeights(table);
  } else if (kind == "gain") {
    CheckGains(table);
  } else if (kind == "draws") {
    CheckDraws(table.at("seed").get<uint64_t>(), table);
  } else {
    ASSERT_FALSE(table.at("rows").empty());
    for (const json& row : table.at("rows")) CheckRow(kind, row);
  }
}

}  // namespace dfl::golden
