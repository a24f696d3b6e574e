#include "daemon/page/graph_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/config/plan_yaml.h"
#include "tests/support/json_schema.h"

namespace dfl::page {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

core::RunPlan PlanOf(int nodes, const std::string& topology,
                     const std::string& algorithm = "{name: d-psgd}") {
  std::vector<std::string> names;
  for (int i = 0; i < nodes; ++i) {
    names.push_back(absl::StrCat("n", 1000 + i));
  }
  const auto plan = config::ParsePlan(
      absl::StrCat("participants: {fixed: [", absl::StrJoin(names, ", "),
                   "]}\nmodel: {kind: logistic}\nalgorithm: ", algorithm,
                   "\ntopology: ", topology, "\nseed: 1\n"),
      "plan.yaml");
  EXPECT_TRUE(plan.ok()) << plan.status();
  return *plan;
}

std::vector<std::string> Wrong(const Json& graph) {
  testing_support::JsonSchemas schemas(DFL_SCHEMA_FOLDER);
  return schemas.Check("page-graph", graph);
}

TEST(GraphJson, HasMembersAndEdgesByTheirPlaces) {
  const Json graph = GraphJson(PlanOf(4, "{kind: ring}"), 0, NodeId("n1000"));
  EXPECT_THAT(Wrong(graph), IsEmpty());
  EXPECT_EQ(graph["kind"], "ring");
  EXPECT_EQ(graph["directed"], false);
  EXPECT_EQ(graph["varies"], false);
  EXPECT_EQ(graph["members"],
            Json::parse(R"(["n1000","n1001","n1002","n1003"])"));
  EXPECT_EQ(graph["edges"], Json::parse("[[0,1],[0,3],[1,2],[2,3]]"));
  EXPECT_EQ(graph["note"], "");
}

TEST(GraphJson, OfALargeNetworkHasTheEdgesOfTheNodeItself) {
  const core::RunPlan plan =
      PlanOf(static_cast<int>(kMostDrawn) + 1, "{kind: ring}");
  const Json graph = GraphJson(plan, 0, NodeId("n1007"));
  EXPECT_THAT(Wrong(graph), IsEmpty());
  EXPECT_EQ(graph["members"].size(), 3u);
  EXPECT_EQ(graph["edges"].size(), 2u);
  EXPECT_THAT(graph["note"].get<std::string>(), HasSubstr("257 members"));
  // Who is none of them has none.
  EXPECT_THAT(GraphJson(plan, 0, NodeId("x"))["edges"], IsEmpty());
}

TEST(GraphJson, SaysWhyThereIsNone) {
  const Json graph = NoGraphJson("There is no plan yet.");
  EXPECT_THAT(Wrong(graph), IsEmpty());
  EXPECT_THAT(graph["members"], IsEmpty());
  EXPECT_EQ(graph["note"], "There is no plan yet.");
}

}  // namespace
}  // namespace dfl::page
