// Steps, rounds and epochs, and which of them ends a run.
#include "daemon/core/algorithm/pace.h"

#include <cstdint>
#include <limits>

#include "daemon/core/plan/run_plan.h"
#include "daemon/core/plan/stop_rule.h"
#include "gtest/gtest.h"

namespace dfl::core {
namespace {

TEST(EpochCount, CountsStepsByWhatAnEpochWasThen) {
  EpochCount epochs;
  EXPECT_EQ(epochs.At(7), 0) << "nothing is known of its length";
  epochs.Count(30, 10);
  EXPECT_DOUBLE_EQ(epochs.At(30), 3);
  EXPECT_DOUBLE_EQ(epochs.At(35), 3.5);
  epochs.Count(35, 10);
  // Larger batches: an epoch is five steps from step 35 on.
  epochs.Count(40, 5);
  EXPECT_DOUBLE_EQ(epochs.At(40), 4.5);
  epochs.Count(45, 5);
  EXPECT_DOUBLE_EQ(epochs.At(50), 6.5);
}

TEST(EpochCount, BeginsWithTheStepsOfTheModel) {
  EpochCount epochs;
  epochs.Count(500, 100);  // it joined there
  EXPECT_DOUBLE_EQ(epochs.At(500), 5);
}

TEST(TimesAtMost, NeverOverflows) {
  EXPECT_EQ(TimesAtMost(5, 7), 35);
  EXPECT_EQ(TimesAtMost(0.5, 7), 3);
  EXPECT_EQ(TimesAtMost(59, std::numeric_limits<int64_t>::max()),
            int64_t{1} << 53);
}

TEST(MetLimit, NamesTheOneThatIsMet) {
  StopRule stop;
  EXPECT_EQ(MetLimit(stop, {1 << 30, 1 << 30}, 1e9), "");
  stop.steps = 590;
  stop.rounds = 20;
  stop.epochs = 2.5;
  EXPECT_EQ(MetLimit(stop, {589, 19}, 2.49), "");
  EXPECT_EQ(MetLimit(stop, {590, 10}, 1), "590 steps are done");
  EXPECT_EQ(MetLimit(stop, {649, 11}, 1), "590 steps are done");
  EXPECT_EQ(MetLimit(stop, {100, 20}, 1), "20 rounds are done");
  EXPECT_EQ(MetLimit(stop, {100, 2}, 2.5), "2.5 epochs are done");
}

// A tenth of 30 batches is 3 of them, whatever a tenth is in binary.
TEST(MetLimit, EpochsAreNotMissedByRounding) {
  StopRule stop;
  for (int64_t per_pass = 1; per_pass < 200; ++per_pass) {
    for (int64_t steps = 1; steps < 3 * per_pass; steps += 7) {
      EpochCount epochs;
      epochs.Count(steps, per_pass);
      stop.epochs =
          static_cast<double>(steps) * (1.0 / static_cast<double>(per_pass));
      EXPECT_NE(MetLimit(stop, {}, epochs.At(steps)), "");
      EXPECT_EQ(MetLimit(stop, {}, epochs.At(steps - 1)), "");
    }
  }
}

}  // namespace
}  // namespace dfl::core
