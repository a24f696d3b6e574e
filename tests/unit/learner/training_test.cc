// What training does, through the port alone.
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>

#include "absl/strings/str_cat.h"
#include "daemon/learner/catalogue/scores.h"
#include "gmock/gmock.h"
#include "tests/unit/learner/learner_fixture.h"

namespace dfl::learner {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

ports::GradientRequest Request(int64_t step, int64_t batch_size) {
  ports::GradientRequest request;
  request.step = step;
  request.batch_size = batch_size;
  return request;
}

struct Fashion {
  data::DatasetView train;
  data::DatasetView test;
};

absl::StatusOr<Fashion> LoadFashion() {
  auto train = data::Load(data::MnistTrainingSpec(kFashionMnist));
  if (!train.ok()) return train.status();
  auto test = data::Load(data::MnistTestSpec(kFashionMnist));
  if (!test.ok()) return test.status();
  return Fashion{data::DatasetView(
                     std::make_shared<const data::Dataset>(*std::move(train))),
                 data::DatasetView(
                     std::make_shared<const data::Dataset>(*std::move(test)))};
}

TEST(Training, CnnLearnsFashionMnist) {
  struct stat info{};
  if (::stat(kFashionMnist, &info) != 0) {
    GTEST_SKIP() << "no " << kFashionMnist
                 << ": install dataset-fashion-mnist to run this test";
  }
  const auto fashion = LoadFashion();
  ASSERT_TRUE(fashion.ok()) << fashion.status();
  auto bound = MakeLearner(Spec("cnn", 10), fashion->train, fashion->test);
  ASSERT_TRUE(bound.ok()) << bound.status();
  BoundLearner& node = **bound;
  EXPECT_EQ(node.learner->model().parameter_count, 268362);
  const auto before = node.learner->Evaluate(1000);
  ASSERT_TRUE(before.ok()) << before.status();
  node.Train(200, 32, 0.1F);
  const auto after = node.learner->Evaluate(1000);
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_LT(*before->accuracy, 0.3);
  EXPECT_GT(*after->accuracy, 0.6);
  EXPECT_GT(*after->macro_f1, 0.5);
  EXPECT_LT(after->loss, before->loss);
  EXPECT_EQ(after->rows, 1000);
}

// The gradient against central differences of the loss, on all rows at once so
// that every call sees the same ones. float32 losses leave about three digits.
void ExpectGradientMatchesDifferences(const core::ModelSpec& spec,
                                      const data::DatasetView& rows) {
  SCOPED_TRACE(absl::StrCat(spec.kind, " ", spec.loss));
  auto bound = MakeLearner(spec, rows);
  ASSERT_TRUE(bound.ok()) << bound.status();
  BoundLearner& node = **bound;
  Rng rng(7);
  for (float& value : node.parameters) {
    value += 0.1F * static_cast<float>(Normal(rng));
  }
  const auto loss_at = [&] {
    const auto result = node.learner->Gradient(Request(3, rows.size()));
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? result->loss : 0.0;
  };
  loss_at();
  const FlatVector gradient = node.gradient;
  constexpr float kStep = 0.0005F;  // short: ReLU has corners
  const size_t n = node.parameters.size();
  for (int probe = 0; probe < 12; ++probe) {
    const size_t i = static_cast<size_t>(rng.Below(n));
    const float value = node.parameters[i];
    node.parameters[i] = value + kStep;
    const double above = loss_at();
    node.parameters[i] = value - kStep;
    const double below = loss_at();
    node.parameters[i] = value;
    const double numeric = (above - below) / (2 * kStep);
    EXPECT_NEAR(gradient[i], numeric, 2e-3 + 0.02 * std::fabs(numeric))
        << "parameter " << i;
  }
}

TEST(Gradient, MatchesDifferencesForEveryLossOfALinearModel) {
  for (const char* kind : {"linear", "logistic", "svm"}) {
    for (const char* loss :
         {"", "cross-entropy", "hinge", "mse", "logistic", "bce"}) {
      core::ModelSpec spec = Spec(kind, 3);
      spec.loss = loss;
      spec.l2 = 0.3;
      ExpectGradientMatchesDifferences(spec, RandomRows({5}, 40, 3, 11));
    }
  }
  for (const char* loss : {"mse", "huber"}) {
    core::ModelSpec spec = Spec("linear", 0);
    spec.loss = loss;
    ExpectGradientMatchesDifferences(spec, RandomRows({5}, 40, 0, 12));
  }
  core::ModelSpec weighted = Spec("logistic", 3);
  weighted.class_weights = {1, 3, 0.5};
  ExpectGradientMatchesDifferences(weighted, RandomRows({5}, 40, 3, 11));
}

TEST(Gradient, MatchesDifferencesForSmallNetworks) {
  core::ModelSpec mlp = Spec("mlp", 3);
  mlp.hidden = {7, 6};
  mlp.dropout = 0.4;  // the step is the same, so the masks are
  mlp.l2 = 0.01;
  // One row: its place in the batch, and so its mask, is always the same.
  ExpectGradientMatchesDifferences(mlp, RandomRows({5}, 1, 3, 13));
  mlp.dropout = 0;
  ExpectGradientMatchesDifferences(mlp, RandomRows({5}, 40, 3, 13));
  ExpectGradientMatchesDifferences(Spec("cnn", 3),
                                   RandomRows({1, 8, 8}, 6, 3, 14));
}

TEST(Gradient, SvmIsTheMultiClassHinge) {
  const data::DatasetView rows = RandomRows({4}, 20, 3, 5);
  auto bound = MakeLearner(Spec("svm", 3), rows);
  ASSERT_TRUE(bound.ok()) << bound.status();
  BoundLearner& node = **bound;
  Rng rng(3);
  for (float& value : node.parameters) value = static_cast<float>(Normal(rng));
  const auto result = node.learner->Gradient(Request(0, rows.size()));
  ASSERT_TRUE(result.ok()) << result.status();
  double expected = 0;
  const data::Dataset& data = rows.dataset();
  for (size_t i = 0; i < 20; ++i) {
    double scores[3];
    for (size_t k = 0; k < 3; ++k) {
      scores[k] = node.parameters[12 + k];
      for (size_t j = 0; j < 4; ++j) {
        scores[k] += static_cast<double>(node.parameters[k * 4 + j]) *
                     data.floats()[i * 4 + j];
      }
    }
    const size_t label = static_cast<size_t>(data.labels()[i]);
    for (size_t k = 0; k < 3; ++k) {
      if (k != label) {
        expected += std::max(0.0, 1 - scores[label] + scores[k]) / 20;
      }
    }
  }
  EXPECT_NEAR(result->loss, expected, 1e-4);
}

TEST(Gradient, AddsTheL2Term) {
  const data::DatasetView rows = RandomRows({5}, 30, 3, 2);
  auto plain = MakeLearner(Spec("logistic", 3), rows);
  core::ModelSpec spec = Spec("logistic", 3);
  spec.l2 = 0.5;
  auto damped = MakeLearner(spec, rows);
  ASSERT_TRUE(plain.ok() && damped.ok());
  Rng rng(4);
  double squares = 0;
  for (size_t i = 0; i < (*plain)->parameters.size(); ++i) {
    const float value = static_cast<float>(Normal(rng));
    (*plain)->parameters[i] = (*damped)->parameters[i] = value;
    squares += static_cast<double>(value) * value;
  }
  const auto a = (*plain)->learner->Gradient(Request(0, 30));
  const auto b = (*damped)->learner->Gradient(Request(0, 30));
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_NEAR(b->loss, a->loss + 0.25 * squares, 1e-5);
  for (size_t i = 0; i < (*plain)->gradient.size(); ++i) {
    EXPECT_NEAR((*damped)->gradient[i],
                (*plain)->gradient[i] + 0.5F * (*plain)->parameters[i], 1e-5);
  }
}

TEST(Gradient, WalksThroughThePassAndGivesAShortLastBatch) {
  auto bound = MakeLearner(Spec("logistic", 2), RandomRows({3}, 10, 2, 1));
  ASSERT_TRUE(bound.ok()) << bound.status();
  std::vector<int64_t> rows;
  for (int64_t step = 0; step < 4; ++step) {
    const auto result = (*bound)->learner->Gradient(Request(step, 4));
    ASSERT_TRUE(result.ok()) << result.status();
    rows.push_back(result->rows);
  }
  EXPECT_EQ(rows, (std::vector<int64_t>{4, 4, 2, 4}));
}

// Dense views must survive: each step writes the whole gradient, and what the
// caller writes into the parameters is what the next forward sees.
TEST(Gradient, EveryModelKeepsTrainingThroughTheFlatBuffers) {
  struct Case {
    const char* kind;
    std::vector<int64_t> input;
  };
  const Case cases[] = {{"linear", {6}},
                        {"logistic", {6}},
                        {"svm", {6}},
                        {"mlp", {6}},
                        {"cnn", {1, 8, 8}},
                        {"resnet20", {3, 16, 16}},
                        {"resnet18", {3, 16, 16}}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.kind);
    auto bound = MakeLearner(Spec(c.kind, 3), RandomRows(c.input, 12, 3, 9));
    ASSERT_TRUE(bound.ok()) << bound.status();
    BoundLearner& node = **bound;
    const float* const gradient = node.gradient.data();
    const FlatVector buffers = node.buffers;
    double first = 0;
    double last = 0;
    for (int64_t step = 0; step < 7; ++step) {
      std::fill(node.gradient.begin(), node.gradient.end(), 1e30F);
      const auto result = node.learner->Gradient(Request(step, 12));
      ASSERT_TRUE(result.ok()) << result.status();
      if (step == 0) first = result->loss;
      last = result->loss;
      for (size_t i = 0; i < node.gradient.size(); ++i) {
        ASSERT_LT(std::fabs(gradient[i]), 1e20F) << "step " << step;
        node.parameters[i] -= 0.01F * gradient[i];
      }
    }
    EXPECT_LT(last, first);
    if (!buffers.empty()) {
      EXPECT_NE(buffers, node.buffers) << "statistics did not move";
    }
  }
}

TEST(Gradient, IsBitIdenticalInTwoRunsWithOneThread) {
  const data::DatasetView rows = RandomRows({1, 12, 12}, 50, 4, 21);
  FlatVector results[2];
  for (FlatVector& result : results) {
    auto bound = MakeLearner(Spec("cnn", 4), rows);
    ASSERT_TRUE(bound.ok()) << bound.status();
    (*bound)->Train(20, 8, 0.05F);
    result = (*bound)->parameters;
  }
  EXPECT_EQ(results[0], results[1]);
}

TEST(Gradient, MayBeCalledFromAnotherThreadEachTime) {
  auto bound = MakeLearner(Spec("mlp", 3), RandomRows({6}, 30, 3, 8));
  ASSERT_TRUE(bound.ok()) << bound.status();
  auto same = MakeLearner(Spec("mlp", 3), RandomRows({6}, 30, 3, 8));
  ASSERT_TRUE(same.ok()) << same.status();
  for (int64_t step = 0; step < 4; ++step) {
    std::thread([&] {
      EXPECT_TRUE((*bound)->learner->Gradient(Request(step, 7)).ok());
    }).join();
    EXPECT_TRUE((*same)->learner->Gradient(Request(step, 7)).ok());
    EXPECT_EQ((*bound)->gradient, (*same)->gradient);
  }
}

TEST(Training, TheSameBatchGivesTheSameGradientOnce) {
  core::ModelSpec spec = Spec("mlp", 3);
  spec.dropout = 0.5;
  auto bound = MakeLearner(spec, RandomRows({4}, 40, 3, 5));
  ASSERT_TRUE(bound.ok()) << bound.status();
  BoundLearner& node = **bound;
  ports::GradientRequest request = Request(0, 7);
  ASSERT_TRUE(node.learner->Gradient(request).ok());
  const FlatVector first = node.gradient;
  request.same_batch = true;
  ASSERT_TRUE(node.learner->Gradient(request).ok());
  EXPECT_EQ(node.gradient, first);
  request.same_batch = false;
  ASSERT_TRUE(node.learner->Gradient(request).ok());
  EXPECT_NE(node.gradient, first);
}

// ------------------------------------------------------------ predictions ----

std::shared_ptr<std::vector<core::ModelValues>> Models(
    size_t count, const BoundLearner& like) {
  auto models = std::make_shared<std::vector<core::ModelValues>>(count);
  for (core::ModelValues& model : *models) {
    model.parameters = like.parameters;
    model.buffers.assign(like.buffers.begin(), like.buffers.end());
  }
  return models;
}

// resnet20 has module buffers (batch-norm statistics), mlp dropout.
TEST(Predict, UsesEachModelForOneBatchAndLeavesItsOwnAlone) {
  for (const std::string kind : {"linear", "mlp", "resnet20"}) {
    core::ModelSpec spec = Spec(kind, 3);
    if (kind == "mlp") spec.dropout = 0.5;
    const auto rows = RandomRows({3, 16, 16}, 12, 3, 5);
    auto made = MakeLearner(spec, rows);
    ASSERT_TRUE(made.ok()) << made.status();
    BoundLearner& bound = **made;
    bound.Train(3, 4, 0.1F);
    const FlatVector parameters = bound.parameters;
    const FlatVector buffers = bound.buffers;
    auto models = Models(3, bound);
    for (float& value : (*models)[1].parameters) value *= 0.5F;
    for (float& value : (*models)[2].buffers) value += 1;
    ports::PredictRequest request{6, models};
    const auto result = bound.learner->Predict(request);
    ASSERT_TRUE(result.ok()) << kind << ": " << result.status();
    EXPECT_EQ(result->rows, 6);
    ASSERT_EQ(result->probabilities.size(), 4U);
    for (const std::vector<double>& p : result->probabilities) {
      ASSERT_EQ(p.size(), 18U);
      for (size_t row = 0; row < 6; ++row) {
        EXPECT_NEAR(p[3 * row] + p[3 * row + 1] + p[3 * row + 2], 1, 1e-9);
      }
    }
    EXPECT_EQ(result->probabilities[0], result->probabilities[1]);
    EXPECT_NE(result->probabilities[0], result->probabilities[2]);
    EXPECT_EQ(result->probabilities[0] == result->probabilities[3],
              bound.buffers.empty());
    EXPECT_EQ(bound.parameters, parameters) << kind;
    EXPECT_EQ(bound.buffers, buffers) << kind;
    // And the module is bound to the node's vectors again: what is written
    // there is what it predicts with and trains.
    for (float& value : bound.parameters) value *= 0.5F;
    const auto again = bound.learner->Predict(request);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(again->probabilities[0], again->probabilities[2]);
    const FlatVector before = bound.parameters;
    bound.Train(1, 4, 0.1F);
    EXPECT_NE(bound.parameters, before) << kind;
  }
}

TEST(Predict, AgreesWithANaiveSoftmax) {
  const auto rows = RandomRows({4}, 1, 2, 6);
  auto made = MakeLearner(Spec("linear", 2), rows);
  ASSERT_TRUE(made.ok()) << made.status();
  BoundLearner& bound = **made;
  for (size_t l = 0; l < bound.parameters.size(); ++l) {
    bound.parameters[l] = 0.1F * static_cast<float>(l) - 0.3F;
  }
  const auto result = bound.learner->Predict({1, Models(0, bound)});
  ASSERT_TRUE(result.ok()) << result.status();
  const absl::Span<const float> x = rows.dataset().floats();
  double logits[2];
  for (size_t k = 0; k < 2; ++k) {
    logits[k] = bound.parameters[8 + k];
    for (size_t l = 0; l < 4; ++l) {
      logits[k] += bound.parameters[4 * k + l] * x[l];
    }
  }
  EXPECT_NEAR(result->probabilities[0][1],
              1 / (1 + std::exp(logits[0] - logits[1])), 1e-6);
}

TEST(Predict, RefusesWhatItCannotDo) {
  auto regression = MakeLearner(Spec("linear", 0), RandomRows({4}, 5, 0, 7));
  ASSERT_TRUE(regression.ok()) << regression.status();
  EXPECT_EQ((*regression)
                ->learner->Predict({1, Models(0, **regression)})
                .status()
                .code(),
            absl::StatusCode::kFailedPrecondition);
  auto made = MakeLearner(Spec("linear", 2), RandomRows({4}, 5, 2, 8));
  ASSERT_TRUE(made.ok()) << made.status();
  auto models = Models(1, **made);
  models->front().parameters.pop_back();
  EXPECT_EQ((*made)->learner->Predict({1, models}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(Dropout, DependsOnSeedAndGradientNumberAlone) {
  core::ModelSpec spec = Spec("mlp", 2);
  spec.hidden = {64};
  spec.dropout = 0.5;
  const data::DatasetView one_row = RandomRows({6}, 1, 2, 8);
  const auto gradient_of = [&](uint64_t data_seed, int64_t skipped,
                               int64_t step) {
    LearnerOptions options;
    options.data_seed = data_seed;
    auto bound = MakeLearner(spec, one_row, absl::nullopt, options);
    EXPECT_TRUE(bound.ok()) << bound.status();
    for (int64_t i = 0; i < skipped; ++i) {
      EXPECT_TRUE((*bound)->learner->Gradient(Request(i, 1)).ok());
    }
    EXPECT_TRUE((*bound)->learner->Gradient(Request(step, 1)).ok());
    return (*bound)->gradient;
  };
  const FlatVector reference = gradient_of(1, 0, 9);
  EXPECT_EQ(reference, gradient_of(1, 0, 9));
  EXPECT_EQ(reference, gradient_of(1, 3, 9)) << "what came before matters";
  EXPECT_NE(reference, gradient_of(1, 0, 10));
  EXPECT_NE(reference, gradient_of(2, 0, 9));
}

TEST(Gradient, RefusesNaNInTheDataWithAReason) {
  data::Dataset::Answers answers;
  answers.classes = 2;
  answers.labels = {0, 1};
  std::vector<float> features = {1, 2, std::numeric_limits<float>::quiet_NaN(),
                                 4};
  const data::DatasetView rows(std::make_shared<const data::Dataset>(
      std::vector<int64_t>{2}, std::move(features), std::move(answers)));
  auto bound = MakeLearner(Spec("logistic", 2), rows);
  ASSERT_TRUE(bound.ok()) << bound.status();
  const auto result = (*bound)->learner->Gradient(Request(4, 2));
  EXPECT_EQ(result.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(result.status().message()),
              AllOf(HasSubstr("gradient 4: the loss is not finite"),
                    HasSubstr("row 1 of the training data")));
}

TEST(Gradient, RefusesParametersThatDiverged) {
  auto bound = MakeLearner(Spec("mlp", 3), RandomRows({6}, 30, 3, 8));
  ASSERT_TRUE(bound.ok()) << bound.status();
  (*bound)->parameters[5] = std::numeric_limits<float>::infinity();
  const auto result = (*bound)->learner->Gradient(Request(0, 30));
  EXPECT_EQ(result.status().code(), absl::StatusCode::kDataLoss);
}

// Scores against a count per class written for reading.
TEST(Evaluate, AgreesWithANaiveCount) {
  const data::DatasetView test = RandomRows({6}, 700, 4, 33);
  auto bound =
      MakeLearner(Spec("logistic", 4), RandomRows({6}, 50, 4, 32), test);
  ASSERT_TRUE(bound.ok()) << bound.status();
  BoundLearner& node = **bound;
  node.Train(5, 10, 0.1F);
  const auto result = node.learner->Evaluate(0);
  ASSERT_TRUE(result.ok()) << result.status();
  std::vector<int64_t> predicted;
  double loss = 0;
  for (size_t i = 0; i < 700; ++i) {
    double scores[4];
    double sum = 0;
    int64_t best = 0;
    for (size_t k = 0; k < 4; ++k) {
      scores[k] = node.parameters[24 + k];
      for (size_t j = 0; j < 6; ++j) {
        scores[k] += static_cast<double>(node.parameters[k * 6 + j]) *
                     test.dataset().floats()[i * 6 + j];
      }
      sum += std::exp(scores[k]);
      if (scores[k] > scores[best]) best = static_cast<int64_t>(k);
    }
    predicted.push_back(best);
    loss +=
        std::log(sum) - scores[static_cast<size_t>(test.dataset().labels()[i])];
  }
  double f1 = 0;
  double right = 0;
  for (int64_t k = 0; k < 4; ++k) {
    double hit = 0;
    double miss = 0;
    double alarm = 0;
    for (size_t i = 0; i < 700; ++i) {
      const int64_t label = test.dataset().labels()[i];
      if (label == k && predicted[i] == k) ++hit;
      if (label == k && predicted[i] != k) ++miss;
      if (label != k && predicted[i] == k) ++alarm;
    }
    right += hit;
    const double precision = hit / (hit + alarm);
    const double recall = hit / (hit + miss);
    f1 += 2 * precision * recall / (precision + recall) / 4;
  }
  EXPECT_NEAR(*result->accuracy, right / 700, 1e-12);
  EXPECT_NEAR(*result->macro_f1, f1, 1e-12);
  EXPECT_NEAR(result->loss, loss / 700, 1e-5);
  EXPECT_EQ(result->rows, 700);
}

TEST(Evaluate, TakesTheSameRowsOnEveryNodeAndLeavesTheModelAlone) {
  const data::DatasetView test = RandomRows({3, 16, 16}, 60, 3, 3);
  LearnerOptions other;
  other.data_seed = 99;
  auto a =
      MakeLearner(Spec("resnet20", 3), RandomRows({3, 16, 16}, 20, 3, 1), test);
  auto b = MakeLearner(Spec("resnet20", 3), RandomRows({3, 16, 16}, 9, 3, 2),
                       test, other);
  ASSERT_TRUE(a.ok() && b.ok());
  const FlatVector parameters = (*a)->parameters;
  const FlatVector buffers = (*a)->buffers;
  const auto first = (*a)->learner->Evaluate(25);
  const auto second = (*b)->learner->Evaluate(25);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->loss, second->loss);
  EXPECT_EQ(first->accuracy, second->accuracy);
  EXPECT_EQ(first->rows, 25);
  EXPECT_EQ(parameters, (*a)->parameters);
  EXPECT_EQ(buffers, (*a)->buffers);
}

TEST(Evaluate, NeedsTestData) {
  auto bound = MakeLearner(Spec("logistic", 2), RandomRows({3}, 10, 2, 1));
  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_EQ((*bound)->learner->Evaluate(0).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(Scores, LeaveOutAClassThatNeverOccurs) {
  Scores scores(4);
  scores.Add({0, 0, 1, 2}, {0, 1, 1, 1});
  EXPECT_DOUBLE_EQ(scores.Accuracy(), 0.5);
  // F1: class 0 2/3, class 1 2/4, class 2 0, class 3 absent.
  EXPECT_DOUBLE_EQ(scores.MacroF1(), (2.0 / 3 + 0.5 + 0) / 3);
  EXPECT_EQ(Scores(3).Accuracy(), 0);
  EXPECT_EQ(Scores(0).MacroF1(), 0);
}

}  // namespace
}  // namespace dfl::learner
