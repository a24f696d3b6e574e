#include "daemon/runtime/membership/suspicions.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dfl::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const absl::Time kStart = absl::UnixEpoch();
const absl::Duration kLeast = absl::Seconds(2);
const NodeId kNode("box");

TEST(Suspicions, EachOtherWhoSuspectsShortensIt) {
  Suspicions suspicions;
  EXPECT_EQ(suspicions.Next(), absl::InfiniteFuture());
  EXPECT_TRUE(suspicions.Add(kNode, {1, 0}, NodeId("a"), kLeast, kStart));
  EXPECT_EQ(suspicions.Next(), kStart + absl::Seconds(6));
  EXPECT_FALSE(suspicions.Add(kNode, {1, 0}, NodeId("a"), kLeast, kStart));
  EXPECT_EQ(suspicions.Next(), kStart + absl::Seconds(6));
  EXPECT_TRUE(suspicions.Add(kNode, {1, 0}, NodeId("b"), kLeast, kStart));
  EXPECT_TRUE(suspicions.Add(kNode, {1, 0}, NodeId("c"), kLeast, kStart));
  EXPECT_TRUE(suspicions.Add(kNode, {1, 0}, NodeId("d"), kLeast, kStart));
  EXPECT_NEAR(absl::ToDoubleSeconds(suspicions.Next() - kStart), 2, 1e-6);
  // More of them change nothing and need not travel.
  EXPECT_FALSE(suspicions.Add(kNode, {1, 0}, NodeId("e"), kLeast, kStart));
  EXPECT_THAT(suspicions.TakeOver(kStart + absl::Seconds(1)), IsEmpty());
  EXPECT_THAT(suspicions.TakeOver(kStart + absl::Seconds(3)),
              ElementsAre(kNode));
  EXPECT_EQ(suspicions.size(), 0U);
}

TEST(Suspicions, AnotherIncarnationBeginsAnew) {
  Suspicions suspicions;
  suspicions.Add(kNode, {1, 0}, NodeId("a"), kLeast, kStart);
  suspicions.Add(kNode, {1, 0}, NodeId("b"), kLeast, kStart);
  const absl::Time later = kStart + absl::Seconds(4);
  EXPECT_TRUE(suspicions.Add(kNode, {1, 1}, NodeId("a"), kLeast, later));
  EXPECT_EQ(suspicions.Next(), later + absl::Seconds(6));
  suspicions.End(kNode);
  EXPECT_FALSE(suspicions.Holds(kNode));
}

TEST(Suspicions, TimeInWhichTheNodeDidNotRunDoesNotCount) {
  Suspicions suspicions;
  suspicions.Add(kNode, {1, 0}, NodeId("a"), kLeast, kStart);
  suspicions.Prolong(absl::Seconds(30), kStart + absl::Seconds(5));
  EXPECT_EQ(suspicions.Next(), kStart + absl::Seconds(36));
  suspicions.Prolong(absl::ZeroDuration(), kStart + absl::Seconds(50));
  EXPECT_EQ(suspicions.Next(), kStart + absl::Seconds(50));
}

}  // namespace
}  // namespace dfl::runtime
