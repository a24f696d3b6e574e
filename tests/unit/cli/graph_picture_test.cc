// The graph as a picture.
#include "cli/graph_picture.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "daemon/config/plan_yaml.h"
#include "tests/unit/cli/fake_daemon.h"

namespace dfl::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

console::TopologyReport ReportOf(const std::string& text) {
  const absl::StatusOr<core::RunPlan> plan = config::ParsePlan(text, "plan");
  EXPECT_TRUE(plan.ok()) << plan.status();
  const absl::StatusOr<console::TopologyReport> report =
      console::ReportTopology(*plan, 0);
  EXPECT_TRUE(report.ok()) << report.status();
  return *report;
}

std::string RingPlan(int nodes) {
  std::string members;
  for (int i = 0; i < nodes; ++i) {
    absl::StrAppend(&members, i == 0 ? "" : ", ", "n", i);
  }
  return absl::StrCat("members: [", members,
                      "]\nmodel: {kind: cnn}\nalgorithm: {name: d-psgd}\n"
                      "topology: {kind: ring}\n");
}

TEST(GraphPicture, FewNodesStandOnAnEllipseWithTheirEdges) {
  const std::string text = GraphText(ReportOf(RingPlan(4)));
  EXPECT_THAT(text, AllOf(HasSubstr("n0"), HasSubstr("n1"), HasSubstr("n2"),
                          HasSubstr("n3")));
  // The corners of a ring of four, and nothing across.
  const std::vector<std::string> rows = absl::StrSplit(text, '\n');
  EXPECT_THAT(rows[0], HasSubstr("o n0"));
  EXPECT_THAT(rows[11], AllOf(StartsWith(" n3 o"), HasSubstr("o n1")));
  EXPECT_THAT(rows[11].substr(16, 24), Not(HasSubstr(".")));
  EXPECT_THAT(rows[5], HasSubstr("."));
}

TEST(GraphPicture, DirectedEdgesHaveHeads) {
  const std::string text = GraphText(
      ReportOf("members: [a, b, c]\nmodel: {kind: cnn}\n"
               "algorithm: {name: sgp}\n"
               "topology: {kind: explicit, directed: true, edges: [[a, b], [b, "
               "c], [c, a]]}\n"));
  EXPECT_THAT(text, testing::ContainsRegex("[<>^v]"));
}

TEST(GraphPicture, ManyNodesAreAMatrix) {
  const std::vector<std::string> rows =
      absl::StrSplit(GraphText(ReportOf(RingPlan(30))), '\n');
  EXPECT_EQ(rows[0], "n0   .#...........................#");
  EXPECT_EQ(rows.size(), 31u);
}

TEST(GraphPicture, ANameCannotSteerTheTerminal) {
  for (const int nodes : {4, 30}) {
    console::TopologyReport report = ReportOf(RingPlan(nodes));
    report.topology.members[0] = NodeId("n\x1b[31m");
    EXPECT_THAT(GraphText(report),
                AllOf(HasSubstr("n?[31m"), Not(HasSubstr("\x1b"))))
        << nodes;
  }
}

TEST(GraphPicture, GraphvizIsToldNodesEdgesAndLayout) {
  const std::string dot = GraphDot(ReportOf(RingPlan(4)), "ring");
  EXPECT_THAT(dot, AllOf(StartsWith("graph topology {\n  layout=circo;"),
                         HasSubstr("\"ring of 4, 4 edges, connected\""),
                         HasSubstr("\"n0\" -- \"n1\" [tooltip=\"weight ")));
}

TEST(GraphPicture, AMissingProgramNamesItsPackage) {
  const auto drawn = DrawGraph("graph {}", "svg", "/no/such/program");
  EXPECT_TRUE(absl::IsNotFound(drawn.status()));
  EXPECT_THAT(std::string(drawn.status().message()),
              HasSubstr("apt install graphviz"));
}

TEST(GraphPicture, GraphvizDraws) {
  const std::string dot = GraphDot(ReportOf(RingPlan(4)), "ring");
  const auto svg = DrawGraph(dot, "svg");
  if (absl::IsNotFound(svg.status())) {
    GTEST_SKIP() << svg.status().message();
  }
  ASSERT_TRUE(svg.ok()) << svg.status();
  EXPECT_THAT(*svg, AllOf(HasSubstr("<svg"), HasSubstr(">n3</text>")));
  const auto png = DrawGraph(dot, "png");
  ASSERT_TRUE(png.ok()) << png.status();
  EXPECT_THAT(*png, StartsWith("\x89PNG"));
  EXPECT_FALSE(DrawGraph("graph {", "svg").ok());
}

class PictureCommandTest : public CliTest {
 protected:
  // A program that stands for Graphviz.
  std::string Script(const std::string& name, const std::string& text) {
    const std::string path = WriteFile(name, "#!/bin/sh\n" + text);
    EXPECT_EQ(chmod(path.c_str(), 0755), 0);
    return path;
  }
};

TEST_F(PictureCommandTest, TheProgramReadsTheGraphAndItsWordsAreAnError) {
  const auto echoed =
      DrawGraph("graph {}", "svg", Script("echo", "echo \"$@\"; cat\n"));
  ASSERT_TRUE(echoed.ok()) << echoed.status();
  EXPECT_EQ(*echoed, "-Tsvg\ngraph {}");
  const auto failed = DrawGraph("graph {}", "svg",
                                Script("fail", "echo no fonts >&2; exit 1\n"));
  EXPECT_THAT(std::string(failed.status().message()),
              HasSubstr("failed: no fonts"));
}

TEST_F(PictureCommandTest, TopologyShowDrawsInCharactersWhenAsked) {
  StartDaemon("box-1");
  ASSERT_EQ(
      RunAt("box-1", {"plan", "apply", WriteFile("plan.yaml", kPlan)}).code, 0);
  EXPECT_THAT(RunAt("box-1", {"topology", "show"}).out, Not(HasSubstr(" o ")));
  const Result drawn = RunAt("box-1", {"topology", "show", "--draw"});
  EXPECT_EQ(drawn.code, 0) << drawn.err;
  EXPECT_THAT(drawn.out, HasSubstr("o box-2\n"));
}

}  // namespace
}  // namespace dfl::cli
