// Losses by hand, and their derivatives against differences.
#include "daemon/learner/plain/losses.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dfl::learner {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

ResolvedSpec Spec(LossKind loss, int64_t classes) {
  ResolvedSpec spec;
  spec.kind = ModelKind::kMlp;
  spec.loss = loss;
  spec.classes = classes;
  return spec;
}

double LossOf(const ResolvedSpec& spec, const std::vector<float>& outputs,
              const std::vector<int64_t>& labels,
              const std::vector<float>& targets = {}) {
  return PlainMeanLoss(spec, outputs, {labels, targets});
}

TEST(PlainLosses, AreWhatTheirFormulasSay) {
  // One row f = (1, 2, 4) of class 1.
  const std::vector<float> f = {1, 2, 4};
  const double all = std::exp(1) + std::exp(2) + std::exp(4);
  EXPECT_NEAR(LossOf(Spec(LossKind::kCrossEntropy, 3), f, {1}),
              std::log(all) - 2, 1e-12);
  EXPECT_NEAR(LossOf(Spec(LossKind::kHinge, 3), f, {1}), 0 + 3, 1e-12);
  EXPECT_NEAR(LossOf(Spec(LossKind::kMse, 3), f, {1}), (1. + 1 + 16) / 3,
              1e-12);
  const double logistic = std::log1p(std::exp(1)) + std::log1p(std::exp(-2)) +
                          std::log1p(std::exp(4));
  EXPECT_NEAR(LossOf(Spec(LossKind::kLogistic, 3), f, {1}), logistic, 1e-12);
  EXPECT_NEAR(LossOf(Spec(LossKind::kBce, 3), f, {1}), logistic / 3, 1e-12);
  // One output of two classes; its sign is the class.
  EXPECT_NEAR(LossOf(Spec(LossKind::kBce, 2), {2}, {1}),
              std::log1p(std::exp(-2)), 1e-12);
  EXPECT_NEAR(LossOf(Spec(LossKind::kBce, 2), {2}, {0}),
              std::log1p(std::exp(2)), 1e-12);
  EXPECT_NEAR(LossOf(Spec(LossKind::kMse, 0), {3}, {}, {1}), 4, 1e-12);
  ResolvedSpec huber = Spec(LossKind::kHuber, 0);
  huber.huber_delta = 0.5;
  EXPECT_NEAR(LossOf(huber, {3}, {}, {1}), 0.5 * (2 - 0.25), 1e-12);
  EXPECT_NEAR(LossOf(huber, {1.25F}, {}, {1}), 0.25 * 0.25 / 2, 1e-12);
}

TEST(PlainLosses, ClassWeightsDivideTheirOwnMean) {
  ResolvedSpec spec = Spec(LossKind::kCrossEntropy, 2);
  spec.class_weights = {3, 1};
  // Outputs equal: ln 2 a row, however the rows weigh.
  EXPECT_NEAR(LossOf(spec, {0, 0, 5, 5}, {0, 1}), std::log(2), 1e-12);
  const double first = std::log1p(std::exp(-1));
  const double second = std::log1p(std::exp(1));
  EXPECT_NEAR(LossOf(spec, {1, 0, 1, 0}, {0, 1}), (3 * first + second) / 4,
              1e-12);
}

TEST(PlainLosses, StayFiniteForLargeOutputsAndTellWildOnes) {
  for (const LossKind loss :
       {LossKind::kCrossEntropy, LossKind::kHinge, LossKind::kMse,
        LossKind::kLogistic, LossKind::kBce}) {
    SCOPED_TRACE(LossName(loss));
    const ResolvedSpec spec = Spec(loss, 3);
    EXPECT_TRUE(std::isfinite(LossOf(spec, {-1e4F, 1e4F, 0}, {0})));
    const float nan = std::numeric_limits<float>::quiet_NaN();
    EXPECT_FALSE(std::isfinite(LossOf(spec, {nan, 0, 0}, {0})));
    EXPECT_FALSE(std::isfinite(LossOf(spec, {0, nan, 0}, {0})));
  }
}

TEST(PlainLosses, DerivativesAreThoseOfTheLoss) {
  struct Case {
    LossKind loss;
    int64_t classes;
  };
  for (const Case& c :
       {Case{LossKind::kCrossEntropy, 3}, Case{LossKind::kHinge, 3},
        Case{LossKind::kMse, 3}, Case{LossKind::kLogistic, 3},
        Case{LossKind::kBce, 3}, Case{LossKind::kBce, 2},
        Case{LossKind::kMse, 0}, Case{LossKind::kHuber, 0}}) {
    SCOPED_TRACE(absl::StrCat(LossName(c.loss), " ", c.classes));
    ResolvedSpec spec = Spec(c.loss, c.classes);
    if (c.loss == LossKind::kCrossEntropy) spec.class_weights = {1, 2, 0.5};
    const auto width = static_cast<size_t>(spec.outputs());
    std::vector<float> outputs;
    for (size_t i = 0; i < 2 * width; ++i) {
      outputs.push_back(0.375F * static_cast<float>(i) - 0.5F);
    }
    const std::vector<int64_t> labels = {1, 0};
    const std::vector<float> targets = {0.25F, -3};
    std::vector<float> by_outputs;
    PlainMeanLoss(spec, outputs, {labels, targets}, &by_outputs);
    ASSERT_EQ(by_outputs.size(), outputs.size());
    for (size_t i = 0; i < outputs.size(); ++i) {
      constexpr float kStep = 1.0F / 1024;
      std::vector<float> above = outputs;
      std::vector<float> below = outputs;
      above[i] += kStep;
      below[i] -= kStep;
      const double slope = (LossOf(spec, above, labels, targets) -
                            LossOf(spec, below, labels, targets)) /
                           (2 * kStep);
      EXPECT_NEAR(by_outputs[i], slope, 1e-5) << "output " << i;
    }
  }
}

TEST(PlainPredictions, AreTheLargestOrTheSign) {
  EXPECT_THAT(PlainPredictions(Spec(LossKind::kCrossEntropy, 3),
                               std::vector<float>{1, 3, 2, 5, 5, 0}),
              ElementsAre(1, 0));
  EXPECT_THAT(
      PlainPredictions(Spec(LossKind::kBce, 2), std::vector<float>{-1, 0, 2}),
      ElementsAre(0, 0, 1));
}

TEST(PlainProbabilities, AreSoftmaxOfAllLogits) {
  EXPECT_THAT(PlainProbabilities(Spec(LossKind::kCrossEntropy, 2),
                                 std::vector<float>{1000, 1000}),
              ElementsAre(DoubleNear(0.5, 1e-12), DoubleNear(0.5, 1e-12)));
  const double p = 1 / (1 + std::exp(-2));
  EXPECT_THAT(
      PlainProbabilities(Spec(LossKind::kBce, 2), std::vector<float>{2}),
      ElementsAre(DoubleNear(1 - p, 1e-12), DoubleNear(p, 1e-12)));
}

}  // namespace
}  // namespace dfl::learner
