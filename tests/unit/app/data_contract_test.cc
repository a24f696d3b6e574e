// A node derives its data contract from the plan and from its own data.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "daemon/config/plan_yaml.h"
#include "daemon/config/run_identity.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/app/backend_stage.h"

namespace dfl::app {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class DataContractTest : public testing::Test {
 protected:
  DataContractTest()
      : stage_(std::make_unique<BackendStage>(disk_, learners_)) {
    EXPECT_TRUE(stage_->backend().Restore().ok());
  }
  static std::string Stating(const std::string& data) {
    return absl::StrCat(kPlanYaml, "data: {", data, "}\n");
  }
  std::string Refusal(const std::string& yaml) {
    const auto applied = stage_->Apply(yaml);
    EXPECT_FALSE(applied.ok());
    EXPECT_EQ(stage_->backend().Plan().version, 0u);
    return std::string(applied.status().message());
  }

  simports::SimFiles disk_;
  FakeLearners learners_;
  std::unique_ptr<BackendStage> stage_;
};

TEST_F(DataContractTest, APlanThatStatesNothingTakesTheNodesOwn) {
  ASSERT_TRUE(stage_->Apply(kPlanYaml).ok());
  EXPECT_EQ(learners_.built_for.task, core::Task::kRegression);
  EXPECT_THAT(learners_.built_for.features, ElementsAre("age", "bp"));
  EXPECT_THAT(learners_.built_for.shape, ElementsAre(2));
  EXPECT_EQ(learners_.built_for.loss, "mse");
  EXPECT_EQ(learners_.built_for.model, learners_.offer.model);
}

TEST_F(DataContractTest, NamedColumnsTakeThePlansOrder) {
  ASSERT_TRUE(stage_->Apply(Stating("features: [bp, age]")).ok());
  EXPECT_THAT(learners_.built_for.features, ElementsAre("bp", "age"));
}

TEST_F(DataContractTest, APlanThatSaysOtherwiseIsRefusedWithBothSides) {
  EXPECT_THAT(Refusal(Stating("features: [age, sugar]")),
              AllOf(HasSubstr("features: the plan says [\"age\", \"sugar\"]"),
                    HasSubstr("this node says [\"age\", \"bp\"]"),
                    HasSubstr("data.features of the plan")));
  EXPECT_THAT(
      Refusal(Stating("shape: [3]")),
      AllOf(HasSubstr("the plan says [3]"), HasSubstr("this node says [2]")));
  EXPECT_THAT(Refusal(absl::StrReplaceAll(kPlanYaml, {{", classes: 0", ""}}) +
                      "data: {classes: [a, b]}\n"),
              HasSubstr("data.classes"));
  EXPECT_THAT(Refusal(Stating("standardise: {per: all, over: network}")),
              HasSubstr("dflctl plan apply FILE"));
  EXPECT_EQ(learners_.built, 0);
}

TEST_F(DataContractTest, TheSameContractInOtherWordsKeepsTheLearner) {
  ASSERT_TRUE(stage_->Apply(kPlanYaml).ok());
  core::RunPlan plan =
      *config::ParsePlan(stage_->backend().Plan().yaml, "test");
  plan.version = 2;
  plan.data.task = core::Task::kRegression;
  plan.data.features = {{"age", "bp"}};
  plan.data.shape = {{2}};
  plan.data.divide = 1;
  plan.data.per = core::InputScaling::Per::kNone;
  plan.data.model = learners_.offer.model;
  ASSERT_TRUE(stage_->Apply(config::WritePlan(plan), 1).ok());
  EXPECT_EQ(learners_.built, 1);
  plan.version = 3;
  plan.data.features = {{"bp", "age"}};
  ASSERT_TRUE(stage_->Apply(config::WritePlan(plan), 2).ok());
  EXPECT_EQ(learners_.built, 2);
}

TEST_F(DataContractTest, AnAlgorithmThatPredictsClassesNeedsSome) {
  EXPECT_THAT(
      Refusal("members: [anna, bert]\nmodel: {kind: linear}\n"
              "algorithm: {name: kd-pdfl}\ntopology: {kind: complete}\n"),
      AllOf(HasSubstr("regression"), HasSubstr("kd-pdfl")));
}

TEST_F(DataContractTest, TheNodeTellsWhatItsDataAre) {
  auto data = stage_->Data("");
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(data->offer.features, ElementsAre("age", "bp"));
  EXPECT_EQ(data->offer.model, "");
  EXPECT_FALSE(data->contract.has_value());
  EXPECT_EQ(data->report.train_rows, 150);
  data = stage_->Data(kPlanYaml);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->offer.loss, "mse");
  // What the rows would be like under this plan.
  EXPECT_EQ(data->report.train_rows, 0);
  EXPECT_THAT(
      data->report.warnings,
      ElementsAre(absl::StrCat("divided by ", data->offer.input.divide)));
  EXPECT_EQ(stage_->backend().Plan().version, 0u);
  EXPECT_FALSE(stage_->Data("model: {kind: lienar}").ok());
  ASSERT_TRUE(stage_->Apply(Stating("features: [bp, age]")).ok());
  data = stage_->Data("");
  ASSERT_TRUE(data->contract.has_value());
  EXPECT_THAT(data->contract->features, ElementsAre("bp", "age"));
  EXPECT_EQ(data->offer.model, data->contract->model);
}

TEST_F(DataContractTest, APlanFromSettingsIsTheRunThatItsDocumentNames) {
  ASSERT_TRUE(
      stage_->backend().AdoptInitialPlan(kPlanYaml, "plan.yaml", false).ok());
  core::RunPlan plan = *config::ParsePlan(kPlanYaml, "test");
  config::IdentifyNewRun(1, plan);
  const core::RunPlan held =
      *config::ParsePlan(stage_->backend().Plan().yaml, "test");
  EXPECT_EQ(held.run_id, plan.run_id);
  EXPECT_EQ(held.seed, plan.seed);
  // The document once more goes on with its run, another one begins the next.
  ASSERT_TRUE(stage_->Apply(kPlanYaml).ok());
  EXPECT_EQ(stage_->backend().Plan().run_id, plan.run_id);
  ASSERT_TRUE(
      stage_->Apply(absl::StrReplaceAll(kPlanYaml, {{"p: 0.5", "p: 0.25"}}))
          .ok());
  EXPECT_NE(stage_->backend().Plan().run_id, plan.run_id);
  EXPECT_THAT(stage_->backend().Plan().run_id, testing::EndsWith("-2"));
}

}  // namespace
}  // namespace dfl::app
