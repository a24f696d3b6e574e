// The folders of cases/: data and settings that people met, fed to real daemons
// as they are. What is right is said in each folder's README.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/daemon_process.h"

namespace dfl::testing_support {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kOk = 0;
constexpr int kRefused = 1;
constexpr int kTrainingFailed = 9;
constexpr int kConfig = 78;

// Most of a case is the start of its daemons: several at the same time.
void AtTheSameTime(const std::vector<std::function<void()>>& parts) {
  std::vector<std::thread> threads;
  threads.reserve(parts.size());
  for (const auto& part : parts) threads.emplace_back(part);
  for (std::thread& thread : threads) thread.join();
}

std::string Path() {
  const char* path = std::getenv("PATH");
  return path == nullptr ? "/usr/bin:/bin" : path;
}

// A copy of one folder of cases/, the daemons of its a.yaml and b.yaml, and
// dflctl with all of them as targets. A is to start before b, which dials it.
class Case {
 public:
  explicit Case(const std::string& name) : name_(name) {
    const std::filesystem::path from = std::filesystem::path(DFL_CASES) / name;
    EXPECT_TRUE(std::filesystem::is_directory(from)) << from;
    std::filesystem::copy(from, folder_.path(),
                          std::filesystem::copy_options::recursive);
  }
  ~Case() {
    if (!testing::Test::HasFailure()) return;
    for (const auto& [name, node] : nodes_) {
      std::cerr << "---- log of " << name_ << ": " << name << "\n"
                << node->log();
    }
  }
  Case(const Case&) = delete;
  Case& operator=(const Case&) = delete;

  std::string File(const std::string& name) const { return folder_.File(name); }
  void Edit(const std::string& file, const std::string& from,
            const std::string& to) const {
    const std::string text = ReadFile(File(file));
    EXPECT_THAT(text, HasSubstr(from));
    WriteFile(File(file), absl::StrReplaceAll(text, {{from, to}}));
  }
  // Adds a setting to the data section of this node.
  void Set(const std::string& node, const std::string& setting) const {
    Edit(node + ".yaml", "\ndata:\n",
         absl::StrCat("\ndata:\n  ", setting, "\n"));
  }

  DaemonProcess& Start(const std::string& name) {
    nodes_.erase(name);
    DaemonProcess::Options options;
    options.name = name;
    options.folder = folder_.path();
    options.wrapper = {"/usr/bin/env", "--chdir=" + folder_.path()};
    options.whole_yaml = Settings(name);
    auto node = std::make_unique<DaemonProcess>(options);
    EXPECT_TRUE(node->Start()) << name_ << "\n" << node->log();
    return *(nodes_[name] = std::move(node));
  }
  void StartBoth() {
    Start("a");
    Start("b");
  }
  void Stop(const std::string& name) {
    EXPECT_TRUE(node(name).Stop().has_value());
    nodes_.erase(name);
  }
  DaemonProcess& node(const std::string& name) { return *nodes_.at(name); }

  Outcome Dflctl(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), Program("dflctl"));
    for (const auto& [name, node] : nodes_) {
      arguments.insert(arguments.end(), {"--target", node->target()});
    }
    return InFolder(std::move(arguments));
  }
  // plan.yaml, with `more` at its end.
  Outcome Apply(const std::string& more = "",
                std::vector<std::string> flags = {}) const {
    WriteFile(File("applied.yaml"), ReadFile(File("plan.yaml")) + more);
    flags.insert(flags.begin(), {"plan", "apply", File("applied.yaml")});
    return Dflctl(std::move(flags));
  }
  // dfld --check with the settings of this node.
  Outcome Check(const std::string& name) const {
    WriteFile(File("checked.yaml"), Settings(name));
    return InFolder(
        {Program("dfld"), "--config", File("checked.yaml"), "--check"});
  }
  // A script of the case, which finds the programs of this build first. Its
  // argument is the socket of a.
  Outcome RunScript(const std::string& script) const {
    const std::string programs =
        std::filesystem::path(Program("dflctl")).parent_path();
    return RunCommand({"/bin/sh", script, File("a.sock")},
                      {{"PATH", absl::StrCat(programs, ":", Path())}},
                      absl::Seconds(120));
  }

  // Trains to the end; true: all have finished.
  bool Train() const {
    const Outcome started = Dflctl({"train", "start"});
    EXPECT_EQ(started.exit_code, kOk) << name_ << ": " << started.err;
    const Outcome watched = Dflctl({"watch", "--until-finished"});
    EXPECT_EQ(watched.exit_code, kOk) << name_ << ": " << watched.err;
    return started.exit_code == kOk && watched.exit_code == kOk;
  }
  // Applies the plan, trains, and looks that all have learned together.
  void LearnTogether(const std::string& more = "",
                     const std::vector<std::string>& flags = {}) {
    SCOPED_TRACE(name_);
    const Outcome applied = Apply(more, flags);
    ASSERT_EQ(applied.exit_code, kOk) << applied.err;
    ASSERT_TRUE(Train());
    const client::NodeStatus first = node("a").Status();
    for (const auto& [name, daemon] : nodes_) {
      const client::NodeStatus status = daemon->Status();
      EXPECT_EQ(status.phase, client::Phase::kFinished);
      EXPECT_EQ(status.step, first.stop_steps);
      EXPECT_EQ(status.gradients, status.step);
      EXPECT_EQ(status.contract, first.contract);
      EXPECT_EQ(status.alone, "");
      EXPECT_GT(status.models_received, status.step / 2);
      ASSERT_EQ(status.peers.size(), nodes_.size() - 1);
      for (const client::PeerStatus& peer : status.peers) {
        EXPECT_TRUE(peer.mixing) << peer.not_mixing;
      }
    }
    EXPECT_THAT(Dflctl({"status"}).out, HasSubstr(" 1/1 "));
  }

  double Accuracy(const std::string& name) {
    const auto evaluation = node(name).Status().evaluation;
    if (!evaluation.has_value()) return 0;
    return evaluation->accuracy.value_or(0);
  }
  // What `dflctl data show` says of this node.
  json Data(const std::string& name) {
    const Outcome shown = InFolder({Program("dflctl"), "data", "show", "-o",
                                    "json", "--target", node(name).target()});
    EXPECT_EQ(shown.exit_code, kOk) << shown.err;
    return json::parse(shown.out)["targets"][0]["data"];
  }
  std::vector<std::string> Classes(const std::string& name) {
    return Data(name)["contract"]["classes"];
  }

  // The header of the model of a as safetensors.
  json ExportedHeader() {
    const std::string bytes = Exported("a.safetensors");
    uint64_t length = 0;
    if (bytes.size() < sizeof length) return {};
    std::memcpy(&length, bytes.data(), sizeof length);
    return json::parse(bytes.substr(sizeof length, length));
  }
  // The values of its TorchScript form, name by name.
  std::map<std::string, std::vector<float>> ExportedValues() {
    Exported("a.pt");
    const Outcome printed =
        RunCommand({Program("make_torchscript"), "--values", File("a.pt")});
    EXPECT_EQ(printed.exit_code, kOk) << printed.err;
    std::map<std::string, std::vector<float>> values;
    for (const absl::string_view line :
         absl::StrSplit(printed.out, '\n', absl::SkipEmpty())) {
      std::istringstream words((std::string(line)));
      std::string name;
      words >> name;
      for (std::string word; words >> word;) {
        values[name].push_back(std::stof(word));
      }
    }
    return values;
  }

 private:
  // The file of the folder, with paths and ports of this test.
  std::string Settings(const std::string& name) const {
    const auto a = nodes_.find("a");
    return absl::StrReplaceAll(
        ReadFile(File(name + ".yaml")),
        {{"$CASE", folder_.path()},
         {"listen: [\"127.0.0.1:27601\"], advertise: \"127.0.0.1:27601\"",
          "listen: [\"127.0.0.1:0\"]"},
         {"listen: [\"127.0.0.1:27602\"], advertise: \"127.0.0.1:27602\"",
          "listen: [\"127.0.0.1:0\"]"},
         {"127.0.0.1:27601",
          a == nodes_.end() ? "127.0.0.1:1" : a->second->peer_address()}});
  }
  Outcome InFolder(std::vector<std::string> command) const {
    command.insert(command.begin(),
                   {"/usr/bin/env", "--chdir=" + folder_.path()});
    return RunCommand(command, {{"OPENBLAS_NUM_THREADS", "1"}},
                      absl::Seconds(60));
  }
  std::string Exported(const std::string& file) {
    const Outcome exported =
        RunCommand({Program("dflctl"), "model", "export", File(file),
                    "--target", node("a").target()});
    EXPECT_EQ(exported.exit_code, kOk) << exported.err;
    return ReadFile(File(file));
  }

  const std::string name_;
  TemporaryFolder folder_;
  std::map<std::string, std::unique_ptr<DaemonProcess>> nodes_;
};

// ------------------------------------------------ one meaning of the data ----

TEST(Cases, ALabelIsTheSameClassOnAllNodes) {
  const auto learns = [](const std::string& name, double accuracy,
                         const std::vector<std::string>& classes,
                         const std::map<std::string, std::string>& edits_of_b) {
    SCOPED_TRACE(name);
    Case run(name);
    for (const auto& [from, to] : edits_of_b) run.Edit("b.csv", from, to);
    run.StartBoth();
    run.LearnTogether();
    EXPECT_GE(run.Accuracy("a"), accuracy);
    EXPECT_EQ(run.Classes("a"), classes);
    EXPECT_EQ(run.Classes("b"), classes);
  };
  AtTheSameTime({
      [&] { learns("01a_labels_1_to_3", 0.95, {"1", "2", "3"}, {}); },
      [&] { learns("01b_libsvm_one_label", 1, {"1", "2"}, {}); },
      [&] { learns("01c_text_labels", 0.98, {"cat", "dog", "fox"}, {}); },
  });
  // Other spellings on one node.
  AtTheSameTime({
      [&] {
        learns("01a_labels_1_to_3", 0.95, {"1", "2", "3"},
               {{",1\n", ",1.0\n"}, {",2\n", ",+2\n"}});
      },
      [&] { learns("27_true_false", 0, {"0", "1"}, {}); },
  });
}

TEST(Cases, TrueAndFalseAreNumbers) {
  Case run("27_true_false");
  const Outcome a = run.Check("a");
  const Outcome b = run.Check("b");
  EXPECT_EQ(a.exit_code, kOk) << a.err;
  EXPECT_THAT(a.out, AllOf(HasSubstr("feature 1 ('is_a'): 0 to 1"),
                           HasSubstr("training: 30 rows")));
  // The same rows in upper case, but for the spelling of the labels.
  EXPECT_EQ(absl::StrReplaceAll(
                b.out, {{"FALSE                ", "0                    "},
                        {"TRUE                 ", "1                    "}}),
            a.out);
}

TEST(Cases, ColumnsAreMatchedByName) {
  Case run("14_column_order");
  AtTheSameTime({
      [&] {
        run.Edit("a.yaml", "[test.csv]", "[test2.csv]");
        run.StartBoth();
        run.LearnTogether();
        EXPECT_GE(run.Accuracy("a"), 0.9);
        EXPECT_EQ(run.Data("b")["contract"]["features"],
                  json({"age", "bp", "sugar"}));
      },
      [&] {
        // A column is missing in the test file.
        Case other("14_column_order");
        std::string narrow;
        for (const absl::string_view line : absl::StrSplit(
                 ReadFile(other.File("test.csv")), '\n', absl::SkipEmpty())) {
          std::vector<std::string> fields = absl::StrSplit(line, ',');
          fields.erase(fields.begin() + 1);
          absl::StrAppend(&narrow, absl::StrJoin(fields, ","), "\n");
        }
        WriteFile(other.File("test.csv"), narrow);
        const Outcome refused = other.Check("a");
        EXPECT_EQ(refused.exit_code, kConfig);
        EXPECT_THAT(refused.err,
                    AllOf(HasSubstr("test.csv"), HasSubstr("without 'bp'"),
                          HasSubstr("data.drop_columns")));
      },
  });
}

TEST(Cases, WidthsThatDifferAreRefusedAtApply) {
  Case run("12_libsvm_width");
  AtTheSameTime({
      [&] {
        run.StartBoth();
        const Outcome refused = run.Apply();
        EXPECT_EQ(refused.exit_code, kRefused);
        EXPECT_THAT(
            refused.err,
            AllOf(HasSubstr("shape: a says [8] at least, b says [7] at least"),
                  HasSubstr("data.features"),
                  HasSubstr("nothing was applied")));
        EXPECT_NE(run.Dflctl({"train", "start"}).exit_code, kOk);
        run.LearnTogether("data: {shape: [8]}\n");
      },
      [] {
        // Labels alone.
        Case other("12_libsvm_width");
        WriteFile(other.File("b.svm"), "0\n1\n2\n");
        const Outcome refused = other.Check("b");
        EXPECT_EQ(refused.exit_code, kConfig);
        EXPECT_THAT(refused.err,
                    AllOf(HasSubstr("b.svm"), HasSubstr("no row has a feature"),
                          HasSubstr("data.features")));
      },
  });
}

// An array of floats as NumPy writes it.
void WriteFloats(const std::string& path, const std::string& shape,
                 const std::vector<float>& values) {
  std::string header = absl::StrCat(
      "{'descr': '<f4', 'fortran_order': False, 'shape': ", shape, ", }");
  header.resize(117, ' ');
  header += "\n";
  std::string bytes = absl::StrCat("\x93NUMPY\x01", std::string(1, '\0'),
                                   std::string(1, static_cast<char>(118)),
                                   std::string(1, '\0'), header);
  bytes.append(reinterpret_cast<const char*>(values.data()),
               values.size() * sizeof(float));
  WriteFile(path, bytes);
}

TEST(Cases, BytesAndFloatsAreScaledAlikeOrRefused) {
  const auto between_files = [] {
    Case files("08_bytes_and_floats");
    files.Edit("a.yaml", "test: {paths: [u.npz]}", "test: {paths: [f.npz]}");
    const Outcome refused = files.Check("a");
    EXPECT_EQ(refused.exit_code, kConfig);
    EXPECT_THAT(refused.err, AllOf(HasSubstr("f.npz"), HasSubstr("u.npz"),
                                   HasSubstr("data.divide: 255")));
    files.Set("a", "divide: 255");
    const Outcome mended = files.Check("a");
    EXPECT_EQ(mended.exit_code, kOk) << mended.err;
  };
  const auto between_nodes = [] {
    Case run("08_bytes_and_floats");
    run.StartBoth();
    const Outcome refused = run.Apply();
    EXPECT_EQ(refused.exit_code, kRefused);
    EXPECT_THAT(
        refused.err,
        AllOf(HasSubstr("input: a says {divide: 255, "),
              HasSubstr("b says {divide: 1, "), HasSubstr("data.divide"),
              HasSubstr("the data of b: all features lie in 0 to 255 "
                        "and are not divided")));
    run.LearnTogether("data: {divide: 255}\n");
    EXPECT_GE(run.Accuracy("a"), 0.95);
    EXPECT_GE(run.Accuracy("b"), 0.95);

    // Floats that were divided before, in another file.
    run.Stop("b");
    std::vector<float> values;
    std::vector<float> labels;
    for (int i = 0; i < 60 * 64; ++i) {
      values.push_back(static_cast<float>(i % 256) / 255);
    }
    for (int i = 0; i < 60; ++i) labels.push_back(static_cast<float>(i % 3));
    WriteFloats(run.File("x.npy"), "(60, 1, 8, 8)", values);
    WriteFloats(run.File("y.npy"), "(60,)", labels);
    run.Edit("b.yaml", "format: npz", "format: npy");
    run.Edit("b.yaml", "[f.npz]", "[x.npy, y.npy]");
    run.Start("b");
    const Outcome again = run.Apply("", {"--new-run", "--dry-run"});
    EXPECT_EQ(again.exit_code, kRefused);
    EXPECT_THAT(again.err, AllOf(HasSubstr("a says {divide: 255, "),
                                 HasSubstr("b says {divide: 1, ")));
    const Outcome stated =
        run.Apply("data: {divide: 255}\n", {"--new-run", "--dry-run"});
    EXPECT_EQ(stated.exit_code, kRefused);
    EXPECT_THAT(stated.err, AllOf(HasSubstr("the plan says {divide: 255}"),
                                  HasSubstr("b says {divide: 1, ")));
    run.Set("b", "divide: 255");
    EXPECT_THAT(run.Check("b").out,
                HasSubstr("warning: all features lie in 0 to 1 and are divided "
                          "by 255"));
  };
  AtTheSameTime({between_files, between_nodes});
}

// ------------------------------------------------------ files as they are ----

TEST(Cases, AnIndexColumnIsWarnedOf) {
  Case run("15_index_column");
  const Outcome check = run.Check("a");
  EXPECT_EQ(check.exit_code, kOk) << check.err;
  EXPECT_THAT(check.out, AllOf(HasSubstr("warning: a.csv: column 0 has no name "
                                         "and counts the rows"),
                               HasSubstr("data.drop_columns: [\"0\"]")));
  run.Set("a", "drop_columns: [\"0\"]");
  EXPECT_THAT(run.Check("a").out, Not(HasSubstr("warning: ")));
  run.Start("a");
  ASSERT_EQ(run.Apply().exit_code, kOk);
  ASSERT_TRUE(run.Train());
  EXPECT_GE(run.Accuracy("a"), 0.98);
}

TEST(Cases, CommentLinesOfLibsvmAreSkipped) {
  const Outcome check = Case("18_comment_lines").Check("a");
  EXPECT_EQ(check.exit_code, kOk) << check.err;
  EXPECT_THAT(check.out,
              AllOf(HasSubstr("training: 30 rows"), HasSubstr("classes:  3")));
}

TEST(Cases, LibsvmThatCountsFromZeroIsNeverShiftedInSilence) {
  const auto file_that_shows_it = [] {
    Case run("19_zero_based");
    run.Edit("a.yaml", "[a.svm]", "[a0.svm]");
    const Outcome refused = run.Check("a");
    EXPECT_EQ(refused.exit_code, kConfig);
    EXPECT_THAT(refused.err,
                AllOf(HasSubstr("a0.svm: line 1, column 3"),
                      HasSubstr("index 0"), HasSubstr("data.index_base: 0")));
    run.Set("a", "index_base: 0");
    run.Edit("a.yaml", "[test.svm]", "[a0.svm]");
    const Outcome mended = run.Check("a");
    EXPECT_EQ(mended.exit_code, kOk) << mended.err;
    EXPECT_THAT(mended.out, HasSubstr("feature 0: -7.45729 to 4.12119"));
  };
  const auto file_that_does_not = [] {
    Case run("19_zero_based");
    run.StartBoth();
    const Outcome warned = run.Apply("", {"--dry-run"});
    EXPECT_EQ(warned.exit_code, kOk) << warned.err;
    EXPECT_THAT(warned.err, AllOf(HasSubstr("warning: the data of b: b.svm: "
                                            "indices go from 1 to 5 where "
                                            "data.features is 6"),
                                  HasSubstr("data.index_base: 0")));
    EXPECT_THAT(run.node("b").log(), HasSubstr("data.index_base: 0"));
    run.Stop("b");
    run.Set("b", "index_base: 0");
    run.Start("b");
    EXPECT_THAT(run.Apply("", {"--dry-run"}).err,
                Not(HasSubstr("data.index_base")));
    run.LearnTogether();
    EXPECT_GE(run.Accuracy("a"), 0.95);
  };
  AtTheSameTime({file_that_shows_it, file_that_does_not});
}

// --------------------------------------------------------------- training ----

void NoGradientIsFinite() {
  Case run("02_no_gradient");
  run.Start("a");
  ASSERT_EQ(run.Apply().exit_code, kOk);
  EXPECT_EQ(run.Dflctl({"train", "start"}).exit_code, kOk);
  const Outcome watched = run.Dflctl({"watch", "--until-finished"});
  EXPECT_EQ(watched.exit_code, kTrainingFailed);
  EXPECT_THAT(watched.err, HasSubstr("a failed: 0 of 50 steps"));
  const client::NodeStatus status = run.node("a").Status();
  EXPECT_EQ(status.phase, client::Phase::kFailed);
  EXPECT_THAT(status.phase_reason,
              AllOf(HasSubstr("0 of 50 steps"),
                    HasSubstr("not finite or far too large")));
  EXPECT_EQ(status.step, 0);
  EXPECT_EQ(status.gradients, 0);
  EXPECT_GT(status.failed_gradients, 0);
  EXPECT_FALSE(status.loss.has_value());
  EXPECT_EQ(run.ExportedHeader()["__metadata__"]["step"], "0");
}

void NoGradientBesideAGoodNode() {
  Case run("02_no_gradient");
  run.Edit("plan.yaml", ReadFile(run.File("plan.yaml")),
           ReadFile(run.File("plan_two.yaml")));
  run.StartBoth();
  ASSERT_EQ(run.Apply().exit_code, kOk);
  EXPECT_EQ(run.Dflctl({"train", "start"}).exit_code, kOk);
  const Outcome watched = run.Dflctl({"watch", "--until-finished"});
  EXPECT_EQ(watched.exit_code, kTrainingFailed) << watched.err;
  EXPECT_EQ(run.node("a").Status().phase, client::Phase::kFailed);
  const client::NodeStatus b = run.node("b").Status();
  EXPECT_EQ(b.phase, client::Phase::kFinished);
  EXPECT_EQ(b.gradients, 200);
  EXPECT_GE(run.Accuracy("b"), 0.9);
  ASSERT_EQ(b.peers.size(), 1U);
  EXPECT_FALSE(b.peers[0].mixing);
  EXPECT_THAT(b.peers[0].not_mixing, HasSubstr("its training has failed"));
  EXPECT_THAT(run.Dflctl({"status"}).out, HasSubstr(" 0/1 "));
}

void OneRowIsLeftOver(const std::string& name) {
  SCOPED_TRACE(name);
  Case run(name);
  run.StartBoth();
  run.LearnTogether();
  EXPECT_GE(run.Accuracy("a"), 0.9);
  EXPECT_EQ(run.node("a").Status().failed_gradients, 0);
  const auto values = run.ExportedValues();
  EXPECT_EQ(values.count("var"), 1U);
  for (const auto& [tensor, numbers] : values) {
    EXPECT_TRUE(std::all_of(numbers.begin(), numbers.end(), [](float x) {
      return std::isfinite(x);
    })) << tensor;
  }
}

void OneRowInAll() {
  Case run("03_bn_plain");
  const std::string rows = ReadFile(run.File("a.csv"));
  WriteFile(run.File("a.csv"), rows.substr(0, rows.find('\n') + 1));
  run.Edit("plan.yaml", "[a, b]", "[a]");
  run.Start("a");
  const Outcome refused = run.Apply();
  EXPECT_EQ(refused.exit_code, kRefused);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("this node has one training row"),
                                 HasSubstr("two rows or more")));
}

void APartIsFrozen() {
  Case run("09_16_frozen_bn");
  run.Start("a");
  ASSERT_EQ(run.Apply().exit_code, kOk);
  ASSERT_TRUE(run.Train());
  const auto values = run.ExportedValues();
  EXPECT_THAT(values.at("backbone.mean"), Each(0.0F));
  EXPECT_THAT(values.at("backbone.var"), Each(1.0F));
  EXPECT_THAT(values.at("backbone.num_batches_tracked"), ElementsAre(7.0F));
  std::vector<std::string> tensors;
  const json header = run.ExportedHeader();
  for (const auto& [name, tensor] : header.items()) tensors.push_back(name);
  EXPECT_THAT(tensors, testing::UnorderedElementsAre(
                           "__metadata__", "backbone.b", "backbone.g",
                           "backbone.mean", "backbone.num_batches_tracked",
                           "backbone.var", "backbone.w", "v"));
  EXPECT_EQ(header["backbone.num_batches_tracked"]["dtype"], "I64");
}

// Most of the time goes by between the tries of training that fails.
TEST(Cases, WhatDidNotHappenIsNotReported) {
  AtTheSameTime({NoGradientIsFinite, NoGradientBesideAGoodNode,
                 [] { OneRowIsLeftOver("03_bn_plain"); },
                 [] { OneRowIsLeftOver("03_bn_script"); }, OneRowInAll,
                 APartIsFrozen});
}

TEST(Cases, ARegressionOfAnyModelRuns) {
  Case run("21_regression_plan");
  ASSERT_EQ(
      RunCommand({Program("make_torchscript"), run.File("m.pt"), "4", "1"})
          .exit_code,
      kOk);
  run.Start("a");
  for (const std::string plan : {"plan_mlp.yaml", "plan_ts.yaml"}) {
    SCOPED_TRACE(plan);
    EXPECT_EQ(
        RunCommand({Program("dflctl"), "plan", "validate", run.File(plan)})
            .exit_code,
        kOk);
    const Outcome applied = run.Dflctl({"plan", "apply", plan, "--new-run"});
    ASSERT_EQ(applied.exit_code, kOk) << applied.err;
    ASSERT_TRUE(run.Train());
    const client::NodeStatus status = run.node("a").Status();
    EXPECT_EQ(status.gradients, 50);
    ASSERT_TRUE(status.evaluation.has_value());
    EXPECT_FALSE(status.evaluation->accuracy.has_value());
    EXPECT_TRUE(status.evaluation->mae.has_value());
    ASSERT_TRUE(status.evaluation->r2.has_value());
    EXPECT_GT(*status.evaluation->r2, 0.6);
  }
}

// ---------------------------------------------------- the model as a file ----

bool HasPython() {
  return RunCommand({"/bin/sh", "-c", "python3 -c 1"}).exit_code == 0;
}

TEST(Cases, AnExportedModelSaysWhatItsNumbersMean) {
  Case run("13_export_metadata");
  run.Start("a");
  ASSERT_EQ(run.Apply().exit_code, kOk);
  ASSERT_TRUE(run.Train());
  const std::vector<std::string> classes = {"setosa", "versicolor",
                                            "virginica"};
  const json contract = json::parse(
      run.ExportedHeader()["__metadata__"]["dfl.contract"].get<std::string>());
  EXPECT_EQ(contract["classes"], json(classes));
  EXPECT_EQ(contract["shape"], json({4}));
  EXPECT_EQ(contract["input"]["mean"].size(), 4U);
  EXPECT_EQ(contract["input"]["std"].size(), 4U);
  EXPECT_NEAR(contract["input"]["std"][0].get<double>(), 2.6459, 1e-3);
  EXPECT_EQ(run.Classes("a"), classes);
  EXPECT_EQ(run.node("a").Status().contract.count("classes"), 1U);

  // With this node: where a model is written to.
  const Outcome written =
      run.RunScript(absl::StrCat(DFL_CASES, "/04_export_target/run.sh"));
  EXPECT_EQ(written.exit_code, kOk) << written.err;
  EXPECT_EQ(written.out,
            "device: character special file\n"
            "link: symbolic link\n"
            "behind it: regular file 640\n"
            "behind it: the model\n"
            "fifo: fifo\n"
            "fifo: the model\n"
            "-: the model\n"
            "/dev/stdout: the model\n"
            "folder: refused\n");
  EXPECT_THAT(written.err,
              AllOf(HasSubstr("the model of step 400"),
                    HasSubstr("is a folder; allowed: a plain file")));

  // And what it takes.
  if (!HasPython()) GTEST_SKIP() << "install python3 to run this test";
  const Outcome half =
      run.RunScript(absl::StrCat(DFL_CASES, "/17_half_precision/run.sh"));
  EXPECT_EQ(half.exit_code, kOk) << half.err;
  EXPECT_THAT(half.out + half.err,
              AllOf(HasSubstr("2 tensors are F16"), HasSubstr("narrowed\n")));
}

TEST(Cases, CountersOfBatchNormalisationAreSkippedAndTold) {
  if (!HasPython()) GTEST_SKIP() << "install python3 to run this test";
  Case run("07_num_batches_tracked");
  std::string rows;
  for (int r = 0; r < 6; ++r) {
    rows += static_cast<char>(r);
    for (int i = 0; i < 3072; ++i) {
      rows += static_cast<char>((i * (r + 3)) % 251);
    }
  }
  WriteFile(run.File("rows.bin"), rows);
  run.Start("a");
  ASSERT_EQ(run.Apply().exit_code, kOk);
  ASSERT_TRUE(run.Train());
  const Outcome taken = run.RunScript(run.File("run.sh"));
  EXPECT_EQ(taken.exit_code, kOk) << taken.out << taken.err;
  EXPECT_THAT(taken.out + taken.err,
              AllOf(HasSubstr("skipped, for the node does not train it"),
                    HasSubstr("\"bn1.num_batches_tracked\" (I64)"),
                    HasSubstr("15 more")));
}

}  // namespace
}  // namespace dfl::testing_support
