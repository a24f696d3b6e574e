#include "daemon/core/graph/mixing.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "daemon/base/rng.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/core/graphs.h"

namespace dfl::core {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

constexpr double kPi = 3.14159265358979323846;

// [DeceFL] supplement: the rows of the path of four.
TEST(Mixing, LaplacianOfThePathOfFourIsThePapers) {
  const absl::StatusOr<MixingMatrix> w =
      BuildMixing("laplacian", Built("path", 4));
  ASSERT_TRUE(w.ok());
  EXPECT_NEAR((*w)[0][0], 2.0 / 3, 1e-15);
  EXPECT_NEAR((*w)[0][1], 1.0 / 3, 1e-15);
  EXPECT_NEAR((*w)[1][1], 1.0 / 3, 1e-15);
  EXPECT_EQ((*w)[0][2], 0);
}

TEST(Mixing, ARowAloneIsTheRowOfTheMatrix) {
  Graph graph = Built("path", 6);
  graph.AddEdge(0, 3);
  graph.AddEdge(1, 3);
  for (const char* rule : {"metropolis", "laplacian"}) {
    const MixingMatrix w = *BuildMixing(rule, graph);
    for (int64_t i = 0; i < graph.size(); ++i) {
      const MixingRow row = BuildMixingRow(rule, graph, {}, i);
      EXPECT_EQ(row.self, w[i][i]);
      ASSERT_EQ(row.weights.size(), graph.neighbours(i).size());
      for (size_t q = 0; q < row.weights.size(); ++q) {
        EXPECT_EQ(row.weights[q], w[i][graph.neighbours(i)[q]]);
      }
    }
  }
}

// Circulant: the eigenvalues are (1 + 2 cos(2 pi k / m)) / 3.
TEST(SecondSingularValue, IsExactOnRings) {
  for (const int64_t m : {3, 4, 5, 17, 64, 301}) {
    const MixingMatrix w = *BuildMixing("metropolis", Built("ring", m));
    double expected = 0;
    for (int64_t k = 1; k < m; ++k) {
      const double angle = 2 * kPi * static_cast<double>(k) / m;
      expected = std::max(expected, std::fabs(1 + 2 * std::cos(angle)) / 3);
    }
    EXPECT_NEAR(SecondSingularValue(w), expected, 1e-10) << m;
  }
}

// I - L/3 on a path: 1 - (2 - 2 cos(pi k / m)) / 3, simple eigenvalues.
TEST(SecondSingularValue, IsExactOnLongPaths) {
  for (const int64_t m : {2, 3, 50, 500}) {
    const int64_t max_degree = m == 2 ? 1 : 2;
    const MixingMatrix w = *BuildMixing("laplacian", Built("path", m));
    double expected = 0;
    for (int64_t k = 1; k < m; ++k) {
      const double angle = kPi * static_cast<double>(k) / m;
      const double eigenvalue =
          1 - (2 - 2 * std::cos(angle)) / static_cast<double>(max_degree + 1);
      expected = std::max(expected, std::fabs(eigenvalue));
    }
    EXPECT_NEAR(SecondSingularValue(w), expected, 1e-10) << m;
  }
}

TEST(SecondSingularValue, IsZeroForTheMeanAndOneWithoutMixing) {
  EXPECT_NEAR(
      SecondSingularValue(*BuildMixing("uniform", Built("complete", 200))), 0,
      1e-10);
  EXPECT_NEAR(SecondSingularValue(*BuildMixing("metropolis", Graph(50))), 1,
              1e-10);
  EXPECT_NEAR(SecondSingularValue({{1.0}}), 0, 1e-12);
}

TEST(SecondSingularValue, IsTheSameBitsEveryTime) {
  const MixingMatrix w = *BuildMixing("metropolis", Built("ring", 40));
  EXPECT_EQ(SecondSingularValue(w), SecondSingularValue(w));
}

// A directed ring: eigenvalues (1 + e^(2 pi i k / m)) / 2, complex ones, of
// modulus |cos(pi k / m)|.
TEST(SecondLargestModulus, IsExactOnDirectedRings) {
  for (const int64_t m : {2, 3, 4, 7, 30, 101}) {
    Digraph ring(m);
    for (int64_t i = 0; i < m; ++i) ring.AddArc(i, (i + 1) % m);
    const DirectedWeights weights = BuildDirectedWeights(ring);
    const double expected = std::fabs(std::cos(kPi / static_cast<double>(m)));
    EXPECT_NEAR(SecondLargestModulus(weights.a), expected, 1e-10) << m;
    EXPECT_NEAR(SecondLargestModulus(weights.b), expected, 1e-10) << m;
  }
}

// Of symmetric matrices it is ||W - 11'/m||, found by another way.
TEST(SecondLargestModulus, IsTheSecondSingularValueOfSymmetricWeights) {
  Graph graph = Built("path", 9);
  graph.AddEdge(0, 5);
  graph.AddEdge(2, 7);
  for (const char* rule : {"metropolis", "laplacian"}) {
    const MixingMatrix w = *BuildMixing(rule, graph);
    EXPECT_NEAR(SecondLargestModulus(w), SecondSingularValue(w), 1e-10);
  }
  EXPECT_NEAR(
      SecondLargestModulus(*BuildMixing("uniform", Built("complete", 20))), 0,
      1e-10);
  EXPECT_EQ(SecondLargestModulus({{1.0}}), 0);
}

TEST(SecondLargestModulus, IsOneWhenTwoPartsKeepToThemselves) {
  Digraph apart(4);
  apart.AddArc(0, 1);
  apart.AddArc(1, 0);
  apart.AddArc(2, 3);
  apart.AddArc(3, 2);
  EXPECT_NEAR(SecondLargestModulus(BuildDirectedWeights(apart).a), 1, 1e-10);
  // 2 hears of {0} and {1}, which hear of nobody: A keeps both, B ends in 2.
  Digraph join(3);
  join.AddArc(0, 2);
  join.AddArc(1, 2);
  EXPECT_NEAR(SecondLargestModulus(BuildDirectedWeights(join).a), 1, 1e-10);
  EXPECT_NEAR(SecondLargestModulus(BuildDirectedWeights(join).b), 0.5, 1e-10);
}

// A path with a way back, far from normal: 1 - |lambda_2| by another way, the
// rate at which A^k tends to rows that are alike.
TEST(SecondLargestModulus, IsTheRateOfAgreement) {
  Digraph graph(8);
  for (int64_t i = 0; i + 1 < 8; ++i) graph.AddArc(i, i + 1);
  graph.AddArc(7, 0);
  graph.AddArc(3, 1);
  graph.AddArc(7, 4);
  const MixingMatrix a = BuildDirectedWeights(graph).a;
  const auto spread_after = [&a](int steps) {
    std::vector<double> x = {1, 0, 0, 0, 0, 0, 0, 0};
    for (int k = 0; k < steps; ++k) {
      std::vector<double> next(8, 0.0);
      for (size_t i = 0; i < 8; ++i) {
        for (size_t j = 0; j < 8; ++j) next[i] += a[i][j] * x[j];
      }
      x = std::move(next);
    }
    double spread = 0;
    for (const double value : x) spread += std::fabs(value - x[7]);
    return spread;
  };
  // Complex eigenvalues make it oscillate; over 100 steps little is left of it.
  const double rate = std::pow(spread_after(150) / spread_after(50), 0.01);
  EXPECT_NEAR(SecondLargestModulus(a), rate, 0.02);
}

TEST(LeastOmega, IsOneWhereEverybodySendsAsMuchAsItGets) {
  Digraph ring(5);
  for (int64_t i = 0; i < 5; ++i) ring.AddArc(i, (i + 1) % 5);
  EXPECT_EQ(LeastOmega(ring), std::vector<double>(5, 1.0));
  EXPECT_EQ(LeastOmega(Digraph(Built("complete", 4))),
            std::vector<double>(4, 1.0));
}

// An end of a path has 5/6 after the first round, and half of it is its own.
TEST(LeastOmega, CountsHowMuchOfTheModelIsItsOwn) {
  Graph path(3);
  path.AddEdge(0, 1);
  path.AddEdge(1, 2);
  const std::vector<double> least = LeastOmega(Digraph(path));
  EXPECT_NEAR(least[0], 5.0 / 6 * (5.0 / 6), 1e-12);
  EXPECT_EQ(least[1], 1);  // it begins with 1 and gets more
  EXPECT_EQ(least[2], least[0]);
}

TEST(LeastOmega, IsTheLeastOfARunWithoutFaults) {
  Rng rng(41);
  for (int graph = 0; graph < 20; ++graph) {
    constexpr size_t kNodes = 6;
    Digraph digraph(kNodes);
    for (int64_t i = 0; i < digraph.size(); ++i) {
      digraph.AddArc(i, (i + 1) % digraph.size());
      const auto to = static_cast<int64_t>(rng.Below(kNodes));
      if (to != i) digraph.AddArc(i, to);
    }
    const MixingMatrix b = BuildDirectedWeights(digraph).b;
    std::vector<double> omega(kNodes, 1.0);
    std::vector<double> expected(kNodes, 1.0);
    for (int t = 0; t < 2000; ++t) {
      std::vector<double> next(kNodes, 0.0);
      for (size_t i = 0; i < kNodes; ++i) {
        for (size_t j = 0; j < kNodes; ++j) next[i] += b[i][j] * omega[j];
        const double falls = std::min(1.0, next[i] / omega[i]);
        expected[i] = std::min(expected[i], next[i] * falls);
      }
      omega = next;
    }
    const std::vector<double> least = LeastOmega(digraph);
    for (size_t i = 0; i < kNodes; ++i) {
      EXPECT_NEAR(least[i], expected[i], 1e-8) << graph << " " << i;
    }
  }
}

TEST(LeastOmega, FallsToNothingInAPartThatNothingEnters) {
  Digraph chain(2);
  chain.AddArc(0, 1);
  EXPECT_LT(LeastOmega(chain)[0], 1e-6);
  EXPECT_EQ(LeastOmega(chain)[1], 1);
}

TEST(Mixing, UniformNeedsTheCompleteGraph) {
  const absl::Status status = BuildMixing("uniform", Built("ring", 4)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              AllOf(StartsWith("topology.weights: \"uniform\""),
                    HasSubstr("member 0 has 2 of 3"),
                    HasSubstr("topology.kind: complete")));
}

TEST(Mixing, AnUnknownRuleIsRefusedWithTheNearest) {
  const absl::Status status =
      BuildMixing("metropolys", Built("ring", 4)).status();
  EXPECT_THAT(std::string(status.message()),
              AllOf(StartsWith("topology.weights: \"metropolys\""),
                    HasSubstr("did you mean \"metropolis\""),
                    HasSubstr("laplacian, uniform, explicit")));
}

TEST(ExplicitMixing, TakesAValidMatrixAsItIs) {
  const MixingMatrix matrix = {
      {0.6, 0.4, 0.0}, {0.4, 0.1, 0.5}, {0.0, 0.5, 0.5}};
  const absl::StatusOr<MixingMatrix> w =
      BuildMixing("explicit", Built("path", 3), matrix);
  ASSERT_TRUE(w.ok()) << w.status();
  EXPECT_EQ(*w, matrix);
}

struct BadMatrixCase {
  MixingMatrix matrix;
  std::string start;
  std::string reason;
};

TEST(ExplicitMixing, SaysWhichEntryIsWrongAndWhy) {
  const double nan = std::nan("");
  const std::vector<BadMatrixCase> cases = {
      {{{0.5, 0.5}, {0.5, 0.5}}, "topology.matrix: 2 rows", "3 members"},
      {{{0.6, 0.4}, {0.4, 0.1, 0.5}, {0, 0.5, 0.5}},
       "topology.matrix[0]: 2 entries",
       "3 members"},
      {{{0.6, 0.4, 0}, {0.4, -0.1, 0.7}, {0, 0.7, 0.3}},
       "topology.matrix[1][1]: -0.1",
       ">= 0"},
      {{{nan, 0.4, 0}, {0.4, 0.1, 0.5}, {0, 0.5, 0.5}},
       "topology.matrix[0][0]: nan",
       ">= 0"},
      {{{0.5, 0.4, 0.1}, {0.4, 0.2, 0.4}, {0.1, 0.4, 0.5}},
       "topology.matrix[0][2]: 0.1",
       "no edge"},
      {{{1, 0, 0}, {0, 0.5, 0.5}, {0, 0.5, 0.5}},
       "topology.matrix[0][1]: 0",
       "have an edge"},
      {{{0.6, 0.4, 0}, {0.3, 0.2, 0.5}, {0, 0.5, 0.5}},
       "topology.matrix[1][0]: 0.3",
       "[0][1] = 0.4; the matrix must be symmetric"},
      {{{0.6, 0.4, 0}, {0.4, 0.2, 0.5}, {0, 0.5, 0.5}},
       "topology.matrix[1]: row 1 sums to 1.1",
       "within 1e-6"},
  };
  for (const BadMatrixCase& c : cases) {
    const absl::Status status =
        BuildMixing("explicit", Built("path", 3), c.matrix).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                AllOf(StartsWith(c.start), HasSubstr(c.reason)));
  }
}

}  // namespace
}  // namespace dfl::core
