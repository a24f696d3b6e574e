// Which learner trains, as a daemon's user sees it: LibTorch is loaded when a
// plan needs it, and not before.
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/daemon_process.h"

namespace dfl::testing_support {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class Learners : public ::testing::Test {
 protected:
  void Start(std::map<std::string, std::string> environment = {}) {
    WriteBlobs(folder_.File("rows.csv"), 60, 4, 3, 1);
    DaemonProcess::Options options;
    options.name = "a";
    options.folder = folder_.path();
    options.train_csv = folder_.File("rows.csv");
    options.environment = std::move(environment);
    daemon_ = std::make_unique<DaemonProcess>(options);
    ASSERT_TRUE(daemon_->Start()) << daemon_->log();
  }

  absl::Status Apply(const std::string& model) {
    return daemon_->client()
        .ApplyPlan({absl::StrCat("participants: {fixed: [a]}\nmodel: ", model,
                                 "\nbatch_size: 8\nalgorithm: {name: d-psgd, "
                                 "knobs: {eta: 0.05}}\n"
                                 "topology: {kind: complete}\n"
                                 "evaluation: {every_steps: 0}\n"
                                 "stop: {steps: 20}\n"),
                    std::nullopt, false})
        .status();
  }

  void TrainToTheEnd() {
    ASSERT_TRUE(daemon_->client().Train(client::TrainAction::kStart).ok());
    ASSERT_TRUE(daemon_->StatusBecomes(
        absl::Seconds(60),
        [](const client::NodeStatus& status) {
          return status.phase == client::Phase::kFinished && status.step == 20;
        }))
        << daemon_->log();
  }

  client::DaemonStatus Told() {
    auto status = daemon_->client().Status();
    EXPECT_TRUE(status.ok()) << status.status();
    return status.ok() ? *status : client::DaemonStatus();
  }

  bool HasLoadedLibTorch() const {
    std::ifstream maps(
        absl::StrCat("/proc/", daemon_->process().pid(), "/maps"));
    std::string line;
    while (std::getline(maps, line)) {
      if (line.find("libtorch") != std::string::npos) return true;
    }
    return false;
  }

  std::string Net() {
    const std::string file = folder_.File("net.pt");
    Process::Options make;
    make.command = {Program("make_torchscript"), file, "4", "3"};
    Process(make).Wait(absl::Seconds(60));
    return file;
  }

  TemporaryFolder folder_;
  std::unique_ptr<DaemonProcess> daemon_;
};

TEST_F(Learners, LibTorchIsLoadedByThePlanThatNeedsIt) {
  ASSERT_NO_FATAL_FAILURE(Start());
  EXPECT_FALSE(HasLoadedLibTorch());
  EXPECT_EQ(Told().learner, "");
  ASSERT_TRUE(Apply("{kind: mlp, classes: 3, hidden: [8]}").ok());
  ASSERT_NO_FATAL_FAILURE(TrainToTheEnd());
  EXPECT_FALSE(HasLoadedLibTorch());
  client::DaemonStatus status = Told();
  EXPECT_EQ(status.learner, "plain");
  EXPECT_EQ(status.threads, 1);

  const absl::Status applied =
      Apply(absl::StrCat("{kind: torchscript, classes: 3, path: ", Net(), "}"));
  ASSERT_TRUE(applied.ok()) << applied;
  EXPECT_TRUE(HasLoadedLibTorch());
  status = Told();
  EXPECT_THAT(status.learner, StartsWith("LibTorch "));
  EXPECT_GE(status.threads, 1);
  EXPECT_NE(status.threads_reason, "");
}

TEST_F(Learners, WithoutLibTorchSmallModelsTrainAndOthersSayWhatIsMissing) {
  ASSERT_NO_FATAL_FAILURE(
      Start({{"DFL_TORCH_MODULE", "/nowhere/dfld-torch.so"}}));
  ASSERT_TRUE(Apply("{kind: logistic, classes: 3}").ok());
  ASSERT_NO_FATAL_FAILURE(TrainToTheEnd());
  const absl::Status refused =
      Apply("{kind: torchscript, classes: 3, path: /nowhere/net.pt}");
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition) << refused;
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("model.kind: torchscript"),
                    HasSubstr("there is no /nowhere/dfld-torch.so"),
                    HasSubstr("install the package dfld-torch")));
  EXPECT_EQ(Told().learner, "plain");  // the plan before holds
}

}  // namespace
}  // namespace dfl::testing_support
