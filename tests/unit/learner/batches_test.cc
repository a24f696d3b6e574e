// Which batches a model gets, and what is left of one that gives no gradient.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "daemon/data/standardizer.h"
#include "daemon/learner/batch_tensors.h"
#include "gmock/gmock.h"
#include "tests/unit/learner/script_files.h"

namespace dfl::learner {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

class Batches : public ScriptFiles {
 protected:
  // A hidden layer with batch normalisation, then a linear one.
  static torch::jit::Module Normalised(const std::string& guard = "") {
    torch::jit::Module net = ScriptPart("Net");
    AddParameter(net, "w", Spread({5, 8}));
    AddParameter(net, "v", Spread({8, 3}));
    net.register_module("norm", BatchNormPart(8));
    net.define("def forward(self, x):\n" + guard +
               "    h = self.norm.forward(torch.matmul(x, self.w))\n"
               "    return torch.matmul(torch.relu(h), self.v)\n");
    return net;
  }
};

bool Finite(const FlatVector& values) {
  for (const float value : values) {
    if (!std::isfinite(value)) return false;
  }
  return true;
}

// A device that gives nothing back, as a GPU after an error.
TEST(BatchTensorsTest, WildRowsAreFoundWithoutTheDevice) {
  BatchTensors batch({2}, at::Device("meta"));
  EXPECT_TRUE(batch.WildRows().empty());
  const data::DatasetView view =
      Rows(2, {1, 2, std::nanf(""), 4, 5, 6, 7, 1e20F});
  const std::vector<int64_t> rows = {3, 0, 1};
  batch.Fill(view, rows, data::Standardizer());
  EXPECT_EQ(batch.WildRows(), (std::vector<size_t>{0, 2}));
}

TEST_F(Batches, OneRowIsJoinedToTheBatchBeforeUnderBatchNormalisation) {
  const std::string guard =
      "    assert not self.training or x.size(0) > 1, \"more than 1 value\"\n";
  for (const std::string& text : {std::string(), guard}) {
    SCOPED_TRACE(text);
    const auto made = Learn(Normalised(text), RandomRows({5}, 33, 3, 4));
    ASSERT_TRUE(made.ok()) << made.status();
    BoundLearner& node = **made;
    EXPECT_EQ(node.learner->model().min_batch_rows, 2);
    for (int64_t step = 0; step < 6; ++step) {
      const auto result = node.learner->Gradient(Request(step, 32));
      ASSERT_TRUE(result.ok()) << result.status();
      EXPECT_EQ(result->rows, 33);
      ASSERT_TRUE(Finite(node.buffers));
    }
  }
}

// Without statistics, and so without anything that one row makes infinite.
TEST_F(Batches, OneRowIsJoinedUnderANormalisationByHand) {
  const auto made = Learn(LinearPart(5, 3, R"(
    m = x.mean(0)
    s = torch.sqrt((x - m).pow(2).mean(0) + 1e-5)
    y = (x - m) / s if self.training else x
    return torch.matmul(y, self.w)
  )"),
                          RandomRows({5}, 7, 3, 4));
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ((*made)->learner->model().min_batch_rows, 2);
  EXPECT_EQ((*made)->learner->Gradient(Request(0, 3))->rows, 3);
  EXPECT_EQ((*made)->learner->Gradient(Request(1, 3))->rows, 4);
}

TEST_F(Batches, OneRowMayTrainWhereItHasExtentOrNothingNormalises) {
  torch::jit::Module net = ScriptPart("Net");
  AddParameter(net, "w", Spread({3, 2, 3, 3}));
  net.register_module("norm", BatchNormPart(3));
  net.define(R"(
    def forward(self, x):
        h = self.norm.forward(torch.conv2d(x, self.w))
        return h.mean([2, 3])
  )");
  const auto images = Learn(net, RandomRows({2, 6, 6}, 5, 3, 4));
  ASSERT_TRUE(images.ok()) << images.status();
  EXPECT_EQ((*images)->learner->model().min_batch_rows, 1);
  for (int64_t step = 0; step < 3; ++step) {
    ASSERT_TRUE((*images)->learner->Gradient(Request(step, 2)).ok());
  }
  EXPECT_TRUE(Finite((*images)->buffers));
  const auto plain =
      Learn(LinearPart(5, 3, "  return torch.matmul(x, self.w)\n"),
            RandomRows({5}, 7, 3, 4));
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_EQ((*plain)->learner->model().min_batch_rows, 1);
}

TEST_F(Batches, WhereOneRowIsAllThereIsTheModelIsRefused) {
  const std::string path = Save(Normalised());
  EXPECT_THAT(std::string(MakeLearner(SpecOf(path), RandomRows({5}, 1, 3, 4))
                              .status()
                              .message()),
              AllOf(HasSubstr(path), HasSubstr("normalises by the batch"),
                    HasSubstr("one training row"), HasSubstr("two rows")));
  EXPECT_THAT(std::string(MakeLearner(SpecOf(path), RandomRows({5}, 9, 3, 4),
                                      absl::nullopt, BatchSize(1))
                              .status()
                              .message()),
              AllOf(HasSubstr("batch_size: 1"), HasSubstr("allowed: 2")));
}

// Row 1 of five is wild; a batch is one of (0 and) two rows.
TEST_F(Batches, ABatchThatIsNotFiniteLeavesNothingBehind) {
  std::vector<float> values(25, 0.5F);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] += 0.1F * static_cast<float>(i % 7);
  }
  values[5 + 2] = std::numeric_limits<float>::quiet_NaN();
  const auto made = Learn(Normalised(), Rows(5, values));
  ASSERT_TRUE(made.ok()) << made.status();
  BoundLearner& node = **made;
  int64_t failed = 0;
  int64_t recovered = 0;
  for (int64_t step = 0; step < 12; ++step) {
    const FlatVector before = node.buffers;
    std::fill(node.gradient.begin(), node.gradient.end(), 7.0F);
    const auto result = node.learner->Gradient(Request(step, 2));
    ASSERT_TRUE(Finite(node.buffers));
    if (result.ok()) {
      EXPECT_NE(node.buffers, before);
      continue;
    }
    ++failed;
    EXPECT_EQ(result.status().code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(std::string(result.status().message()),
                AllOf(HasSubstr("is not finite"),
                      HasSubstr("row 1 of the training data"),
                      HasSubstr("not finite or far too large")));
    EXPECT_EQ(node.buffers, before);
    EXPECT_THAT(node.gradient, Each(0.0F));
    // It is not asked for again.
    ports::GradientRequest again = Request(step, 2);
    again.same_batch = true;
    if (node.learner->Gradient(again).ok()) ++recovered;
  }
  EXPECT_GE(failed, 3);
  EXPECT_GE(recovered, failed / 2);
}

TEST_F(Batches, ABatchAtWhichTheModelFailsNamesItsRows) {
  const auto made = Learn(LinearPart(2, 3, R"(
    assert bool((x < 100).all()), "a value is above 100"
    return torch.matmul(x, self.w)
  )"),
                          Rows(2, {1, 2, 3, 4, 5, 6, 7, 1000}), 3,
                          absl::nullopt, BatchSize(1));
  ASSERT_TRUE(made.ok()) << made.status();
  int64_t failed = 0;
  for (int64_t step = 0; step < 8; ++step) {
    const auto result = (*made)->learner->Gradient(Request(step, 1));
    if (result.ok()) continue;
    ++failed;
    EXPECT_EQ(result.status().code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(std::string(result.status().message()),
                AllOf(HasSubstr("gradient"), HasSubstr("above 100"),
                      HasSubstr("the batch is row 3 of the training data")));
  }
  EXPECT_EQ(failed, 2);
}

// What comes out is looked at in every batch.
TEST_F(Batches, OutputsThatLoseRowsAreNoGradient) {
  const auto made = Learn(LinearPart(2, 3, R"(
    y = torch.matmul(x, self.w)
    return y[1:] if bool((x > 100).any()) else y
  )"),
                          Rows(2, {1, 2, 3, 4, 5, 6, 7, 1000}), 3,
                          Rows(2, {1, 2, 3, 1000}), BatchSize(2));
  ASSERT_TRUE(made.ok()) << made.status();
  const auto result = (*made)->learner->Gradient(Request(0, 4));
  EXPECT_EQ(result.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(result.status().message()),
              AllOf(HasSubstr("gives [3, 3] for 4 rows"),
                    HasSubstr("allowed: [4, 3]")));
  EXPECT_THAT(std::string((*made)->learner->Evaluate(0).status().message()),
              HasSubstr("gives [1, 3] for 2 rows"));
  ports::PredictRequest predict{
      4, std::make_shared<std::vector<core::ModelValues>>()};
  EXPECT_THAT(
      std::string((*made)->learner->Predict(predict).status().message()),
      HasSubstr("gives [3, 3] for 4 rows"));
}

TEST_F(Batches, AnEvaluationWithoutALossIsAnErrorThatNamesTheRows) {
  const auto made =
      MakeLearner(Spec("mlp", 3), Rows(2, {1, 2, 3, 4, 5, 6}),
                  Rows(2, {1, 2, std::numeric_limits<float>::infinity(), 1}));
  ASSERT_TRUE(made.ok()) << made.status();
  const absl::Status status = (*made)->learner->Evaluate(0).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("row 1 of the test data"));
}

TEST(Bind, WhatComesBeforeItIsRefused) {
  const auto learner = CreateTorchLearner(
      Spec("mlp", 2), LearnerData(RandomRows({3}, 4, 2, 1)), {});
  ASSERT_TRUE(learner.ok()) << learner.status();
  constexpr auto kNot = absl::StatusCode::kFailedPrecondition;
  EXPECT_EQ((*learner)->Initialise(1).code(), kNot);
  EXPECT_EQ((*learner)->Gradient({}).status().code(), kNot);
  EXPECT_EQ((*learner)->Evaluate(0).status().code(), kNot);
  EXPECT_EQ(
      (*learner)
          ->Predict({1, std::make_shared<std::vector<core::ModelValues>>()})
          .status()
          .code(),
      kNot);
  std::vector<float> few(1);
  EXPECT_FALSE((*learner)->Bind(absl::MakeSpan(few), {}, {}).ok());
  EXPECT_EQ((*learner)->Gradient({}).status().code(), kNot);
  const auto n = static_cast<size_t>((*learner)->model().parameter_count);
  std::vector<float> parameters(n);
  std::vector<float> gradient(n);
  const auto bind = [&] {
    return (*learner)->Bind(absl::MakeSpan(parameters),
                            absl::MakeSpan(gradient), {});
  };
  EXPECT_TRUE(bind().ok());
  EXPECT_TRUE((*learner)->Gradient({}).ok());
  EXPECT_EQ(bind().code(), kNot);
}

}  // namespace
}  // namespace dfl::learner
