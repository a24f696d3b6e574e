// How fast a message goes from the sender's flat vector into the receiver's:
// check the values, derive or choose the coordinates, round, checksum, cut into
// chunks; put together, check, derive the coordinates again, mix by
// core::PartialMean. As in the daemon, chunks are put together and checked as
// they come, and malloc has the daemon's settings. One thread, a fresh seed
// each time, median of 9.
//
//   codec_bench [n [seed]]   default 11,170,000, a ResNet-18's 44.7 MB, and a
//                            seed from the clock, which is printed
//
// GB/s are of the dense size (4 n bytes), beside memcpy of that size, which is
// measured alone before each message. Exits 1 when a bar is missed.
#include <malloc.h>

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
               const FlatVector& sender, FlatVector* receiver,
               std::vector<char>* chunk_buffer, int64_t* bytes) {
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
  codec::BodyCheck check(*header);
  std::vector<char>& chunk = *chunk_buffer;
  auto from = start;
  const auto lap = [&from](double* sum) {
    const auto now = steady_clock::now();
    *sum += Seconds(now - from).count();
    from = now;
  };
  while (!(*encoder)->done()) {
    const size_t size = (*encoder)->Next(absl::MakeSpan(chunk));
    lap(&times.encode);
    DFL_CHECK(
        assembler
            .Append(assembler.received(), absl::string_view(chunk.data(), size))
            .ok());
    check.Advance(assembler.body());
    lap(&times.open);
  }
  *bytes = (*encoder)->total_bytes();
  encoder->reset();
  lap(&times.encode);

  auto message = codec::OpenMessage(check, assembler.Take());
  DFL_CHECK(message.ok());
  lap(&times.open);

  core::RemoteVector* const remote = message->get();
  core::PartialMean(absl::MakeConstSpan(&remote, 1), absl::MakeSpan(*receiver));
  message->reset();
  lap(&times.mix);
  return times;
}

double CopySeconds(const FlatVector& from, FlatVector* to) {
  const auto start = steady_clock::now();
  std::memcpy(to->data(), from.data(), from.size() * sizeof(float));
  return Seconds(steady_clock::now() - start).count();
}

struct Case {
  core::Coordinates coordinates;
  core::ValueType values;
  double rate;
  double bar;  // of memcpy, in percent; 0: none
};

std::vector<Case> Cases() {
  using core::Coordinates;
  using core::ValueType;
  return {
      {Coordinates::kRandom, ValueType::kFp16, 0.1, 25},
      {Coordinates::kRandom, ValueType::kBf16, 0.1, 25},
      {Coordinates::kRandom, ValueType::kInt8, 0.1, 25},
      {Coordinates::kRandom, ValueType::kFp32, 0.1, 25},
      {Coordinates::kRandom, ValueType::kFp16, 0.01, 0},
      {Coordinates::kTopK, ValueType::kFp16, 0.1, 12},
      {Coordinates::kTopK, ValueType::kInt8, 0.1, 0},
      {Coordinates::kDense, ValueType::kFp32, 1, 30},
      {Coordinates::kDense, ValueType::kFp16, 1, 15},
      {Coordinates::kDense, ValueType::kBf16, 1, 0},
      {Coordinates::kDense, ValueType::kInt8, 1, 15},
  };
}

int Main(int64_t n, uint64_t seed) {
  const auto size = static_cast<size_t>(n);
  FlatVector sender(size);
  FlatVector start(size);
  FlatVector receiver(size);
  Rng rng(1);
  for (float& v : sender) v = static_cast<float>(rng.Uniform() - 0.5) * 0.1F;
  for (float& v : start) v = static_cast<float>(rng.Uniform() - 0.5) * 0.1F;

  const double gigabytes = 4e-9 * static_cast<double>(n);
  std::printf("n = %lld, %.1f MB dense, seed %llu; medians of %d\n",
              static_cast<long long>(n), 1e3 * gigabytes,
              static_cast<unsigned long long>(seed), kRuns);
  std::printf("%-8s %-5s %5s %10s %9s %9s %9s %9s %8s %8s %9s\n", "coords",
              "value", "rate", "bytes", "encode ms", "open ms", "mix ms",
              "total ms", "GB/s", "memcpy", "of memcpy");
  bool met = true;
  std::vector<char> chunk(kChunkBytes);
  for (const Case& c : Cases()) {
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
                                   sender, &receiver, &chunk, &bytes);
      if (run < 0) continue;  // pages touched for the first time
      copy.push_back(copied);
      encode.push_back(times.encode);
      open.push_back(times.open);
      mix.push_back(times.mix);
      total.push_back(times.total());
    }
    const double rate = gigabytes / Median(total);
    const double copy_rate = gigabytes / Median(copy);
    const double share = 100 * rate / copy_rate;
    met = met && share >= c.bar;
    std::printf(
        "%-8s %-5s %4.0f%% %10lld %9.2f %9.2f %9.2f %9.2f %8.2f %8.2f %8.1f%%",
        core::ToString(c.coordinates).c_str(), core::ToString(c.values).c_str(),
        100 * c.rate, static_cast<long long>(bytes), 1e3 * Median(encode),
        1e3 * Median(open), 1e3 * Median(mix), 1e3 * Median(total), rate,
        copy_rate, share);
    if (c.bar > 0) {
      std::printf("  bar %.0f%%: %s", c.bar, share >= c.bar ? "met" : "MISSED");
    }
    std::printf("\n");
    std::fflush(stdout);
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
  const uint64_t seed =
      argc > 2 ? std::strtoull(argv[2], nullptr, 10)
               : static_cast<uint64_t>(
                     dfl::steady_clock::now().time_since_epoch().count());
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  return dfl::Main(n, seed);
}
