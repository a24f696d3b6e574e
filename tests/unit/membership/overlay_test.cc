// Who should be linked with whom, and the way over these links.
#include "daemon/runtime/membership/overlay.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/rng.h"
#include "gtest/gtest.h"

namespace dfl::runtime {
namespace {

using Pair = std::pair<NodeId, NodeId>;

// N members of names that depend on `seed`; every `undialable`-th at random
// cannot be dialled, none with 0.
struct Network {
  Network(int64_t size, uint64_t seed, uint64_t undialable) {
    Rng rng(seed);
    for (int64_t i = 0; i < size; ++i) {
      names.emplace_back(absl::StrCat("box-", seed, "-", i));
      dialable[names.back()] = undialable == 0 || rng.Below(undialable) != 0;
      overlay.Set(names.back(), dialable[names.back()]);
    }
  }

  // Somebody can be dialled.
  bool CanBeDialled() const {
    return std::any_of(dialable.begin(), dialable.end(),
                       [](const auto& entry) { return entry.second; });
  }

  std::map<NodeId, std::vector<NodeId>> Links() const {
    std::map<NodeId, std::vector<NodeId>> links;
    for (const NodeId& name : names) links[name] = overlay.LinksOf(name);
    return links;
  }

  std::set<Pair> Pairs() const {
    std::set<Pair> pairs;
    for (const auto& [name, others] : Links()) {
      for (const NodeId& other : others) {
        pairs.insert({std::min(name, other), std::max(name, other)});
      }
    }
    return pairs;
  }

  std::vector<NodeId> names;
  std::map<NodeId, bool> dialable;
  Overlay overlay;
};

bool IsConnected(const std::map<NodeId, std::vector<NodeId>>& links) {
  std::set<NodeId> seen = {links.begin()->first};
  std::vector<NodeId> open = {links.begin()->first};
  while (!open.empty()) {
    const NodeId node = open.back();
    open.pop_back();
    for (const NodeId& next : links.at(node)) {
      if (seen.insert(next).second) open.push_back(next);
    }
  }
  return seen.size() == links.size();
}

// Links that a frame passes; 0: it did not arrive.
int64_t HopsOf(const Network& network,
               const std::map<NodeId, std::vector<NodeId>>& links,
               const NodeId& origin, const NodeId& target) {
  NodeId at = origin;
  NodeId from;
  for (int64_t hops = 1; hops < 64; ++hops) {
    const NodeId next = network.overlay.NextHop(target, from, links.at(at));
    if (next == target) return hops;
    if (next.empty()) return 0;
    from = std::exchange(at, next);
  }
  return 0;
}

TEST(Overlay, LinksAreMutualAndAreFingersOfOneOfTheTwo) {
  for (const int64_t size : {1, 2, 3, 7, 40}) {
    const Network network(size, 5, 3);
    for (const NodeId& a : network.names) {
      const std::vector<NodeId> links = network.overlay.LinksOf(a);
      for (const NodeId& b : network.names) {
        const bool listed = std::binary_search(links.begin(), links.end(), b);
        EXPECT_EQ(listed, a != b && network.overlay.ShouldLink(a, b))
            << a.name() << " " << b.name();
        if (!listed) continue;
        EXPECT_TRUE(network.dialable.at(a) || network.dialable.at(b));
      }
    }
  }
}

TEST(Overlay, ItIsConnectedAndEachMemberHasFewLinks) {
  for (const uint64_t undialable : {0, 3}) {
    for (const int64_t size : {2, 3, 5, 16, 64, 300, 1000}) {
      const uint64_t seeds = size > 100 ? 5 : 40;
      for (uint64_t seed = 1; seed <= seeds; ++seed) {
        SCOPED_TRACE(absl::StrCat(size, " members, seed ", seed, ", one of ",
                                  undialable, " cannot be dialled"));
        const Network network(size, seed, undialable);
        // With nobody to dial there is no network.
        if (!network.CanBeDialled()) {
          continue;
        }
        const auto links = network.Links();
        EXPECT_TRUE(IsConnected(links));
        double sum = 0;
        for (const auto& [name, others] : links) {
          sum += static_cast<double>(others.size());
        }
        const double log2 = std::log2(static_cast<double>(size));
        EXPECT_LE(sum / static_cast<double>(size), 2 * log2 + 2);
      }
    }
  }
}

TEST(Overlay, AJoinOrLeaveChangesFewPairs) {
  for (const int64_t size : {64, 1000}) {
    double changed = 0;
    const int64_t joins = 20;
    Network network(size, 3, 3);
    std::set<Pair> before = network.Pairs();
    for (int64_t i = 0; i < joins; ++i) {
      const NodeId newcomer(absl::StrCat("late-", i));
      network.names.push_back(newcomer);
      network.overlay.Set(newcomer, i % 3 != 0);
      const std::set<Pair> joined = network.Pairs();
      for (const Pair& pair : joined) changed += before.count(pair) == 0;
      for (const Pair& pair : before) changed += joined.count(pair) == 0;
      network.names.pop_back();
      EXPECT_TRUE(network.overlay.Remove(newcomer));
      EXPECT_EQ(network.Pairs(), before);  // it leaves no trace
    }
    EXPECT_LE(changed / static_cast<double>(joins),
              6 * std::log2(static_cast<double>(size)))
        << size;
  }
}

TEST(Overlay, AFrameArrivesWithinAFewLinks) {
  for (const uint64_t undialable : {0, 3}) {
    for (const int64_t size : {2, 10, 64, 1000}) {
      const Network network(size, size == 2 ? 1 : 11, undialable);
      ASSERT_TRUE(network.CanBeDialled());
      const auto links = network.Links();
      const int64_t most =
          static_cast<int64_t>(std::log2(static_cast<double>(size))) + 2;
      Rng rng(1);
      for (int i = 0; i < 3000; ++i) {
        const NodeId& origin = network.names[rng.Below(network.names.size())];
        const NodeId& target = network.names[rng.Below(network.names.size())];
        if (origin == target) continue;
        const int64_t hops = HopsOf(network, links, origin, target);
        EXPECT_GE(hops, 1) << origin.name() << " to " << target.name();
        EXPECT_LE(hops, most) << origin.name() << " to " << target.name();
      }
    }
  }
}

TEST(Overlay, AFrameNeverGoesBackToWhereItCameFrom) {
  const Network network(8, 1, 0);
  const NodeId only = network.names[3];
  EXPECT_EQ(network.overlay.NextHop(network.names[0], NodeId(), {only}), only);
  EXPECT_TRUE(network.overlay.NextHop(network.names[0], only, {only}).empty());
  // Nor to somebody of whom nothing is known.
  EXPECT_TRUE(
      network.overlay.NextHop(network.names[0], NodeId(), {NodeId("stranger")})
          .empty());
  // The target itself is always right.
  const NodeId unknown("stranger");
  EXPECT_EQ(network.overlay.NextHop(unknown, only, {only, unknown}), unknown);
}

TEST(Overlay, WhetherAMemberCanBeDialledMayChange) {
  Network network(10, 2, 0);
  const auto before = network.Pairs();
  const NodeId& node = network.names[4];
  EXPECT_FALSE(network.overlay.Set(node, true));
  EXPECT_TRUE(network.overlay.Set(node, false));
  EXPECT_EQ(network.overlay.size(), 10U);
  EXPECT_TRUE(network.overlay.Set(node, true));
  EXPECT_EQ(network.Pairs(), before);
  EXPECT_TRUE(network.overlay.Remove(node));
  EXPECT_FALSE(network.overlay.Remove(node));
  EXPECT_TRUE(network.overlay.LinksOf(node).empty());
}

}  // namespace
}  // namespace dfl::runtime
