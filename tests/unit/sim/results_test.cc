#include "daemon/sim/results.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "daemon/core/algorithms/spod_gt.h"
#include "daemon/core/plan/derived_plan.h"
#include "daemon/core/plan/run_plan.h"
#include "daemon/sim/plots.h"
#include "tests/unit/sim/play.h"
#include "tests/unit/sim/scenarios.h"

namespace dfl::sim {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class ResultsTest : public testing::Test {
 public:
  ~ResultsTest() override { std::filesystem::remove_all(folder_); }

 protected:
  ResultsTest() : folder_(testing::TempDir() + "/dflsim-results") {
    std::filesystem::remove_all(folder_);
  }

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

TEST_F(ResultsTest, HoldWhatWasAskedFor) {
  const Scenario scenario = *ParseScenario(
      absl::StrReplaceAll(
          SmallScenario("  metrics: [consensus_error_y, proximal_gradient]\n",
                        "{name: depositum}"),
          {{"coordinates: random", "coordinates: dense"}}),
      "s.yaml");
  const Result result = PlayedOut(scenario);
  ASSERT_TRUE(WriteResults(folder_, scenario, result).ok());
  EXPECT_THAT(Read("metrics.csv"),
              HasSubstr(",mass_drift,consensus_error_y,proximal_gradient,"
                        "sparsity,phi_mean_model\n"));
  const absl::StatusOr<RecordedRun> run = ReadRun(folder_);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->rows, result.rows);
  EXPECT_EQ(run->summary["last"]["proximal_gradient"],
            result.rows.back().extra.at("proximal_gradient"));
  EXPECT_GT(run->summary["last"]["consensus_error_y"], 0);
}

std::string Penalised(const std::string& algorithm, const std::string& prox,
                      const std::string& network = "") {
  return absl::StrReplaceAll(
      SmallScenario(network,
                    absl::StrCat("{name: ", algorithm, ", knobs: {prox: ", prox,
                                 ", lambda: 0.2}}")),
      {{"coordinates: random", "coordinates: dense"},
       {"kind: ring", algorithm == "fedmid" ? "kind: star" : "kind: ring"}});
}

// Of [PaME] Example 1 one weight of a hundred is not 0, so l1 finds most of
// them.
TEST(Penalties, AreMeasuredByTheZerosTheyMakeAndByWhatTheyAdd) {
  for (const char* algorithm : {"depositum", "fedmid"}) {
    SCOPED_TRACE(algorithm);
    const Scenario scenario =
        *ParseScenario(Penalised(algorithm, "l1"), "s.yaml");
    auto made = Simulation::Create(scenario);
    ASSERT_TRUE(made.ok()) << made.status();
    const Result result = (*made)->Run([](const Progress&) { return true; });
    const MetricsRow& last = result.rows.back();
    EXPECT_EQ(result.rows.front().sparsity, 1);  // models start at 0
    std::vector<double> mean(20, 0.0);
    double zeros = 0;
    for (int64_t i = 0; i < 8; ++i) {
      for (size_t l = 0; l < 20; ++l) {
        const float w = (*made)->parameters(i)[l];
        mean[l] += w / 8.0;
        zeros += w == 0 ? 1 : 0;
      }
    }
    EXPECT_GT(zeros, 80);
    EXPECT_LT(zeros, 160);
    EXPECT_DOUBLE_EQ(*last.sparsity, zeros / 160);
    double h = 0;
    for (const double w : mean) h += 0.2 * std::abs(w);
    EXPECT_GT(h, 0.01);
    EXPECT_NEAR(*last.phi_mean_model, last.loss_mean_model + h, 1e-6);
    const console::Json summary = SummaryJson(scenario, result);
    EXPECT_EQ(summary["last"]["sparsity"], *last.sparsity);
    EXPECT_EQ(summary["last"]["phi_mean_model"], *last.phi_mean_model);
  }
}

TEST(Penalties, AreMeasuredWhereThereAreAny) {
  // A proximal step, but no penalty.
  const MetricsRow none = RunOnce(Penalised("depositum", "none")).rows.back();
  EXPECT_EQ(none.sparsity, 0);
  EXPECT_FALSE(none.phi_mean_model.has_value());
  const Scenario scenario = *ParseScenario(SmallScenario(), "s.yaml");
  const Result without = PlayedOut(scenario);
  EXPECT_FALSE(without.rows.back().sparsity.has_value());
  EXPECT_FALSE(without.rows.back().phi_mean_model.has_value());
  const console::Json last = SummaryJson(scenario, without)["last"];
  EXPECT_EQ(last.count("sparsity") + last.count("phi_mean_model"), 0);
  // The newest plan's.
  const Result changed = RunOnce(Penalised(
      "depositum", "mcp",
      "  events: [{at: 600ms, change: {algorithm: {name: d-psgd}}}]\n"));
  EXPECT_TRUE(changed.rows[1].phi_mean_model.has_value());
  EXPECT_FALSE(changed.rows.back().phi_mean_model.has_value());
  EXPECT_FALSE(changed.rows.back().sparsity.has_value());
}

// By the nodes and by the edges, of all plans that were given out.
TEST(Summary, TellsTheProbabilitiesThatWereDrawn) {
  const auto summary = [](const std::string& network,
                          const std::string& algorithm) {
    const Scenario scenario = *ParseScenario(
        absl::StrReplaceAll(SmallScenario(network, algorithm),
                            {{"coordinates: random", "coordinates: dense"}}),
        "s.yaml");
    return SummaryJson(scenario, PlayedOut(scenario));
  };
  const std::string draws = "{name: spod-gt, knobs: {p_draw: beta}}";
  const console::Json drawn = summary("", draws)["drawn"];
  ASSERT_EQ(drawn.size(), 8);
  const std::vector<core::NodePlan> plans = *core::DeriveNodePlans(
      ParseScenario(
          absl::StrReplaceAll(SmallScenario("", draws),
                              {{"coordinates: random", "coordinates: dense"}}),
          "s.yaml")
          ->plan);
  for (size_t i = 0; i < 8; ++i) {
    const auto told = core::DrawnBy(plans[i]);
    const console::Json& node = drawn[absl::StrCat("n", i)];
    EXPECT_EQ(node["p"], *told->p);
    ASSERT_EQ(node["p_hat"].size(), 2);
    EXPECT_EQ(node["p_hat"][absl::StrCat("n", (i + 1) % 8)],
              told->p_hat.at(NodeId(absl::StrCat("n", (i + 1) % 8))));
  }
  const console::Json changed =
      summary(absl::StrCat("  events: [{at: 300ms, change: {algorithm: ", draws,
                           ", topology: {kind: complete}}}]\n"),
              "{name: g-push-pull, knobs: {p_draw: beta}}")["drawn"];
  EXPECT_EQ(changed["n0"]["p_hat"].size(), 7);
  EXPECT_EQ(changed["n0"]["p_hat"]["n7"], drawn["n0"]["p_hat"]["n7"]);
  EXPECT_EQ(changed["n0"]["p"], drawn["n0"]["p"]);
  EXPECT_EQ(summary("", "{name: spod-gt}").count("drawn"), 0);
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
  // The nodes by themselves make the mean.
  ASSERT_EQ(summary["last_nodes"].size(), 8);
  double loss = 0;
  for (const console::Json& node : summary["last_nodes"]) {
    EXPECT_EQ(node["step"], 120);
    EXPECT_EQ(node.count("accuracy"), 0);
    loss += node["loss"].get<double>() / 8;
  }
  EXPECT_EQ(summary["last_nodes"][3]["name"], "n3");
  EXPECT_NEAR(loss, result.rows.back().mean_loss, 1e-12);
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
            "mass_drift,sparsity,phi_mean_model\n"
            "5,0.25,0.10000000000000001,0,0,1234,2,0,0,,,,,\n");
  EXPECT_EQ(ParseCsv(csv, "m.csv")->front(), row);
  row.accuracy = 0.5;
  row.accuracy_mean_model = 0.75;
  row.mass_drift = 0;
  row.sparsity = 0.25;
  EXPECT_THAT(ToCsv({&row, 1}), HasSubstr(",0.5,0.75,0,0.25,\n"));
  row.phi_mean_model = 2;
  EXPECT_EQ(ParseCsv(ToCsv({&row, 1}), "m.csv")->front(), row);
}

TEST(Metrics, HaveAColumnForWhatIsAskedFor) {
  MetricsRow row;
  row.extra = {{"gradient_error", 0.1}};
  const std::vector<std::string> extra = {"gradient_error",
                                          "consensus_error_y"};
  const std::string csv = ToCsv({&row, 1}, extra);
  EXPECT_THAT(csv, HasSubstr("mass_drift,gradient_error,consensus_error_y,"
                             "sparsity,phi_mean_model\n"));
  EXPECT_THAT(csv, HasSubstr(",,,0.10000000000000001,,,\n"));
  EXPECT_EQ(ParseCsv(csv, "m.csv")->front(), row);
  row.extra["consensus_error_y"] = 0;
  row.sparsity = 0.5;
  row.phi_mean_model = 3;
  EXPECT_EQ(ParseCsv(ToCsv({&row, 1}, extra), "m.csv")->front(), row);
  EXPECT_THAT(ParseCsv(absl::StrCat(ToCsv({}, extra), "0,0,0,0,0,0,0,0,0,,,,1"),
                       "m.csv")
                  .status()
                  .message(),
              HasSubstr("m.csv:2: allowed: 16 columns"));
  EXPECT_FALSE(
      ParseCsv(absl::StrReplaceAll(csv, {{"mass_drift,", ""}}), "m.csv").ok());
  EXPECT_FALSE(
      ParseCsv(absl::StrReplaceAll(csv, {{"gradient_error", ""}}), "m.csv")
          .ok());
  EXPECT_FALSE(
      ParseCsv(absl::StrReplaceAll(csv, {{",sparsity", ""}}), "m.csv").ok());
}

TEST(Metrics, RefuseAnotherForm) {
  EXPECT_THAT(ParseCsv("a,b\n1,2\n", "m.csv").status().message(),
              HasSubstr("m.csv:1: allowed: step,"));
  EXPECT_THAT(
      ParseCsv(absl::StrCat(ToCsv({}), "1,2\n"), "m.csv").status().message(),
      HasSubstr("m.csv:2: allowed: 14 columns"));
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
              HasSubstr("$run1 << END_OF_RUN\n5 0.25 2 0.5 0.125 2 ? ? ? ?\n"));
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
  EXPECT_THAT(script, Not(HasSubstr("sparsity")));
  EXPECT_THAT(script, Not(HasSubstr("phi")));
}

TEST(Plots, DrawWhatOnlySomeRunsHaveOfThose) {
  RecordedRun without;
  without.rows.resize(1);
  RecordedRun with = without;
  with.rows[0].accuracy = 0.5;
  with.rows[0].mass_drift = 1e-6;
  with.rows[0].sparsity = 0.25;
  with.rows[0].phi_mean_model = 3;
  const RecordedRun runs[] = {without, with};
  const std::string script = PlotScript(runs);
  EXPECT_THAT(script, HasSubstr("0 0 0 0 0 0 0.5 1e-06 0.25 3\n"));
  EXPECT_THAT(script, HasSubstr("set output 'accuracy.png'"));
  EXPECT_THAT(script, HasSubstr("set output 'drift.svg'"));
  EXPECT_THAT(script, HasSubstr("$run1 using 3:7"));
  EXPECT_THAT(script, HasSubstr("$run1 using 1:8"));
  EXPECT_THAT(script, HasSubstr("set output 'sparsity.png'"));
  EXPECT_THAT(script, HasSubstr("$run1 using 2:9"));
  EXPECT_THAT(script, HasSubstr("set output 'phi.svg'"));
  EXPECT_THAT(script, HasSubstr("$run1 using 1:10"));
  EXPECT_THAT(script, Not(HasSubstr("$run0 using 3:7")));
}

TEST(Plots, DrawWhatIsAskedFor) {
  RecordedRun without;
  without.rows.resize(1);
  RecordedRun with = without;
  with.rows[0].extra = {{"consensus_error_nu", 0.25}, {"gradient_error", 2}};
  const RecordedRun runs[] = {without, with};
  const std::string script = PlotScript(runs);
  EXPECT_THAT(script, HasSubstr("0 0 0 0 0 0 ? ? ? ? ? ?\n"));
  EXPECT_THAT(script, HasSubstr("0 0 0 0 0 0 ? ? ? ? 0.25 2\n"));
  EXPECT_THAT(script, HasSubstr("set output 'consensus_error_nu.png'\n"
                                "set logscale y"));
  EXPECT_THAT(script, HasSubstr("set ylabel 'mean |nu_i - mean nu|^2'"));
  EXPECT_THAT(script, HasSubstr("$run1 using 3:11"));
  EXPECT_THAT(script, HasSubstr("set output 'gradient_error.svg'"));
  EXPECT_THAT(script, HasSubstr("$run1 using 1:12"));
  EXPECT_THAT(script, Not(HasSubstr("$run0 using 1:12")));
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
