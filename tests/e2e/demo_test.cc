// The demo as a user has it, on the programs of this build: to its end, and
// ended by Ctrl-C while its daemons train.
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/control_client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/daemon_process.h"

namespace dfl::testing_support {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

std::string Script(const std::string& name) {
  return absl::StrCat(DFL_SCRIPTS_FOLDER, "/", name);
}

class Demo : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* file : {"train-images-idx3", "train-labels-idx1",
                             "t10k-images-idx3", "t10k-labels-idx1"}) {
      const std::string path =
          absl::StrCat("/usr/share/datasets/fashion-mnist/", file, "-ubyte.gz");
      if (access(path.c_str(), R_OK) != 0) {
        GTEST_SKIP() << "no " << path
                     << ": install dataset-fashion-mnist to run this test";
      }
    }
    for (const char* program : {"python3", "gnuplot", "setpriv"}) {
      if (RunCommand({program, "--version"}).exit_code == 127) {
        GTEST_SKIP() << "no " << program << ": install it to run this test";
      }
    }
  }

  // Starts the demo on this build; nothing is installed or built.
  void StartDemo(const std::string& steps) {
    const auto programs = std::filesystem::path(Program("dfld")).parent_path();
    Process::Options start;
    start.command = {Script("demo/run_demo"),
                     "--bin",
                     programs,
                     "--out",
                     out_,
                     "--steps",
                     steps};
    start.stdout_file = folder_.File("stdout");
    start.stderr_file = folder_.File("stderr");
    process_ = std::make_unique<Process>(start);
  }
  std::string Output() const {
    return ReadFile(folder_.File("stdout")) + ReadFile(folder_.File("stderr"));
  }

  // Names of the programs that run with a path in the demo's folder among
  // their arguments, the demo itself left out.
  std::vector<std::string> Running() const {
    std::vector<std::string> running;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      int pid = 0;
      if (!absl::SimpleAtoi(entry.path().filename().string(), &pid) ||
          pid == process_->pid()) {
        continue;
      }
      const std::string line = ReadFile(entry.path() / "cmdline");
      if (line.find(out_) == std::string::npos) continue;
      running.push_back(
          std::filesystem::path(line.substr(0, line.find('\0'))).filename());
    }
    return running;
  }

  // Whether the first of its nodes comes to that step.
  bool Reaches(int64_t step) const {
    auto client = client::ControlClient::Connect(
        absl::StrCat("unix:", out_, "/node-1/control.sock"));
    return client.ok() && Eventually(absl::Seconds(60), [&] {
             const auto status = (*client)->Status();
             return (status.ok() && status->node.step >= step) ||
                    !process_->running();
           });
  }

  TemporaryFolder folder_;
  const std::string out_ = folder_.File("demo");
  std::unique_ptr<Process> process_;
};

TEST_F(Demo, TellsTheStoryToItsEnd) {
  StartDemo("200");  // the fewest that it takes
  const auto ended = process_->Wait(absl::Seconds(120));
  ASSERT_TRUE(ended.has_value()) << Output();
  ASSERT_EQ(ended->code, 0) << Output();
  EXPECT_EQ(ReadFile(folder_.File("stderr")), "");
  const std::string shown = ReadFile(folder_.File("stdout"));
  EXPECT_THAT(shown, HasSubstr("$ dflctl topology set ring\n"));
  EXPECT_THAT(shown, HasSubstr("$ dflctl participation set --node node-"));
  EXPECT_THAT(shown, HasSubstr("\nmean "));
  EXPECT_THAT(ReadFile(out_ + "/accuracy.png"), testing::StartsWith("\x89PNG"));
  EXPECT_THAT(ReadFile(out_ + "/curves.csv"), HasSubstr("\n200,"));
  const auto summary = nlohmann::json::parse(ReadFile(out_ + "/summary.json"));
  EXPECT_EQ(summary.at("steps"), 200);
  ASSERT_EQ(summary.at("nodes").size(), 4);
  for (const auto& node : summary.at("nodes")) {
    EXPECT_GT(node.at("bytes_sent"), 0);
    EXPECT_LT(node.at("bytes_sent"), node.at("dense_bytes"));
  }
  EXPECT_THAT(Running(), IsEmpty());
}

TEST_F(Demo, CtrlCEndsAllThatItStarted) {
  StartDemo("1000000");  // it is never through by itself
  ASSERT_TRUE(Eventually(absl::Seconds(60), [&] {
    return Output().find("$ dflctl train start\n") != std::string::npos ||
           !process_->running();
  })) << Output();
  ASSERT_TRUE(Reaches(10)) << Output();
  ASSERT_TRUE(process_->running()) << Output();
  ASSERT_TRUE(Eventually(absl::Seconds(10), [&] {
    return Running().size() == 5;  // no call of dflctl beside them
  }));
  ASSERT_THAT(Running(),
              UnorderedElementsAre("dfld", "dfld", "dfld", "dfld", "dflctl"));

  kill(-process_->pid(), SIGINT);  // as a terminal does, to the whole group
  // Ten seconds for dflctl watch and ten for the daemons, at the worst.
  const auto ended = process_->Wait(absl::Seconds(20));
  ASSERT_TRUE(ended.has_value()) << Output();
  EXPECT_EQ(ended->code, 128 + SIGINT) << Output();
  EXPECT_THAT(Running(), IsEmpty());
  EXPECT_EQ(ReadFile(folder_.File("stderr")),
            "run_demo: ended by SIGINT; what it had started has ended\n");
  EXPECT_FALSE(std::filesystem::exists(out_ + "/node-1/control.sock"));
}

TEST_F(Demo, ItsScriptTellsOfArgumentsAndExitCodes) {
  const Outcome help = RunCommand({Script("demo.sh"), "--help"});
  EXPECT_EQ(help.exit_code, 0) << help.err;
  EXPECT_THAT(help.out, HasSubstr("--help-demo"));
  const Outcome demo = RunCommand({Script("demo.sh"), "--help-demo"});
  EXPECT_EQ(demo.exit_code, 0) << demo.err;
  EXPECT_THAT(demo.out, HasSubstr("--bin DIR"));
  EXPECT_THAT(demo.out, HasSubstr("128 + N ended by signal N"));
}

}  // namespace
}  // namespace dfl::testing_support
