// What membership costs while nothing happens: bytes a second and node as they
// are on the wire, and the share of a core a node, of 64 and of 1,000 nodes in
// virtual time. The share holds the simulator's own work too, and not the work
// of gRPC and the kernel on each frame.
//
// Usage: membership_bench [NODES]...
// Exit code: 1 when a bar is missed.
#include <sys/resource.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "absl/time/time.h"
#include "tests/unit/membership/member_net.h"

namespace dfl::runtime {
namespace {

constexpr double kMostBytes = 2000;    // a second
constexpr double kMostShare = 0.0008;  // of a core

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(usage.ru_utime.tv_usec +
                                    usage.ru_stime.tv_usec);
}

// Whether `n` nodes keep the bars.
bool Measure(int64_t n) {
  MemberNet net;
  const double before_start = CpuSeconds();
  net.BootMany(n);
  if (!net.AgreeWithin(absl::Seconds(30))) {
    std::printf("%6lld nodes: not one component after 30 s\n",
                static_cast<long long>(n));
    return false;
  }
  const double start = CpuSeconds() - before_start;
  net.RunFor(absl::Minutes(2));  // until the seeds' many links are closed
  const absl::Duration duration = absl::Minutes(2);
  const simports::SimTraffic sent = net.network().sent();
  const double cpu = CpuSeconds();
  net.RunFor(duration);
  const double node_seconds =
      absl::ToDoubleSeconds(duration) * static_cast<double>(n);
  const double bytes =
      static_cast<double>(net.network().sent().bytes - sent.bytes) /
      node_seconds;
  const double frames =
      static_cast<double>(net.network().sent().frames - sent.frames) /
      node_seconds;
  const double share = (CpuSeconds() - cpu) / node_seconds;
  const bool kept = bytes <= kMostBytes && share <= kMostShare;
  std::printf(
      "%6lld nodes: %7.1f B/s and node sent (%.2f frames/s), %.5f %% of a core "
      "a node; to come together %.2f s of CPU: %s\n",
      static_cast<long long>(n), bytes, frames, 100 * share, start,
      kept ? "within the bars" : "TOO MUCH");
  return kept;
}

}  // namespace
}  // namespace dfl::runtime

int main(int argc, char** argv) {
  std::vector<int64_t> sizes;
  for (int i = 1; i < argc; ++i) sizes.push_back(std::atoll(argv[i]));
  if (sizes.empty()) sizes = {64, 1000};
  bool kept = true;
  for (const int64_t n : sizes) {
    if (n < 2) {
      std::fprintf(stderr, "usage: membership_bench [NODES]... (each >= 2)\n");
      return 2;
    }
    kept = dfl::runtime::Measure(n) && kept;
  }
  return kept ? 0 : 1;
}
