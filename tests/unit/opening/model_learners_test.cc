// Which learner takes which model.
#include "daemon/learner/opening/model_learners.h"

#include <cmath>
#include <string>
#include <utility>

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
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr char kNowhere[] = "/nowhere/dfld-torch.so";

core::ModelSpec Mlp(int64_t hidden) {
  core::ModelSpec spec = Spec("mlp", 2);
  spec.hidden = {hidden};
  return spec;
}

absl::StatusOr<std::unique_ptr<ports::Learner>> Make(
    ModelLearners& learners, const core::ModelSpec& spec,
    const std::vector<int64_t>& shape) {
  return learners.Create(spec, LearnerData(RandomRows(shape, 8, 2, 1)), {});
}

TEST(ModelLearners, SmallModelsNeedNoLibTorch) {
  ModelLearners learners({kNowhere});
  for (const char* kind : {"linear", "logistic", "svm"}) {
    const auto learner = Make(learners, Spec(kind, 2), {3});
    ASSERT_TRUE(learner.ok()) << learner.status();
    EXPECT_EQ(EngineOf(**learner), "plain") << kind;
    EXPECT_THAT((*learner)->model().warnings, IsEmpty());
  }
  EXPECT_TRUE(learners.CheckDevice("cpu").ok());
  EXPECT_THAT(learners.Libraries(), ElementsAre("LibTorch not installed"));
}

TEST(ModelLearners, WhatALargeOneDoesWithoutLibTorchIsTold) {
  ModelLearners learners({kNowhere});
  // 2 outputs: 16 parameters a hidden unit, and 2.
  const int64_t most = (kMostPlain - 2) / 16;
  const auto small = Make(learners, Mlp(most), {13});
  ASSERT_TRUE(small.ok()) << small.status();
  EXPECT_THAT((*small)->model().warnings, IsEmpty());
  const auto large = Make(learners, Mlp(most + 1), {13});
  ASSERT_TRUE(large.ok()) << large.status();
  EXPECT_EQ(EngineOf(**large), "plain");
  EXPECT_THAT((*large)->model().warnings,
              ElementsAre(AllOf(HasSubstr("one thread"), HasSubstr(kNowhere))));
}

TEST(ModelLearners, OthersAreRefusedWithoutIt) {
  ModelLearners learners({kNowhere});
  const absl::Status cnn = Make(learners, Spec("cnn", 2), {1, 8, 8}).status();
  EXPECT_EQ(cnn.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(cnn.message()),
              AllOf(StartsWith("model.kind: cnn: "), HasSubstr(kNowhere)));
  core::ModelSpec script = Spec("torchscript", 2);
  script.path = "/nowhere/model.pt";
  EXPECT_THAT(
      std::string(learners.Identify(script, core::Task::kClassification, {3})
                      .status()
                      .message()),
      StartsWith("model.kind: torchscript: "));
  EXPECT_EQ(learners.CheckDevice("cuda").code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(learners.CheckDevice("tpu").code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(ModelLearners, IdentifyWithoutLibTorchWhatTheyWouldBuild) {
  ModelLearners learners({kNowhere});
  for (const char* kind : {"svm", "mlp", "cnn"}) {
    const auto identity = learners.Identify(
        Spec(kind, 2), core::Task::kClassification, {1, 8, 8});
    ASSERT_TRUE(identity.ok()) << identity.status();
    EXPECT_THAT(identity->model, SizeIs(64)) << kind;
  }
  const auto svm = Make(learners, Spec("svm", 2), {1, 8, 8});
  ASSERT_TRUE(svm.ok()) << svm.status();
  const auto identity =
      learners.Identify(Spec("svm", 2), core::Task::kClassification, {1, 8, 8});
  EXPECT_EQ((*svm)->model().contract.model, identity->model);
  EXPECT_EQ((*svm)->model().contract.loss, identity->loss);
}

#ifdef DFL_TORCH_FILE
TEST(ModelLearners, LibTorchIsLoadedByTheFirstModelThatNeedsIt) {
  ModelLearners learners({DFL_TORCH_FILE});
  ASSERT_TRUE(Make(learners, Spec("svm", 2), {1, 8, 8}).ok());
  EXPECT_THAT(learners.Libraries(), ElementsAre("LibTorch not loaded"));
  auto learner = Make(learners, Spec("cnn", 2), {1, 8, 8});
  ASSERT_TRUE(learner.ok()) << learner.status();
  EXPECT_THAT(EngineOf(**learner), StartsWith("LibTorch "));
  EXPECT_THAT(learners.Libraries(), ElementsAre(EngineOf(**learner)));
  // It computes on memory of this side, and its errors come across.
  auto bound = BoundLearner::Of(*std::move(learner), 1);
  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_TRUE(std::isfinite((*bound)->Train(3, 4, 0.01F)));
  core::ModelSpec script = Spec("torchscript", 2);
  script.path = "/nowhere/model.pt";
  EXPECT_EQ(Make(learners, script, {3}).status().code(),
            absl::StatusCode::kNotFound);
}
#endif

}  // namespace
}  // namespace dfl::learner
