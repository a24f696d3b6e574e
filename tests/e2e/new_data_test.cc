// New data in the data folder: real daemons that train, and files that are
// appended to, replaced, broken and mended meanwhile.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/daemon_process.h"

namespace dfl::testing_support {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kPlan[] =
    "members: [a, b]\n"
    "seed: 7\n"
    "data: {classes: [\"0\", \"1\"]}\n"
    "model: {kind: logistic}\n"
    "algorithm: {name: d-psgd, knobs: {eta: 0.05}}\n"
    "codec: {coordinates: dense, values: fp32}\n"
    "batch_size: 16\n"
    "evaluation: {every_steps: 200, examples: 0}\n";

// `rows` lines of three numbers, number f large, and the class: f, or the other
// one where classes are swapped.
std::string Rows(int rows, bool swapped = false) {
  std::string text;
  for (int r = 0; r < rows; ++r) {
    const int large = r % 2;
    for (int f = 0; f < 3; ++f) {
      const double noise = ((r * 7 + f * 3) % 11 - 5) / 10.0;
      absl::StrAppend(&text, (f == large ? 3.0 : 0.0) + noise, ",");
    }
    absl::StrAppend(&text, swapped ? 1 - large : large, "\n");
  }
  return text;
}

class NewData : public testing::Test {
 protected:
  void SetUp() override {
    Replace("a.csv", Table(Rows(60)));
    Replace("b.csv", Table(Rows(60)));
    WriteFile(folder_.File("test.csv"), Table(Rows(60, /*swapped=*/true)));
    WriteFile(folder_.File("plan.yaml"), kPlan);
    for (const char* name : {"a", "b"}) {
      DaemonProcess::Options options;
      options.name = name;
      options.folder = folder_.path();
      options.data_yaml = absl::StrCat(
          "data:\n  format: csv\n  label_column: y\n  header: yes\n"
          "  watch: 100ms\n",
          "  train: {paths: [\"", folder_.File(absl::StrCat(name, ".csv")),
          "\"]}\n  test: {paths: [\"", folder_.File("test.csv"), "\"]}\n");
      if (!nodes_.empty()) options.peers = {nodes_[0]->peer_address()};
      nodes_.push_back(std::make_unique<DaemonProcess>(options));
      ASSERT_TRUE(nodes_.back()->Start()) << nodes_.back()->log();
    }
    ASSERT_EQ(Dflctl({"plan", "apply", folder_.File("plan.yaml")}).exit_code,
              0);
    ASSERT_EQ(Dflctl({"train", "start"}).exit_code, 0);
    ASSERT_TRUE(ABecomes([](const client::NodeStatus& status) {
      return status.phase == client::Phase::kTraining &&
             status.evaluation.has_value();
    }));
  }
  void TearDown() override {
    if (!HasFailure()) return;
    for (const auto& node : nodes_) std::cerr << "---- log\n" << node->log();
  }

  static std::string Table(const std::string& rows) {
    return absl::StrCat("x0,x1,x2,y\n", rows);
  }
  // By a rename, as whoever delivers files should.
  void Replace(const std::string& name, const std::string& text) const {
    WriteFile(folder_.File(".part"), text);
    std::filesystem::rename(folder_.File(".part"), folder_.File(name));
  }
  Outcome Dflctl(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), Program("dflctl"));
    for (const auto& node : nodes_) {
      arguments.insert(arguments.end(), {"--target", node->target()});
    }
    return RunCommand(arguments, {}, absl::Seconds(60));
  }

  DaemonProcess& a() { return *nodes_[0]; }
  DaemonProcess& b() { return *nodes_[1]; }
  template <typename Condition>
  bool ABecomes(Condition condition) {
    return a().StatusBecomes(absl::Seconds(60), condition);
  }
  bool HasRows(int64_t rows) {
    return ABecomes([rows](const client::NodeStatus& status) {
      return status.train_rows == rows && status.data_error.empty();
    });
  }
  bool HasError(const std::string& part) {
    return ABecomes([&part](const client::NodeStatus& status) {
      return status.data_error.find(part) != std::string::npos;
    });
  }
  // Whether what b knows of a comes to satisfy `condition`.
  template <typename Condition>
  bool BSeesThat(Condition condition) {
    return Eventually(absl::Seconds(60), [&] {
      const auto table = b().client().Members({});
      if (!table.ok()) return false;
      for (const client::Member& member : table->members) {
        if (member.node == "a") return condition(member);
      }
      return false;
    });
  }
  double Accuracy() {
    const client::NodeStatus status = a().Status();
    return status.evaluation ? status.evaluation->accuracy.value_or(0) : 0;
  }

  TemporaryFolder folder_;
  std::vector<std::unique_ptr<DaemonProcess>> nodes_;
};

TEST_F(NewData, RowsThatAreAppendedAndReplacedAreTrainedOn) {
  const client::NodeStatus before = a().Status();
  EXPECT_EQ(before.train_rows, 60);
  EXPECT_LT(Accuracy(), 0.5) << "the test rows have the classes swapped";
  std::ofstream(folder_.File("a.csv"), std::ios::app) << Rows(30);
  ASSERT_TRUE(HasRows(90)) << a().Status().data_error;
  Replace("a.csv", Table(Rows(45, /*swapped=*/true)));
  ASSERT_TRUE(HasRows(45)) << a().Status().data_error;
  EXPECT_EQ(b().Status().train_rows, 60) << "its data are its own";
  Replace("b.csv", Table(Rows(50, /*swapped=*/true)));
  ASSERT_TRUE(b().StatusBecomes(absl::Seconds(60), [](const auto& status) {
    return status.train_rows == 50;
  }));
  EXPECT_TRUE(ABecomes([&](const client::NodeStatus& status) {
    return status.evaluation && status.evaluation->accuracy.value_or(0) > 0.9;
  })) << Accuracy();
  const client::NodeStatus after = a().Status();
  EXPECT_EQ(after.run_id, before.run_id);
  EXPECT_EQ(after.plan_version, before.plan_version);
  EXPECT_EQ(after.contract, before.contract);
  EXPECT_EQ(after.phase, client::Phase::kTraining);
  EXPECT_GT(after.step, before.step);
  EXPECT_GT(after.epochs, before.epochs);
  EXPECT_GT(after.models_received, before.models_received);
  EXPECT_THAT(a().log(), AllOf(HasSubstr("90 rows taken up (60 before)"),
                               HasSubstr("45 rows taken up (90 before)")));
  const auto data = a().client().Data("");
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->train_rows, 45);
  EXPECT_TRUE(BSeesThat(
      [](const client::Member& member) { return member.rows == 45; }));
}

TEST_F(NewData, AFileThatCannotBeUsedMakesTheNodeDegradedUntilItIsMended) {
  Replace("a.csv", Table("1,oops,3,0\n2,3,4,1\n"));
  ASSERT_TRUE(HasError("oops"));
  EXPECT_THAT(a().Status().data_error,
              AllOf(HasSubstr("its new data are not taken up: "),
                    HasSubstr(folder_.File("a.csv"))));
  EXPECT_TRUE(BSeesThat([](const client::Member& member) {
    return member.state == client::MemberState::kDegraded &&
           member.reason.find("its new data are not taken up: ") == 0;
  }));
  EXPECT_THAT(Dflctl({"status", "--local"}).err,
              HasSubstr("warning: a: its new data are not taken up: "));
  // It trains on.
  const int64_t step = a().Status().step;
  EXPECT_TRUE(ABecomes([step](const client::NodeStatus& status) {
    return status.phase == client::Phase::kTraining &&
           status.step > step + 20 && status.train_rows == 60;
  }));
  // A label that the run does not have, other columns, and no file.
  Replace("a.csv", Table(Rows(10) + "1,2,3,7\n"));
  EXPECT_TRUE(HasError("\"7\""));
  Replace("a.csv", "x0,x1,z2,y\n" + Rows(10));
  EXPECT_TRUE(HasError("z2"));
  std::filesystem::remove(folder_.File("a.csv"));
  EXPECT_TRUE(ABecomes([](const client::NodeStatus& status) {
    return !status.data_error.empty() &&
           status.data_error.find("z2") == std::string::npos;
  }));
  EXPECT_EQ(a().Status().train_rows, 60);

  Replace("a.csv", Table(Rows(75)));
  ASSERT_TRUE(HasRows(75)) << a().Status().data_error;
  EXPECT_TRUE(BSeesThat([](const client::Member& member) {
    return member.state == client::MemberState::kMember && member.rows == 75;
  }));
  EXPECT_THAT(a().log(), HasSubstr("the data files are in order again"));
}

// The checkpoint is of other rows than there are when it starts again.
TEST_F(NewData, ARestartGoesOnWithTheRowsThatAreThere) {
  Replace("a.csv", Table(Rows(75)));
  ASSERT_TRUE(HasRows(75)) << a().Status().data_error;
  const int64_t step = a().Status().step;
  ASSERT_TRUE(a().Stop().has_value());
  Replace("a.csv", Table(Rows(90)));
  ASSERT_TRUE(a().Start()) << a().log();
  EXPECT_TRUE(ABecomes([step](const client::NodeStatus& status) {
    return status.phase == client::Phase::kTraining && status.step > step &&
           status.train_rows == 90;
  }));
  EXPECT_THAT(a().log(), AllOf(HasSubstr("goes on from the checkpoint"),
                               HasSubstr("mini-batches begin a new pass")));
}

}  // namespace
}  // namespace dfl::testing_support
