// The proximal operators against minimisation by brute force, and what their
// parameters must satisfy. The recorded table: tests/golden/table_checks.cc.
#include "daemon/core/rounds/prox.h"

#include <cmath>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace dfl::core {
namespace {

Prox Make(const std::string& name, double lambda, double theta = 4,
          double a = 3.7) {
  const auto knobs = Knobs::Resolve(
      ProxKnobs(),
      {{"prox", name}, {"lambda", lambda}, {"theta", theta}, {"a", a}});
  EXPECT_TRUE(knobs.ok()) << knobs.status();
  return ProxOf(*knobs);
}

// argmin_z h(z) + (z - v)^2/(2 alpha) on a grid of spacing 1e-4.
double Minimiser(const Prox& prox, double alpha, double v) {
  double best = 0;
  double least = PenaltyOf(prox, 0) + v * v / (2 * alpha);
  for (int q = -40'000; q <= 40'000; ++q) {
    const double z = 1e-4 * q;
    const double value = PenaltyOf(prox, z) + (z - v) * (z - v) / (2 * alpha);
    if (value < least) {
      least = value;
      best = z;
    }
  }
  return best;
}

TEST(ProxTest, IsTheMinimiserOfItsDefinition) {
  struct Case {
    Prox prox;
    double alpha;
  };
  const std::vector<Case> cases = {
      {Make("none", 0.5), 0.3},      {Make("l1", 0.5), 0.3},
      {Make("l1", 0.0), 0.3},        {Make("mcp", 0.6, 1.5), 0.4},
      {Make("mcp", 0.6, 1.5), 1.2},  {Make("scad", 0.5, 4, 2.5), 0.5},
      {Make("scad", 0.5, 4, 3.7), 1}};
  for (const Case& c : cases) {
    ASSERT_TRUE(CheckProx(c.prox, c.alpha).ok());
    for (double v = -3; v <= 3; v += 0.123) {
      EXPECT_NEAR(ProximalPoint(c.prox, c.alpha, v),
                  Minimiser(c.prox, c.alpha, v), 1.1e-4)
          << "h " << static_cast<int>(c.prox.h) << ", alpha " << c.alpha
          << ", v " << v;
    }
  }
}

TEST(ProxTest, VectorsGoValueByValue) {
  const Prox prox = Make("l1", 2);
  std::vector<float> x = {3, -3, 0.5F, 0};
  ApplyProx(prox, 0.5, absl::MakeSpan(x));
  EXPECT_EQ(x, (std::vector<float>{2, -2, 0, 0}));
  EXPECT_DOUBLE_EQ(Penalty(prox, x), 8);
  const std::vector<float> before = x;
  ApplyProx(Make("none", 2), 0.5, absl::MakeSpan(x));
  EXPECT_EQ(x, before);
  EXPECT_EQ(Penalty(Make("none", 2), x), 0);
}

TEST(ProxTest, RefusesStepsWithoutAUniqueMinimiser) {
  EXPECT_TRUE(CheckProx(Make("none", 1, 0.1, 2.1), 9).ok());
  EXPECT_TRUE(CheckProx(Make("l1", 1, 0.1, 2.1), 9).ok());
  EXPECT_TRUE(CheckProx(Make("mcp", 1, 0.5), 0.4).ok());
  const absl::Status mcp = CheckProx(Make("mcp", 1, 0.5), 0.5);
  EXPECT_EQ(mcp.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(std::string(mcp.message()),
            "theta: 0.5 is not above the step 0.5, so prox mcp has no unique "
            "value; raise theta or lower the step");
  EXPECT_TRUE(CheckProx(Make("scad", 1, 4, 2.5), 1.4).ok());
  EXPECT_FALSE(CheckProx(Make("scad", 1, 4, 2.5), 1.5).ok());
}

TEST(ProxTest, KnobsRefuseParametersOutOfRange) {
  for (const KnobValues& wrong :
       std::vector<KnobValues>{{{"prox", std::string("l2")}},
                               {{"lambda", -0.1}},
                               {{"theta", 0.0}},
                               {{"a", 2.0}}}) {
    EXPECT_FALSE(Knobs::Resolve(ProxKnobs(), wrong).ok());
  }
}

}  // namespace
}  // namespace dfl::core
