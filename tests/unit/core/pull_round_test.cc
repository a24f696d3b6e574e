#include "daemon/core/rounds/pull_round.h"

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/recorded_actions.h"
#include "tests/unit/core/machine.h"

namespace dfl::core {
namespace {

using testing::ElementsAre;

class PullRoundTest : public testing::Test {
 protected:
  void Begin(int64_t count, int64_t need) {
    round_.Begin(Three(), count, need, decisions_, actions_);
  }
  void Answers(const char* from, uint64_t ask = 1) {
    round_.OnAnswer(AnswerArrived{Id(from), ask, Model({1}, 0)});
  }
  // Who answered, in the order in which End returns them.
  std::vector<std::string> End() {
    std::vector<std::string> names;
    for (const AnswerArrived& answer : round_.End(actions_)) {
      names.push_back(answer.from.name());
    }
    return names;
  }
  template <typename A>
  int Count() const {
    int count = 0;
    for (const Action& action : actions_) {
      count += std::holds_alternative<A>(action) ? 1 : 0;
    }
    return count;
  }
  template <typename A>
  const A& Last() const {
    return std::get<A>(actions_[actions_.size() - 1]);
  }

  ScriptedDecisions decisions_;  // the first are drawn
  RecordedActions actions_;
  PullRound round_;
};

TEST_F(PullRoundTest, IsReadyWithEnoughAnswers) {
  Begin(3, 2);
  EXPECT_THAT(Last<Ask>().peers, ElementsAre(Id("a"), Id("b"), Id("c")));
  round_.Wait(absl::Seconds(2), actions_);
  EXPECT_EQ(Last<WakeAfter>().delay, absl::Seconds(2));
  Answers("c");
  EXPECT_FALSE(round_.ready());
  Answers("a");
  EXPECT_TRUE(round_.ready());
  Answers("b");  // one more than is needed
  EXPECT_THAT(End(), ElementsAre("c", "a"));
  EXPECT_EQ(Count<CancelTimer>(), 1);
  EXPECT_EQ(Count<CancelAsk>(), 0);  // nobody is left
  EXPECT_FALSE(round_.open());
}

TEST_F(PullRoundTest, StragglersNeedNotAnswerAnyMore) {
  Begin(3, 1);
  Answers("b");
  round_.Wait(absl::Seconds(2), actions_);
  EXPECT_EQ(Count<WakeAfter>(), 0);  // nothing to wait for
  EXPECT_TRUE(round_.ready());
  EXPECT_THAT(End(), ElementsAre("b"));
  EXPECT_EQ(Last<CancelAsk>().ask, 1U);
}

TEST_F(PullRoundTest, IsReadyOnlyOnceItWaits) {
  Begin(1, 1);
  Answers("a");
  EXPECT_FALSE(round_.ready());
  round_.Wait(absl::Seconds(2), actions_);
  EXPECT_TRUE(round_.ready());
}

TEST_F(PullRoundTest, IsReadyWhenNobodyIsLeft) {
  Begin(2, 2);
  round_.Wait(absl::Seconds(2), actions_);
  Answers("a");
  round_.OnMissing(AnswerMissing{Id("c"), 1});  // was not asked
  round_.OnMissing(AnswerMissing{Id("b"), 7});  // another question
  EXPECT_FALSE(round_.ready());
  round_.OnMissing(AnswerMissing{Id("b"), 1});
  EXPECT_TRUE(round_.ready());
  EXPECT_THAT(End(), ElementsAre("a"));
}

TEST_F(PullRoundTest, NeedsNoMoreThanAreAsked) {
  Begin(5, 5);
  EXPECT_EQ(Last<Ask>().peers.size(), 3U);
  round_.Wait(absl::Seconds(2), actions_);
  Answers("a");
  EXPECT_TRUE(round_.OnTimer(PullRound::kDeadlineTimer, actions_));
  EXPECT_EQ(Last<Missed>().wanted, 3);
}

TEST_F(PullRoundTest, TheDeadlineReportsWhoIsMissing) {
  Begin(2, 2);
  EXPECT_FALSE(round_.OnTimer(PullRound::kDeadlineTimer, actions_));  // early
  round_.Wait(absl::Seconds(2), actions_);
  Answers("b");
  EXPECT_FALSE(round_.OnTimer(PullRound::kDeadlineTimer + 1, actions_));
  EXPECT_TRUE(round_.OnTimer(PullRound::kDeadlineTimer, actions_));
  EXPECT_THAT(Last<Missed>().peers, ElementsAre(Id("a")));
  EXPECT_EQ(Last<Missed>().wanted, 2);
  EXPECT_EQ(Last<Missed>().came, 1);
  EXPECT_THAT(End(), ElementsAre("b"));
  EXPECT_FALSE(round_.OnTimer(PullRound::kDeadlineTimer, actions_));  // over
}

TEST_F(PullRoundTest, IgnoresWhatItDidNotAskFor) {
  Begin(1, 1);
  round_.Wait(absl::Seconds(2), actions_);
  Answers("b");     // was not asked
  Answers("a", 7);  // another question
  EXPECT_FALSE(round_.ready());
  Answers("a");
  EXPECT_THAT(End(), ElementsAre("a"));
  Answers("a");  // nothing is open
  EXPECT_FALSE(round_.ready());
}

TEST_F(PullRoundTest, ANewQuestionCancelsTheOpenOne) {
  Begin(2, 2);
  Answers("a");
  Begin(2, 2);
  EXPECT_EQ(std::get<CancelAsk>(actions_[1]).ask, 1U);
  EXPECT_EQ(Last<Ask>().ask, 2U);
  Answers("b", 1);  // to the question before
  Answers("b", 2);
  EXPECT_THAT(End(), ElementsAre("b"));
}

TEST_F(PullRoundTest, ADroppedQuestionTellsNobody) {
  Begin(2, 2);
  round_.Wait(absl::Seconds(2), actions_);
  round_.Drop();
  EXPECT_EQ(actions_.size(), 2U);
  EXPECT_FALSE(round_.open());
  Answers("a");
  EXPECT_FALSE(round_.ready());
  EXPECT_FALSE(round_.OnTimer(PullRound::kDeadlineTimer, actions_));
  Begin(1, 1);
  EXPECT_EQ(Last<Ask>().ask, 2U);  // the names go on
}

}  // namespace
}  // namespace dfl::core
