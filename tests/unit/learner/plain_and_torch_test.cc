// The learner without LibTorch computes what LibTorch's does: nodes with either
// start from the same bits, take the same rows, and stay together.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/learner/plain/plain_learner.h"
#include "gtest/gtest.h"
#include "tests/unit/learner/learner_fixture.h"

namespace dfl::learner {
namespace {

struct Case {
  const char* kind;
  const char* loss;  // "": the kind's own
  int64_t classes;
  std::vector<int64_t> hidden;
  double dropout;
  double l2;
  std::vector<double> class_weights;
};

const Case kCases[] = {
    {"linear", "", 0, {}, 0, 0, {}},
    {"linear", "huber", 0, {}, 0, 0.01, {}},
    {"linear", "", 4, {}, 0, 0, {}},
    {"logistic", "", 4, {}, 0, 0.001, {}},
    {"logistic", "", 3, {}, 0, 0, {0.5, 1, 2}},
    {"logistic", "bce", 2, {}, 0, 0, {}},
    {"logistic", "logistic", 20, {}, 0, 0, {}},
    {"svm", "", 4, {}, 0, 0, {}},
    {"mlp", "", 10, {128}, 0, 0, {}},
    {"mlp", "", 10, {40, 24}, 0.3, 0.0001, {}},
    {"mlp", "bce", 5, {17}, 0, 0, {}},
    {"mlp", "hinge", 3, {32}, 0, 0, {}},
    {"mlp", "huber", 0, {32}, 0.1, 0, {}},
    {"mlp", "", 3, {}, 0, 0, {}},
};

core::ModelSpec SpecOf(const Case& c) {
  core::ModelSpec spec = Spec(c.kind, c.classes);
  spec.loss = c.loss;
  spec.hidden = c.hidden;
  spec.dropout = c.dropout;
  spec.l2 = c.l2;
  spec.class_weights = c.class_weights;
  return spec;
}

struct Both {
  std::unique_ptr<BoundLearner> torch;
  std::unique_ptr<BoundLearner> plain;
};

absl::StatusOr<Both> MakeBoth(const core::ModelSpec& spec,
                              const data::DatasetView& train,
                              const data::DatasetView& test) {
  LearnerOptions options;
  options.data_seed = 5;
  auto torch = MakeLearner(spec, train, test, options, 11);
  if (!torch.ok()) return torch.status();
  LearnerData data(train);
  data.test = test;
  auto learner = CreatePlainLearner(spec, std::move(data), options);
  if (!learner.ok()) return learner.status();
  auto plain = BoundLearner::Of(*std::move(learner), 11);
  if (!plain.ok()) return plain.status();
  return Both{*std::move(torch), *std::move(plain)};
}

void ExpectSameModel(const ports::ModelInfo& a, const ports::ModelInfo& b) {
  EXPECT_EQ(a.kind, b.kind);
  EXPECT_EQ(a.parameter_count, b.parameter_count);
  ASSERT_EQ(a.parameters.size(), b.parameters.size());
  for (size_t i = 0; i < a.parameters.size(); ++i) {
    EXPECT_EQ(a.parameters[i].name, b.parameters[i].name);
    EXPECT_EQ(a.parameters[i].shape, b.parameters[i].shape);
    EXPECT_EQ(a.parameters[i].offset, b.parameters[i].offset);
    EXPECT_EQ(a.parameters[i].size, b.parameters[i].size);
  }
  EXPECT_TRUE(a.contract == b.contract);
}

// Bounds what rounding in another order makes of sums of numbers around 1.
void ExpectClose(const FlatVector& a, const FlatVector& b, double bound) {
  ASSERT_EQ(a.size(), b.size());
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::fabs(static_cast<double>(a[i]) - b[i]));
  }
  EXPECT_LT(largest, bound);
}

TEST(PlainAndTorch, AgreeAfterTwoHundredSteps) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(absl::StrCat(c.kind, " ", c.loss, " ", c.classes, " classes, ",
                              c.hidden.size(), " hidden layers"));
    const auto both = MakeBoth(SpecOf(c), RandomRows({30}, 250, c.classes, 1),
                               RandomRows({30}, 100, c.classes, 2));
    ASSERT_TRUE(both.ok()) << both.status();
    BoundLearner& torch = *both->torch;
    BoundLearner& plain = *both->plain;
    ExpectSameModel(torch.learner->model(), plain.learner->model());
    EXPECT_EQ(torch.parameters, plain.parameters);  // to the bit

    EXPECT_NEAR(torch.Train(1, 32, 0.02F), plain.Train(1, 32, 0.02F), 1e-5);
    ExpectClose(torch.gradient, plain.gradient, 1e-5);
    EXPECT_NEAR(torch.Train(199, 32, 0.02F), plain.Train(199, 32, 0.02F), 1e-4);
    ExpectClose(torch.parameters, plain.parameters, 1e-3);
    EXPECT_TRUE(torch.learner->position() == plain.learner->position());

    const auto a = torch.learner->Evaluate(70);
    const auto b = plain.learner->Evaluate(70);
    ASSERT_TRUE(a.ok() && b.ok()) << a.status() << b.status();
    EXPECT_NEAR(a->loss, b->loss, 1e-4);
    EXPECT_EQ(a->rows, b->rows);
    EXPECT_EQ(a->accuracy.has_value(), b->accuracy.has_value());
    if (a->accuracy) {
      EXPECT_NEAR(*a->accuracy, *b->accuracy, 0.02);
    }
    if (a->mae) {
      EXPECT_NEAR(*a->mae, *b->mae, 1e-4);
    }
  }
}

TEST(PlainAndTorch, PredictAlike) {
  for (const Case& c : kCases) {
    if (c.classes == 0) continue;
    SCOPED_TRACE(absl::StrCat(c.kind, " ", c.loss, " ", c.classes));
    const auto both = MakeBoth(SpecOf(c), RandomRows({30}, 64, c.classes, 1),
                               RandomRows({30}, 10, c.classes, 2));
    ASSERT_TRUE(both.ok()) << both.status();
    both->torch->Train(5, 16, 0.1F);
    both->plain->Train(5, 16, 0.1F);
    const auto none = std::make_shared<std::vector<core::ModelValues>>();
    const auto a = both->torch->learner->Predict({16, none});
    const auto b = both->plain->learner->Predict({16, none});
    ASSERT_TRUE(a.ok() && b.ok()) << a.status() << b.status();
    ASSERT_EQ(a->probabilities[0].size(), b->probabilities[0].size());
    for (size_t i = 0; i < a->probabilities[0].size(); ++i) {
      EXPECT_NEAR(a->probabilities[0][i], b->probabilities[0][i], 1e-5);
    }
  }
}

}  // namespace
}  // namespace dfl::learner
