#include "daemon/core/plan/participants.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/core/plan/derived_plan.h"
#include "daemon/core/plan/plan_topology.h"
#include "daemon/core/plan/plan_warnings.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/cpu_seconds.h"

namespace dfl::core {
namespace {

using Kind = ParticipantsSpec::Kind;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

MemberSpec There(const std::string& name, Participation participation = {},
                 std::map<std::string, std::string> labels = {}) {
  MemberSpec member;
  member.node = NodeId(name);
  member.rows = 10;
  if (participation != Participation{}) member.participation = participation;
  member.labels = std::move(labels);
  return member;
}

RunPlan PlanOf(Kind kind, std::vector<std::string> selectors = {}) {
  RunPlan plan;
  plan.seed = 1;
  plan.algorithm.name = "d-psgd";
  plan.codec.format.coordinates = Coordinates::kDense;
  plan.topology.kind = "auto";
  plan.participants = {kind, std::move(selectors)};
  return plan;
}

std::vector<std::string> Names(const RunPlan& plan) {
  std::vector<std::string> names;
  for (const MemberSpec& member : plan.members) {
    names.push_back(member.node.name());
  }
  return names;
}

TEST(Participants, AllAreThoseThatAreThereAndDoNotOnlyWatch) {
  RunPlan plan = PlanOf(Kind::kAll);
  ResolveParticipants(plan, {There("carl"), There("anna"),
                             There("eye", Participation::kObserve)});
  EXPECT_THAT(Names(plan), ElementsAre("anna", "carl"));
  EXPECT_EQ(plan.members[0].rows, 10);
  ResolveParticipants(plan, {There("carl")});
  EXPECT_THAT(Names(plan), ElementsAre("carl"));
}

TEST(Participants, OneWithoutDataMixesWhereTheAlgorithmCanUseIt) {
  const std::vector<MemberSpec> present = {There("anna"), There("bert"),
                                           There("relay", Participation::kMix)};
  RunPlan plan = PlanOf(Kind::kAll);
  plan.algorithm.name = "decefl";
  plan.algorithm.knobs["sample_weighting"] = true;
  ResolveParticipants(plan, present);
  EXPECT_THAT(Names(plan), ElementsAre("anna", "bert", "relay"));
  const auto relay = CheckAndDerive(plan, NodeId("relay"));
  ASSERT_TRUE(relay.ok()) << relay.status();
  EXPECT_TRUE(relay->node.takes_part);
  EXPECT_FALSE(relay->node.trains);
  EXPECT_EQ(relay->node.sample_weight, 0);
  const auto anna = CheckAndDerive(plan, NodeId("anna"));
  ASSERT_TRUE(anna.ok()) << anna.status();
  EXPECT_TRUE(anna->node.trains);
  EXPECT_EQ(anna->node.sample_weight, 1.5);

  plan.algorithm.name = "push-pull";
  plan.algorithm.knobs.clear();
  ResolveParticipants(plan, present);
  EXPECT_THAT(Names(plan), ElementsAre("anna", "bert"));
  const auto checked = CheckPlan(plan);
  ASSERT_TRUE(checked.ok()) << checked.status();
  EXPECT_THAT(ViewWarnings(*checked, present),
              ElementsAre(AllOf(HasSubstr("algorithm.name: push-pull"),
                                HasSubstr("relay"))));
}

TEST(Participants, SelectedByNameOrByLabel) {
  RunPlan plan = PlanOf(Kind::kSelected, {"dora", "site=north"});
  ResolveParticipants(
      plan, {There("anna", {}, {{"site", "north"}}),
             There("bert", {}, {{"site", "south"}}), There("carl"),
             There("dora"), There("north", {}, {{"place", "north"}})});
  EXPECT_THAT(Names(plan), ElementsAre("anna", "dora"));
}

TEST(Participants, AFixedSetStaysAndLearnsOfItsMembers) {
  RunPlan plan = PlanOf(Kind::kFixed);
  plan.members = {{NodeId("anna"), 0}, {NodeId("bert"), 7}};
  MemberSpec anna = There("anna");
  anna.dialable = false;
  ResolveParticipants(plan, {anna, There("carl")});
  EXPECT_THAT(Names(plan), ElementsAre("anna", "bert"));
  EXPECT_EQ(plan.members[0].rows, 10);
  EXPECT_FALSE(plan.members[0].dialable);
  EXPECT_EQ(plan.members[1].rows, 7);
}

TEST(Participants, OneOfAFixedSetThatDoesNotTrainIsTakenAsThat) {
  RunPlan plan = PlanOf(Kind::kFixed);
  plan.algorithm.name = "decefl";
  plan.topology.kind = "complete";
  plan.members = {
      {NodeId("anna"), 0}, {NodeId("eye"), 7}, {NodeId("relay"), 0}};
  const std::vector<MemberSpec> present = {
      There("anna"), There("eye", Participation::kObserve),
      There("relay", Participation::kMix)};
  ResolveParticipants(plan, present);
  EXPECT_THAT(Names(plan), ElementsAre("anna", "eye", "relay"));
  EXPECT_EQ(plan.members[0].rows, 10);
  EXPECT_EQ(plan.members[1].participation, Participation::kObserve);
  EXPECT_EQ(plan.members[1].rows, 0);
  EXPECT_EQ(plan.members[2].participation, Participation::kMix);
  EXPECT_EQ(plan.members[2].rows, 0);
  for (const char* name : {"anna", "eye", "relay"}) {
    const auto derived = CheckAndDerive(plan, NodeId(name));
    ASSERT_TRUE(derived.ok()) << derived.status();
    EXPECT_EQ(derived->node.trains, name == std::string("anna")) << name;
  }
  auto checked = CheckPlan(plan);
  ASSERT_TRUE(checked.ok()) << checked.status();
  EXPECT_THAT(ViewWarnings(*checked, present),
              ElementsAre(AllOf(HasSubstr("participants.fixed: eye says"),
                                HasSubstr("decefl has no use"))));
  // No node without data is of use here.
  plan.algorithm.name = "push-pull";
  checked = CheckPlan(plan);
  ASSERT_TRUE(checked.ok()) << checked.status();
  EXPECT_THAT(ViewWarnings(*checked, present),
              ElementsAre(AllOf(HasSubstr("participants.fixed: eye, relay say"),
                                HasSubstr("push-pull has no use"))));
}

TEST(Participants, WithoutMembersAPlanIsCheckedAsFarAsThatGoes) {
  const RunPlan plan = PlanOf(Kind::kAll);
  const absl::StatusOr<CheckedPlan> checked = CheckPlan(plan);
  ASSERT_TRUE(checked.ok()) << checked.status();
  const absl::StatusOr<DerivedPlan> derived = Derive(*checked, NodeId("anna"));
  ASSERT_TRUE(derived.ok()) << derived.status();
  EXPECT_FALSE(derived->node.takes_part);
  EXPECT_THAT(derived->node.neighbours, IsEmpty());
  EXPECT_THAT(PlanWarnings(*checked), IsEmpty());
  RunPlan wrong = plan;
  wrong.topology.kind = "rign";
  EXPECT_THAT(std::string(ValidatePlan(wrong).message()),
              HasSubstr("did you mean \"ring\""));
  wrong = plan;
  wrong.batch_size = 0;
  EXPECT_FALSE(ValidatePlan(wrong).ok());
  wrong = plan;
  wrong.topology.weights = "explicit";
  EXPECT_THAT(std::string(ValidatePlan(wrong).message()), HasSubstr("fixed"));
}

TEST(Participants, WhoIsNoneOfThemOnlyWatches) {
  RunPlan plan = PlanOf(Kind::kAll);
  ResolveParticipants(plan, {There("anna"), There("bert"),
                             There("eye", Participation::kObserve)});
  const auto eye = CheckAndDerive(plan, NodeId("eye"));
  ASSERT_TRUE(eye.ok()) << eye.status();
  EXPECT_FALSE(eye->node.takes_part);
  EXPECT_THAT(eye->node.neighbours, IsEmpty());
  const auto anna = CheckAndDerive(plan, NodeId("anna"));
  ASSERT_TRUE(anna.ok()) << anna.status();
  EXPECT_TRUE(anna->node.takes_part);
  EXPECT_EQ(anna->node.neighbours.size(), 1u);

  RunPlan fixed = PlanOf(Kind::kFixed);
  fixed.members = {{NodeId("anna"), 0}};
  EXPECT_EQ(CheckAndDerive(fixed, NodeId("eye")).status().code(),
            absl::StatusCode::kNotFound);
}

TEST(Participants, SelectorsAreChecked) {
  EXPECT_TRUE(CheckSelector("box-1").ok());
  EXPECT_TRUE(CheckSelector("site=north").ok());
  for (const char* wrong : {"", "=", "site=", "=north", "a b", "a=b=c"}) {
    EXPECT_FALSE(CheckSelector(wrong).ok()) << wrong;
  }
  EXPECT_FALSE(CheckParticipants(PlanOf(Kind::kSelected)).ok());
  EXPECT_FALSE(CheckParticipants(PlanOf(Kind::kSelected, {"b", "a"})).ok());
  EXPECT_FALSE(CheckParticipants(PlanOf(Kind::kSelected, {"a", "a"})).ok());
  EXPECT_TRUE(CheckParticipants(PlanOf(Kind::kSelected, {"a", "b"})).ok());
}

// Knobs of one that is not there wait for it; those of a fixed set must be of a
// member.
TEST(Participants, AnEntryOfOneWhoIsNotThereWaitsForIt) {
  RunPlan plan = PlanOf(Kind::kAll);
  plan.nodes[NodeId("dora")].knobs["eta"] = 0.5;
  ResolveParticipants(plan, {There("anna"), There("bert")});
  EXPECT_TRUE(ValidatePlan(plan).ok()) << ValidatePlan(plan);
  plan.participants = {};
  EXPECT_FALSE(ValidatePlan(plan).ok());
}

TEST(Participants, EdgesOfThoseWhoAreNotThereAreLeftOut) {
  RunPlan plan = PlanOf(Kind::kAll);
  plan.topology.kind = "explicit";
  plan.topology.edges = {{NodeId("anna"), NodeId("bert")},
                         {NodeId("bert"), NodeId("carl")},
                         {NodeId("carl"), NodeId("dora")}};
  ResolveParticipants(plan, {There("anna"), There("bert"), There("dora")});
  const auto checked = CheckPlan(plan);
  ASSERT_TRUE(checked.ok()) << checked.status();
  EXPECT_EQ(std::get<Graph>(*checked->graph).Edges().size(), 1u);
  EXPECT_THAT(PlanWarnings(*checked),
              ElementsAre(HasSubstr("falls into 2 parts")));
}

TEST(Participants, AWarningNamesWhoIsMissingAndWhoWillBeApart) {
  RunPlan plan = PlanOf(Kind::kFixed);
  plan.topology.kind = "explicit";
  plan.topology.edges = {{NodeId("anna"), NodeId("bert")},
                         {NodeId("bert"), NodeId("carl")}};
  for (const char* name : {"anna", "bert", "carl"}) {
    plan.members.push_back({NodeId(name), 0});
  }
  const auto checked = CheckPlan(plan);
  ASSERT_TRUE(checked.ok()) << checked.status();
  EXPECT_THAT(
      ViewWarnings(*checked, {There("anna"), There("bert"), There("carl")}),
      IsEmpty());
  EXPECT_THAT(
      ViewWarnings(*checked, {There("anna"), There("carl")}),
      ElementsAre(AllOf(HasSubstr("participants.fixed"), HasSubstr("bert")),
                  AllOf(HasSubstr("falls into 2 parts"),
                        HasSubstr("those who are there"))));

  const auto selected = CheckPlan(PlanOf(Kind::kSelected, {"site=north"}));
  ASSERT_TRUE(selected.ok()) << selected.status();
  EXPECT_THAT(ViewWarnings(*selected, {There("anna")}),
              ElementsAre(HasSubstr("\"site=north\" names nobody"),
                          HasSubstr("nobody who is there now takes part")));
}

TEST(Participants, ManyAreFoundQuicklyAndTheFirstThatAreNotAreTold) {
  std::vector<MemberSpec> present;
  std::vector<std::string> selectors;
  RunPlan fixed = PlanOf(Kind::kFixed);
  for (size_t i = 0; i < kMostPlanMembers; ++i) {
    const std::string name = absl::StrCat("node-", 100'000 + i);
    present.push_back(
        There(name, {}, {{"site", absl::StrCat("s-", 100'000 + i)}}));
    selectors.push_back(absl::StrCat("gone-", 100'000 + i));
    selectors.push_back(absl::StrCat("site=s-", 100'000 + i));
    fixed.members.push_back({NodeId(absl::StrCat("node-", 200'000 + i)), 0});
  }
  std::sort(selectors.begin(), selectors.end());
  fixed.members[0] = present[0];
  const auto set = CheckPlan(fixed);
  ASSERT_TRUE(set.ok()) << set.status();
  RunPlan plan = PlanOf(Kind::kSelected, selectors);
  const double begin = CpuSeconds();
  ResolveParticipants(plan, present);
  EXPECT_EQ(plan.members.size(), kMostPlanMembers);
  const auto checked = CheckPlan(plan);
  ASSERT_TRUE(checked.ok()) << checked.status();
  const std::vector<std::string> warnings = ViewWarnings(*checked, present);
  ASSERT_EQ(warnings.size(), 11u);
  EXPECT_THAT(warnings[0], HasSubstr("\"gone-100000\" names nobody"));
  EXPECT_THAT(warnings[10], HasSubstr("16374 more name nobody"));
  EXPECT_THAT(ViewWarnings(*set, present),
              testing::Contains(HasSubstr("and 1637")));
  EXPECT_LT(CpuSeconds() - begin, 10);
  plan.members.push_back({NodeId("zz"), 0});
  EXPECT_THAT(std::string(ValidatePlan(plan).message()),
              HasSubstr("members: 16385 are named; allowed: at most 16384"));
}

// Of members that cannot be dialled.
TEST(Participants, AFixedShapeThatNeedsALinkBetweenUndialableOnesIsWarnedOf) {
  RunPlan plan = PlanOf(Kind::kAll);
  std::vector<MemberSpec> present = {There("anna"), There("bert"),
                                     There("carl"), There("dora")};
  present[0].dialable = present[1].dialable = false;
  ResolveParticipants(plan, present);
  EXPECT_THAT(PlanWarnings(plan), IsEmpty());
  const auto spread = PlanGraph(plan);
  ASSERT_TRUE(spread.ok());
  EXPECT_EQ(std::get<Graph>(*spread).Edges().size(), 5u);
  plan.topology.kind = "path";
  EXPECT_THAT(PlanWarnings(plan),
              ElementsAre(AllOf(HasSubstr("topology.kind: path"),
                                HasSubstr("anna - bert"))));
  // It exchanges with everybody.
  plan.topology.kind = "auto";
  plan.algorithm.name = "fedavg";
  EXPECT_TRUE(ValidatePlan(plan).ok()) << ValidatePlan(plan);
  EXPECT_THAT(PlanWarnings(plan), testing::Contains(HasSubstr("anna - bert")));
}

TEST(Participants, AnOpenKindFollowsTheNumberOfMembers) {
  RunPlan plan = PlanOf(Kind::kAll);
  std::vector<MemberSpec> present;
  for (int i = 0; i < 16; ++i) present.push_back(There(absl::StrCat("m", i)));
  ResolveParticipants(plan, present);
  EXPECT_EQ(KindInForce(plan), "complete");
  present.push_back(There("one-more"));
  ResolveParticipants(plan, present);
  EXPECT_EQ(KindInForce(plan), "hashed");
  const auto graph = PlanGraph(plan);
  ASSERT_TRUE(graph.ok());
  EXPECT_LE(std::get<Graph>(*graph).Edges().size(), 2u * 17u);
  plan.algorithm.name = "fedavg";
  EXPECT_EQ(KindInForce(plan), "complete");
}

}  // namespace
}  // namespace dfl::core
