#include "daemon/core/algorithm/knobs.h"

#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dfl::core {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

std::string Message(const absl::Status& status) {
  return std::string(status.message());
}

KnobSpec Number(double min, double max) {
  KnobSpec spec;
  spec.name = "nu";
  spec.default_value = 0.5;
  spec.min = min;
  spec.max = max;
  return spec;
}

KnobSpec Rate() {
  KnobSpec spec = Number(0, 1);
  spec.min_open = true;
  return spec;
}

KnobSpec Period() {
  KnobSpec spec;
  spec.name = "kappa";
  spec.type = KnobType::kIntRange;
  spec.default_value = IntRange{5, 10};
  spec.min = 1;
  return spec;
}

KnobSpec Count() {
  KnobSpec spec;
  spec.name = "E";
  spec.type = KnobType::kInteger;
  spec.default_value = int64_t{1};
  spec.min = 1;
  spec.max = 100;
  return spec;
}

KnobSpec Flag() {
  KnobSpec spec;
  spec.name = "adopt";
  spec.type = KnobType::kFlag;
  spec.default_value = false;
  return spec;
}

KnobSpec Option() {
  KnobSpec spec;
  spec.name = "option";
  spec.type = KnobType::kText;
  spec.default_value = std::string("polyak");
  spec.choices = {"polyak", "nesterov"};
  return spec;
}

struct ParseCase {
  KnobSpec spec;
  std::string text;
  KnobValue value;
  std::string written;
};

TEST(KnobSpec, ParsesWhatItPrints) {
  const std::vector<ParseCase> cases = {
      {Rate(), "0.5", 0.5, "0.5"},
      {Rate(), " 1 ", 1.0, "1"},
      {Rate(), "1e-5", 1e-5, "1e-05"},
      {Count(), "7", int64_t{7}, "7"},
      {Flag(), "on", true, "on"},
      {Flag(), "True", true, "on"},
      {Flag(), "no", false, "off"},
      {Option(), "nesterov", std::string("nesterov"), "nesterov"},
      {Period(), "7", IntRange{7, 7}, "7"},
      {Period(), "5..10", IntRange{5, 10}, "[5, 10]"},
      {Period(), "[5, 10]", IntRange{5, 10}, "[5, 10]"},
      {Period(), "[ 5 ,10 ]", IntRange{5, 10}, "[5, 10]"},
  };
  for (const ParseCase& c : cases) {
    const absl::StatusOr<KnobValue> value = c.spec.Parse(c.text);
    ASSERT_TRUE(value.ok()) << c.text << ": " << value.status();
    EXPECT_EQ(*value, c.value) << c.text;
    EXPECT_EQ(ToString(*value), c.written);
    EXPECT_EQ(*c.spec.Parse(ToString(*value)), c.value);
  }
}

struct RefusedCase {
  KnobSpec spec;
  std::string text;
  std::string message;
};

TEST(KnobSpec, RefusesWithValueAndWhatIsAllowed) {
  const std::vector<RefusedCase> cases = {
      {Rate(), "1.5", "nu: 1.5 is not in (0, 1]"},
      {Rate(), "0", "nu: 0 is not in (0, 1]"},
      {Rate(), "nan", "nu: nan is not in (0, 1]"},
      {Rate(), "half", "nu: \"half\" is not a number; allowed: (0, 1]"},
      {Number(0, std::numeric_limits<double>::infinity()), "1e999",
       "nu: inf is not allowed; allowed: number >= 0"},
      {Count(), "0", "E: 0 is not allowed; allowed: integer in [1, 100]"},
      {Count(), "2.5",
       "E: \"2.5\" is not an integer; allowed: integer in [1, 100]"},
      {Count(), "99999999999999999999",
       "E: \"99999999999999999999\" is not an integer; allowed: integer in "
       "[1, 100]"},
      {Flag(), "maybe",
       "adopt: \"maybe\" is not on or off; allowed: on or off"},
      {Option(), "nestrov",
       "option: \"nestrov\" is unknown; did you mean \"nesterov\"? allowed: "
       "polyak, nesterov"},
      {Period(), "0..3",
       "kappa: [0, 3] is not allowed; allowed: integer >= 1, or a range "
       "[lo, hi]"},
      {Period(), "10..5",
       "kappa: [10, 5] is empty, its first number must not exceed its second; "
       "allowed: integer >= 1, or a range [lo, hi]"},
  };
  for (const RefusedCase& c : cases) {
    const absl::StatusOr<KnobValue> value = c.spec.Parse(c.text);
    ASSERT_FALSE(value.ok()) << c.text;
    EXPECT_EQ(value.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(Message(value.status()), c.message);
  }
  for (const char* text : {"", "[5,10", "5,10", "[5]", "[1,2,3]", "a..b"}) {
    EXPECT_FALSE(Period().Parse(text).ok()) << text;
  }
}

TEST(KnobSpec, SaysWhatIsAllowed) {
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(Rate().AllowedText(), "(0, 1]");
  KnobSpec positive = Number(0, inf);
  positive.min_open = true;
  EXPECT_EQ(positive.AllowedText(), "number > 0");
  EXPECT_EQ(Number(1, inf).AllowedText(), "number >= 1");
  EXPECT_EQ(Number(-inf, 3).AllowedText(), "number <= 3");
  EXPECT_EQ(Number(-inf, inf).AllowedText(), "any number");
  KnobSpec momentum = Number(0, 1);
  momentum.max_open = true;
  EXPECT_EQ(momentum.AllowedText(), "[0, 1)");
  EXPECT_EQ(Option().AllowedText(), "polyak or nesterov");
  KnobSpec three = Option();
  three.choices.push_back("none");
  EXPECT_EQ(three.AllowedText(), "polyak, nesterov or none");
}

TEST(KnobSpec, RefusesAValueOfAnotherType) {
  EXPECT_FALSE(Rate().Check(std::string("0.5")).ok());
  EXPECT_FALSE(Rate().Check(true).ok());
  EXPECT_FALSE(Count().Check(2.0).ok());
  EXPECT_FALSE(Flag().Check(int64_t{1}).ok());
  EXPECT_FALSE(Option().Check(1.0).ok());
  EXPECT_FALSE(Period().Check(5.0).ok());
}

TEST(Knobs, OverridesGoAboveValuesAboveDefaults) {
  const std::vector<KnobSpec> specs = {Rate(), Period(), Count(), Flag(),
                                       Option()};
  const absl::StatusOr<Knobs> knobs =
      Knobs::Resolve(specs, {{"nu", 0.25}, {"E", int64_t{3}}}, {{"nu", 0.75}});
  ASSERT_TRUE(knobs.ok()) << knobs.status();
  EXPECT_EQ(knobs->Number("nu"), 0.75);
  EXPECT_EQ(knobs->Integer("E"), 3);
  EXPECT_EQ(knobs->Range("kappa"), (IntRange{5, 10}));
  EXPECT_FALSE(knobs->Flag("adopt"));
  EXPECT_EQ(knobs->Text("option"), "polyak");
  EXPECT_EQ(knobs->values().size(), specs.size());
}

TEST(Knobs, TakeAnIntegerWhereANumberOrARangeIsWanted) {
  const std::vector<KnobSpec> specs = {Rate(), Period()};
  const absl::StatusOr<Knobs> knobs =
      Knobs::Resolve(specs, {{"nu", int64_t{1}}, {"kappa", int64_t{4}}});
  ASSERT_TRUE(knobs.ok()) << knobs.status();
  EXPECT_EQ(knobs->Number("nu"), 1.0);
  EXPECT_EQ(knobs->Range("kappa"), (IntRange{4, 4}));
}

TEST(Knobs, AnUnknownNameIsRefusedWithTheNearest) {
  const std::vector<KnobSpec> specs = {Rate(), Period()};
  const absl::Status status =
      Knobs::Resolve(specs, {{"kapa", int64_t{4}}}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Message(status),
            "kapa: unknown knob; did you mean \"kappa\"? allowed: nu, kappa");
  EXPECT_THAT(Message(Knobs::Resolve({}, {{"nu", 0.5}}).status()),
              HasSubstr("has none"));
}

TEST(Knobs, ABadOverrideIsRefusedWithItsValue) {
  const std::vector<KnobSpec> specs = {Rate()};
  EXPECT_THAT(Message(Knobs::Resolve(specs, {}, {{"nu", 2.0}}).status()),
              AllOf(StartsWith("nu: 2"), HasSubstr("(0, 1]")));
}

TEST(NearestName, FindsSlipsAndKeepsQuietOtherwise) {
  const std::vector<std::string> kinds = {"complete", "ring", "star", "grid",
                                          "erdos-renyi"};
  EXPECT_EQ(NearestName("rign", kinds), "ring");
  EXPECT_EQ(NearestName("Star", kinds), "star");
  EXPECT_EQ(NearestName("erdosrenyi", kinds), "erdos-renyi");
  EXPECT_EQ(NearestName("compleet", kinds), "complete");
  EXPECT_EQ(NearestName("hypercube", kinds), "");
  EXPECT_EQ(NearestName("", kinds), "");
  EXPECT_EQ(NearestName("xy", std::vector<std::string>{"nu", "p"}), "");
}

TEST(NearestName, GivesUpOnMoreThanAnybodyWouldLookThrough) {
  std::vector<std::string> names(20000, std::string(60, 'x'));
  const std::string wanted = std::string(59, 'y') + "a";
  const std::string slip = std::string(59, 'y') + "b";
  names[200] = slip;
  EXPECT_EQ(NearestName(wanted, names), slip);
  names[200] = names[0];
  names.back() = slip;
  EXPECT_EQ(NearestName(wanted, names), "");
  const std::string large(1 << 20, 'x');
  EXPECT_EQ(NearestName(large + "y", std::vector<std::string>{large}), "");
}

TEST(UnknownNameError, ShowsTheBeginningOfWhatIsLong) {
  const std::vector<std::string> known(20000, "x");
  const std::string text =
      Message(UnknownNameError("edges[0]", std::string(100000, 'y'), known));
  EXPECT_THAT(text, AllOf(HasSubstr("yyy...\" is unknown"),
                          HasSubstr("x, x and 19950 more")));
  EXPECT_LT(text.size(), 500u);
}

TEST(UnknownNameError, NamesPathValueNearestAndAllowed) {
  const std::vector<std::string> known = {"complete", "ring"};
  EXPECT_EQ(Message(UnknownNameError("topology.kind", "rign", known)),
            "topology.kind: \"rign\" is unknown; did you mean \"ring\"? "
            "allowed: complete, ring");
  EXPECT_EQ(Message(UnknownNameError("topology.kind", "torus9", known)),
            "topology.kind: \"torus9\" is unknown; allowed: complete, ring");
}

}  // namespace
}  // namespace dfl::core
