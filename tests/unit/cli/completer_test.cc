// What `dflctl __complete` offers.
#include <gmock/gmock.h>

#include "absl/strings/str_split.h"
#include "daemon/core/graph/topology.h"
#include "tests/unit/cli/fake_daemon.h"

namespace dfl::cli {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

class CompleterTest : public CliTest {
 protected:
  // Words without their help; the last line says what else may come.
  std::vector<std::string> Offered(std::vector<std::string> typed) {
    typed.insert(typed.begin(), "__complete");
    const Result result = Run(typed);
    EXPECT_EQ(result.code, 0);
    EXPECT_THAT(result.err, IsEmpty());
    std::vector<std::string> words;
    for (const absl::string_view line :
         absl::StrSplit(result.out, '\n', absl::SkipEmpty())) {
      words.emplace_back(line.substr(0, line.find('\t')));
    }
    return words;
  }
};

TEST_F(CompleterTest, KnowsCommandsAndFlags) {
  EXPECT_THAT(Offered({"topo"}), ElementsAre("topology", ":"));
  EXPECT_THAT(Offered({"plan", ""}), AllOf(Contains("apply"), Contains("show"),
                                           Not(Contains("ring"))));
  EXPECT_THAT(Offered({"plan", "apply", "--dr"}),
              ElementsAre("--dry-run", ":"));
  EXPECT_THAT(Offered({"-o", "json", "top"}), Contains("topology"));
  EXPECT_THAT(Offered({"status", "--output=js"}),
              ElementsAre("--output=json", "--output=jsonl", ":"));
  EXPECT_THAT(Offered({"status", "-o", "y"}), ElementsAre("yaml", ":"));
  EXPECT_THAT(Offered({"plan", "apply", "x"}), ElementsAre(":files"));
  EXPECT_THAT(Offered({"checkpoint", ""}),
              AllOf(Contains("list"), Contains("save"), Contains("restore")));
  EXPECT_THAT(Offered({"checkpoint", "save", "--t"}),
              AllOf(Contains("--to"), Contains("--target")));
  EXPECT_THAT(Offered({"checkpoint", "save", "--to", ""}),
              ElementsAre(":files"));
  EXPECT_THAT(Offered({"checkpoint", "restore", ""}), ElementsAre(":files"));
}

TEST_F(CompleterTest, KnowsAlgorithmsAndTheirKnobs) {
  EXPECT_THAT(Offered({"algorithm", "show", "pa"}), Contains("pame"));
  EXPECT_THAT(Offered({"algorithm", "set", "pame", "gam"}),
              ElementsAre("gamma=", ": open"));
}

// The list here is that of the core.
TEST_F(CompleterTest, KnowsEveryKindOfTopologyThereIs) {
  const std::vector<std::string> kinds = Offered({"topology", "set", ""});
  core::TopologySpec spec;
  spec.kind = "?";
  const std::vector<NodeId> members = {NodeId("a"), NodeId("b")};
  const std::string allowed(
      core::BuildTopology(spec, 1, members).status().message());
  const std::string list = allowed.substr(allowed.find("allowed: ") + 9);
  for (const absl::string_view kind : absl::StrSplit(list, ", ")) {
    EXPECT_THAT(kinds, Contains(std::string(kind)));
  }
}

TEST_F(CompleterTest, AsksADaemonForNamesOfNodesAndPathsOfThePlan) {
  StartDaemon("box-1");
  environment_["DFLCTL_TARGET"] = "unix:" + Socket("box-1");
  EXPECT_THAT(Offered({"participation", "set", "--node", "box-"}),
              ElementsAre("box-1", "box-2", "box-3", "box-4", "box-5", ":"));
  EXPECT_THAT(Offered({"participation", "set", "--node=box-2,box-3"}),
              ElementsAre("--node=box-2,box-3", ":"));
  EXPECT_THAT(Offered({"get", "topology."}), ElementsAre(":"));
  const std::string file = WriteFile("plan.yaml", kPlan);
  ASSERT_EQ(RunAt("box-1", {"plan", "apply", file}).code, 0);
  EXPECT_THAT(Offered({"get", "topology.k"}),
              ElementsAre("topology.kind", ":"));
  EXPECT_THAT(Offered({"set", "topology.k"}),
              ElementsAre("topology.kind=", ": open"));
  EXPECT_THAT(Offered({"set", "topology.kind=ri"}),
              ElementsAre("topology.kind=ring", ":"));
  // Knobs of the plan's algorithm.
  EXPECT_THAT(Offered({"participation", "set", "n"}),
              ElementsAre("nu=", ": open"));
}

// The target is the one that the line names.
TEST_F(CompleterTest, IsSilentWhereNobodyAnswers) {
  StartDaemon("box-1");
  environment_["DFLCTL_TARGET"] = "unix:" + Socket("box-1");
  EXPECT_THAT(Offered({"-t", "unix:" + Socket("none"), "participation", "set",
                       "--node", ""}),
              ElementsAre(":"));
  EXPECT_THAT(Offered({"-t", "nonsense", "participation", "set", "--node", ""}),
              ElementsAre(":"));
}

TEST_F(CompleterTest, KnowsContexts) {
  environment_["XDG_CONFIG_HOME"] = folder_.File("config");
  ASSERT_EQ(Run({"context", "add", "plant-4", "-t", "x:1"}).code, 0);
  EXPECT_THAT(Offered({"status", "--context", ""}),
              ElementsAre("plant-4", ":"));
  EXPECT_THAT(Offered({"context", "use", "p"}), ElementsAre("plant-4", ":"));
  EXPECT_THAT(Offered({"context", "add", "p"}), ElementsAre(":"));
}

}  // namespace
}  // namespace dfl::cli
