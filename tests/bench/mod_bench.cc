// How fast offers and answers in `mod` are made and read, and the entropy stage
// of answers. One thread, its own time, best of 5.
//
//   mod_bench [n]    default 4,194,304
//
// GB/s are of the dense size (4 n bytes). Exits 1 when the entropy stage is
// below 200 million values a second either way.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "daemon/base/check.h"
#include "daemon/base/rng.h"
#include "daemon/codec/mod_body.h"
#include "daemon/codec/small_integers.h"
#include "daemon/core/vector/mod_code.h"

namespace dfl {
namespace {

constexpr int kRuns = 5;
constexpr double kBar = 200e6;

double ThreadSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) +
         1e-9 * static_cast<double>(now.tv_nsec);
}

// The least time that `work` takes.
template <typename Work>
double Best(Work work) {
  double best = 1e9;
  for (int run = 0; run < kRuns; ++run) {
    const double before = ThreadSeconds();
    work();
    best = std::min(best, ThreadSeconds() - before);
  }
  return best;
}

// Rounded values of a normal distribution, as answers with M = 8 have.
bool EntropyStage(int64_t n, Rng& rng) {
  std::vector<int16_t> values(static_cast<size_t>(n));
  for (int16_t& value : values) {
    double sum = -6;
    for (int q = 0; q < 12; ++q) sum += rng.Uniform();
    value = static_cast<int16_t>(std::rint(0.9 * sum));
  }
  std::string bytes;
  std::vector<int16_t> back(values.size());
  const auto count = static_cast<double>(n);
  const double encode =
      count / Best([&] {
        bytes = codec::EncodeSmallIntegers(values, codec::Centre::kZero);
      });
  const double decode =
      count / Best([&] {
        DFL_CHECK(codec::DecodeSmallIntegers(bytes, absl::MakeSpan(back)).ok());
      });
  DFL_CHECK(back == values);
  std::printf("entropy stage: %.3f bits a value, %.0f M/s in, %.0f M/s out\n",
              8.0 * static_cast<double>(bytes.size()) / count, encode / 1e6,
              decode / 1e6);
  return std::min(encode, decode) >= kBar;
}

void OffersAndAnswers(int modulus, int64_t n, Rng& rng) {
  std::vector<float> x(static_cast<size_t>(n));
  std::vector<float> own(x.size());
  for (size_t l = 0; l < x.size(); ++l) {
    x[l] = static_cast<float>(rng.Uniform() - 0.5);
    own[l] = x[l] + 0.02F * static_cast<float>(rng.Uniform() - 0.5);
  }
  core::ModSpec spec;
  spec.modulus = modulus;
  const std::vector<core::BlockScale> scales(
      static_cast<size_t>(core::ModBlocks(spec, n)), {140, 0});
  const double gigabytes = 4e-9 * static_cast<double>(n);
  core::ModOffer offer;
  core::ModAnswer answer;
  std::string bytes;
  const double write =
      Best([&] { offer = core::WriteMod(spec, x, scales, rng.Next()); });
  const double read = Best([&] {
    std::vector<core::BlockScale> receiver = scales;
    answer = core::ReadMod(offer, own, absl::MakeSpan(receiver));
  });
  answer.gamma = 0.5;
  const double apply = Best([&] { (void)core::ModDifference(answer); });
  const double pack = Best([&] { bytes = codec::EncodeOffer(offer); });
  const codec::ModLayout layout = {modulus, n, offer.seed};
  const double unpack =
      Best([&] { DFL_CHECK(codec::DecodeOffer(layout, bytes).ok()); });
  std::printf(
      "mod %d, GB/s: write %.2f, pack %.2f, unpack %.2f, read %.2f, "
      "difference %.2f\n",
      modulus, gigabytes / write, gigabytes / pack, gigabytes / unpack,
      gigabytes / read, gigabytes / apply);
}

}  // namespace
}  // namespace dfl

int main(int argc, char** argv) {
  const int64_t n = argc > 1 ? std::atoll(argv[1]) : int64_t{4} << 20;
  dfl::Rng rng(1);
  const bool fast = dfl::EntropyStage(n, rng);
  for (const int modulus : {6, 8}) dfl::OffersAndAnswers(modulus, n, rng);
  return fast ? 0 : 1;
}
