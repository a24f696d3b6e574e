// Networks that find themselves: nodes that know a seed or two, and nothing is
// linked by hand.
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "tests/unit/membership/member_net.h"

namespace dfl::runtime {
namespace {

class FoundNetworkTest : public testing::Test {
 protected:
  // Nodes n0000, n0001, ...; the first two are everybody's seeds. Each
  // `undialable`-th of the others only dials out; 0: none.
  void Start(MemberNet& net, int64_t size, int64_t undialable = 0) {
    for (int64_t i = 0; i < size; ++i) {
      MemberNodeOptions options;
      const bool dialable =
          i < 2 || undialable == 0 || i % undialable != undialable - 1;
      options.dialable = dialable;
      options.accepts_dials = dialable;
      BootOne(net, MemberNet::NameOf(i), options);
    }
  }
  MemberNode& BootOne(MemberNet& net, const std::string& name,
                      const MemberNodeOptions& options = Dialable()) {
    MemberNode& node = net.Boot(name, options);
    node.membership().SetCandidates("settings", {"n0000:1", "n0001:1"});
    return node;
  }
  static MemberNodeOptions Dialable() {
    MemberNodeOptions options;
    options.dialable = true;
    return options;
  }

  static std::set<std::string> LinkedOf(MemberNode& node) {
    std::set<std::string> linked;
    for (const auto& [name, peer] : node.links().peers()) {
      if (peer.link != 0) linked.insert(name.name());
    }
    return linked;
  }

  // How a ping of `to` goes.
  static absl::StatusOr<Ping> SendPing(MemberNet& net, MemberNode& from,
                                       const std::string& to) {
    std::optional<absl::StatusOr<Ping>> result;
    from.membership().SendPing(
        NodeId(to), absl::Seconds(1),
        [&](absl::StatusOr<Ping> ping) { result = std::move(ping); });
    net.Within(absl::Seconds(2), [&] { return result.has_value(); });
    return result.has_value() ? *result : absl::InternalError("never done");
  }
};

TEST_F(FoundNetworkTest, NodesWithTwoSeedsBecomeOneNetworkWithFewLinks) {
  for (const int64_t undialable : {0, 3}) {
    SCOPED_TRACE(undialable);
    MemberNet net(3);
    Start(net, 40, undialable);
    EXPECT_TRUE(net.AgreeWithin(absl::Seconds(10)));
    net.RunFor(absl::Seconds(90));
    EXPECT_TRUE(net.Agree());
    EXPECT_TRUE(net.Losses().empty());
    size_t links = 0;
    for (const auto& [name, node] : net.nodes()) {
      links += LinkedOf(*node).size();
    }
    EXPECT_LE(links / net.nodes().size(), 14U);  // 2 log2 40 + 2, and no seed's
    EXPECT_LE(LinkedOf(net.node("n0000")).size(), 25U);
    // Whoever is not linked is reached, also between two that only dial out.
    for (const auto& [name, node] : net.nodes()) {
      if (name == "n0002") continue;
      const auto ping = SendPing(net, net.node("n0002"), name);
      EXPECT_TRUE(ping.ok()) << name << ": " << ping.status();
    }
  }
}

TEST_F(FoundNetworkTest, AQuestionFindsItsMember) {
  MemberNet net(5);
  Start(net, 24);
  ASSERT_TRUE(net.AgreeWithin(absl::Seconds(10)));
  net.RunFor(absl::Seconds(60));
  for (const auto& [name, node] : net.nodes()) {
    const std::string text = "I am " + name;
    node->membership().SetAnswer(kStatusTopic, [text] { return text; });
  }
  size_t answered = 0;
  for (const auto& [name, node] : net.nodes()) {
    net.node("n0003").membership().Ask(
        NodeId(name), kStatusTopic, absl::Seconds(2),
        [&answered, name = name](const absl::StatusOr<std::string>& answer) {
          ASSERT_TRUE(answer.ok()) << answer.status();
          EXPECT_EQ(*answer, "I am " + name);
          ++answered;
        });
  }
  net.RunFor(absl::Seconds(3));
  EXPECT_EQ(answered, 24U);
}

TEST_F(FoundNetworkTest, WithoutASeedANodeIsAloneAndJoinsWhenOneAppears) {
  MemberNet net(7);
  MemberNode& late = BootOne(net, "n0007");
  net.RunFor(absl::Minutes(5));
  EXPECT_EQ(late.Present().size(), 1U);
  BootOne(net, "n0000");
  EXPECT_TRUE(net.AgreeWithin(absl::Seconds(15)));
}

TEST_F(FoundNetworkTest, ANetworkThatWasSplitIsOneAgain) {
  MemberNet net(9);
  Start(net, 8);
  ASSERT_TRUE(net.AgreeWithin(absl::Seconds(10)));
  // Both seeds are on one side.
  const auto address = [](int64_t i) { return MemberNet::NameOf(i) + ":1"; };
  const auto each = [&](const auto& fault) {
    for (int64_t i = 0; i < 3; ++i) {
      for (int64_t j = 3; j < 8; ++j) fault(address(i), address(j));
    }
  };
  each([&](const auto& a, const auto& b) { net.network().Cut(a, b); });
  net.RunFor(absl::Minutes(1));
  EXPECT_EQ(net.node("n0000").Present().size(), 3U);
  EXPECT_EQ(net.node("n0007").Present().size(), 5U);
  each([&](const auto& a, const auto& b) { net.network().Heal(a, b); });
  EXPECT_TRUE(net.AgreeWithin(absl::Seconds(60)));
}

// With a copied state directory: name, count of starts and all.
TEST_F(FoundNetworkTest, ASecondNodeOfOneNameIsRefusedWhereverItDials) {
  MemberNet net(11);
  Start(net, 24);
  ASSERT_TRUE(net.AgreeWithin(absl::Seconds(10)));
  net.RunFor(absl::Seconds(60));
  MemberNode& first = net.node("n0009");
  net.ForgetChanges();
  const std::set<std::string> before = LinkedOf(first);
  MemberNodeOptions options = Dialable();
  options.memory = 4711;
  options.address = "clone:1";
  MemberNode clone(net.network(), "n0009", options);
  for (int64_t i = 0; i < 24; ++i) {
    if (i != 9) clone.Dial(MemberNet::NameOf(i));
  }
  for (int i = 0; i < 30; ++i) {
    net.RunFor(absl::Seconds(1));
    EXPECT_TRUE(LinkedOf(clone).empty()) << i << " s";
  }
  for (const auto& [address, entry] : clone.links().addresses()) {
    EXPECT_NE(entry.last_error.find("a cloned image? give each its own name"),
              std::string::npos)
        << address << ": " << entry.last_error;
  }
  EXPECT_EQ(LinkedOf(first), before);
  EXPECT_TRUE(net.Agree());
  EXPECT_TRUE(net.Losses().empty());
}

TEST_F(FoundNetworkTest, ARestartIsLetInAtItsNextTry) {
  MemberNet net(13);
  Start(net, 24);
  ASSERT_TRUE(net.AgreeWithin(absl::Seconds(10)));
  net.RunFor(absl::Seconds(60));
  net.Kill("n0009");
  net.RunFor(absl::Milliseconds(100));  // nobody believes it dead yet
  MemberNodeOptions options = Dialable();
  options.starts = 2;
  MemberNode& again = BootOne(net, "n0009", options);
  EXPECT_TRUE(
      net.Within(absl::Seconds(3), [&] { return !LinkedOf(again).empty(); }));
  EXPECT_TRUE(net.AgreeWithin(absl::Seconds(5)));
}

}  // namespace
}  // namespace dfl::runtime
