#include "daemon/base/distributions.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "gtest/gtest.h"

namespace dfl {
namespace {

TEST(ExpLog, AgreeWithTheLibraryWithin1e13) {
  for (double x = -700; x < 700; x += 0.37) {
    EXPECT_NEAR(Exp(x) / std::exp(x), 1.0, 1e-13) << x;
  }
  for (double x = 1e-300; x < 1e300; x *= 3.7) {
    EXPECT_NEAR(Log(x), std::log(x),
                1e-13 * std::fmax(1, std::fabs(std::log(x))))
        << x;
  }
  EXPECT_EQ(Log(1.0), 0.0);
  EXPECT_EQ(Exp(0.0), 1.0);
  EXPECT_EQ(Exp(1000), std::numeric_limits<double>::infinity());
}

// Mean and variance of 200,000 draws within five standard errors.
template <typename Draw>
void ExpectMoments(Draw draw, double mean, double variance) {
  Rng rng(42);
  constexpr int kDraws = 200000;
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double x = draw(rng);
    sum += x;
    squares += x * x;
  }
  const double got_mean = sum / kDraws;
  const double got_variance = squares / kDraws - got_mean * got_mean;
  EXPECT_NEAR(got_mean, mean, 5 * std::sqrt(variance / kDraws));
  EXPECT_NEAR(got_variance, variance, 0.05 * variance + 1e-6);
}

TEST(Distributions, HaveTheirMoments) {
  ExpectMoments([](Rng& r) { return Normal(r); }, 0, 1);
  ExpectMoments([](Rng& r) { return Exponential(r); }, 1, 1);
  ExpectMoments([](Rng& r) { return Gamma(r, 2.5); }, 2.5, 2.5);
  ExpectMoments([](Rng& r) { return Gamma(r, 0.3); }, 0.3, 0.3);
  ExpectMoments([](Rng& r) { return Beta(r, 0.5, 0.5); }, 0.5, 0.125);
}

TEST(Distributions, TinyShapesStayFinite) {
  Rng rng(1);
  for (int i = 0; i < 1000; ++i) {
    const double x = Beta(rng, 1e-4, 1e-4);
    EXPECT_GE(x, 0);
    EXPECT_LE(x, 1);
  }
}

}  // namespace
}  // namespace dfl
