// The files of deploy/ cannot get out of step with the code.
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "daemon/config/configuration_page.h"
#include "daemon/config/daemon_command_line.h"
#include "daemon/config/node_settings.h"
#include "daemon/config/plan_yaml.h"
#include "daemon/config/sample_configuration.h"
#include "daemon/config/settings_table.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dfl::config {
namespace {

std::string Deployed(const std::string& name) {
  const absl::StatusOr<std::string> text =
      ReadTextFile(absl::StrCat(DFL_DEPLOY_DIR, "/", name), 1 << 20);
  EXPECT_TRUE(text.ok()) << text.status();
  return text.ok() ? *text : "";
}

TEST(SampleConfiguration, IsTheFileInDeploy) {
  if (std::getenv("DFL_UPDATE_SAMPLE") != nullptr) {
    std::ofstream(absl::StrCat(DFL_DEPLOY_DIR, "/dfld.yaml"))
        << SampleConfiguration();
  }
  EXPECT_EQ(Deployed("dfld.yaml"), SampleConfiguration())
      << "run this test with DFL_UPDATE_SAMPLE=1 to write deploy/dfld.yaml";
}

TEST(ConfigurationPage, IsTheFileInDocs) {
  const std::string path = DFL_DOCS_DIR "/configuration.md";
  if (std::getenv("DFL_UPDATE_SAMPLE") != nullptr) {
    std::ofstream(path) << ConfigurationPage();
  }
  const absl::StatusOr<std::string> text = ReadTextFile(path, 1 << 20);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(*text, ConfigurationPage())
      << "run this test with DFL_UPDATE_SAMPLE=1 to write "
         "docs/configuration.md";
}

TEST(ConfigurationPage, HasARowForEveryKey) {
  const std::string page = ConfigurationPage();
  for (const Setting& setting : SettingsTable()) {
    EXPECT_THAT(page,
                testing::HasSubstr(absl::StrCat("\n| `", setting.key, "` | ")));
  }
  // Each row has its four cells, whatever a help text contains.
  for (const absl::string_view line : absl::StrSplit(page, '\n')) {
    if (!absl::StartsWith(line, "| `")) continue;
    const std::vector<std::string> cells = absl::StrSplit(line, " | ");
    EXPECT_TRUE(cells.size() == 4 || cells.size() == 2) << line;
  }
}

TEST(SampleConfiguration, NamesEveryKeyWithHelpAndDefault) {
  const std::string sample = SampleConfiguration();
  const NodeSettings defaults;
  for (const Setting& setting : SettingsTable()) {
    const std::string name =
        setting.key.substr(setting.key.find_last_of('.') + 1);
    EXPECT_THAT(sample, testing::HasSubstr(absl::StrCat(
                            "#", name, ": ", setting.get(defaults), "\n")));
  }
  for (const absl::string_view line : absl::StrSplit(sample, '\n')) {
    EXPECT_LE(line.size(), 80u) << line;
  }
}

// Both as it is, and with every commented key made live.
TEST(SampleConfiguration, LoadsAndMeansTheDefaults) {
  std::string live;
  for (absl::string_view line : absl::StrSplit(SampleConfiguration(), '\n')) {
    const size_t mark = line.find('#');
    const bool key = mark != absl::string_view::npos &&
                     mark + 1 < line.size() && line[mark + 1] >= 'a' &&
                     line[mark + 1] <= 'z';
    if (key && !absl::EndsWith(line, "name: \"\"")) {
      absl::StrAppend(&live, line.substr(0, mark), line.substr(mark + 1), "\n");
    } else {
      absl::StrAppend(&live, line, "\n");
    }
  }
  for (const std::string& text : {SampleConfiguration(), live}) {
    SettingsSources sources;
    sources.host_name = "host-1";
    sources.files.push_back({"dfld.yaml", text});
    const absl::StatusOr<LoadedSettings> loaded = LoadNodeSettings(sources);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    NodeSettings defaults;
    defaults.name = "host-1";
    for (const Setting& setting : SettingsTable()) {
      EXPECT_EQ(setting.get(loaded->settings), setting.get(defaults))
          << setting.key;
    }
  }
}

TEST(ExamplePlan, IsAValidPlan) {
  const absl::StatusOr<core::RunPlan> plan =
      ParsePlan(Deployed("plan.example.yaml"), "plan.example.yaml");
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->algorithm.name, "pame");
  EXPECT_TRUE(plan->run_id.empty());
}

// Every key of a plan is explained in the example, live or commented out.
TEST(ExamplePlan, NamesEveryKey) {
  const std::string text = Deployed("plan.example.yaml");
  for (const char* key : {"version",
                          "run",
                          "seed",
                          "participants",
                          "rows",
                          "model",
                          "kind",
                          "classes",
                          "input",
                          "hidden",
                          "dropout",
                          "path",
                          "loss",
                          "l2",
                          "data",
                          "task",
                          "features",
                          "shape",
                          "divide",
                          "standardise",
                          "per",
                          "over",
                          "mean",
                          "std",
                          "batch_size",
                          "algorithm",
                          "knobs",
                          "nu",
                          "p",
                          "kappa",
                          "sigma0",
                          "gamma",
                          "extra_asked",
                          "lookahead",
                          "topology",
                          "edge_probability",
                          "degree",
                          "radius",
                          "edges",
                          "edge_sets",
                          "directed",
                          "every",
                          "weights",
                          "matrix",
                          "codec",
                          "coordinates",
                          "values",
                          "rate",
                          "evaluation",
                          "every_steps",
                          "examples",
                          "stop",
                          "steps",
                          "time",
                          "optimizer",
                          "momentum",
                          "beta1",
                          "beta2",
                          "epsilon",
                          "weight_decay",
                          "clip_norm",
                          "fresh_each_round",
                          "schedule",
                          "warmup",
                          "length",
                          "floor",
                          "factor",
                          "rounds",
                          "epochs",
                          "loss_below",
                          "accuracy_above",
                          "deadline",
                          "exchange",
                          "nodes"}) {
    EXPECT_THAT(text, testing::HasSubstr(absl::StrCat(key, ":"))) << key;
  }
}

}  // namespace
}  // namespace dfl::config
