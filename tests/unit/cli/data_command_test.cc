// One meaning of the data: what targets say before a plan is applied, what is
// fixed, what is refused, and which run a document begins.
#include <gmock/gmock.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_replace.h"
#include "daemon/config/plan_yaml.h"
#include "tests/unit/cli/fake_daemon.h"

namespace dfl::cli {
namespace {

using control::NodeData;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr char kOpen[] =
    "members: [box-1, box-2]\n"
    "model: {kind: logistic}\n"
    "algorithm: {name: d-psgd}\n"
    "codec: {coordinates: dense}\n";

NodeData Patients() {
  NodeData data;
  data.offer.classes = {"ill", "well"};
  data.offer.features = {"age", "bp"};
  data.offer.shape = {2};
  data.offer.loss = "cross-entropy";
  data.offer.model = std::string(64, 'a');
  data.report.train_rows = 40;
  return data;
}

class DataCommand : public CliTest {
 protected:
  DataCommand() {
    a_ = &StartDaemon("box-1");
    b_ = &StartDaemon("box-2");
    a_->SetData(Patients());
    b_->SetData(Patients());
    environment_["DFLCTL_TARGET"] =
        "unix:" + Socket("box-1") + ",unix:" + Socket("box-2");
  }

  core::RunPlan PlanOf(const control::FakeBackend& daemon) {
    const auto plan = config::ParsePlan(daemon.plan().yaml, "test");
    EXPECT_TRUE(plan.ok()) << plan.status();
    return plan.ok() ? *plan : core::RunPlan();
  }
  Result Apply(const std::string& text, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"plan", "apply",
                                          WriteFile("plan.yaml", text)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Run(arguments);
  }
  Result ApplyAt(const std::string& name, const std::string& text,
                 std::vector<std::string> more = {}) {
    more.push_back("--target=unix:" + Socket(name));
    return Apply(text, std::move(more));
  }
  void ExpectNothingApplied() {
    EXPECT_EQ(a_->plan().version, 0u);
    EXPECT_EQ(b_->plan().version, 0u);
  }

  control::FakeBackend* a_ = nullptr;
  control::FakeBackend* b_ = nullptr;
};

TEST_F(DataCommand, TheFirstApplyFixesWhatThePlanLeavesOpen) {
  const Result applied = Apply(kOpen);
  ASSERT_EQ(applied.code, 0) << applied.err;
  EXPECT_THAT(
      applied.err,
      AllOf(HasSubstr("+ data:\n"), HasSubstr("+   classes: [ill, well]\n"),
            HasSubstr("+   features: [age, bp]\n"),
            HasSubstr("+   shape: [2]\n"), HasSubstr("+   divide: 1\n"),
            HasSubstr("+     per: none\n"), Not(HasSubstr("without asking"))));
  EXPECT_EQ(a_->plan().yaml, b_->plan().yaml);
  const core::RunPlan plan = PlanOf(*a_);
  EXPECT_EQ(plan.data.task, core::Task::kClassification);
  EXPECT_EQ(plan.data.model, Patients().offer.model);
  EXPECT_EQ(plan.model.classes, core::kClassesOfData);
  // They were asked about this model, in a document that is quick to check.
  ASSERT_THAT(a_->asked(), SizeIs(1));
  EXPECT_THAT(a_->asked()[0], HasSubstr("kind: logistic"));
}

TEST_F(DataCommand, WhatIsOddInTheDataIsToldAtTheFirstApply) {
  NodeData odd = Patients();
  odd.report.warnings = {"b.csv: column 0 has no name"};
  b_->SetData(odd);
  const Result applied = Apply(kOpen);
  ASSERT_EQ(applied.code, 0) << applied.err;
  EXPECT_THAT(applied.err, HasSubstr("warning: the data of box-2: b.csv: "
                                     "column 0 has no name\n"));
  // It is no part of later changes.
  EXPECT_THAT(Run({"set", "stop.steps=9"}).err, Not(HasSubstr("the data of")));
  // Refused: the more so. What all say is said once.
  odd.offer.shape = {3};
  b_->SetData(odd);
  NodeData also = Patients();
  also.report.warnings = odd.report.warnings;
  a_->SetData(also);
  EXPECT_THAT(Apply(kOpen, {"--new-run"}).err,
              HasSubstr("warning: the data of box-1, box-2: b.csv: "));
}

TEST_F(DataCommand, LabelsAreTheUnionOfAllTargets) {
  NodeData some = Patients();
  some.offer.classes = {"2"};
  a_->SetData(some);
  some.offer.classes = {"1", "10"};
  b_->SetData(some);
  ASSERT_EQ(Apply(kOpen).code, 0);
  EXPECT_THAT(*PlanOf(*b_).data.classes, ElementsAre("1", "2", "10"));
}

TEST_F(DataCommand, EachFieldInWhichTargetsDifferIsRefused) {
  struct Case {
    std::string field;
    std::function<void(NodeData&)> edit;
    std::string first;
    std::string second;
  };
  const std::vector<Case> cases = {
      {"task",
       [](NodeData& d) {
         d.offer.task = core::Task::kRegression;
         d.offer.classes.clear();
       },
       "box-1 says classification", "box-2 says regression"},
      {"features", [](NodeData& d) { d.offer.features = {"age", "sugar"}; },
       "box-1 says [\"age\", \"bp\"]", "box-2 says [\"age\", \"sugar\"]"},
      {"shape", [](NodeData& d) { d.offer.shape = {2, 1}; }, "box-1 says [2]",
       "box-2 says [2, 1]"},
      {"input", [](NodeData& d) { d.offer.input.divide = 255; },
       "box-1 says {divide: 1,", "box-2 says {divide: 255,"},
      {"loss", [](NodeData& d) { d.offer.loss = "hinge"; },
       "box-1 says cross-entropy", "box-2 says hinge"},
      {"model", [](NodeData& d) { d.offer.model = std::string(64, 'b'); },
       "box-1 says aaa", "box-2 says bbb"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.field);
    NodeData other = Patients();
    c.edit(other);
    b_->SetData(other);
    for (const bool dry_run : {false, true}) {
      const Result refused =
          Apply(kOpen, dry_run ? std::vector<std::string>{"--dry-run"}
                               : std::vector<std::string>());
      EXPECT_EQ(refused.code, 1);
      EXPECT_THAT(refused.err, AllOf(HasSubstr("nothing was applied"),
                                     HasSubstr("dflctl: " + c.field + ": "),
                                     HasSubstr(c.first), HasSubstr(c.second),
                                     HasSubstr("to mend it, set ")));
    }
    ExpectNothingApplied();
  }
}

TEST_F(DataCommand, ListsOfClassesThatSettingsStateMustBeEqual) {
  NodeData stated = Patients();
  stated.offer.classes = {"well", "ill"};
  stated.offer.class_places = {};
  stated.offer.classes_stated = true;
  a_->SetData(stated);
  stated.offer.classes = {"ill", "well"};
  b_->SetData(stated);
  const Result refused = Apply(kOpen);
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err,
              AllOf(HasSubstr("classes: box-1 says [\"well\", \"ill\"]"),
                    HasSubstr("box-2 says [\"ill\", \"well\"]"),
                    HasSubstr("data.classes of the plan")));
  ExpectNothingApplied();
  // What the message says to do helps.
  EXPECT_EQ(Apply(std::string(kOpen) + "data: {classes: [well, ill]}\n").code,
            0);
  EXPECT_THAT(*PlanOf(*a_).data.classes, ElementsAre("well", "ill"));
}

TEST_F(DataCommand, MeanAndStdOverTheNetworkArePooled) {
  NodeData data = Patients();
  data.offer.input.per = core::InputScaling::Per::kFeature;
  data.offer.input.over = core::InputScaling::Over::kNetwork;
  data.offer.moments = {1, {0, 10}, {0, 0}};
  a_->SetData(data);
  data.offer.moments = {1, {4, 20}, {0, 0}};
  b_->SetData(data);
  const Result applied = Apply(kOpen);
  ASSERT_EQ(applied.code, 0) << applied.err;
  EXPECT_THAT(applied.err, AllOf(HasSubstr("+     over: network\n"),
                                 HasSubstr("+     mean: [2, 15]\n"),
                                 HasSubstr("+     std: [2, 5]\n")));
  EXPECT_THAT(PlanOf(*b_).data.std, ElementsAre(2, 5));
}

TEST_F(DataCommand, WhatWasFixedStaysThroughLaterEdits) {
  ASSERT_EQ(Apply(kOpen).code, 0);
  const core::DataSection fixed = PlanOf(*a_).data;
  // Edits that mean nothing for the data ask nobody.
  ASSERT_EQ(Run({"set", "batch_size=16"}).code, 0);
  EXPECT_THAT(a_->asked(), SizeIs(1));
  EXPECT_EQ(PlanOf(*a_).data, fixed);
  // The file again, with another value: its open section is the fixed one.
  ASSERT_EQ(Apply(std::string(kOpen) + "batch_size: 64\n", {"--yes"}).code, 0);
  EXPECT_EQ(PlanOf(*b_).data, fixed);
  EXPECT_EQ(PlanOf(*b_).batch_size, 64);
  const Result same = Apply(std::string(kOpen) + "batch_size: 64\n");
  EXPECT_THAT(same.err, HasSubstr("nothing changes in plan version 3"));
}

// Numbers of features are of those features: in another order they are pooled
// anew.
TEST_F(DataCommand, PooledNumbersGoWithTheirFeatures) {
  NodeData data = Patients();
  data.offer.input.per = core::InputScaling::Per::kFeature;
  data.offer.input.over = core::InputScaling::Over::kNetwork;
  data.offer.moments = {2, {4, 30}, {8, 50}};
  a_->SetData(data);
  b_->SetData(data);
  ASSERT_EQ(Apply(kOpen).code, 0);
  EXPECT_THAT(PlanOf(*a_).data.mean, ElementsAre(2, 15));
  const Result other =
      Apply(std::string(kOpen) + "data: {features: [bp, age]}\n", {"--yes"});
  ASSERT_EQ(other.code, 0) << other.err;
  EXPECT_THAT(*PlanOf(*a_).data.features, ElementsAre("bp", "age"));
  EXPECT_THAT(PlanOf(*a_).data.mean, ElementsAre(15, 2));
  EXPECT_THAT(PlanOf(*a_).data.std, ElementsAre(5, 2));
}

// One daemon under two addresses is asked twice and counts once.
TEST_F(DataCommand, ANodeCountsOnce) {
  NodeData data = Patients();
  data.offer.input.per = core::InputScaling::Per::kFeature;
  data.offer.input.over = core::InputScaling::Over::kNetwork;
  data.offer.moments = {1, {0, 10}, {0, 0}};
  a_->SetData(data);
  data.offer.moments = {1, {4, 20}, {0, 0}};
  b_->SetData(data);
  environment_["DFLCTL_TARGET"] +=
      ",unix:" + Socket("box-1").replace(0, 1, "/./");
  const Result applied = Apply(kOpen);
  EXPECT_EQ(applied.code, 0) << applied.err;
  EXPECT_THAT(PlanOf(*b_).data.mean, ElementsAre(2, 15));
}

TEST_F(DataCommand, WhoIsNoMemberHasNoSay) {
  b_->FailData(absl::NotFoundError("members: \"box-2\" is no member"));
  const Result applied = Apply(absl::StrReplaceAll(kOpen, {{", box-2", ""}}));
  EXPECT_EQ(applied.code, 6);
  EXPECT_THAT(applied.err, HasSubstr("is no member"));
  EXPECT_EQ(a_->plan().version, 1u);
  EXPECT_EQ(b_->plan().version, 0u);
  EXPECT_THAT(b_->asked()[0], HasSubstr("participants:"));
}

TEST_F(DataCommand, NothingIsFixedWithoutATargetThatWasReached) {
  b_->FailData(absl::DeadlineExceededError("no answer within 10s"));
  const Result refused = Apply(kOpen);
  EXPECT_NE(refused.code, 0);
  EXPECT_THAT(refused.err,
              AllOf(HasSubstr("nothing was applied"), HasSubstr("--timeout"),
                    HasSubstr("box-2.sock: no answer")));
  ExpectNothingApplied();
}

TEST_F(DataCommand, AnotherModelIsAskedAboutAgain) {
  ASSERT_EQ(Apply(kOpen).code, 0);
  NodeData other = Patients();
  other.offer.model = std::string(64, 'b');
  a_->SetData(other);
  b_->SetData(other);
  const Result set = Run({"set", "model.l2=0.01"});
  ASSERT_EQ(set.code, 0) << set.err;
  EXPECT_EQ(PlanOf(*a_).data.model, other.offer.model);
  EXPECT_THAT(*PlanOf(*a_).data.classes, ElementsAre("ill", "well"));
  // The same model that became another one is not.
  a_->SetData(Patients());
  b_->SetData(Patients());
  const Result members =
      Apply(absl::StrReplaceAll(kOpen, {{"logistic}", "logistic, l2: 0.01}"},
                                        {"box-2]", "box-2, box-3]"}}));
  EXPECT_EQ(members.code, 1);
  EXPECT_THAT(members.err, AllOf(HasSubstr("model: the plan says bbb"),
                                 HasSubstr("box-1 and box-2 say aaa"),
                                 HasSubstr("remove data.model")));
}

TEST_F(DataCommand, ANewMemberMustFitWhatWasFixed) {
  ASSERT_EQ(Apply(kOpen).code, 0);
  control::FakeBackend& c = StartDaemon("box-3");
  NodeData strange = Patients();
  strange.offer.classes = {"dead"};
  strange.offer.class_places = {"c.csv: line 2, column 3"};
  c.SetData(strange);
  environment_["DFLCTL_TARGET"] += ",unix:" + Socket("box-3");
  const std::string grown =
      absl::StrReplaceAll(kOpen, {{"box-2]", "box-2, box-3]"}});
  const Result refused = Apply(grown);
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("the plan says [\"ill\", \"well\"]"),
                                 HasSubstr("box-3 says [\"dead\"]"),
                                 HasSubstr("c.csv: line 2, column 3")));
  EXPECT_EQ(a_->plan().version, 1u);
  strange.offer.classes = {"ill"};
  strange.offer.features = {"bp", "age"};
  c.SetData(strange);
  ASSERT_EQ(Apply(grown).code, 0);
  EXPECT_THAT(*PlanOf(c).data.features, ElementsAre("age", "bp"));
}

TEST_F(DataCommand, MembersThatWereNotAskedAreNamed) {
  const Result one = ApplyAt("box-1", kOpen);
  EXPECT_EQ(one.code, 0);
  EXPECT_THAT(one.err, HasSubstr("fixed without asking box-2;"));
}

TEST_F(DataCommand, AnOlderDaemonIsToldAndNotCompared) {
  b_->FailData(absl::UnimplementedError("GetData"));
  const Result applied = Apply(kOpen);
  EXPECT_EQ(applied.code, 0) << applied.err;
  EXPECT_THAT(applied.err, HasSubstr("box-2.sock: the daemon is older"));
  EXPECT_EQ(a_->plan().yaml, b_->plan().yaml);
}

TEST_F(DataCommand, ATargetWhoseDataDoNotFitTheModelIsARefusal) {
  b_->FailData(absl::InvalidArgumentError(
      "model.input: cnn cannot take [2]; allowed: images"));
  const Result refused = Apply(kOpen);
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err,
              AllOf(HasSubstr("nothing was applied"), HasSubstr("box-2.sock: "),
                    HasSubstr("cnn cannot take [2]")));
  ExpectNothingApplied();
}

TEST_F(DataCommand, ATargetThatCannotTakeTheModelDoesNotStopTheOthers) {
  b_->FailData(absl::NotFoundError("model.path: /m.pt: there is no such file"));
  const Result applied = Apply(kOpen);
  EXPECT_EQ(applied.code, 6);
  EXPECT_THAT(applied.err, HasSubstr("there is no such file"));
  EXPECT_EQ(a_->plan().version, 1u);
  EXPECT_EQ(b_->plan().version, 0u);
}

TEST_F(DataCommand, OneFileIsOneRunHoweverItComes) {
  ASSERT_EQ(ApplyAt("box-1", kOpen).code, 0);
  ASSERT_EQ(ApplyAt("box-2", kOpen).code, 0);
  const core::RunPlan first = PlanOf(*a_);
  EXPECT_EQ(PlanOf(*b_).run_id, first.run_id);
  EXPECT_EQ(PlanOf(*b_).seed, first.seed);
  // Also where targets filled the data section in otherwise.
  b_->SetPlan({});
  NodeData other = Patients();
  other.offer.classes = {"ill", "healed", "well"};
  b_->SetData(other);
  ASSERT_EQ(ApplyAt("box-2", kOpen).code, 0);
  EXPECT_NE(PlanOf(*b_).data, first.data);
  EXPECT_EQ(PlanOf(*b_).run_id, first.run_id);
  EXPECT_EQ(PlanOf(*b_).seed, first.seed);
  // And other members: the file may grow with the network.
  b_->SetPlan({});
  ASSERT_EQ(ApplyAt("box-2",
                    absl::StrReplaceAll(kOpen, {{"box-2]", "box-2, box-3]"}}))
                .code,
            0);
  EXPECT_EQ(PlanOf(*b_).run_id, first.run_id);
  // Another document is another run.
  b_->SetPlan({});
  ASSERT_EQ(ApplyAt("box-2", std::string(kOpen) + "batch_size: 8\n").code, 0);
  EXPECT_NE(PlanOf(*b_).run_id, first.run_id);
  EXPECT_NE(PlanOf(*b_).seed, first.seed);
}

TEST_F(DataCommand, APlanFromSettingsMeetsOneThatWasFilledIn) {
  ASSERT_EQ(ApplyAt("box-1", kOpen).code, 0);
  // box-2 has it from its settings, so nothing is filled in.
  core::RunPlan open = PlanOf(*a_);
  open.data = {};
  b_->SetPlan({config::WritePlan(open), 1, 1, open.run_id, {}});
  const Result changed = Run({"set", "batch_size=16"});
  ASSERT_EQ(changed.code, 0) << changed.err;
  EXPECT_EQ(a_->plan().yaml, b_->plan().yaml);
  EXPECT_EQ(PlanOf(*b_).version, 2u);
  EXPECT_THAT(*PlanOf(*b_).data.classes, ElementsAre("ill", "well"));
}

TEST_F(DataCommand, SectionsThatWereFilledInOtherwiseAreAConflict) {
  ASSERT_EQ(ApplyAt("box-1", kOpen).code, 0);
  NodeData other = Patients();
  other.offer.classes = {"ill", "healed", "well"};
  b_->SetData(other);
  ASSERT_EQ(ApplyAt("box-2", kOpen).code, 0);
  const Result conflict = Run({"set", "batch_size=16"});
  EXPECT_EQ(conflict.code, 7);
  EXPECT_THAT(conflict.err, HasSubstr("different plans of version 1"));
  // What the message says to do helps: the section is fixed over both.
  const Result replaced = Apply(kOpen, {"--replace"});
  ASSERT_EQ(replaced.code, 0) << replaced.err;
  EXPECT_THAT(*PlanOf(*a_).data.classes, ElementsAre("healed", "ill", "well"));
  EXPECT_EQ(a_->plan().yaml, b_->plan().yaml);
}

TEST_F(DataCommand, ANewRunIsNeverAConflictWithItself) {
  ASSERT_EQ(ApplyAt("box-1", kOpen).code, 0);
  ASSERT_EQ(ApplyAt("box-2", std::string(kOpen) + "batch_size: 8\n").code, 0);
  EXPECT_EQ(Apply(kOpen).code, 7);
  const std::string before = PlanOf(*a_).run_id;
  const Result fresh = Apply(kOpen, {"--new-run"});
  ASSERT_EQ(fresh.code, 0) << fresh.err;
  EXPECT_EQ(a_->plan().yaml, b_->plan().yaml);
  EXPECT_EQ(PlanOf(*a_).version, 2u);
  EXPECT_EQ(PlanOf(*a_).run_id, absl::StrReplaceAll(before, {{"-1", "-2"}}));
  // Once more, one by one: the counter is raised on each alike.
  ASSERT_EQ(ApplyAt("box-1", kOpen, {"--new-run"}).code, 0);
  ASSERT_EQ(ApplyAt("box-2", kOpen, {"--new-run"}).code, 0);
  EXPECT_EQ(PlanOf(*a_).run_id, absl::StrReplaceAll(before, {{"-1", "-3"}}));
  EXPECT_EQ(PlanOf(*b_).run_id, PlanOf(*a_).run_id);
}

TEST_F(DataCommand, ANewRunFixesTheDataAnew) {
  ASSERT_EQ(Apply(kOpen).code, 0);
  NodeData other = Patients();
  other.offer.classes = {"ill", "healed", "well"};
  a_->SetData(other);
  ASSERT_EQ(Apply(kOpen, {"--new-run"}).code, 0);
  EXPECT_THAT(*PlanOf(*a_).data.classes, ElementsAre("healed", "ill", "well"));
}

TEST_F(DataCommand, ShowTellsWhatANodesDataAre) {
  a_->SetData(control::FakeBackend::SampleData());
  const Result shown = RunAt("box-1", {"data", "show"});
  ASSERT_EQ(shown.code, 0) << shown.err;
  EXPECT_EQ(shown.out,
            "box-1:\n"
            "  rows      15000 to train on, 10000 to test on, from idx\n"
            "  task      classification\n"
            "  classes   [\"0\", \"1\", \"2\", \"3\", \"4\", \"5\", \"6\", "
            "\"7\", \"8\", \"9\"]\n"
            "  features  []\n"
            "  shape     [1, 28, 28]\n"
            "  input     {divide: 255, standardise: none}\n"
            "  loss      cross-entropy\n"
            "  model     " +
                std::string(64, 'a') +
                "\n"
                "  contract  none yet: there is no plan\n"
                "\n"
                "CLASS  TRAIN  TEST\n"
                "0       1500  1000\n"
                "1       1500  1000\n"
                "2       1500  1000\n"
                "3       1500  1000\n"
                "4       1500  1000\n"
                "5       1500  1000\n"
                "6       1500  1000\n"
                "7       1500  1000\n"
                "8       1500  1000\n"
                "9       1500  1000\n"
                "\n"
                "FEATURE  NAME  MIN  MAX  MEAN  MISSING\n"
                "      0          0  255  33.5        0\n"
                "and 783 more features: --features N\n");
  EXPECT_THAT(shown.err, HasSubstr("box-1: feature 0 never varies"));
  EXPECT_THAT(a_->asked(), ElementsAre(""));
}

TEST_F(DataCommand, ShowComparesTheContractWithWhatTheFilesSay) {
  NodeData data = Patients();
  data.contract = core::DataContract{core::Task::kClassification,
                                     {"ill", "well", "healed"},
                                     {"bp", "age"},
                                     {2},
                                     {},
                                     "cross-entropy",
                                     std::string(64, 'a')};
  a_->SetData(data);
  const Result shown = RunAt("box-1", {"data", "show"});
  EXPECT_THAT(
      shown.out,
      AllOf(HasSubstr("  features  [\"bp\", \"age\"]; its own files and "
                      "settings: [\"age\", \"bp\"]\n"),
            HasSubstr("  contract  in force, as above\n")));
  const auto json =
      nlohmann::json::parse(RunAt("box-1", {"data", "show", "-o", "json"}).out);
  const auto& entry = json["targets"][0]["data"];
  EXPECT_EQ(entry["node"], "box-1");
  EXPECT_EQ(entry["contract"]["classes"][2], "healed");
  EXPECT_EQ(entry["offer"]["classes"].size(), 2u);
  EXPECT_EQ(entry["train_rows"], 40);
}

}  // namespace
}  // namespace dfl::cli
