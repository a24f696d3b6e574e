#include "daemon/sim/results.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "daemon/sim/plots.h"
#include "tests/unit/sim/scenarios.h"

namespace dfl::sim {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class ResultsTest : public testing::Test {
 protected:
  ResultsTest() : folder_(testing::TempDir() + "/dflsim-results") {
    std::filesystem::remove_all(folder_);
  }
  ~ResultsTest() override { std::filesystem::remove_all(folder_); }

  std::string Read(const std::string& name) {
    std::ostringstream text;
    text << std::ifstream(folder_ + "/" + name).rdbuf();
    return text.str();
  }

  const std::string folder_;
};

Result PlayedOut(const Scenario& scenario) {
  auto made = Simulation::Create(scenario);
  EXPECT_TRUE(made.ok()) << made.status();
  return (*made)->Run([](const Progress&) { return true; });
}

TEST_F(ResultsTest, AreReadAsTheyWereWritten) {
  const Scenario scenario = *ParseScenario(SmallScenario(), "some/s.yaml");
  const Result result = PlayedOut(scenario);
  ASSERT_TRUE(WriteResults(folder_ + "/deep", scenario, result).ok());
  const absl::StatusOr<RecordedRun> run = ReadRun(folder_ + "/deep/");
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->title, "deep");
  EXPECT_EQ(run->rows, result.rows);
  EXPECT_EQ(run->summary, SummaryJson(scenario, result));
  EXPECT_EQ(Read("deep/scenario.yaml"), scenario.text);
}

TEST_F(ResultsTest, TheSummarySaysHowToReplay) {
  const Scenario scenario = *ParseScenario(SmallScenario(), "s.yaml", 12);
  const Result result = PlayedOut(scenario);
  const console::Json summary = SummaryJson(scenario, result);
  EXPECT_EQ(summary["seed"], 12);
  EXPECT_EQ(summary["replay"], "dflsim run s.yaml --seed 12");
  EXPECT_EQ(summary["digest"], DigestText(result.digest));
  EXPECT_EQ(summary["digest"].get<std::string>().size(), 16);
  EXPECT_EQ(summary["end"], "finished");
  EXPECT_EQ(summary["failed"], false);
  EXPECT_EQ(summary["nodes"], 8);
  EXPECT_EQ(summary["steps"], 8 * 120);
  EXPECT_EQ(summary["last"]["step"], 120);
  EXPECT_EQ(summary["last"]["bytes_sent"], result.rows.back().bytes_sent);
}

TEST(Replay, IsACommandOfTheShell) {
  Scenario scenario;
  scenario.plan.seed = 2;
  scenario.file = "my runs/it's.yaml";
  EXPECT_EQ(ReplayCommand(scenario),
            "dflsim run 'my runs/it'\\''s.yaml' --seed 2");
}

TEST(Metrics, HaveAHeaderAndALineARow) {
  MetricsRow row;
  row.step = 5;
  row.time_s = 0.25;
  row.loss_mean_model = 0.1;
  row.bytes_sent = 1234;
  row.nodes = 2;
  const std::string csv = ToCsv({&row, 1});
  EXPECT_EQ(csv,
            "step,time_s,loss_mean_model,mean_loss,consensus_error,bytes_sent,"
            "nodes,lowest_step,highest_step,accuracy,accuracy_mean_model,"
            "mass_drift\n"
            "5,0.25,0.10000000000000001,0,0,1234,2,0,0,,,\n");
  EXPECT_EQ(ParseCsv(csv, "m.csv")->front(), row);
  row.accuracy = 0.5;
  row.accuracy_mean_model = 0.75;
  row.mass_drift = 0;
  EXPECT_EQ(ParseCsv(ToCsv({&row, 1}), "m.csv")->front(), row);
}

TEST(Metrics, RefuseAnotherForm) {
  EXPECT_THAT(ParseCsv("a,b\n1,2\n", "m.csv").status().message(),
              HasSubstr("m.csv:1: allowed: step,"));
  EXPECT_THAT(
      ParseCsv(absl::StrCat(ToCsv({}), "1,2\n"), "m.csv").status().message(),
      HasSubstr("m.csv:2: allowed: twelve columns"));
}

TEST_F(ResultsTest, WhatIsNoRunIsSaid) {
  EXPECT_FALSE(ReadRun(folder_).ok());
  std::filesystem::create_directories(folder_);
  std::ofstream(folder_ + "/summary.json") << "[]";
  EXPECT_THAT(ReadRun(folder_).status().message(),
              HasSubstr("is no summary of `dflsim run`"));
  std::ofstream(folder_ + "/file") << "x";
  EXPECT_THAT(WriteResults(folder_ + "/file",
                           *ParseScenario(SmallScenario(), "s.yaml"), Result())
                  .message(),
              HasSubstr("cannot be made a folder"));
}

TEST(Plots, DrawEveryRunAgainstStepsTimeAndBytes) {
  RecordedRun run;
  run.title = "it's\none";
  MetricsRow row;
  row.step = 5;
  row.time_s = 0.25;
  row.bytes_sent = 2'000'000;
  row.loss_mean_model = 0.5;
  row.consensus_error = 0.125;
  run.rows = {row};
  RecordedRun other = run;
  other.title = "two";
  const RecordedRun runs[] = {run, other};
  const std::string script = PlotScript(runs);
  EXPECT_THAT(script,
              HasSubstr("$run1 << END_OF_RUN\n5 0.25 2 0.5 0.125 2 ? ?\n"));
  EXPECT_THAT(script, HasSubstr("title 'it''s one'"));
  for (const char* part :
       {"$run1 using 1:4", "$run1 using 2:4", "$run1 using 3:4",
        "$run1 using 1:5", "$run1 using 2:5", "$run1 using 3:5",
        "set output 'loss.png'", "set output 'loss.svg'",
        "set output 'consensus.png'", "set output 'consensus.svg'",
        "set output 'bytes.png'", "$run1 using 2:6"}) {
    EXPECT_THAT(script, HasSubstr(part));
  }
  EXPECT_THAT(script, Not(HasSubstr("accuracy")));
  EXPECT_THAT(script, Not(HasSubstr("drift")));
}

TEST(Plots, DrawWhatOnlySomeRunsHaveOfThose) {
  RecordedRun without;
  without.rows.resize(1);
  RecordedRun with = without;
  with.rows[0].accuracy = 0.5;
  with.rows[0].mass_drift = 1e-6;
  const RecordedRun runs[] = {without, with};
  const std::string script = PlotScript(runs);
  EXPECT_THAT(script, HasSubstr("0 0 0 0 0 0 0.5 1e-06\n"));
  EXPECT_THAT(script, HasSubstr("set output 'accuracy.png'"));
  EXPECT_THAT(script, HasSubstr("set output 'drift.svg'"));
  EXPECT_THAT(script, HasSubstr("$run1 using 3:7"));
  EXPECT_THAT(script, HasSubstr("$run1 using 1:8"));
  EXPECT_THAT(script, Not(HasSubstr("$run0 using 3:7")));
}

TEST_F(ResultsTest, WithoutGnuplotThereAreNoPlots) {
  std::filesystem::create_directories(folder_);
  RecordedRun run;
  run.rows.resize(2);
  const absl::Status drawn =
      DrawPlots(folder_, {&run, 1}, "gnuplot-that-is-not-there");
  EXPECT_EQ(drawn.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(drawn.message(), HasSubstr("install gnuplot"));
}

TEST(Compare, HasARowARun) {
  RecordedRun run;
  run.title = "ring";
  run.summary = {{"algorithm", "pame"},
                 {"nodes", 8},
                 {"seed", 3},
                 {"end", "finished"},
                 {"last", {{"step", 120}}}};
  const std::string text = CompareText({&run, 1});
  EXPECT_THAT(text, HasSubstr("RUN   ALGORITHM  NODES  SEED  END"));
  EXPECT_THAT(text, HasSubstr("ring  pame           8     3  finished"));
  EXPECT_EQ(CompareJson({&run, 1})["runs"][0]["run"], "ring");
}

}  // namespace
}  // namespace dfl::sim
