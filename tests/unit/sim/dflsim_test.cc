#include "daemon/sim/dflsim.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "daemon/console/document.h"
#include "tests/support/command_examples.h"
#include "tests/support/written_file.h"
#include "tests/unit/sim/scenarios.h"

namespace dfl::sim {
namespace {

using console::Json;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;

class DflsimTest : public testing::Test {
 public:
  ~DflsimTest() override { std::filesystem::remove_all(folder_); }

 protected:
  DflsimTest() : folder_(testing::TempDir() + "/dflsim-command") {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }

  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path) << text;
    return path;
  }

  int Call(const std::vector<std::string>& arguments) {
    std::istringstream in;
    std::ostringstream out;
    std::ostringstream err;
    console::Io io{in, out, err};
    io.err_is_terminal = terminal_;
    absl::Time now = absl::UnixEpoch();
    const int code = Dflsim(arguments, io, [&] {
      now += absl::Seconds(1);
      return now;
    });
    out_ = out.str();
    err_ = err.str();
    return code;
  }

  const std::string folder_;
  bool terminal_ = false;
  std::string out_;
  std::string err_;
};

TEST_F(DflsimTest, ManPageIsTheFileInDeploy) {
  ASSERT_EQ(Call({"__man"}), kOk) << err_;
  testing_support::ExpectIsFile(DFL_DEPLOY_DIR "/man/dflsim.1", out_);
}

TEST_F(DflsimTest, RunsAndPrintsTheSameDigestTwice) {
  const std::string file = Write("s.yaml", SmallScenario());
  const std::string out = folder_ + "/out";
  ASSERT_EQ(Call({"run", file, "--out", out, "--no-plots", "-o", "json"}), kOk)
      << err_;
  const Json first = Json::parse(out_);
  EXPECT_THAT(err_, HasSubstr("8 nodes, seed 3; again by: dflsim run " + file +
                              " --seed 3"));
  ASSERT_EQ(Call({"run", file, "--out", out, "--no-plots", "-o", "json"}), kOk);
  EXPECT_EQ(Json::parse(out_)["digest"], first["digest"]);
  ASSERT_EQ(Call({"run", file, "--out", out, "--no-plots", "--seed", "4"}),
            kOk);
  EXPECT_THAT(out_, AllOf(HasSubstr("finished"), HasSubstr("digest")));
  EXPECT_TRUE(std::filesystem::exists(out + "/metrics.csv"));
  EXPECT_TRUE(std::filesystem::exists(out + "/summary.json"));
  EXPECT_FALSE(std::filesystem::exists(out + "/plot.gp"));
}

TEST_F(DflsimTest, ShowsProgressAsTheTerminalAllows) {
  const std::string file = Write(
      "s.yaml",
      absl::StrReplaceAll(SmallScenario(), {{"steps: 120", "steps: 2000"}}));
  const std::vector<std::string> command = {"run", file, "--out",
                                            folder_ + "/out", "--no-plots"};
  ASSERT_EQ(Call(command), kOk);
  EXPECT_THAT(err_, HasSubstr("%  step "));
  EXPECT_EQ(err_.find('\r'), std::string::npos);
  terminal_ = true;
  ASSERT_EQ(Call(command), kOk);
  EXPECT_THAT(err_, HasSubstr("\r\x1b[K["));
}

TEST_F(DflsimTest, AFailedRunSaysHowToReplayIt) {
  const std::string file = Write("s.yaml", SmallScenario("  limit: 300ms\n"));
  EXPECT_EQ(Call({"run", file, "--out", folder_ + "/out", "--no-plots"}),
            kFailed);
  EXPECT_THAT(err_,
              AllOf(HasSubstr("the run failed (limit)"),
                    HasSubstr("again by: dflsim run " + file + " --seed 3")));
  // What there was is there.
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/out/metrics.csv"));
}

TEST_F(DflsimTest, AWrongScenarioIsAUsageError) {
  const std::string file = Write("s.yaml", SmallScenario("  link: {}\n"));
  EXPECT_EQ(Call({"run", file, "--out", folder_ + "/out"}), kUsage);
  EXPECT_THAT(err_, HasSubstr(file + ":11: network.link: unknown key"));
  EXPECT_EQ(out_, "");
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/out"));
}

TEST_F(DflsimTest, AMissingFileFails) {
  EXPECT_EQ(Call({"run", folder_ + "/none.yaml"}), kFailed);
  EXPECT_THAT(err_, HasSubstr("none.yaml"));
  EXPECT_EQ(Call({"compare", folder_, "--out", folder_ + "/c"}), kFailed);
  EXPECT_THAT(err_, HasSubstr("summary.json"));
}

TEST_F(DflsimTest, AWrongCommandLineIsAUsageError) {
  EXPECT_EQ(Call({"rnu"}), kUsage);
  EXPECT_THAT(err_,
              HasSubstr("unknown command \"rnu\"; did you mean \"run\"?"));
  EXPECT_EQ(Call({"run"}), kUsage);
  EXPECT_EQ(Call({"run", "x", "--seed", "0"}), kUsage);
  EXPECT_EQ(Call({"algorithm", "list", "-o", "xml"}), kUsage);
  EXPECT_EQ(Call({}), kUsage);
  EXPECT_THAT(err_, HasSubstr("see `dflsim --help`"));
}

// The files that examples name are not there, which is no usage error.
TEST_F(DflsimTest, EveryCommandsHelpEndsWithAnExampleThatIsUnderstood) {
  const std::vector<CommandHelp> commands =
      AllCommands("dflsim", [&](const std::vector<std::string>& arguments) {
        EXPECT_EQ(Call(arguments), kOk);
        return out_;
      });
  EXPECT_THAT(commands, Contains(Field(&CommandHelp::path, "dflsim run")));
  EXPECT_THAT(commands,
              Contains(Field(&CommandHelp::path, "dflsim topology show")));
  ExpectExamples(commands);
  for (const CommandHelp& command : commands) {
    const int code = Call(ExampleArguments(command));
    EXPECT_TRUE(code == kOk || code == kFailed) << command.example << err_;
  }
}

TEST_F(DflsimTest, ListsAndExplainsAlgorithms) {
  ASSERT_EQ(Call({"algorithm", "list", "-o", "json"}), kOk);
  const Json listed = Json::parse(out_)["algorithms"];
  ASSERT_EQ(Call({"algorithm", "show", "pame"}), kOk);
  EXPECT_THAT(out_,
              AllOf(HasSubstr("knobs of participation:"), HasSubstr("(0, 1]"),
                    HasSubstr("[PaME] Alg. 1"), HasSubstr("never mixes")));
  ASSERT_EQ(Call({"algorithm", "show", "pame", "-o", "json"}), kOk);
  const Json shown = Json::parse(out_);
  EXPECT_THAT(shown["cost"], HasSubstr("gradient"));
  // The list has all of it.
  EXPECT_THAT(listed, testing::Contains(shown));
  EXPECT_EQ(Call({"algorithm", "show", "pmae"}), kUsage);
  EXPECT_THAT(err_, HasSubstr("did you mean \"pame\""));
}

TEST_F(DflsimTest, ShowsTheTopologyOfPlansAndScenarios) {
  const std::string scenario = Write("s.yaml", SmallScenario());
  ASSERT_EQ(Call({"topology", "show", scenario, "-o", "json"}), kOk);
  const Json json = Json::parse(out_);
  EXPECT_EQ(json["edges"], 8);
  EXPECT_EQ(json["connected"], true);
  EXPECT_GT(json["spectral_gap"], 0.1);
  const std::string plan =
      Write("p.yaml", "members: [a, b, c]\ntopology: {kind: star}\n");
  ASSERT_EQ(Call({"topology", "show", plan}), kOk);
  EXPECT_THAT(out_, AllOf(HasSubstr("star"), HasSubstr("spectral gap"),
                          HasSubstr("b (0.333), c (0.333)")));
  EXPECT_EQ(Call({"topology", "show",
                  Write("w.yaml", "members: [a]\ntopology: {kind: sta}\n")}),
            kUsage);
}

TEST_F(DflsimTest, ShowsTheTopologyOfOneRound) {
  const std::string plan =
      Write("p.yaml",
            "members: [a, b, c]\nalgorithm: {name: d-psgd}\ntopology: {kind: "
            "time-varying, edge_sets: [[[a, b]], [[b, c]]]}\n");
  ASSERT_EQ(Call({"topology", "show", plan, "--round", "3"}), kOk) << err_;
  EXPECT_THAT(out_, AllOf(HasSubstr("round                  3"),
                          HasSubstr("c          0.500  b (0.500)")));
  EXPECT_EQ(Call({"topology", "show", plan, "--round", "-1"}), kUsage);
}

TEST_F(DflsimTest, ComparesRuns) {
  const std::string file = Write("s.yaml", SmallScenario());
  for (const char* seed : {"1", "2"}) {
    ASSERT_EQ(Call({"run", file, "--seed", seed, "--out",
                    folder_ + "/run-" + seed, "--no-plots"}),
              kOk);
  }
  ASSERT_EQ(Call({"compare", folder_ + "/run-1", folder_ + "/run-2", "--out",
                  folder_ + "/both"}),
            kOk);
  EXPECT_THAT(out_, AllOf(HasSubstr("run-1"), HasSubstr("run-2")));
  // With or without gnuplot the script is there.
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/both/plot.gp"));
}

constexpr char kTwoVariants[] =
    "variants:\n"
    "  all: {algorithm: {knobs: {nu: 1.0, p: 1.0}}}\n"
    "  d-psgd: {algorithm: {name: d-psgd}}\n";

TEST_F(DflsimTest, RunsEveryVariantIntoAFolderOfItsOwn) {
  const std::string file = Write("s.yaml", SmallScenario() + kTwoVariants);
  const std::string out = folder_ + "/out";
  ASSERT_EQ(Call({"run", file, "--out", out, "--no-plots", "-o", "json"}), kOk)
      << err_;
  const Json runs = Json::parse(out_)["runs"];
  ASSERT_EQ(runs.size(), 2);
  EXPECT_EQ(runs[0]["run"], "all");
  EXPECT_EQ(runs[1]["summary"]["algorithm"], "d-psgd");
  EXPECT_NE(runs[0]["summary"]["digest"], runs[1]["summary"]["digest"]);
  EXPECT_TRUE(std::filesystem::exists(out + "/all/metrics.csv"));
  EXPECT_TRUE(std::filesystem::exists(out + "/d-psgd/summary.json"));

  // One by itself, as the command of the summary has it.
  EXPECT_THAT(std::string(runs[1]["summary"]["replay"]),
              testing::EndsWith("--variant d-psgd"));
  ASSERT_EQ(Call({"run", file, "--variant", "d-psgd", "--out", folder_ + "/one",
                  "--no-plots", "-o", "json"}),
            kOk);
  EXPECT_EQ(Json::parse(out_)["runs"][0]["summary"]["digest"],
            runs[1]["summary"]["digest"]);
}

TEST_F(DflsimTest, AVariantThatFailsLeavesTheOthersAlone) {
  const std::string file =
      Write("s.yaml", SmallScenario() +
                          "variants:\n"
                          "  wild: {algorithm: {name: d-psgd, knobs: {eta: "
                          "1e9}}}\n"
                          "  tame: {}\n");
  ASSERT_EQ(Call({"run", file, "--out", folder_ + "/out", "--no-plots", "-o",
                  "json", "--jobs", "1"}),
            kFailed)
      << err_;
  EXPECT_THAT(err_, HasSubstr("the run failed (diverged)"));
  const Json runs = Json::parse(out_)["runs"];
  EXPECT_EQ(runs[1]["summary"]["end"], "finished");
}

TEST_F(DflsimTest, AVariantThatThereIsNotIsNamedWithThoseThereAre) {
  const std::string file = Write("s.yaml", SmallScenario() + kTwoVariants);
  EXPECT_EQ(Call({"run", file, "--variant", "dpsgd"}), kUsage);
  EXPECT_THAT(err_, AllOf(HasSubstr("\"dpsgd\""), HasSubstr("all, d-psgd")));
}

}  // namespace
}  // namespace dfl::sim
