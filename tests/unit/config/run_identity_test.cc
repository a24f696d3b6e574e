// The id and the seed of a run follow from its first document.
#include "daemon/config/run_identity.h"

#include <string>

#include "absl/strings/str_replace.h"
#include "daemon/config/plan_yaml.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dfl::config {
namespace {

using testing::MatchesRegex;

constexpr char kPlan[] =
    "members: [a, b]\n"
    "model: {kind: logistic}\n"
    "algorithm: {name: d-psgd, knobs: {eta: 0.05}}\n"
    "codec: {coordinates: dense}\n";

core::RunPlan Parse(const std::string& text) {
  const auto plan = ParsePlan(text, "plan");
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? *plan : core::RunPlan();
}

core::RunPlan Identified(const std::string& text, uint64_t counter = 1) {
  core::RunPlan plan = Parse(text);
  IdentifyNewRun(counter, plan);
  return plan;
}

TEST(RunIdentity, FollowsFromTheDocumentAndNotFromItsMembersOrForm) {
  const core::RunPlan first = Identified(kPlan);
  EXPECT_THAT(first.run_id, MatchesRegex("[0-9a-f]+-1"));
  EXPECT_EQ(first.run_id.size(), 14u);
  EXPECT_GE(first.seed, 1u);
  EXPECT_LE(first.seed, 999'999'999u);
  const core::RunPlan again = Identified(
      absl::StrReplaceAll(kPlan, {{"[a, b]", "[c, {name: a, rows: 5}]"},
                                  {"model: {kind: logistic}\n",
                                   "# a remark\n"
                                   "model:\n  kind: logistic\n"}}));
  EXPECT_EQ(again.run_id, first.run_id);
  EXPECT_EQ(again.seed, first.seed);
  const core::RunPlan all = Identified(absl::StrReplaceAll(
      kPlan, {{"members: [a, b]\n", ""},
              {"codec:", "topology: {kind: complete}\ncodec:"}}));
  EXPECT_EQ(all.run_id, first.run_id);
  EXPECT_NE(Identified(absl::StrReplaceAll(kPlan, {{"0.05", "0.06"}})).run_id,
            first.run_id);
  EXPECT_NE(Identified(std::string(kPlan) + "data: {classes: [x, y]}\n").run_id,
            first.run_id);
  EXPECT_NE(Identified(kPlan, 2).run_id, first.run_id);
  EXPECT_NE(Identified(kPlan, 2).seed, first.seed);
}

TEST(RunIdentity, WhatIsWrittenStands) {
  const core::RunPlan seeded = Identified(std::string(kPlan) + "seed: 7\n");
  EXPECT_EQ(seeded.seed, 7u);
  const core::RunPlan named = Identified(std::string(kPlan) + "run: mine\n");
  EXPECT_EQ(named.run_id, "mine");
  EXPECT_EQ(named.seed, Identified(std::string(kPlan) + "run: mine\n").seed);
  EXPECT_NE(named.seed, 0u);
}

TEST(RunIdentity, TheSameDocumentGoesOnWithItsRun) {
  core::RunPlan plan = Parse(kPlan);
  IdentifyRun({}, plan);
  EXPECT_EQ(plan.run_id, Identified(kPlan).run_id);
  core::RunPlan again = Parse(kPlan);
  IdentifyRun({plan.run_id, 3}, again);
  EXPECT_EQ(again.run_id, plan.run_id);
  core::RunPlan other = Parse(absl::StrReplaceAll(kPlan, {{"0.05", "0.06"}}));
  IdentifyRun({plan.run_id, 3}, other);
  EXPECT_THAT(other.run_id, MatchesRegex(".*-2"));
}

TEST(RunIdentity, ACounterIsAboveThoseOfAllFormerRuns) {
  EXPECT_EQ(NextRunCounter({"", 0}), 1u);
  EXPECT_EQ(NextRunCounter({"0123456789ab-4", 9}), 5u);
  // An id that its author wrote: no run before it had a higher counter than
  // the plan has versions.
  EXPECT_EQ(NextRunCounter({"mine", 9}), 10u);
  EXPECT_EQ(NextRunCounter({"0123456789xy-4", 9}), 10u);
}

}  // namespace
}  // namespace dfl::config
