// Scenarios that the unit test runs small and the campaign in full.
#ifndef DFL_TESTS_UNIT_MEMBERSHIP_SCENARIOS_H_
#define DFL_TESTS_UNIT_MEMBERSHIP_SCENARIOS_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "daemon/base/rng.h"
#include "tests/unit/membership/member_net.h"

namespace dfl::runtime {

// `n` nodes that start within a second of each other and know the addresses of
// the first two alone. Whether all see all, 10 s after the last start.
inline bool TwoSeedsMakeOneComponent(int64_t n, uint64_t seed) {
  MemberNet net(seed);
  for (int64_t i = 0; i < n; ++i) {
    const absl::Duration when = absl::Seconds(1) * net.rng().Uniform();
    net.scheduler().After(when, net.scheduler().NewOwner(),
                          [&net, i] { net.BootSeeded(MemberNet::NameOf(i)); });
  }
  net.RunFor(absl::Seconds(1));
  return net.AgreeWithin(absl::Seconds(10));
}

struct WanResult {
  bool formed = false;
  std::vector<std::string> losses;  // false ones
  int64_t stalls = 0;
  int64_t resets = 0;
  absl::Duration detection = absl::InfiniteDuration();  // by all, of a kill
};

// `n` nodes with 200 ms between any two. A tenth of the links stalls
// at random for 1 to 6 s, each about every 20 s; each link is reset once a
// minute. After `duration` of it a node is killed.
class WanWeather {
 public:
  WanWeather(int64_t n, uint64_t seed) : net_(seed, Options()) {
    MemberNodeOptions options;
    options.pace = ports::Pace::kWan;
    names_ = net_.BootMany(n, options);
  }

  WanResult Run(absl::Duration duration) {
    result_.formed = net_.AgreeWithin(absl::Seconds(30));
    net_.RunFor(absl::Minutes(2));  // until the seeds' many links are closed
    net_.ForgetChanges();
    for (const auto& pair : net_.LinkedPairs()) {
      PlanReset(pair, absl::Minutes(1) * net_.rng().Uniform());
      if (net_.rng().Bernoulli(0.1)) PlanStall(pair);
    }
    net_.RunFor(duration);
    result_.losses = net_.Losses();
    const std::string dead = names_[names_.size() / 2];
    const absl::Time killed = net_.scheduler().Now();
    net_.Kill(dead);
    if (net_.GoneWithin(dead, absl::Minutes(2))) {
      result_.detection = net_.scheduler().Now() - killed;
    }
    return result_;
  }
  uint64_t trace() { return net_.scheduler().trace().value(); }

 private:
  using Pair = std::pair<std::string, std::string>;

  static simports::SimNetworkOptions Options() {
    simports::SimNetworkOptions options;
    options.path.delay = absl::Milliseconds(200);
    return options;
  }
  void After(absl::Duration delay, std::function<void()> task) {
    net_.scheduler().After(delay, owner_, std::move(task));
  }
  void PlanReset(const Pair& pair, absl::Duration delay) {
    After(delay, [this, pair] {
      ++result_.resets;
      net_.network().ResetLinks(pair.first + ":1", pair.second + ":1");
      PlanReset(pair, absl::Minutes(1));
    });
  }
  void PlanStall(const Pair& pair) {
    After(absl::Seconds(40) * net_.rng().Uniform(), [this, pair] {
      ++result_.stalls;
      net_.network().BlackHole(pair.first + ":1", pair.second + ":1");
      After(absl::Seconds(1) + absl::Seconds(5) * net_.rng().Uniform(),
            [this, pair] {
              net_.network().Heal(pair.first + ":1", pair.second + ":1");
              PlanStall(pair);
            });
    });
  }

  MemberNet net_;
  const simports::SimScheduler::OwnerId owner_ = net_.scheduler().NewOwner();
  std::vector<std::string> names_;
  WanResult result_;
};

// Bytes a second and node that membership of `n` nodes sends when nothing
// happens, over `duration`.
inline double IdleBytesPerSecond(int64_t n, absl::Duration duration) {
  MemberNet net;
  net.BootMany(n);
  if (!net.AgreeWithin(absl::Seconds(30))) return 1e9;
  net.RunFor(absl::Minutes(2));  // until the seeds' many links are closed
  const int64_t before = net.network().sent().bytes;
  net.RunFor(duration);
  const int64_t sent = net.network().sent().bytes - before;
  return static_cast<double>(sent) / absl::ToDoubleSeconds(duration) /
         static_cast<double>(n);
}

}  // namespace dfl::runtime

#endif  // DFL_TESTS_UNIT_MEMBERSHIP_SCENARIOS_H_
