// How fast a message goes from the sender's flat vector into the receiver's:
// derive the coordinates, round, checksum, cut into chunks; put together,
// check, derive the coordinates again, mix by core::PartialMean. One thread,
// a fresh seed each time, median of 9. Chunks are put together as they come.
//
//   codec_bench [n]    default 11,170,000, a ResNet-18's 44.7 MB
//
// GB/s are of the dense size (4 n bytes), printed beside memcpy of that size
// in the same run. Exits 1 when the bar is missed: 10 % fp16 and 10 % int8 at
// 1 GB/s or more.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "daemon/base/aligned_vector.h"
#include "daemon/base/check.h"
#include "daemon/base/rng.h"
#include "daemon/codec/decoder.h"
#include "daemon/codec/encoder.h"
#include "daemon/core/vector/flat_vector.h"
#include "daemon/core/vector/message_format.h"

namespace dfl {
namespace {

constexpr int kRuns = 9;
constexpr int64_t kChunkBytes = int64_t{512} << 10;
constexpr double kBarGigabytesPerSecond = 1.0;

using Seconds = std::chrono::duration<double>;
using std::chrono::steady_clock;

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Times {
  double encode = 0;
  double open = 0;
  double mix = 0;
  double total() const { return encode + open + mix; }
};

// One message from `sender` into `receiver`.
Times Exchange(core::MessageFormat format, double rate, uint64_t seed,
               const FlatVector& sender, FlatVector* receiver, int64_t* bytes) {
  Times times;
  const auto n = static_cast<int64_t>(sender.size());
  const auto start = steady_clock::now();
  codec::EncoderInput input;
  input.format = format;
  input.sent = core::SentCoordinates(rate, n);
  input.seed = seed;
  input.values = sender;
  auto encoder = codec::Encoder::Create(input);
  DFL_CHECK(encoder.ok());
  const auto header = codec::ParseHeader((*encoder)->header_bytes());
  DFL_CHECK(header.ok() && codec::CheckHeader(*header, n, 0).ok());
  codec::Assembler assembler(*header);
  while (!(*encoder)->done()) {
    DFL_CHECK(
        assembler.Append(assembler.received(), (*encoder)->Next(kChunkBytes))
            .ok());
  }
  *bytes = (*encoder)->total_bytes();
  encoder->reset();
  const auto encoded = steady_clock::now();

  auto message =
      codec::OpenMessage(codec::BodyCheck(*header), assembler.Take());
  DFL_CHECK(message.ok());
  const auto opened = steady_clock::now();

  core::RemoteVector* const remote = message->get();
  core::PartialMean(absl::MakeConstSpan(&remote, 1), absl::MakeSpan(*receiver));
  message->reset();
  const auto mixed = steady_clock::now();
  times.encode = Seconds(encoded - start).count();
  times.open = Seconds(opened - encoded).count();
  times.mix = Seconds(mixed - opened).count();
  return times;
}

double CopySeconds(const FlatVector& from, FlatVector* to) {
  const auto start = steady_clock::now();
  std::memcpy(to->data(), from.data(), from.size() * sizeof(float));
  return Seconds(steady_clock::now() - start).count();
}

int Main(int64_t n) {
  const auto size = static_cast<size_t>(n);
  FlatVector sender(size);
  FlatVector start(size);
  FlatVector receiver(size);
  Rng rng(1);
  for (float& v : sender) v = static_cast<float>(rng.Uniform() - 0.5) * 0.1F;
  for (float& v : start) v = static_cast<float>(rng.Uniform() - 0.5) * 0.1F;

  struct Case {
    core::Coordinates coordinates;
    core::ValueType values;
    double rate;
    bool bar;
  };
  using core::Coordinates;
  using core::ValueType;
  const std::vector<Case> cases = {
      {Coordinates::kRandom, ValueType::kFp16, 0.1, true},
      {Coordinates::kRandom, ValueType::kInt8, 0.1, true},
      {Coordinates::kRandom, ValueType::kBf16, 0.1, false},
      {Coordinates::kRandom, ValueType::kFp32, 0.1, false},
      {Coordinates::kTopK, ValueType::kFp16, 0.1, false},
      {Coordinates::kTopK, ValueType::kInt8, 0.1, false},
      {Coordinates::kDense, ValueType::kFp32, 1, false},
      {Coordinates::kDense, ValueType::kFp16, 1, false},
      {Coordinates::kDense, ValueType::kInt8, 1, false},
  };
  const double gigabytes = 4e-9 * static_cast<double>(n);
  std::printf("n = %lld, %.1f MB dense; seconds are medians of %d\n",
              static_cast<long long>(n), 1e3 * gigabytes, kRuns);
  std::printf("%-8s %-5s %5s %10s %9s %9s %9s %9s %8s %8s %9s\n", "coords",
              "value", "rate", "bytes", "encode ms", "open ms", "mix ms",
              "total ms", "GB/s", "memcpy", "of memcpy");
  bool met = true;
  uint64_t seed = 0;
  for (const Case& c : cases) {
    core::MessageFormat format;
    format.coordinates = c.coordinates;
    format.values = c.values;
    std::vector<double> copy;
    std::vector<double> encode;
    std::vector<double> open;
    std::vector<double> mix;
    std::vector<double> total;
    int64_t bytes = 0;
    for (int run = -1; run < kRuns; ++run) {
      const double copied = CopySeconds(start, &receiver);
      const Times times = Exchange(format, c.rate, DeriveSeed(++seed, "bench"),
                                   sender, &receiver, &bytes);
      if (run < 0) continue;  // pages touched for the first time
      copy.push_back(copied);
      encode.push_back(times.encode);
      open.push_back(times.open);
      mix.push_back(times.mix);
      total.push_back(times.total());
    }
    const double rate = gigabytes / Median(total);
    const double copy_rate = gigabytes / Median(copy);
    if (c.bar && rate < kBarGigabytesPerSecond) met = false;
    std::printf(
        "%-8s %-5s %4.0f%% %10lld %9.2f %9.2f %9.2f %9.2f %8.2f %8.2f %8.0f%%"
        "%s\n",
        core::ToString(c.coordinates).c_str(), core::ToString(c.values).c_str(),
        100 * c.rate, static_cast<long long>(bytes), 1e3 * Median(encode),
        1e3 * Median(open), 1e3 * Median(mix), 1e3 * Median(total), rate,
        copy_rate, 100 * rate / copy_rate,
        !c.bar                           ? ""
        : rate >= kBarGigabytesPerSecond ? "  bar 1 GB/s: met"
                                         : "  bar 1 GB/s: MISSED");
  }
  return met ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace
}  // namespace dfl

int main(int argc, char** argv) {
  const int64_t n = argc > 1 ? std::atoll(argv[1]) : 11170000;
  if (n < 1) {
    std::fprintf(stderr, "codec_bench: \"%s\" is no vector length\n", argv[1]);
    return EXIT_FAILURE;
  }
  return dfl::Main(n);
}
