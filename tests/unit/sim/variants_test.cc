#include "daemon/sim/variants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "daemon/sim/scenario.h"
#include "tests/unit/sim/scenarios.h"

namespace dfl::sim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

absl::StatusOr<Scenario> Parse(const std::string& variants,
                               const std::string& variant) {
  return ParseScenario(SmallScenario() + variants, "s.yaml", 0, variant);
}

TEST(Variants, AreNamedInTheOrderOfTheFile) {
  EXPECT_THAT(*VariantNames("variants:\n  b: {}\n  a: {}\n", "s.yaml"),
              ElementsAre("b", "a"));
  EXPECT_THAT(*VariantNames("seed: 1\n", "s.yaml"), IsEmpty());
}

TEST(Variants, MergeSectionsKeyByKey) {
  const absl::StatusOr<Scenario> scenario =
      Parse("variants:\n  few: {algorithm: {knobs: {nu: 0.25}}}\n", "few");
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  EXPECT_EQ(scenario->plan.algorithm.knobs.at("nu"), core::KnobValue(0.25));
  EXPECT_EQ(scenario->plan.algorithm.knobs.at("p"), core::KnobValue(0.5));
  EXPECT_EQ(scenario->variant, "few");
}

TEST(Variants, AnotherNameOrKindTakesTheWholeSection) {
  const absl::StatusOr<Scenario> scenario =
      Parse("variants:\n  other: {algorithm: {name: d-psgd}}\n", "other");
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  EXPECT_EQ(scenario->plan.algorithm.name, "d-psgd");
  EXPECT_FALSE(scenario->plan.algorithm.knobs.contains("nu"));
}

TEST(Variants, AnEmptyValueTakesTheKeyAway) {
  const absl::StatusOr<Scenario> scenario =
      Parse("variants:\n  plain: {batch_size: }\n", "plain");
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  EXPECT_EQ(scenario->plan.batch_size, core::RunPlan().batch_size);
}

TEST(Variants, WithoutOneTheDocumentIsAsItWouldBeWithoutThem) {
  const absl::StatusOr<Scenario> scenario =
      Parse("variants:\n  few: {algorithm: {knobs: {nu: 0.25}}}\n", "");
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  EXPECT_EQ(scenario->plan.algorithm.knobs.at("nu"), core::KnobValue(0.5));
}

TEST(Variants, MistakesHaveTheirLine) {
  const struct {
    std::string text;
    std::string said;
  } kCases[] = {
      {"variants: [a]\n", "s.yaml:11: variants: "},
      {"variants:\n  a/b: {}\n", "s.yaml:12: variants: found \"a/b\""},
      {"variants:\n  ..: {}\n", "s.yaml:12: variants: found \"..\""},
      {"variants:\n  a: 3\n", "s.yaml:12: variants.a: "},
      {"variants:\n  a: {variants: {b: {}}}\n", "no variants of its own"},
      // What it says is checked with the rest, under its own line.
      {"variants:\n  a: {algorithm: {knobs: {nu: 7}}}\n", "s.yaml:12: "},
      {"variants:\n  a: {speed: 7}\n", "s.yaml:12: speed: "},
  };
  for (const auto& [text, said] : kCases) {
    const absl::Status status = Parse(text, "a").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(said)) << text;
  }
}

}  // namespace
}  // namespace dfl::sim
