// Which asks are out, and which wait.
#include "daemon/runtime/ask_book.h"

#include <set>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace dfl::runtime {
namespace {

const NodeId kA("a");
const NodeId kB("b");

TEST(AskBookTest, AnAskIsOutToEachPeerUntilItIsClosedThere) {
  AskBook book;
  const uint64_t ask = AskBook::WireAsk(3, 5);
  EXPECT_EQ(AskBook::EpochOf(ask), 3U);
  EXPECT_EQ(AskBook::AskOf(ask), 5U);
  EXPECT_FALSE(AskBook::IsStateAsk(ask));
  book.Open(ask, {kA, kB});
  EXPECT_TRUE(book.IsOut(ask, kA));
  EXPECT_FALSE(book.IsOut(AskBook::WireAsk(2, 5), kA));
  EXPECT_TRUE(book.Close(ask, kA));
  EXPECT_FALSE(book.Close(ask, kA));
  EXPECT_FALSE(book.IsOut(ask, kA));
  EXPECT_TRUE(book.IsOut(ask, kB));
  EXPECT_EQ(book.CloseAll(ask), std::set<NodeId>{kB});
  EXPECT_TRUE(book.CloseAll(ask).empty());
}

TEST(AskBookTest, AnAlgorithmsEndLeavesAsksForAStateOut) {
  AskBook book;
  const uint64_t state = book.OpenStateAsk(kA);
  EXPECT_TRUE(AskBook::IsStateAsk(state));
  const uint64_t second = AskBook::WireAsk(1, 2);
  const uint64_t first = AskBook::WireAsk(1, 1);
  book.Open(second, {kA});
  book.Open(first, {kA, kB});
  EXPECT_EQ(book.OutTo(kA), (std::vector<uint64_t>{state, first, second}));
  EXPECT_EQ(book.OutTo(kB), std::vector<uint64_t>{first});
  const auto closed = book.CloseAlgorithms();
  ASSERT_EQ(closed.size(), 2U);
  EXPECT_EQ(closed[0].first, first);
  EXPECT_EQ(closed[0].second, (std::set<NodeId>{kA, kB}));
  EXPECT_EQ(closed[1].first, second);
  EXPECT_EQ(book.OutTo(kA), std::vector<uint64_t>{state});
  EXPECT_NE(book.OpenStateAsk(kA), state);
}

TEST(AskBookTest, ANewerAskOfOnePeerAndPurposeTakesThePlaceOfTheOlder) {
  AskBook book;
  EXPECT_FALSE(book.Wait(kA, {1, ports::AskPurpose::kMix, 0}));
  EXPECT_FALSE(book.Wait(kB, {7, ports::AskPurpose::kMix, 0}));
  EXPECT_FALSE(book.Wait(kA, {2, ports::AskPurpose::kState, 0}));
  EXPECT_TRUE(book.Wait(kA, {3, ports::AskPurpose::kMix, 0}));
  ASSERT_TRUE(book.waiting());
  EXPECT_EQ(book.TakeFirst().ask.ask, 3U);
  EXPECT_EQ(book.TakeFirst().ask.ask, 7U);
  EXPECT_EQ(book.TakeFirst().ask.ask, 2U);
  EXPECT_FALSE(book.waiting());
}

TEST(AskBookTest, APeerMayDropOneAskOrAll) {
  AskBook book;
  book.Wait(kA, {1, ports::AskPurpose::kMix, 0});
  book.Wait(kA, {2, ports::AskPurpose::kState, 0});
  book.Wait(kB, {1, ports::AskPurpose::kMix, 0});
  book.Forget(kA, 1);
  book.Forget(kA, 9);
  EXPECT_EQ(book.TakeFirst().ask.ask, 2U);
  book.Wait(kA, {2, ports::AskPurpose::kState, 0});
  book.Forget(kA);
  EXPECT_EQ(book.TakeFirst().from, kB);
  EXPECT_FALSE(book.waiting());
}

}  // namespace
}  // namespace dfl::runtime
