// The learner without LibTorch, through its port. That it computes what
// LibTorch's does is in unit/learner/plain_and_torch_test.cc.
#include "daemon/learner/plain/plain_learner.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/plain/rows.h"

namespace dfl::learner {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<std::unique_ptr<BoundLearner>> MakePlain(
    const core::ModelSpec& spec, const data::DatasetView& train,
    const absl::optional<data::DatasetView>& test = absl::nullopt) {
  LearnerData data(train);
  data.test = test;
  auto learner = CreatePlainLearner(spec, std::move(data), LearnerOptions());
  if (!learner.ok()) return learner.status();
  return BoundLearner::Of(*std::move(learner), 1);
}

TEST(PlainLearner, LaysItsTensorsOutAsTheCatalogueSays) {
  core::ModelSpec spec = Spec("mlp", 3);
  spec.hidden = {5, 4};
  const auto bound = MakePlain(spec, RandomRows({2, 3}, 12, 3, 1));
  ASSERT_TRUE(bound.ok()) << bound.status();
  const ports::ModelInfo& model = (*bound)->learner->model();
  std::vector<std::string> told;
  for (const ports::TensorInfo& tensor : model.parameters) {
    told.push_back(
        absl::StrCat(tensor.name, " ", tensor.offset, " ", tensor.size));
  }
  EXPECT_THAT(
      told, ElementsAre("fc1.weight 0 30", "fc1.bias 30 5", "fc2.weight 35 20",
                        "fc2.bias 55 4", "fc3.weight 59 12", "fc3.bias 71 3"));
  EXPECT_EQ(model.parameter_count, 74);
  EXPECT_EQ(model.buffer_count, 0);
  EXPECT_THAT(model.parameters[0].shape, ElementsAre(5, 6));
}

TEST(PlainLearner, LearnsWhatALinearModelCan) {
  for (const char* kind : {"linear", "logistic", "svm", "mlp"}) {
    SCOPED_TRACE(kind);
    core::ModelSpec spec = Spec(kind, 3);
    spec.hidden = {16};
    const auto bound =
        MakePlain(spec, RandomRows({4}, 90, 3, 1), RandomRows({4}, 60, 3, 2));
    ASSERT_TRUE(bound.ok()) << bound.status();
    BoundLearner& node = **bound;
    const auto before = node.learner->Evaluate(0);
    ASSERT_TRUE(before.ok()) << before.status();
    node.Train(300, 16, 0.05F);
    const auto after = node.learner->Evaluate(0);
    ASSERT_TRUE(after.ok()) << after.status();
    EXPECT_LT(after->loss, 0.7 * before->loss);
    EXPECT_GT(*after->accuracy, 0.75);
    EXPECT_EQ(after->rows, 60);
  }
}

TEST(PlainLearner, LearnsARegression) {
  core::ModelSpec spec = Spec("mlp", 0);
  spec.hidden = {8};
  const auto bound =
      MakePlain(spec, RandomRows({2}, 64, 0, 1), RandomRows({2}, 32, 0, 2));
  ASSERT_TRUE(bound.ok()) << bound.status();
  (*bound)->Train(400, 16, 0.05F);
  const auto after = (*bound)->learner->Evaluate(0);
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_FALSE(after->accuracy.has_value());
  EXPECT_GT(*after->r2, 0.9);
  EXPECT_LT(*after->mae, 0.5);
}

TEST(PlainLearner, ARepeatedBatchHasTheSameGradientAndDropout) {
  core::ModelSpec spec = Spec("mlp", 2);
  spec.hidden = {32};
  spec.dropout = 0.5;
  const auto bound = MakePlain(spec, RandomRows({3}, 40, 2, 1));
  ASSERT_TRUE(bound.ok()) << bound.status();
  BoundLearner& node = **bound;
  ports::GradientRequest request;
  request.step = 4;
  request.batch_size = 8;
  const auto first = node.learner->Gradient(request);
  ASSERT_TRUE(first.ok()) << first.status();
  const FlatVector gradient = node.gradient;
  request.same_batch = true;
  const auto again = node.learner->Gradient(request);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->loss, first->loss);
  EXPECT_EQ(node.gradient, gradient);
  request.step = 5;  // other masks
  ASSERT_TRUE(node.learner->Gradient(request).ok());
  EXPECT_NE(node.gradient, gradient);
}

TEST(PlainLearner, NamesTheRowsOfABatchWithoutAGradient) {
  std::vector<float> features = {0, 1, std::numeric_limits<float>::infinity(),
                                 1};
  data::Dataset::Answers answers;
  answers.classes = 2;
  answers.labels = {0, 1};
  const data::DatasetView rows(std::make_shared<const data::Dataset>(
      std::vector<int64_t>{2}, std::move(features), std::move(answers)));
  const auto bound = MakePlain(Spec("logistic", 2), rows, rows);
  ASSERT_TRUE(bound.ok()) << bound.status();
  ports::GradientRequest request;
  request.batch_size = 2;
  const auto result = (*bound)->learner->Gradient(request);
  EXPECT_EQ(result.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(result.status().message()),
              AllOf(HasSubstr("gradient 0: the loss is not finite"),
                    HasSubstr("row 1 of the training data")));
  for (const float value : (*bound)->gradient) EXPECT_EQ(value, 0);
  const auto evaluated = (*bound)->learner->Evaluate(0);
  EXPECT_EQ(evaluated.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(evaluated.status().message()),
              HasSubstr("row 1 of the test data"));
}

TEST(PlainLearner, PredictsWithItsOwnAndOtherModels) {
  const auto bound = MakePlain(Spec("logistic", 2), RandomRows({2}, 8, 2, 1));
  ASSERT_TRUE(bound.ok()) << bound.status();
  const int64_t n = (*bound)->learner->model().parameter_count;
  ASSERT_EQ(n, 6);
  auto models = std::make_shared<std::vector<core::ModelValues>>(1);
  // Biases 0 and 100: class 1 for sure.
  (*models)[0].parameters = {0, 0, 0, 0, 0, 100};
  const auto result = (*bound)->learner->Predict({4, models});
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(result->probabilities.size(), 2U);
  EXPECT_EQ(result->rows, 4);
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_DOUBLE_EQ(result->probabilities[0][i], 0.5);  // it starts at 0
    EXPECT_NEAR(result->probabilities[1][i], i % 2 == 0 ? 0 : 1, 1e-9);
  }
}

TEST(PlainLearner, RefusesWhatNeedsLibTorch) {
  const auto cnn = MakePlain(Spec("cnn", 2), RandomRows({1, 8, 8}, 4, 2, 1));
  EXPECT_EQ(cnn.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(cnn.status().message()),
              AllOf(HasSubstr("model.kind: cnn needs LibTorch"),
                    HasSubstr("linear, logistic, svm, mlp")));
  const auto wrong = MakePlain(Spec("svm", 0), RandomRows({2}, 4, 0, 1));
  EXPECT_THAT(std::string(wrong.status().message()),
              HasSubstr("model.classes"));
}

TEST(PlainLearner, CountsParametersBeforeItIsBuilt) {
  core::ModelSpec spec = Spec("mlp", 3);
  spec.hidden = {5, 4};
  const auto resolved = ResolveSpec(spec, {{2, 3}, 3});
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  EXPECT_EQ(PlainParameterCount(*resolved), 74);
  const auto cnn = ResolveSpec(Spec("cnn", 2), {{1, 8, 8}, 2});
  ASSERT_TRUE(cnn.ok()) << cnn.status();
  EXPECT_EQ(PlainParameterCount(*cnn), 0);
}

}  // namespace
}  // namespace dfl::learner
