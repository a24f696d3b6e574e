// Losses and scores against definitions written for reading, and regressions
// with every kind of model.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/learner/catalogue/model_spec.h"
#include "daemon/learner/catalogue/scores.h"
#include "gmock/gmock.h"
#include "tests/unit/learner/learner_fixture.h"

namespace dfl::learner {
namespace {

using ::testing::HasSubstr;

// Outputs [rows, outputs] of a linear model of `features`.
std::vector<std::vector<double>> Outputs(const BoundLearner& node,
                                         const data::DatasetView& rows) {
  const auto features = static_cast<size_t>(rows.dataset().row_size());
  const size_t outputs = node.parameters.size() / (features + 1);
  std::vector<std::vector<double>> all;
  for (size_t i = 0; i < static_cast<size_t>(rows.size()); ++i) {
    std::vector<double> f(outputs);
    for (size_t k = 0; k < outputs; ++k) {
      f[k] = node.parameters[outputs * features + k];
      for (size_t j = 0; j < features; ++j) {
        f[k] += static_cast<double>(node.parameters[k * features + j]) *
                rows.dataset().floats()[i * features + j];
      }
    }
    all.push_back(f);
  }
  return all;
}

std::unique_ptr<BoundLearner> Random(const core::ModelSpec& spec,
                                     const data::DatasetView& rows) {
  auto made = MakeLearner(spec, rows, rows);
  EXPECT_TRUE(made.ok()) << made.status();
  if (!made.ok()) return nullptr;
  Rng rng(3);
  for (float& value : (*made)->parameters) {
    value = static_cast<float>(Normal(rng));
  }
  return *std::move(made);
}

double SoftPlus(double x) { return std::log1p(std::exp(x)); }

// The loss of all rows as one batch, as a gradient and as an evaluation.
void ExpectLoss(BoundLearner& node, int64_t rows, double expected) {
  ports::GradientRequest request;
  request.batch_size = rows;
  const auto gradient = node.learner->Gradient(request);
  ASSERT_TRUE(gradient.ok()) << gradient.status();
  EXPECT_NEAR(gradient->loss, expected, 1e-4);
  const auto evaluation = node.learner->Evaluate(0);
  ASSERT_TRUE(evaluation.ok()) << evaluation.status();
  EXPECT_NEAR(evaluation->loss, expected, 1e-4);
}

TEST(Losses, CrossEntropyWeighsTheClasses) {
  core::ModelSpec spec = Spec("logistic", 3);
  spec.class_weights = {1, 2.5, 0.5};
  const auto rows = RandomRows({4}, 300, 3, 5);  // more than one part
  auto node = Random(spec, rows);
  ASSERT_NE(node, nullptr);
  double sum = 0;
  double weights = 0;
  const auto outputs = Outputs(*node, rows);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto label = static_cast<size_t>(rows.dataset().labels()[i]);
    double total = 0;
    for (const double f : outputs[i]) total += std::exp(f);
    sum += spec.class_weights[label] * (std::log(total) - outputs[i][label]);
    weights += spec.class_weights[label];
  }
  ExpectLoss(*node, 300, sum / weights);
}

TEST(Losses, BceOfTwoClassesHasOneOutputAndOfMoreOneForEach) {
  for (const int64_t classes : {2, 3}) {
    SCOPED_TRACE(classes);
    core::ModelSpec spec = Spec("linear", classes);
    spec.loss = "bce";
    const auto rows = RandomRows({4}, 30, classes, 5);
    auto node = Random(spec, rows);
    ASSERT_NE(node, nullptr);
    const auto outputs = Outputs(*node, rows);
    ASSERT_EQ(outputs[0].size(), classes == 2 ? 1U : 3U);
    double sum = 0;
    int64_t right = 0;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const auto label = static_cast<size_t>(rows.dataset().labels()[i]);
      const std::vector<double>& f = outputs[i];
      for (size_t k = 0; k < f.size(); ++k) {
        const bool hit = classes == 2 ? label == 1 : label == k;
        sum += SoftPlus(hit ? -f[k] : f[k]) / static_cast<double>(f.size());
      }
      const auto best =
          static_cast<size_t>(std::max_element(f.begin(), f.end()) - f.begin());
      right += label == (classes == 2 ? (f[0] > 0 ? 1U : 0U) : best) ? 1 : 0;
    }
    ExpectLoss(*node, 30, sum / 30);
    EXPECT_DOUBLE_EQ(*node->learner->Evaluate(0)->accuracy,
                     static_cast<double>(right) / 30);
  }
}

TEST(Losses, HuberIsSquareNearAndLinearFar) {
  core::ModelSpec spec = Spec("linear", 0);
  spec.loss = "huber";
  spec.huber_delta = 0.7;
  const auto rows = RandomRows({4}, 30, 0, 5);
  auto node = Random(spec, rows);
  ASSERT_NE(node, nullptr);
  double sum = 0;
  int64_t far = 0;
  const auto outputs = Outputs(*node, rows);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const double e = std::fabs(outputs[i][0] - rows.dataset().targets()[i]);
    sum += e <= 0.7 ? e * e / 2 : 0.7 * (e - 0.35);
    far += e > 0.7 ? 1 : 0;
  }
  EXPECT_GT(far, 0);
  EXPECT_LT(far, 30);
  ExpectLoss(*node, 30, sum / 30);
}

TEST(Regression, HasErrorsAndNoSharesOfClasses) {
  const auto rows = RandomRows({4}, 300, 0, 6);
  auto node = Random(Spec("linear", 0), rows);
  ASSERT_NE(node, nullptr);
  const auto result = node->learner->Evaluate(0);
  ASSERT_TRUE(result.ok()) << result.status();
  double mean = 0;
  for (const float target : rows.dataset().targets()) mean += target / 300.0;
  double absolute = 0;
  double squares = 0;
  double spread = 0;
  const auto outputs = Outputs(*node, rows);
  for (size_t i = 0; i < 300; ++i) {
    const double target = rows.dataset().targets()[i];
    absolute += std::fabs(outputs[i][0] - target) / 300;
    squares += std::pow(outputs[i][0] - target, 2);
    spread += std::pow(target - mean, 2);
  }
  ASSERT_TRUE(result->mae.has_value() && result->r2.has_value());
  EXPECT_NEAR(*result->mae, absolute, 1e-5);
  EXPECT_NEAR(*result->r2, 1 - squares / spread, 1e-5);
  EXPECT_FALSE(result->accuracy.has_value());
  EXPECT_FALSE(result->macro_f1.has_value());
  auto classes = Random(Spec("linear", 3), RandomRows({4}, 30, 3, 6));
  const auto shares = classes->learner->Evaluate(0);
  ASSERT_TRUE(shares.ok()) << shares.status();
  EXPECT_TRUE(shares->accuracy.has_value() && shares->macro_f1.has_value());
  EXPECT_FALSE(shares->mae.has_value() || shares->r2.has_value());
}

TEST(Regression, EveryKindLearnsOne) {
  struct Case {
    const char* kind;
    const char* loss;
    std::vector<int64_t> input;
    float step_size;
    double shorter;  // what the loss has to fall below, of the first
  };
  const Case cases[] = {{"linear", "", {6}, 0.05F, 0.5},
                        {"linear", "huber", {6}, 0.05F, 0.5},
                        {"mlp", "", {6}, 0.01F, 0.5},
                        {"mlp", "huber", {6}, 0.01F, 0.5},
                        {"cnn", "", {1, 8, 8}, 0.01F, 0.9},
                        {"resnet20", "huber", {3, 16, 16}, 0.01F, 0.9},
                        {"resnet18", "huber", {3, 16, 16}, 1e-4F, 0.95}};
  for (const Case& c : cases) {
    SCOPED_TRACE(absl::StrCat(c.kind, " ", c.loss));
    core::ModelSpec spec = Spec(c.kind, 0);
    spec.loss = c.loss;
    auto made = MakeLearner(spec, RandomRows(c.input, 24, 0, 9));
    ASSERT_TRUE(made.ok()) << made.status();
    const double first = (*made)->Train(1, 24, c.step_size);
    EXPECT_LT((*made)->Train(30, 24, c.step_size), c.shorter * first);
    EXPECT_EQ((*made)->learner->data().classes, 0);
  }
}

TEST(Regression, TheTextsOfBothRefusalsAgree) {
  DataShape targets;
  targets.row = {4};
  const auto refusal = [&](const core::ModelSpec& spec) {
    const absl::Status status = ResolveSpec(spec, targets).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_THAT(refusal(Spec("mlp", 2)), HasSubstr("every kind but logistic"));
  EXPECT_THAT(refusal(Spec("svm", 0)), HasSubstr("linear, mlp, cnn"));
  core::ModelSpec open = Spec("mlp", -1);
  const auto resolved = ResolveSpec(open, targets);
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  EXPECT_EQ(resolved->classes, 0);
  EXPECT_EQ(LossText(*resolved), "mse");
}

TEST(LossText, HoldsAllThatTheObjectiveAdds) {
  DataShape data;
  data.row = {4};
  data.classes = 2;
  core::ModelSpec spec = Spec("mlp", -1);
  spec.class_weights = {1, 0.5};
  spec.l2 = 0.01;
  EXPECT_EQ(LossText(*ResolveSpec(spec, data)),
            "cross-entropy, class_weights [1, 0.5], l2 0.01");
  data.classes = 0;
  spec = Spec("mlp", 0);
  spec.loss = "huber";
  spec.huber_delta = 0.1;
  EXPECT_EQ(LossText(*ResolveSpec(spec, data)), "huber, huber_delta 0.1");
}

TEST(RegressionScores, HaveNoRSquaredWhereTargetsDoNotVary) {
  RegressionScores scores;
  EXPECT_FALSE(scores.MeanAbsolute().has_value());
  scores.Add({1e6F, 1e6F, 1e6F}, {1e6F, 1e6F, 1e6F + 1});
  EXPECT_NEAR(*scores.MeanAbsolute(), 1.0 / 3, 1e-9);
  EXPECT_FALSE(scores.RSquared().has_value());
  scores.Add({1e6F + 2}, {1e6F + 2});
  EXPECT_NEAR(*scores.RSquared(), 1 - 1 / 3.0, 1e-9);
}

}  // namespace
}  // namespace dfl::learner
