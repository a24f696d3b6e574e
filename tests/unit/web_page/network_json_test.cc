#include "daemon/web/page/network_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/json_schema.h"
#include "tests/unit/control/fake_backend.h"

namespace dfl::web {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> Wrong(const std::string& schema,
                               const Json& document) {
  testing_support::JsonSchemas schemas(DFL_SCHEMA_FOLDER);
  return schemas.Check(schema, document);
}

control::PlanDocument RingOfAll() {
  control::PlanDocument plan;
  plan.yaml =
      "version: 3\nseed: 1\nparticipants: all\nmodel: {kind: logistic}\n"
      "algorithm: {name: d-psgd}\ntopology: {kind: ring}\n";
  plan.version = 3;
  plan.version_in_force = 2;
  plan.run_id = "abc";
  plan.kept_versions = {2, 3};
  return plan;
}

TEST(MembersJson, TellsEachWithItsState) {
  const Json members = MembersJson(control::SampleMembers());
  EXPECT_THAT(Wrong("page-members", members), IsEmpty());
  ASSERT_EQ(members["members"].size(), 5u);
  EXPECT_EQ(members["members"][0]["self"], true);
  EXPECT_EQ(members["members"][1]["state"], "degraded");
  EXPECT_EQ(members["members"][1]["reason"], "the model's file is missing");
  EXPECT_EQ(members["members"][2]["suspect"], true);
  EXPECT_EQ(members["members"][3]["participation"], "observe");
  EXPECT_EQ(members["members"][4]["state"], "dead");
}

TEST(GraphJson, IsThatOfTheMembersThatAreThere) {
  const Json graph = GraphJson(RingOfAll(), 0, control::SampleMembers());
  EXPECT_THAT(Wrong("page-graph", graph), IsEmpty());
  // Box-4 only watches, and box-5 is dead.
  EXPECT_EQ(graph["members"], Json::parse(R"(["box-1","box-2","box-3"])"));
  EXPECT_EQ(graph["edges"].size(), 3u);
}

TEST(GraphJson, SaysWhyThereIsNone) {
  EXPECT_EQ(GraphJson({}, 0, control::SampleMembers())["note"],
            "There is no plan yet.");
  control::PlanDocument broken = RingOfAll();
  broken.yaml = "topology: {kind: rign}\n";
  const Json graph = GraphJson(broken, 0, control::SampleMembers());
  EXPECT_THAT(graph["note"].get<std::string>(), HasSubstr("rign"));
  EXPECT_THAT(Wrong("page-graph", graph), IsEmpty());
}

TEST(PlansJson, HasVersionsWithTheirAuthors) {
  control::RecordInfo lost;
  lost.kind = "plan";
  lost.counter = 3;
  lost.author = "operator/bob";
  lost.signed_at = absl::FromUnixSeconds(1700000000);
  control::RecordInfo won = lost;
  won.author = "operator/alice";
  won.current = true;
  control::RecordInfo old = lost;
  old.counter = 1;
  control::RecordInfo ban = lost;
  ban.kind = "ban";
  ban.counter = 9;
  const Json plans = PlansJson(RingOfAll(), {lost, won, old, ban});
  EXPECT_THAT(Wrong("page-plans", plans), IsEmpty());
  EXPECT_EQ(plans["version_in_force"], 2);
  const Json& versions = plans["versions"];
  ASSERT_EQ(versions.size(), 3u);
  EXPECT_EQ(versions[0]["version"], 1);
  EXPECT_EQ(versions[0]["kept"], false);
  EXPECT_EQ(versions[1]["author"], "");
  EXPECT_EQ(versions[2]["author"], "operator/alice");
  EXPECT_EQ(versions[2]["written_unix_ms"], 1700000000000.0);
  EXPECT_THAT(PlansJson({}, {})["versions"], IsEmpty());
}

TEST(PlanJson, HasAtMostTheBeginningOfALongDocument) {
  control::PlanDocument plan = RingOfAll();
  EXPECT_THAT(Wrong("page-plan", PlanJson(plan)), IsEmpty());
  EXPECT_EQ(PlanJson(plan)["whole"], true);
  plan.yaml = std::string(kMostPlanBytes + 1, '#');
  EXPECT_EQ(PlanJson(plan)["whole"], false);
  EXPECT_EQ(PlanJson(plan)["yaml"].get<std::string>().size(), kMostPlanBytes);
}

TEST(EventsJson, HasThoseThatAreNew) {
  control::KeptEvents kept;
  kept.forgotten = 7;
  kept.events.push_back({absl::FromUnixMillis(1700000000123),
                         ports::PlanAdopted{.version = 2, .step = 40}});
  ports::LinkUp up;
  up.peer = NodeId("box-2");
  kept.events.push_back({absl::FromUnixSeconds(1700000001), up});
  const Json events = EventsJson(kept, 0);
  EXPECT_THAT(Wrong("page-events", events), IsEmpty());
  EXPECT_EQ(events["end"], 9);
  ASSERT_EQ(events["events"].size(), 2u);
  EXPECT_EQ(events["events"][0]["number"], 7);
  EXPECT_EQ(events["events"][0]["kind"], "plan-adopted");
  EXPECT_EQ(events["events"][0]["step"], 40);
  EXPECT_EQ(events["events"][0]["unix_ms"], 1700000000123.0);
  EXPECT_EQ(events["events"][1]["peer"], "box-2");
  EXPECT_EQ(EventsJson(kept, 8)["events"].size(), 1u);
  EXPECT_THAT(EventsJson(kept, 9)["events"], IsEmpty());
}

}  // namespace
}  // namespace dfl::web
