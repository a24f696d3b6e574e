// Nodes that learn together agree on what their numbers mean, or are refused
// before they learn: real daemons, with data that differ in one thing each. And
// one plan file is one run, however it comes to the nodes.
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/daemon_process.h"

namespace dfl::testing_support {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kPlan[] =
    "members: [a, b]\n"
    "seed: 7\n"
    "model: {kind: logistic}\n"
    "algorithm: {name: d-psgd, knobs: {eta: 0.05}}\n"
    "codec: {coordinates: dense, values: fp32}\n"
    "batch_size: 16\n"
    "evaluation: {every_steps: 50, examples: 0}\n"
    "stop: {steps: 400}\n";

// Rows of three numbers, the class's own one large, in columns `names` from
// left to right, with the class last as `labels` spell it. A header unless
// `names` is empty.
void WriteRows(const std::string& path, const std::vector<std::string>& names,
               const std::vector<std::string>& labels,
               const std::vector<int>& classes, int rows) {
  std::ofstream out(path);
  for (const std::string& name : names) out << name << ",";
  if (!names.empty()) out << "y\n";
  for (int r = 0; r < rows; ++r) {
    const int c = classes[static_cast<size_t>(r) % classes.size()];
    for (int f = 0; f < 3; ++f) {
      const int feature = names.empty() ? f : names[f].back() - '0';
      const double noise = ((r * 7 + feature * 3) % 11 - 5) / 10.0;
      out << (feature == c ? 3.0 : 0.0) + noise << ",";
    }
    out << labels[static_cast<size_t>(c)] << "\n";
  }
}

class Contract : public testing::Test {
 protected:
  void TearDown() override {
    if (!HasFailure()) return;
    for (const auto& node : nodes_) std::cerr << "---- log\n" << node->log();
  }

  std::string File(const std::string& name) const { return folder_.File(name); }

  // Starts a node with this data section; it dials those before it.
  DaemonProcess& Start(const std::string& name, const std::string& data,
                       const std::string& extra_yaml = "") {
    return StartIn("", name, data, extra_yaml);
  }
  // The same, with `folder` of the test's folder as its working directory.
  DaemonProcess& StartIn(const std::string& folder, const std::string& name,
                         const std::string& data,
                         const std::string& extra_yaml = "") {
    DaemonProcess::Options options;
    if (!folder.empty()) {
      options.wrapper = {"/usr/bin/env", "--chdir=" + File(folder)};
    }
    options.name = name;
    options.folder = folder_.path();
    options.data_yaml = absl::StrCat(
        "data: ", absl::StrReplaceAll(data, {{"{}", folder_.path()}}), "\n");
    options.extra_yaml = extra_yaml;
    for (const auto& node : nodes_) {
      options.peers.push_back(node->peer_address());
    }
    nodes_.push_back(std::make_unique<DaemonProcess>(options));
    EXPECT_TRUE(nodes_.back()->Start()) << nodes_.back()->log();
    return *nodes_.back();
  }
  DaemonProcess& node(size_t i) { return *nodes_[i]; }
  // Ends the last node.
  void DropLast() {
    EXPECT_TRUE(nodes_.back()->Stop().has_value());
    nodes_.pop_back();
  }

  static Outcome Dflctl(std::vector<std::string> arguments,
                        const std::vector<DaemonProcess*>& targets) {
    arguments.insert(arguments.begin(), Program("dflctl"));
    for (const DaemonProcess* target : targets) {
      arguments.insert(arguments.end(), {"--target", target->target()});
    }
    return RunCommand(arguments, {}, absl::Seconds(60));
  }
  std::vector<DaemonProcess*> All() {
    std::vector<DaemonProcess*> all;
    for (const auto& node : nodes_) all.push_back(node.get());
    return all;
  }
  Outcome Apply(const std::string& plan, std::vector<std::string> more = {}) {
    return ApplyAt(All(), plan, std::move(more));
  }
  Outcome ApplyAt(const std::vector<DaemonProcess*>& targets,
                  const std::string& plan, std::vector<std::string> more = {}) {
    WriteFile(File("plan.yaml"), plan);
    more.insert(more.begin(), {"plan", "apply", File("plan.yaml")});
    return Dflctl(std::move(more), targets);
  }

  // Trains to the end; the accuracy of node a.
  double TrainedAccuracy() {
    EXPECT_EQ(Dflctl({"train", "start"}, All()).exit_code, 0);
    for (const auto& node : nodes_) {
      EXPECT_TRUE(node->StatusBecomes(
          absl::Seconds(120), [](const client::NodeStatus& status) {
            return status.phase == client::Phase::kFinished;
          }));
      EXPECT_GT(node->Status().models_received, 0);
    }
    const client::NodeStatus status = node(0).Status();
    if (!status.evaluation.has_value()) return 0;
    return status.evaluation->accuracy.value_or(0);
  }

  void ExpectRefused(const std::string& plan, const std::string& field,
                     const std::string& first, const std::string& second) {
    SCOPED_TRACE(field);
    const Outcome refused = Apply(plan);
    EXPECT_EQ(refused.exit_code, 1);
    EXPECT_THAT(refused.err,
                AllOf(HasSubstr("nothing was applied"),
                      HasSubstr("dflctl: " + field + ": "), HasSubstr(first),
                      HasSubstr(second), HasSubstr("to mend it, set")));
    for (const auto& node : nodes_) {
      const auto held = node->client().Plan();
      ASSERT_TRUE(held.ok()) << held.status();
      EXPECT_EQ(held->version, 0u);
    }
  }

  TemporaryFolder folder_;
  std::vector<std::unique_ptr<DaemonProcess>> nodes_;
};

constexpr char kCsv[] =
    "{format: csv, label_column: y, train: {paths: [\"{}/a.csv\"]}, test: "
    "{paths: [\"{}/test.csv\"]}}";
constexpr char kOther[] =
    "{format: csv, label_column: y, train: {paths: [\"{}/b.csv\"]}}";

TEST_F(Contract, EachFieldInWhichTwoNodesDifferIsRefusedAtApply) {
  const std::vector<std::string> names = {"x0", "x1", "x2"};
  const std::vector<std::string> labels = {"0", "1", "2"};
  const std::vector<int> classes = {0, 1, 2};
  WriteRows(File("a.csv"), names, labels, classes, 60);
  WriteRows(File("test.csv"), names, labels, classes, 60);
  WriteRows(File("b.csv"), names, labels, classes, 60);
  WriteRows(File("c.csv"), {"x0", "x1", "z2"}, labels, classes, 60);
  Start("a",
        absl::StrReplaceAll(kCsv, {{"{format",
                                    "{label_values: [\"0\", \"1\", \"2\"], "
                                    "format"}}));
  const auto with = [](const std::string& settings) {
    return absl::StrReplaceAll(kOther,
                               {{"{format", "{" + settings + ", format"}});
  };

  Start("b", with("task: regression"));
  // A kind that does both.
  ExpectRefused(absl::StrReplaceAll(
                    kPlan, {{"kind: logistic", "kind: mlp, hidden: [4]"}}),
                "task", "a says classification", "b says regression");
  DropLast();

  Start("b", with("label_values: [\"2\", \"1\", \"0\"]"));
  ExpectRefused(kPlan, "classes", "a says [\"0\", \"1\", \"2\"]",
                "b says [\"2\", \"1\", \"0\"]");
  DropLast();

  Start("b", absl::StrReplaceAll(kOther, {{"b.csv", "c.csv"}}));
  ExpectRefused(kPlan, "features", "a says [\"x0\", \"x1\", \"x2\"]",
                "b says [\"x0\", \"x1\", \"z2\"]");
  DropLast();

  Start("b", with("standardise: {per: feature}"));
  ExpectRefused(kPlan, "input", "standardise: none",
                "standardise: feature, over: node");
  DropLast();

  // The shape alone: the same numbers, as a row and as an image.
  Start("b", with("shape: [1, 1, 3]"));
  ExpectRefused(kPlan, "shape", "a says [3]", "b says [1, 1, 3]");
  DropLast();

  // The model alone: other code under the same path, which is below the folder
  // in which each daemon was started.
  for (const std::string name : {"a", "b"}) {
    std::filesystem::create_directory(File(name + ".box"));
  }
  ASSERT_EQ(
      RunCommand({Program("make_torchscript"), File("a.box/m.pt"), "3", "3"},
                 {}, absl::Seconds(60))
          .exit_code,
      0);
  ASSERT_EQ(RunCommand({Program("make_torchscript"), File("b.box/m.pt"), "3",
                        "3", "endless"},
                       {}, absl::Seconds(60))
                .exit_code,
            0);
  nodes_.clear();
  StartIn("a.box", "a", kCsv);
  StartIn("b.box", "b", kOther);
  ExpectRefused(absl::StrReplaceAll(kPlan, {{"kind: logistic",
                                             "kind: torchscript, path: m.pt"}}),
                "model", "a says ", "b says ");
}

TEST_F(Contract, MeanAndStdOverTheNetworkAreTheSameOnAllNodes) {
  const std::vector<std::string> names = {"x0", "x1", "x2"};
  const std::vector<std::string> labels = {"0", "1", "2"};
  WriteRows(File("a.csv"), names, labels, {0, 1}, 90);
  WriteRows(File("b.csv"), names, labels, {1, 2}, 60);
  WriteRows(File("test.csv"), names, labels, {0, 1, 2}, 60);
  const auto over_network = [](const std::string& data) {
    return absl::StrReplaceAll(
        data,
        {{"{format", "{standardise: {per: feature, over: network}, format"}});
  };
  Start("a", over_network(kCsv));
  Start("b", over_network(kOther));
  const Outcome applied = Apply(kPlan);
  ASSERT_EQ(applied.exit_code, 0) << applied.err;
  EXPECT_THAT(applied.err, AllOf(HasSubstr("+     over: network"),
                                 HasSubstr("+     mean: [")));
  const auto a = node(0).client().Data("");
  const auto b = node(1).client().Data("");
  ASSERT_TRUE(a.ok() && b.ok()) << a.status() << b.status();
  ASSERT_TRUE(a->contract.has_value() && b->contract.has_value());
  EXPECT_EQ(a->contract->input.mean.size(), 3u);
  EXPECT_EQ(a->contract->input.mean, b->contract->input.mean);
  EXPECT_EQ(a->contract->input.std, b->contract->input.std);
  EXPECT_GE(TrainedAccuracy(), 0.9);
}

TEST_F(Contract, OnePlanFileIsOneRunHoweverItComes) {
  const std::vector<std::string> names = {"x0", "x1", "x2"};
  const std::vector<std::string> labels = {"0", "1", "2"};
  WriteRows(File("a.csv"), names, labels, {0, 1, 2}, 90);
  WriteRows(File("b.csv"), names, labels, {0, 1, 2}, 90);
  WriteRows(File("test.csv"), names, labels, {0, 1, 2}, 60);
  const std::string plan = absl::StrReplaceAll(
      kPlan, {{"[a, b]", "[a, b, c]"},
              {"seed: 7\n", ""},
              {"kind: logistic", "kind: logistic, classes: 3"}});
  WriteFile(File("settings-plan.yaml"), plan);
  // a and b one after the other, c by its settings.
  Start("a", kCsv);
  Start("b", kOther);
  Start("c", kOther,
        absl::StrCat("run: {plan: \"", File("settings-plan.yaml"), "\"}\n"));
  ASSERT_EQ(ApplyAt({&node(0)}, plan).exit_code, 0);
  ASSERT_EQ(ApplyAt({&node(1)}, plan).exit_code, 0);
  const client::NodeStatus first = node(0).Status();
  EXPECT_NE(first.run_id, "");
  for (size_t i = 1; i < 3; ++i) {
    EXPECT_TRUE(node(i).StatusBecomes(absl::Seconds(10),
                                      [&](const client::NodeStatus& status) {
                                        return status.run_id == first.run_id;
                                      }));
    EXPECT_EQ(node(i).Status().contract, first.contract);
  }
  EXPECT_GE(TrainedAccuracy(), 0.9);
}

TEST_F(Contract, ShowTellsWhatANodeUnderstood) {
  const std::vector<std::string> names = {"x0", "x1", "x2"};
  WriteRows(File("a.csv"), names, {"cat", "dog", "fox"}, {0, 1, 2}, 90);
  WriteRows(File("test.csv"), names, {"cat", "dog", "fox"}, {0, 1}, 60);
  Start("a", kCsv);
  const Outcome shown = Dflctl({"data", "show", "-o", "json"}, All());
  ASSERT_EQ(shown.exit_code, 0) << shown.err;
  const json data = json::parse(shown.out)["targets"][0]["data"];
  EXPECT_EQ(data["node"], "a");
  EXPECT_EQ(data["train_rows"], 90);
  EXPECT_EQ(data["test_rows"], 60);
  EXPECT_EQ(data["offer"]["features"], json({"x0", "x1", "x2"}));
  ASSERT_EQ(data["classes"].size(), 3u);
  EXPECT_EQ(data["classes"][2]["name"], "fox");
  EXPECT_EQ(data["classes"][2]["train_rows"], 30);
  EXPECT_EQ(data["classes"][2]["test_rows"], 0);
  EXPECT_EQ(data["features"].size(), 3u);
  EXPECT_THAT(Dflctl({"data", "show"}, All()).out,
              HasSubstr("fox       30     0"));
}

}  // namespace
}  // namespace dfl::testing_support
