// New data files while a daemon runs: a whole one but for its sockets, its
// files and LibTorch.
#include "daemon/app/new_data/new_data.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_replace.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/process.h"
#include "tests/unit/app/backend_stage.h"

namespace dfl::app {
namespace {

using control::TrainAction;
using ports::Condition;
using ports::Phase;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing_support::Eventually;

using Read = std::function<absl::StatusOr<std::unique_ptr<LearnerFactory>>()>;

constexpr char kAlone[] =
    "members: [anna]\n"
    "model: {kind: linear, classes: 0}\n"
    "algorithm: {name: local}\n";

// Data files in memory. Thread-safe.
class FakeFiles {
 public:
  // Writes them: from here on they look and read like this.
  void Put(const DataMarks& marks, Read read) {
    const absl::MutexLock lock(&mutex_);
    marks_ = marks;
    read_ = std::move(read);
  }
  DataMarks marks() {
    const absl::MutexLock lock(&mutex_);
    return marks_;
  }
  int reads() {
    const absl::MutexLock lock(&mutex_);
    return reads_;
  }
  absl::StatusOr<std::unique_ptr<LearnerFactory>> ReadThem() {
    Read read;
    {
      const absl::MutexLock lock(&mutex_);
      ++reads_;
      read = read_;
    }
    return read();
  }

 private:
  absl::Mutex mutex_;
  DataMarks marks_ ABSL_GUARDED_BY(mutex_);
  Read read_ ABSL_GUARDED_BY(mutex_);
  int reads_ ABSL_GUARDED_BY(mutex_) = 0;
};

std::unique_ptr<FakeLearners> Rows(int64_t rows) {
  auto learners = std::make_unique<FakeLearners>();
  learners->reported_rows = rows;
  learners->data.train_rows = rows;
  learners->data.test_rows = 0;  // no evaluations among the events
  learners->data.bytes = 10 * rows;
  return learners;
}

Read Reading(int64_t rows) {
  return [rows] { return Rows(rows); };
}

Read Failing(const std::string& why) {
  return [why] { return absl::InvalidArgumentError(why); };
}

class NewDataTest : public testing::Test {
 protected:
  NewDataTest() : learners_(Rows(40)) {
    files_->Put({1, 400, 1}, Failing("these were read already"));
  }

  BackendStage& Start(BackendOptions options = {}) {
    StageData data{{}, learners_};
    data.options.interval = data.options.settle = absl::Milliseconds(5);
    data.options.in_use = files_->marks();
    data.options.look = [files = files_] { return files->marks(); };
    data.options.read = [files = files_] { return files->ReadThem(); };
    stage_ = std::make_unique<BackendStage>(
        disk_, learners_, std::move(options), nullptr, &records_disk_,
        /*insecure_records=*/true, /*gossips=*/true,
        /*checkpoints_disk=*/nullptr, &data);
    EXPECT_TRUE(stage_->backend().Restore().ok());
    stage_->backend().Connect();
    return *stage_;
  }
  // A node that trains on 40 rows.
  BackendStage& Train(BackendOptions options = {}) {
    BackendStage& stage = Start(std::move(options));
    EXPECT_TRUE(stage.Apply(kAlone).ok());
    EXPECT_TRUE(stage.Train(TrainAction::kStart).ok());
    EXPECT_TRUE(Becomes([](const runtime::NodeStatus& status) {
      return status.phase == Phase::kTraining && status.step > 3;
    }));
    EXPECT_EQ(stage.Status().train_rows, 40);
    return stage;
  }

  bool Becomes(
      const std::function<bool(const runtime::NodeStatus&)>& condition) {
    return Eventually(absl::Seconds(20),
                      [&] { return condition(stage_->Status()); });
  }
  bool HasRows(int64_t rows) {
    return Becomes([rows](const runtime::NodeStatus& status) {
      return status.train_rows == rows;
    });
  }
  bool HasError(const std::string& part) {
    return Becomes([&part](const runtime::NodeStatus& status) {
      return status.data_error.find(part) != std::string::npos;
    });
  }
  bool HasNoError() {
    return Becomes([](const runtime::NodeStatus& status) {
      return status.data_error.empty();
    });
  }
  // What was told of the data so far.
  std::vector<std::string> Told() {
    std::vector<std::string> told;
    for (const control::TimedEvent& timed : stage_->backend().Events().events) {
      if (const auto* note = std::get_if<ports::DataNote>(&timed.event)) {
        told.push_back(note->text);
      }
    }
    return told;
  }

  simports::SimFiles disk_;
  simports::SimFiles records_disk_;
  const std::shared_ptr<FakeFiles> files_ = std::make_shared<FakeFiles>();
  RenewableLearners learners_;
  std::unique_ptr<BackendStage> stage_;
};

TEST_F(NewDataTest, RowsAreTakenUpWithinTheRun) {
  BackendStage& stage = Train();
  const runtime::NodeStatus before = stage.Status();
  files_->Put({2, 600, 2}, Reading(60));
  ASSERT_TRUE(HasRows(60));
  const runtime::NodeStatus after = stage.Status();
  EXPECT_EQ(after.run_id, before.run_id);
  EXPECT_EQ(after.plan_version, before.plan_version);
  EXPECT_EQ(after.phase, Phase::kTraining);
  EXPECT_GE(after.step, before.step);
  EXPECT_EQ(after.data_error, "");
  EXPECT_THAT(Told(), ElementsAre("60 rows taken up (40 before)"));
  EXPECT_EQ(stage.Facts().rows, 60);
  EXPECT_EQ(stage.Facts().condition, Condition::kWell);
  const auto data = stage.Data("");
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->report.train_rows, 60);
  ASSERT_TRUE(Becomes([&](const runtime::NodeStatus& status) {
    return status.step > after.step + 10;
  }));
  EXPECT_EQ(files_->reads(), 1);
}

TEST_F(NewDataTest, LaterPlansAreLearntOnThem) {
  BackendStage& stage = Train();
  files_->Put({2, 600, 2}, Reading(60));
  ASSERT_TRUE(HasRows(60));
  const std::string plan = absl::StrReplaceAll(
      stage.backend().Plan().yaml, {{"classes: 0\n", "classes: 0\n  l2: 0.1\n"},
                                    {"version: 1\n", "version: 2\n"}});
  const auto applied = stage.Apply(plan);
  ASSERT_TRUE(applied.ok()) << applied.status();
  ASSERT_TRUE(Becomes([](const runtime::NodeStatus& status) {
    return status.plan_version == 2;
  }));
  EXPECT_EQ(stage.Status().train_rows, 60);
}

TEST_F(NewDataTest, BeforeAPlanTheyAreForThePlansThatCome) {
  BackendStage& stage = Start();
  files_->Put({2, 600, 2}, Reading(60));
  ASSERT_TRUE(
      Eventually(absl::Seconds(20), [&] { return stage.Facts().rows == 60; }));
  EXPECT_THAT(Told(), ElementsAre("60 rows taken up (40 before)"));
  ASSERT_TRUE(stage.Apply(kAlone).ok());
  EXPECT_EQ(stage.Status().train_rows, 60);
}

TEST_F(NewDataTest, ABrokenFileMakesTheNodeDegradedUntilItIsMended) {
  BackendStage& stage = Train();
  files_->Put({1, 300, 2}, Failing("b.csv: line 3: found \"x\""));
  ASSERT_TRUE(HasError("b.csv: line 3: found \"x\""));
  EXPECT_EQ(stage.Status().train_rows, 40);
  EXPECT_EQ(stage.Status().phase, Phase::kTraining);
  EXPECT_EQ(stage.Facts().condition, Condition::kDegraded);
  EXPECT_EQ(stage.Facts().reason,
            "its new data are not taken up: b.csv: line 3: found \"x\"");
  // It is read again now and then, and told once.
  ASSERT_TRUE(
      Eventually(absl::Seconds(20), [&] { return files_->reads() > 2; }));
  EXPECT_THAT(Told(),
              ElementsAre("its new data are not taken up: b.csv: line 3: found "
                          "\"x\""));
  files_->Put({1, 600, 3}, Reading(60));
  ASSERT_TRUE(HasRows(60));
  ASSERT_TRUE(HasNoError());
  EXPECT_EQ(stage.Facts().condition, Condition::kWell);
  EXPECT_THAT(Told(), testing::Contains("the data files are in order again"));
}

TEST_F(NewDataTest, TheFilesBeforeNeedNoReading) {
  Train();
  const DataMarks before = files_->marks();
  files_->Put({0, 0, 2}, Failing("a.csv: no such file"));
  ASSERT_TRUE(HasError("no such file"));
  files_->Put(before, Failing("nobody reads them"));
  ASSERT_TRUE(HasNoError());
  EXPECT_EQ(stage_->Status().train_rows, 40);
  EXPECT_THAT(Told(), ElementsAre(HasSubstr("no such file"),
                                  "the data files are in order again"));
}

// Of a file that is being written nothing is said.
TEST_F(NewDataTest, WhatChangesWhileItIsReadIsReadAgain) {
  Train();
  files_->Put({1, 500, 2}, [files = files_.get()] {
    files->Put({1, 600, 3}, Reading(60));
    return absl::InvalidArgumentError("the last line is cut");
  });
  ASSERT_TRUE(HasRows(60));
  EXPECT_THAT(Told(), ElementsAre("60 rows taken up (40 before)"));
  EXPECT_EQ(files_->reads(), 2);
}

TEST_F(NewDataTest, RowsThatTheContractInForceRefusesAreNotTaken) {
  BackendStage& stage = Train();
  files_->Put({1, 600, 2}, [] {
    std::unique_ptr<FakeLearners> rows = Rows(60);
    rows->offer.features = {"age", "sex"};
    return rows;
  });
  ASSERT_TRUE(HasError("features"));
  EXPECT_THAT(stage.Status().data_error, HasSubstr("sex"));
  EXPECT_EQ(stage.Status().train_rows, 40);
  const auto data = stage.Data("");
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->report.train_rows, 40) << "those in use";
  // The same columns in another order are the run's.
  files_->Put({1, 600, 3}, [] {
    std::unique_ptr<FakeLearners> rows = Rows(60);
    rows->offer.features = {"bp", "age"};
    return rows;
  });
  ASSERT_TRUE(HasRows(60));
  EXPECT_TRUE(HasNoError());
}

TEST_F(NewDataTest, ALearnerThatCannotBeBuiltChangesNothing) {
  BackendStage& stage = Train();
  files_->Put({1, 600, 2}, [] {
    std::unique_ptr<FakeLearners> rows = Rows(60);
    rows->failure = absl::InvalidArgumentError("a batch has two rows");
    return rows;
  });
  ASSERT_TRUE(HasError("a batch has two rows"));
  EXPECT_EQ(stage.Status().train_rows, 40);
  EXPECT_EQ(stage.Status().phase, Phase::kTraining);
}

// 10 bytes a row are 1 byte for each of the files.
TEST_F(NewDataTest, RowsBeyondTheMemoryAreNotRead) {
  constexpr int64_t kLimit = int64_t{1} << 30;
  BackendOptions options;
  options.limits.memory = {kLimit, "compute.memory_limit"};
  BackendStage& stage = Train(std::move(options));
  files_->Put({1, kLimit, 2}, Reading(60));
  ASSERT_TRUE(HasError("compute.memory_limit"));
  EXPECT_EQ(files_->reads(), 0);
  EXPECT_EQ(stage.Status().train_rows, 40);
  // Its size does not say it: it is only seen in memory.
  files_->Put({1, 500, 3}, Reading(kLimit / 10));
  ASSERT_TRUE(
      Eventually(absl::Seconds(20), [&] { return files_->reads() > 0; }));
  ASSERT_TRUE(HasError("compute.memory_limit"));
  EXPECT_EQ(stage.Status().train_rows, 40);
  const int64_t need = stage.backend().Status().memory_bytes;
  files_->Put({1, 600, 4}, Reading(60));
  ASSERT_TRUE(HasRows(60));
  EXPECT_TRUE(HasNoError());
  EXPECT_EQ(stage.backend().Status().memory_bytes, need + 200);
}

TEST_F(NewDataTest, AFileThatIsBeingReadHoldsUpNoEnd) {
  Train();
  const auto reading = std::make_shared<absl::Notification>();
  const auto go_on = std::make_shared<absl::Notification>();
  const auto left = std::make_shared<absl::Notification>();
  files_->Put({1, 600, 2}, [reading, go_on, left] {
    reading->Notify();
    go_on->WaitForNotification();
    left->Notify();
    return absl::InvalidArgumentError("nobody hears of it");
  });
  reading->WaitForNotification();
  stage_.reset();
  go_on->Notify();
  left->WaitForNotification();
  EXPECT_EQ(files_->reads(), 1);
}

}  // namespace
}  // namespace dfl::app
