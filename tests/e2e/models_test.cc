// Models as people bring them: batch normalisation with a last batch of one
// row, frozen parts, regressions.
#include <cmath>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/daemon_process.h"

namespace dfl::testing_support {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

class Models : public testing::Test {
 protected:
  DaemonProcess::Options Node(const std::string& name, int64_t rows) const {
    DaemonProcess::Options options;
    options.name = name;
    options.folder = folder_.path();
    options.train_csv = folder_.File(name + ".csv");
    WriteBlobs(options.train_csv, rows, 4, 3, 1);
    return options;
  }

  std::string MakeNet(const std::string& kind) const {
    std::string path = folder_.File("net.pt");
    const Outcome made =
        RunCommand({Program("make_torchscript"), path, "4", "3", kind});
    EXPECT_EQ(made.exit_code, 0) << made.err;
    return path;
  }

  static std::string Plan(const std::string& members, const std::string& model,
                          int64_t steps) {
    return absl::StrCat("run: models\nseed: 5\nversion: 1\nmembers: ", members,
                        "\nmodel: ", model,
                        "\nalgorithm: {name: d-psgd, knobs: {eta: 0.05}}\n"
                        "topology: {kind: complete}\n"
                        "codec: {coordinates: dense, values: fp32}\n"
                        "batch_size: 32\nstop: {steps: ",
                        steps, "}\n");
  }

  static absl::Status Run(DaemonProcess& daemon, const std::string& plan) {
    absl::Status status =
        daemon.client().ApplyPlan({plan, std::nullopt, false}).status();
    if (status.ok()) {
      status = daemon.client().Train(client::TrainAction::kStart).status();
    }
    return status;
  }

  static bool Finishes(DaemonProcess& daemon) {
    return daemon.StatusBecomes(
        absl::Seconds(60), [](const client::NodeStatus& status) {
          return status.phase == client::Phase::kFinished;
        });
  }

  // Name by name, of the exported TorchScript.
  std::map<std::string, std::vector<float>> Exported(DaemonProcess& daemon) {
    const std::string path = folder_.File("exported.pt");
    const Outcome exported = RunCommand({Program("dflctl"), "model", "export",
                                         path, "--target", daemon.target()});
    EXPECT_EQ(exported.exit_code, 0) << exported.err;
    const Outcome printed =
        RunCommand({Program("make_torchscript"), "--values", path});
    EXPECT_EQ(printed.exit_code, 0) << printed.err;
    std::map<std::string, std::vector<float>> values;
    std::istringstream lines(printed.out);
    std::string line;
    while (std::getline(lines, line)) {
      std::istringstream words(line);
      std::string name;
      std::string word;
      words >> name;
      while (words >> word) values[name].push_back(std::stof(word));
    }
    return values;
  }

  TemporaryFolder folder_;
};

TEST_F(Models, ALastBatchOfOneRowSpoilsNoBatchNormalisation) {
  const std::string plan =
      Plan("[a, b]",
           absl::StrCat("{kind: torchscript, classes: 3, path: \"",
                        MakeNet("batch-norm"), "\"}"),
           200);
  DaemonProcess a(Node("a", 33));
  ASSERT_TRUE(a.Start()) << a.log();
  DaemonProcess::Options options = Node("b", 64);
  options.peers = {a.peer_address()};
  DaemonProcess b(std::move(options));
  ASSERT_TRUE(b.Start()) << b.log();
  ASSERT_TRUE(Run(a, plan).ok()) << a.log();
  ASSERT_TRUE(Run(b, plan).ok()) << b.log();
  ASSERT_TRUE(Finishes(a)) << a.log();
  ASSERT_TRUE(Finishes(b)) << b.log();
  for (DaemonProcess* node : {&a, &b}) {
    EXPECT_EQ(node->Status().step, 200);
    for (const auto& [name, values] : Exported(*node)) {
      for (const float value : values) {
        EXPECT_TRUE(std::isfinite(value)) << name;
      }
    }
  }
}

TEST_F(Models, AFrozenPartKeepsItsStatistics) {
  DaemonProcess a(Node("a", 60));
  ASSERT_TRUE(a.Start()) << a.log();
  ASSERT_TRUE(
      Run(a, Plan("[a]",
                  absl::StrCat("{kind: torchscript, classes: 3, path: \"",
                               MakeNet("frozen"), "\"}"),
                  50))
          .ok())
      << a.log();
  ASSERT_TRUE(Finishes(a)) << a.log();
  const auto values = Exported(a);
  EXPECT_THAT(values.at("backbone.norm.running_mean"), Each(0.0F));
  EXPECT_THAT(values.at("backbone.norm.running_var"), Each(1.0F));
  EXPECT_THAT(values.at("backbone.norm.num_batches_tracked"), Each(0.0F));
}

TEST_F(Models, ARegressionOfAnyKindRuns) {
  DaemonProcess::Options options = Node("a", 60);
  options.data_yaml = absl::StrCat(
      "data:\n  format: csv\n  header: no\n  task: regression\n"
      "  train: {paths: [\"",
      options.train_csv, "\"]}\n  test: {paths: [\"", options.train_csv,
      "\"]}\n");
  DaemonProcess a(std::move(options));
  ASSERT_TRUE(a.Start()) << a.log();
  const std::string plan =
      Plan("[a]", "{kind: mlp, hidden: [8], classes: 0, loss: huber}", 30);
  const std::string file = folder_.File("plan.yaml");
  WriteFile(file, plan);
  EXPECT_EQ(RunCommand({Program("dflctl"), "plan", "validate", file}).exit_code,
            0);
  ASSERT_TRUE(Run(a, plan).ok()) << a.log();
  ASSERT_TRUE(Finishes(a)) << a.log();
  const client::NodeStatus status = a.Status();
  EXPECT_EQ(status.step, 30);
}

TEST_F(Models, OneThatNeedsTwoRowsIsRefusedWhereThereIsOne) {
  DaemonProcess a(Node("a", 1));
  ASSERT_TRUE(a.Start()) << a.log();
  const absl::Status refused =
      Run(a, Plan("[a]",
                  absl::StrCat("{kind: torchscript, classes: 3, path: \"",
                               MakeNet("batch-norm"), "\"}"),
                  10));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("one training row"));
}

}  // namespace
}  // namespace dfl::testing_support
