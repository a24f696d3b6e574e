#include "daemon/console/topology_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/config/plan_yaml.h"

namespace dfl::console {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

struct Shown {
  Json json;
  std::string text;
};

Shown Show(const std::string& algorithm, const std::string& topology,
           int64_t round = 0) {
  const absl::StatusOr<core::RunPlan> plan = config::ParsePlan(
      "members: [a, b, c, d]\ncodec: {coordinates: dense}\n"
      "algorithm: {name: " +
          algorithm + "}\ntopology: " + topology + "\n",
      "p.yaml");
  EXPECT_TRUE(plan.ok()) << plan.status();
  if (!plan.ok()) return {};
  const absl::StatusOr<TopologyReport> report = ReportTopology(*plan, round);
  EXPECT_TRUE(report.ok()) << report.status();
  if (!report.ok()) return {};
  return {TopologyJson(*plan, *report), TopologyText(*plan, *report)};
}

TEST(TopologyText, OfARing) {
  const Shown ring = Show("d-psgd", "{kind: ring}");
  EXPECT_EQ(ring.json["edges"], 4);
  EXPECT_EQ(ring.json["bipartite"], true);
  // Metropolis: 1/3 everywhere, eigenvalues 1, 1/3, 1/3, -1/3.
  EXPECT_NEAR(ring.json["spectral_gap"].get<double>(), 2.0 / 3, 1e-9);
  EXPECT_THAT(ring.text, AllOf(HasSubstr("spectral gap  0.6667"),
                               HasSubstr("a          0.333  b (0.333), d"),
                               Not(HasSubstr("round"))));
}

std::vector<double> Numbers(const Json& list) {
  return list.get<std::vector<double>>();
}

TEST(TopologyText, SumsUpRowsAndColumnsOfWeights) {
  for (const char* topology :
       {"{kind: star}", "{kind: path, weights: laplacian}",
        "{kind: explicit, edges: [[a, b], [c, d]], weights: explicit, matrix: "
        "[[0.5, 0.5, 0, 0], [0.5, 0.5, 0, 0], [0, 0, 0.25, 0.75], [0, 0, 0.75, "
        "0.25]]}"}) {
    SCOPED_TRACE(topology);
    const Shown shown = Show("local", topology);
    const auto ones = testing::Pointwise(testing::DoubleNear(1e-12),
                                         std::vector<double>(4, 1.0));
    EXPECT_THAT(Numbers(shown.json["row_sums"]), ones);
    EXPECT_THAT(Numbers(shown.json["column_sums"]), ones);
    EXPECT_THAT(shown.text,
                HasSubstr("sums of W     rows 1.0000, columns 1.0000\n"));
  }
}

// Explicit weights may be a little off, and it is seen.
TEST(TopologyText, SumsAreThoseOfTheWeightsThatAreUsed) {
  const Shown shown = Show(
      "local",
      "{kind: explicit, edges: [[a, b], [c, d]], weights: explicit, matrix: "
      "[[0.5, 0.5000005, 0, 0], [0.5000005, 0.5, 0, 0], [0, 0, 0.5, 0.5], [0, "
      "0, 0.5, 0.5]]}");
  EXPECT_NEAR(Numbers(shown.json["row_sums"]).at(0), 1.0000005, 1e-12);
  EXPECT_NEAR(Numbers(shown.json["column_sums"]).at(1), 1.0000005, 1e-12);
  EXPECT_NEAR(Numbers(shown.json["column_sums"]).at(3), 1, 1e-12);
}

std::string Line(const std::string& algorithm, const std::string& topology) {
  const absl::StatusOr<core::RunPlan> plan = config::ParsePlan(
      "members: [a, b, c, d]\ncodec: {coordinates: dense}\n"
      "algorithm: {name: " +
          algorithm + "}\ntopology: " + topology + "\n",
      "p.yaml");
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? TopologyLine(*core::CheckPlan(*plan)) : "";
}

TEST(TopologyLine, SaysWhatMattersBeforeAPlanIsAccepted) {
  EXPECT_EQ(Line("d-psgd", "{kind: ring}"),
            "graph: ring of 4, 4 edges, connected, bipartite, metropolis "
            "weights, spectral gap 0.6667");
  EXPECT_THAT(Line("d-psgd",
                   "{kind: time-varying, edge_sets: [[[a, b], [c, "
                   "d]], [[b, c]]]}"),
              HasSubstr("not connected in round 0, connected over all rounds"));
  EXPECT_THAT(Line("push-pull",
                   "{kind: explicit, directed: true, edges: [[a, "
                   "b], [b, c], [c, d], [d, a], [a, c]]}"),
              AllOf(HasSubstr("5 directed edges, strongly connected"),
                    HasSubstr("of A in rows 1.000")));
}

// Whose matrices would take minutes.
TEST(TopologyLine, OfManyMembersSaysWhatTheGraphItselfTells) {
  const auto line = [](const std::string& algorithm,
                       const std::string& topology) {
    std::string members;
    for (int i = 1000; i <= 2000; ++i) {
      absl::StrAppend(&members, i == 1000 ? "" : ", ", "n", i);
    }
    const absl::StatusOr<core::RunPlan> plan = config::ParsePlan(
        absl::StrCat("members: [", members,
                     "]\ncodec: {coordinates: dense}\nalgorithm: {name: ",
                     algorithm, "}\ntopology: ", topology, "\n"),
        "p.yaml");
    EXPECT_TRUE(plan.ok()) << plan.status();
    return plan.ok() ? TopologyLine(*core::CheckPlan(*plan)) : "";
  };
  EXPECT_EQ(line("d-psgd", "{kind: ring}"),
            "graph: ring of 1001, 1001 edges, connected");
  EXPECT_EQ(line("local",
                 "{kind: explicit, directed: on, edges: [[n1000, n1001], "
                 "[n1001, n1000], [n1001, n1002]]}"),
            "graph: explicit of 1001, 3 directed edges, not strongly "
            "connected");
  EXPECT_EQ(line("local",
                 "{kind: time-varying, edge_sets: [[[n1000, n1001]], [[n1001, "
                 "n1002]]]}"),
            "graph: time-varying of 1001, 1 edges, not connected in round 0");
}

TEST(TopologyText, OfARoundWhereTheGraphChanges) {
  const std::string topology =
      "{kind: time-varying, edge_sets: [[[a, b], [c, d]], [[b, c]]]}";
  EXPECT_EQ(Show("d-psgd", topology, 0).json["edges"], 2);
  const Shown second = Show("d-psgd", topology, 3);
  EXPECT_EQ(second.json["edges"], 1);
  EXPECT_EQ(second.json["connected"], false);
  EXPECT_EQ(second.json["window_connected"], true);
  EXPECT_THAT(second.text,
              AllOf(HasSubstr("2 sets of edges in turn, one every round"),
                    HasSubstr("connected over rounds  yes")));
}

TEST(TopologyText, OfADirectedGraphHasBothMatrices) {
  const Shown shown =
      Show("local",
           "{kind: explicit, directed: on, edges: [[a, b], [b, c], [c, d], "
           "[d, a], [b, d]]}");
  EXPECT_EQ(shown.json["directed"], true);
  EXPECT_EQ(shown.json["connected"], true);
  EXPECT_EQ(shown.json["edges"], 5);
  for (int i = 0; i < 4; ++i) {
    EXPECT_NEAR(shown.json["row_sums_a"][i].get<double>(), 1, 1e-12);
    EXPECT_NEAR(shown.json["column_sums_b"][i].get<double>(), 1, 1e-12);
  }
  EXPECT_EQ(shown.json.count("row_sums"), 0);
  EXPECT_THAT(shown.text, AllOf(HasSubstr("5, directed"),
                                HasSubstr("d     0.333  b, c   0.500  a")));
}

}  // namespace
}  // namespace dfl::console
