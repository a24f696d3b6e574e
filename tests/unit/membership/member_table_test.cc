#include "daemon/runtime/membership/member_table.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/rng.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dfl::runtime {
namespace {

using ports::MemberFacts;
using ports::MemberIncarnation;
using ports::MemberState;
using ports::MemberUpdate;
using Effect = Merged::Effect;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const absl::Time kNow = absl::UnixEpoch();
const NodeId kSelf("self");
const NodeId kBox("box");

MemberFacts FactsOf(int64_t rows) {
  MemberFacts facts;
  facts.rows = rows;
  return facts;
}

MemberUpdate Update(const NodeId& node, MemberIncarnation incarnation,
                    MemberState state, const std::string& by = "") {
  MemberUpdate update;
  update.node = node;
  update.incarnation = incarnation;
  update.state = state;
  update.by = NodeId(by);
  if (state == MemberState::kAlive) update.facts = FactsOf(5);
  return update;
}

class Table : public ::testing::Test {
 protected:
  Effect Merge(const MemberUpdate& update) {
    return table_.Merge(update, kNow).effect;
  }
  MemberState StateOf(const NodeId& node) {
    const Member* member = table_.Find(node);
    return member == nullptr ? MemberState{} : member->state;
  }

  MemberTable table_{kSelf, 3, FactsOf(7), kNow};
};

TEST_F(Table, HoldsItselfFirst) {
  EXPECT_EQ(table_.present(), 1);
  EXPECT_EQ(table_.Find(kSelf)->incarnation, (MemberIncarnation{3, 0}));
  EXPECT_EQ(table_.StatementOn(kSelf).facts, FactsOf(7));
}

// Of all pairs of statements the same one holds in either order.
TEST_F(Table, TheOrderOfStatementsDoesNotMatter) {
  std::vector<MemberUpdate> all;
  for (uint64_t starts : {1, 2}) {
    for (uint64_t refutations : {0, 1}) {
      for (MemberState state : {MemberState::kAlive, MemberState::kSuspect,
                                MemberState::kDead, MemberState::kLeft}) {
        all.push_back(Update(kBox, {starts, refutations}, state, "x"));
      }
    }
  }
  for (const MemberUpdate& a : all) {
    for (const MemberUpdate& b : all) {
      const auto after = [](const MemberUpdate& first,
                            const MemberUpdate& second) {
        MemberTable table(kSelf, 1, {}, kNow);
        table.Merge(Update(kBox, {1, 0}, MemberState::kAlive), kNow);
        // One who is not suspected yet is not dead by one word.
        table.Merge(Update(kBox, {1, 0}, MemberState::kSuspect, "y"), kNow);
        table.Merge(first, kNow);
        table.Merge(second, kNow);
        table.Merge(first, kNow);
        table.Merge(second, kNow);
        const Member* member = table.Find(kBox);
        return std::tuple(member->incarnation, member->state, table.digest());
      };
      EXPECT_EQ(after(a, b), after(b, a))
          << MemberStateName(a.state) << a.incarnation.starts << "."
          << a.incarnation.refutations << " " << MemberStateName(b.state)
          << b.incarnation.starts << "." << b.incarnation.refutations;
    }
  }
}

TEST_F(Table, OfOneIncarnationTheWorseStateHolds) {
  EXPECT_EQ(Merge(Update(kBox, {1, 0}, MemberState::kAlive)), Effect::kChanged);
  EXPECT_EQ(Merge(Update(kBox, {1, 0}, MemberState::kAlive)), Effect::kNone);
  EXPECT_EQ(Merge(Update(kBox, {1, 0}, MemberState::kSuspect, "a")),
            Effect::kChanged);
  EXPECT_EQ(Merge(Update(kBox, {1, 0}, MemberState::kSuspect, "a")),
            Effect::kNone);
  EXPECT_EQ(Merge(Update(kBox, {1, 0}, MemberState::kSuspect, "b")),
            Effect::kConfirmed);
  EXPECT_EQ(Merge(Update(kBox, {1, 0}, MemberState::kAlive)), Effect::kOlder);
  EXPECT_EQ(Merge(Update(kBox, {1, 0}, MemberState::kDead, "a")),
            Effect::kChanged);
  EXPECT_EQ(StateOf(kBox), MemberState::kDead);
  EXPECT_EQ(table_.present(), 1);
  EXPECT_EQ(Merge(Update(kBox, {1, 0}, MemberState::kLeft)), Effect::kChanged);
  EXPECT_EQ(Merge(Update(kBox, {1, 0}, MemberState::kDead, "a")),
            Effect::kOlder);
  EXPECT_EQ(Merge(Update(kBox, {1, 1}, MemberState::kAlive)), Effect::kChanged);
  EXPECT_EQ(table_.present(), 2);
  EXPECT_EQ(Merge(Update(kBox, {2, 0}, MemberState::kAlive)), Effect::kChanged);
  EXPECT_EQ(Merge(Update(kBox, {1, 9}, MemberState::kLeft)), Effect::kOlder);
}

TEST_F(Table, OneThatIsThoughtAliveIsSuspectBeforeItIsDead) {
  Merge(Update(kBox, {1, 0}, MemberState::kAlive));
  EXPECT_EQ(Merge(Update(kBox, {4, 0}, MemberState::kDead, "liar")),
            Effect::kChanged);
  EXPECT_EQ(StateOf(kBox), MemberState::kSuspect);
  EXPECT_EQ(table_.Find(kBox)->by, NodeId("liar"));
}

TEST_F(Table, NobodyEntersItDeadOrWithoutFacts) {
  EXPECT_EQ(Merge(Update(kBox, {1, 0}, MemberState::kDead, "a")),
            Effect::kNone);
  EXPECT_EQ(Merge(Update(kBox, {1, 0}, MemberState::kLeft)), Effect::kNone);
  EXPECT_EQ(Merge(Update(kBox, {1, 0}, MemberState::kSuspect, "a")),
            Effect::kNone);
  EXPECT_EQ(table_.Find(kBox), nullptr);
  MemberUpdate suspect = Update(kBox, {1, 0}, MemberState::kSuspect, "a");
  suspect.facts = FactsOf(1);
  EXPECT_EQ(Merge(suspect), Effect::kChanged);
  EXPECT_EQ(StateOf(kBox), MemberState::kSuspect);
}

TEST_F(Table, WhatOthersSayOfItselfIsRefuted) {
  EXPECT_EQ(Merge(Update(kSelf, {2, 8}, MemberState::kDead, "a")),
            Effect::kOlder);
  EXPECT_EQ(Merge(Update(kSelf, {3, 0}, MemberState::kSuspect, "a")),
            Effect::kRefuted);
  EXPECT_EQ(table_.Find(kSelf)->incarnation, (MemberIncarnation{3, 1}));
  // A life before this one, of more starts: the disk was wiped since.
  EXPECT_EQ(Merge(Update(kSelf, {9, 4}, MemberState::kAlive)),
            Effect::kRefuted);
  EXPECT_EQ(table_.Find(kSelf)->incarnation, (MemberIncarnation{9, 5}));
  EXPECT_EQ(table_.Find(kSelf)->facts, FactsOf(7));
  MemberUpdate own = table_.StatementOn(kSelf);
  EXPECT_EQ(Merge(own), Effect::kNone);
  EXPECT_EQ(StateOf(kSelf), MemberState::kAlive);
  table_.Leave(kNow);
  EXPECT_EQ(table_.present(), 0);
  EXPECT_EQ(Merge(Update(kSelf, {9, 5}, MemberState::kDead, "a")),
            Effect::kRefuted);
  EXPECT_EQ(StateOf(kSelf), MemberState::kLeft);
}

TEST_F(Table, OtherFactsAreAnotherIncarnation) {
  const uint64_t before = table_.digest();
  EXPECT_FALSE(table_.SetFacts(FactsOf(7)));
  EXPECT_TRUE(table_.SetFacts(FactsOf(8)));
  EXPECT_EQ(table_.Find(kSelf)->incarnation, (MemberIncarnation{3, 1}));
  EXPECT_NE(table_.digest(), before);
  table_.Leave(kNow);
  EXPECT_FALSE(table_.SetFacts(FactsOf(9)));
}

TEST_F(Table, ForgetsWhoIsGoneAndNobodyElse) {
  Merge(Update(kBox, {1, 0}, MemberState::kAlive));
  Merge(Update(NodeId("gone"), {1, 0}, MemberState::kAlive));
  Merge(Update(NodeId("gone"), {1, 0}, MemberState::kLeft));
  EXPECT_THAT(table_.Forget(kNow - absl::Seconds(1)), IsEmpty());
  // Meanwhile old words of it change nothing.
  EXPECT_EQ(Merge(Update(NodeId("gone"), {1, 0}, MemberState::kAlive)),
            Effect::kOlder);
  EXPECT_THAT(table_.Forget(kNow), ElementsAre(NodeId("gone")));
  EXPECT_EQ(table_.members().size(), 2U);
}

TEST_F(Table, AbsurdIncarnationsAreRefused) {
  const uint64_t absurd = ~uint64_t{0};
  EXPECT_EQ(Merge(Update(kBox, {absurd, 0}, MemberState::kAlive)),
            Effect::kNone);
  EXPECT_EQ(Merge(Update(kSelf, {3, absurd}, MemberState::kDead)),
            Effect::kNone);
  EXPECT_EQ(table_.Find(kSelf)->incarnation, (MemberIncarnation{3, 0}));
}

// A forged one could bring a name close to a count that cannot be outdone.
TEST_F(Table, StatementsThatAreFarAheadAreIgnored) {
  const uint64_t most = uint64_t{1} << 20;
  const uint64_t half = uint64_t{1} << 52;
  EXPECT_EQ(Merge(Update(kBox, {half + 1, 0}, MemberState::kAlive)),
            Effect::kNone);
  EXPECT_EQ(table_.Find(kBox), nullptr);
  EXPECT_EQ(Merge(Update(kBox, {most, 0}, MemberState::kAlive)),
            Effect::kChanged);
  for (const MemberState state : {MemberState::kAlive, MemberState::kSuspect,
                                  MemberState::kDead, MemberState::kLeft}) {
    EXPECT_EQ(Merge(Update(kBox, {2 * most + 1, 0}, state, "liar")),
              Effect::kNone);
    EXPECT_EQ(table_.Find(kBox)->incarnation, (MemberIncarnation{most, 0}));
    EXPECT_EQ(StateOf(kBox), MemberState::kAlive);
  }
  EXPECT_EQ(Merge(Update(kBox, {2 * most, 0}, MemberState::kAlive)),
            Effect::kChanged);
  EXPECT_EQ(table_.Find(kBox)->incarnation, (MemberIncarnation{2 * most, 0}));
}

// What others drop, the member must not make its own: it could refute nothing
// any more.
TEST_F(Table, WhatIsFarAheadOfItselfANodeDoesNotTakeOver) {
  const uint64_t most = uint64_t{1} << 20;
  const MemberIncarnation own = table_.Find(kSelf)->incarnation;
  EXPECT_EQ(Merge(Update(kSelf, {own.starts + most + 1, 0}, MemberState::kDead,
                         "liar")),
            Effect::kNone);
  EXPECT_EQ(table_.Find(kSelf)->incarnation, own);
  EXPECT_EQ(
      Merge(Update(kSelf, {own.starts + most, 0}, MemberState::kDead, "liar")),
      Effect::kRefuted);
  // One who never heard of it takes its word.
  MemberTable other(kBox, 1, FactsOf(5), kNow);
  EXPECT_EQ(other.Merge(table_.StatementOn(kSelf), kNow).effect,
            Effect::kChanged);
}

TEST_F(Table, AForgedCountOfRefutationsIsRefutedByOneMoreStart) {
  const MemberUpdate forged = Update(kSelf, {3, (uint64_t{1} << 53) - 1},
                                     MemberState::kSuspect, "liar");
  MemberTable other(kBox, 1, FactsOf(5), kNow);
  other.Merge(table_.StatementOn(kSelf), kNow);
  EXPECT_EQ(other.Merge(forged, kNow).effect, Effect::kChanged);
  EXPECT_EQ(other.Find(kSelf)->state, MemberState::kSuspect);
  EXPECT_EQ(Merge(forged), Effect::kRefuted);
  EXPECT_EQ(table_.Find(kSelf)->incarnation, (MemberIncarnation{4, 0}));
  EXPECT_EQ(other.Merge(table_.StatementOn(kSelf), kNow).effect,
            Effect::kChanged);
  EXPECT_EQ(other.Find(kSelf)->state, MemberState::kAlive);
  Merge(other.StatementOn(kBox));
  EXPECT_EQ(other.digest(), table_.digest());
}

TEST_F(Table, IsBounded) {
  for (size_t i = 0; i < kMostMembers + 10; ++i) {
    Merge(Update(NodeId(absl::StrCat("m", i)), {1, 0}, MemberState::kAlive));
  }
  EXPECT_EQ(table_.members().size(), kMostMembers);
}

// Kept up as it changes, the digest is that of a table made at once.
TEST_F(Table, TheDigestDependsOnWhoIsPresentAlone) {
  Rng rng(1);
  for (int i = 0; i < 2000; ++i) {
    const NodeId node(absl::StrCat("m", rng.Below(40)));
    Merge(Update(node, {1 + rng.Below(3), rng.Below(3)},
                 static_cast<MemberState>(1 + rng.Below(4)), "x"));
    if (rng.Bernoulli(0.02)) table_.Forget(kNow);
  }
  MemberTable other(kSelf, 3, FactsOf(7), kNow);
  int64_t present = 0;
  for (const auto& [node, member] : table_.members()) {
    if (!member.present()) continue;
    ++present;
    if (node == kSelf) continue;  // it refutes whatever others say of it
    other.Merge(Update(node, member.incarnation, MemberState::kAlive), kNow);
  }
  EXPECT_EQ(table_.present(), present);
  EXPECT_EQ(table_.buckets(), other.buckets());
  EXPECT_EQ(table_.digest(), other.digest());
  other.Merge(Update(NodeId("one-more"), {1, 0}, MemberState::kAlive), kNow);
  EXPECT_NE(table_.digest(), other.digest());
}

}  // namespace
}  // namespace dfl::runtime
