#include "daemon/simports/problems.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace dfl::simports {
namespace {

using Json = nlohmann::json;

std::vector<double> Flatten(const Json& matrix) {
  std::vector<double> flat;
  for (const Json& row : matrix) {
    for (const Json& value : row) flat.push_back(value.get<double>());
  }
  return flat;
}

std::unique_ptr<Problem> FromJson(const Json& problem, size_t node) {
  const auto type = problem.at("type").get<std::string>();
  const Json& data = problem.at("nodes").at(node);
  if (type == "softmax") {
    return std::make_unique<Softmax>(
        Flatten(data.at("X")), data.at("labels").get<std::vector<int64_t>>(),
        problem.at("classes").get<int64_t>());
  }
  std::vector<double> a = Flatten(data.at("A"));
  auto b = data.at("b").get<std::vector<double>>();
  if (type == "logistic") {
    return std::make_unique<Logistic>(std::move(a), std::move(b),
                                      problem.at("lambda").get<double>());
  }
  EXPECT_EQ(type, "least_squares");
  return std::make_unique<LeastSquares>(std::move(a), std::move(b));
}

class GoldenProblem : public testing::TestWithParam<const char*> {};

TEST_P(GoldenProblem, HasTheLossAndGradientOfTheVectors) {
  std::ifstream file(std::string(DFL_GOLDEN_VECTORS "/") + GetParam() +
                     ".json");
  ASSERT_TRUE(file.good());
  const Json document = Json::parse(file);
  const Json& check = document.at("check_x0");
  const auto near = [](double a, double b) {
    return std::fabs(a - b) <= 2e-4 * std::max(1.0, std::fabs(b));
  };
  int nodes = 0;
  for (size_t i = 0; i < document.at("m").get<size_t>(); ++i) {
    if (document.at("x0").at(i).is_null()) continue;
    ++nodes;
    const std::unique_ptr<Problem> problem =
        FromJson(document.at("problem"), i);
    ASSERT_EQ(problem->n(), document.at("n").get<int64_t>());
    const auto x0 = document.at("x0").at(i).get<std::vector<float>>();
    const auto loss = check.at("loss").at(i).get<double>();
    EXPECT_TRUE(near(problem->Loss(x0), loss))
        << "node " << i << ": " << problem->Loss(x0) << " for " << loss;
    std::vector<float> gradient(x0.size());
    problem->Gradient(x0, {}, absl::MakeSpan(gradient));
    const auto expected = check.at("grad").at(i).get<std::vector<double>>();
    for (size_t l = 0; l < gradient.size(); ++l) {
      EXPECT_TRUE(near(gradient[l], expected[l]))
          << "node " << i << " coordinate " << l << ": " << gradient[l]
          << " for " << expected[l];
    }
  }
  EXPECT_GE(nodes, 2);
}

INSTANTIATE_TEST_SUITE_P(Files, GoldenProblem,
                         testing::Values("pame_homogeneous", "pame_logistic",
                                         "kdpdfl_literal_rounds"));

// One of each kind over the same small data.
std::vector<std::unique_ptr<Problem>> Samples() {
  const std::vector<double> a = {1,   -2, 0.5, 3,  0.25, -1, -0.5, 2,
                                 1.5, 0,  1,   -1, 2,    2,  0.5};
  std::vector<std::unique_ptr<Problem>> out;
  out.push_back(
      std::make_unique<LeastSquares>(a, std::vector<double>{1, -1, 0.5, 2, 0}));
  out.push_back(
      std::make_unique<Logistic>(a, std::vector<double>{1, 0, 0, 1, 1}, 0.1));
  out.push_back(
      std::make_unique<Softmax>(a, std::vector<int64_t>{0, 2, 1, 3, 0}, 4));
  return out;
}

std::vector<float> Point(int64_t n) {
  std::vector<float> w;
  for (int64_t l = 0; l < n; ++l) {
    w.push_back(static_cast<float>((l * 5 % 7 - 3) * 0.125));
  }
  return w;
}

TEST(Problem, GradientIsTheSlopeOfTheLoss) {
  const std::vector<int64_t> all = {};
  const std::vector<int64_t> some = {3, 1};
  for (const auto& problem : Samples()) {
    for (const std::vector<int64_t>* batch : {&all, &some}) {
      const std::vector<float> w = Point(problem->n());
      std::vector<float> gradient(w.size());
      EXPECT_EQ(problem->Gradient(w, *batch, absl::MakeSpan(gradient)),
                problem->Loss(w, *batch));
      for (size_t l = 0; l < w.size(); ++l) {
        const float h = 0x1p-8f;  // w +- h is exact
        std::vector<float> up = w;
        std::vector<float> down = w;
        up[l] += h;
        down[l] -= h;
        const double slope =
            (problem->Loss(up, *batch) - problem->Loss(down, *batch)) / (2 * h);
        EXPECT_NEAR(gradient[l], slope, 2e-4) << l;
      }
    }
  }
}

TEST(Problem, ABatchIsTheMeanOverItsRows) {
  for (const auto& problem : Samples()) {
    const std::vector<float> w = Point(problem->n());
    const std::vector<int64_t> every = {4, 3, 2, 1, 0};
    EXPECT_NEAR(problem->Loss(w, every), problem->Loss(w), 1e-12);
    double sum = 0;
    for (int64_t row = 0; row < 2; ++row) {
      const std::vector<int64_t> one = {row};
      sum += problem->Loss(w, one);
    }
    const std::vector<int64_t> two = {0, 1};
    EXPECT_NEAR(problem->Loss(w, two), sum / 2, 1e-12);
  }
}

TEST(Problem, GradientMayOverwriteItsPoint) {
  for (const auto& problem : Samples()) {
    std::vector<float> w = Point(problem->n());
    std::vector<float> gradient(w.size());
    problem->Gradient(w, {}, absl::MakeSpan(gradient));
    problem->Gradient(w, {}, absl::MakeSpan(w));
    EXPECT_EQ(w, gradient);
  }
}

TEST(Problem, StaysFiniteFarOut) {
  const auto problems = Samples();
  for (size_t p : {size_t{1}, size_t{2}}) {
    for (const float scale : {1e4f, -1e4f}) {
      std::vector<float> w = Point(problems[p]->n());
      for (float& value : w) value *= scale;
      EXPECT_TRUE(std::isfinite(problems[p]->Loss(w)));
      std::vector<float> gradient(w.size());
      problems[p]->Gradient(w, {}, absl::MakeSpan(gradient));
      for (const float value : gradient) EXPECT_TRUE(std::isfinite(value));
    }
  }
}

TEST(Softmax, PredictsADistribution) {
  const Softmax problem({1, 2, -1, 0.5}, {0, 1}, 3);
  const std::vector<float> w = Point(problem.n());
  std::vector<double> p(3);
  problem.Predict(w, 1, absl::MakeSpan(p));
  EXPECT_NEAR(p[0] + p[1] + p[2], 1, 1e-12);
  const std::vector<int64_t> row = {1};
  EXPECT_NEAR(-std::log(p[1]), problem.Loss(w, row), 1e-12);
}

TEST(LinearRegressionExample, HasTheShapeOfThePaper) {
  ExampleSpec spec;
  spec.nodes = 3;
  spec.n = 300;
  spec.rows_per_node = 400;
  const ProblemSet set = LinearRegressionExample(spec);
  ASSERT_EQ(set.nodes.size(), 3u);
  int non_zero = 0;
  std::vector<float> truth;
  for (const double value : set.truth) {
    truth.push_back(static_cast<float>(value));
    if (value == 0) continue;
    ++non_zero;
    EXPECT_GE(std::fabs(value), 0.5);
    EXPECT_LE(std::fabs(value), 2);
  }
  EXPECT_EQ(non_zero, 3);  // 1 %
  for (const auto& node : set.nodes) {
    EXPECT_EQ(node->n(), 300);
    EXPECT_EQ(node->rows(), 400);
    // At w* only 0.5 e is left: E loss = 0.125, sd 0.125 sqrt(2/400) = 0.009.
    EXPECT_NEAR(node->Loss(truth), 0.125, 0.045);
  }
}

TEST(LogisticRegressionExample, HasHalfTheTruthAndLabelsThatFollowIt) {
  ExampleSpec spec;
  spec.nodes = 2;
  spec.n = 20;
  spec.rows_per_node = 500;
  const ProblemSet set = LogisticRegressionExample(spec);
  std::vector<float> truth;
  int non_zero = 0;
  for (const double value : set.truth) {
    truth.push_back(static_cast<float>(value));
    if (value != 0) ++non_zero;
  }
  EXPECT_EQ(non_zero, 10);
  const std::vector<float> zero(20, 0.0f);
  for (const auto& node : set.nodes) {
    EXPECT_NEAR(node->Loss(zero), std::log(2.0), 1e-12);
    EXPECT_LT(node->Loss(truth), 0.4);
  }
}

// Rows of each class that `problem` holds, seen by what moves its bias.
std::vector<double> LabelShares(const Softmax& problem) {
  const std::vector<float> zero(static_cast<size_t>(problem.n()), 0.0F);
  std::vector<float> gradient(zero.size());
  problem.Gradient(zero, {}, absl::MakeSpan(gradient));
  std::vector<double> shares;
  const double even = 1 / static_cast<double>(problem.classes());
  for (size_t l = gradient.size() - static_cast<size_t>(problem.classes());
       l < gradient.size(); ++l) {
    shares.push_back(even - gradient[l]);
  }
  return shares;
}

TEST(SoftmaxExample, SkewsTheLabelsOfNodesAndNotOfTheTest) {
  SoftmaxSpec spec;
  spec.nodes = 20;
  spec.rows_per_node = 200;
  spec.test_rows = 4000;
  const auto largest = [](const Softmax& problem) {
    const std::vector<double> shares = LabelShares(problem);
    return *std::max_element(shares.begin(), shares.end());
  };
  double even = 0;
  for (const auto& node : SoftmaxExample(spec).nodes) even += largest(*node);
  EXPECT_LT(even / 20, 0.2);
  spec.skew = 0.1;
  const SoftmaxSet skewed = SoftmaxExample(spec);
  double one_sided = 0;
  for (const auto& node : skewed.nodes) one_sided += largest(*node);
  EXPECT_GT(one_sided / 20, 0.5);
  EXPECT_LT(largest(*skewed.test), 0.13);
  EXPECT_EQ(skewed.test_labels.size(), 4000U);
}

TEST(SoftmaxExample, ALinearModelTellsMostClassesApart) {
  SoftmaxSpec spec;
  spec.nodes = 1;
  spec.rows_per_node = 2000;
  const SoftmaxSet set = SoftmaxExample(spec);
  const Softmax& train = *set.nodes[0];
  EXPECT_EQ(train.n(), 10 * 21);
  std::vector<float> w(static_cast<size_t>(train.n()), 0.0F);
  std::vector<float> gradient(w.size());
  for (int step = 0; step < 200; ++step) {
    train.Gradient(w, {}, absl::MakeSpan(gradient));
    for (size_t l = 0; l < w.size(); ++l) w[l] -= 0.5F * gradient[l];
  }
  int64_t hits = 0;
  std::vector<double> p(10);
  for (int64_t row = 0; row < 500; ++row) {
    set.test->Predict(w, row, absl::MakeSpan(p));
    hits += std::max_element(p.begin(), p.end()) - p.begin() ==
            set.test_labels[static_cast<size_t>(row)];
  }
  EXPECT_GT(hits, 350);
  EXPECT_LT(hits, 490);
}

TEST(SoftmaxExample, DependsOnSeedAndNodeAlone) {
  SoftmaxSpec spec;
  spec.skew = 0.3;
  const SoftmaxSet first = SoftmaxExample(spec);
  const std::vector<float> w = Point(first.test->n());
  spec.nodes = 2;
  const SoftmaxSet fewer = SoftmaxExample(spec);
  EXPECT_EQ(first.nodes[1]->Loss(w), fewer.nodes[1]->Loss(w));
  EXPECT_EQ(first.test->Loss(w), fewer.test->Loss(w));
  EXPECT_NE(first.nodes[0]->Loss(w), first.nodes[1]->Loss(w));
  spec.seed = 2;
  EXPECT_NE(SoftmaxExample(spec).test->Loss(w), first.test->Loss(w));
}

TEST(Examples, DependOnSeedAndNodeAlone) {
  ExampleSpec spec;
  spec.n = 50;
  spec.rows_per_node = 20;
  const std::vector<float> w = Point(50);
  const ProblemSet first = LinearRegressionExample(spec);
  spec.nodes = 2;
  const ProblemSet fewer = LinearRegressionExample(spec);
  EXPECT_EQ(first.truth, fewer.truth);
  EXPECT_EQ(first.nodes[1]->Loss(w), fewer.nodes[1]->Loss(w));
  EXPECT_NE(first.nodes[0]->Loss(w), first.nodes[1]->Loss(w));
  spec.seed = 2;
  EXPECT_NE(LinearRegressionExample(spec).truth, first.truth);
}

}  // namespace
}  // namespace dfl::simports
