// What is measured of a node's work, and what a daemon finds amiss with itself.
#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "daemon/app/eyes/diagnosis.h"
#include "daemon/app/eyes/machine_facts.h"
#include "daemon/app/eyes/measured_transport.h"
#include "daemon/app/eyes/step_meter.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dfl::app {
namespace {

using control::Finding;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A loop whose time a test sets.
class SetLoop final : public ports::Loop {
 public:
  absl::Time Now() const override { return now; }
  void Post(std::function<void()> /*task*/) override {}
  ports::TimerId After(absl::Duration /*delay*/,
                       std::function<void()> /*task*/) override {
    return 0;
  }
  void Cancel(ports::TimerId /*timer*/) override {}

  absl::Time now = absl::FromUnixSeconds(1000);
};

TEST(StepMeterTest, WhatIsNeitherGradientNorMixingIsWaiting) {
  SetLoop loop;
  web::Meters meters;
  StepMeter steps(loop, meters);
  steps.OnStep();  // from here on it is known when a step began
  steps.OnGradient(absl::Milliseconds(30));
  steps.OnAlgorithm(absl::Milliseconds(5));
  steps.OnAlgorithm(absl::Milliseconds(5));
  loop.now += absl::Milliseconds(100);
  steps.OnStep();
  EXPECT_EQ(meters.step.Read().count, 1U);
  EXPECT_DOUBLE_EQ(meters.step.Read().sum, 0.1);
  EXPECT_DOUBLE_EQ(meters.gradient.Read().sum, 0.03);
  EXPECT_DOUBLE_EQ(meters.mix.Read().sum, 0.01);
  EXPECT_DOUBLE_EQ(meters.wait.Read().sum, 0.06);
}

TEST(StepMeterTest, APauseIsNoStep) {
  SetLoop loop;
  web::Meters meters;
  StepMeter steps(loop, meters);
  steps.OnStep();
  steps.OnPhase();
  loop.now += absl::Hours(1);
  steps.OnStep();
  EXPECT_EQ(meters.step.Read().count, 0U);
}

// Takes everything, and brings what a test wants.
class OpenTransport final : public ports::Transport {
 public:
  void SetHandler(Handler* handler) override { this->handler = handler; }
  void Dial(const std::string& /*address*/) override {}
  void Close(ports::LinkId /*link*/, const absl::Status& /*why*/) override {}
  absl::Status Send(ports::LinkId link, ports::Frame frame) override {
    if (link == 9) return absl::NotFoundError("no such link");
    sent.push_back(std::move(frame));
    return absl::OkStatus();
  }
  int64_t max_queued_bytes() const override { return 1; }
  int64_t UnsentBytes(ports::LinkId link) const override {
    return static_cast<int64_t>(link) * 100;
  }

  Handler* handler = nullptr;
  std::vector<ports::Frame> sent;
};

class OpenHandler final : public ports::Transport::Handler {
 public:
  void OnLinkUp(ports::LinkId /*link*/, const ports::PeerIdentity& /*peer*/,
                const std::string& /*address*/) override {
    ++ups;
  }
  void OnDialFailed(const std::string& /*address*/,
                    const absl::Status& /*status*/) override {}
  void OnFrame(ports::LinkId /*link*/, ports::Frame /*frame*/) override {
    ++frames;
  }
  void OnWritable(ports::LinkId /*link*/) override {}
  void OnLinkDown(ports::LinkId /*link*/,
                  const absl::Status& /*reason*/) override {}

  int ups = 0;
  int frames = 0;
};

class MeasuredTransportTest : public ::testing::Test {
 protected:
  MeasuredTransportTest() {
    measured_.SetHandler(&handler_);
    inner_.handler->OnLinkUp(1, {}, "");
    inner_.handler->OnLinkUp(2, {}, "");
  }
  absl::Status Announce(uint64_t transfer, ports::LinkId link = 1) {
    ports::TransferBegin begin;
    begin.transfer = transfer;
    return measured_.Send(link, begin);
  }
  void Acknowledge(uint64_t transfer, bool complete) {
    ports::TransferAck ack;
    ack.transfer = transfer;
    ack.complete = complete;
    inner_.handler->OnFrame(1, ack);
  }

  SetLoop loop_;
  web::Meters meters_;
  OpenTransport inner_;
  OpenHandler handler_;
  MeasuredTransport measured_{inner_, loop_, meters_};
};

TEST_F(MeasuredTransportTest, TimesAModelUntilItIsTaken) {
  ASSERT_TRUE(Announce(5).ok());
  loop_.now += absl::Milliseconds(40);
  Acknowledge(5, false);  // a part of it is there
  EXPECT_EQ(meters_.exchange.Read().count, 0U);
  loop_.now += absl::Milliseconds(60);
  Acknowledge(5, true);
  Acknowledge(5, true);  // again
  EXPECT_EQ(meters_.exchange.Read().count, 1U);
  EXPECT_DOUBLE_EQ(meters_.exchange.Read().sum, 0.1);
  EXPECT_EQ(meters_.frames_sent, 1);
  EXPECT_EQ(meters_.frames_received, 3);
  EXPECT_EQ(handler_.frames, 3);
}

TEST_F(MeasuredTransportTest, CountsWhatIsAnnouncedAgain) {
  ASSERT_TRUE(Announce(5).ok());
  ASSERT_TRUE(Announce(6).ok());
  ASSERT_TRUE(Announce(5, 2).ok());
  EXPECT_EQ(meters_.transfers_resumed, 1);
  ports::TransferCancel end;
  end.transfer = 5;
  inner_.handler->OnFrame(1, end);  // it was refused
  ASSERT_TRUE(Announce(5).ok());
  EXPECT_EQ(meters_.transfers_resumed, 1);
}

TEST_F(MeasuredTransportTest, WhatWasNotSentDoesNotCount) {
  EXPECT_FALSE(Announce(5, 9).ok());
  EXPECT_EQ(meters_.frames_sent, 0);
  Acknowledge(5, true);
  EXPECT_EQ(meters_.exchange.Read().count, 0U);
}

TEST_F(MeasuredTransportTest, SumsTheQueuesOfLinksThatAreUp) {
  EXPECT_EQ(handler_.ups, 2);
  EXPECT_EQ(measured_.links(), 2);
  EXPECT_EQ(measured_.QueuedBytes(), 300);
  inner_.handler->OnLinkDown(1, absl::UnavailableError("cut"));
  EXPECT_EQ(measured_.QueuedBytes(), 200);
}

TEST(MachineFactsTest, FindsLibrariesForLinearAlgebra) {
  EXPECT_THAT(
      BlasIn("7f0-7f1 r-xp 00 08:01 1  /usr/lib/x/blas/libblas.so.3.11.0\n"
             "7f1-7f2 r--p 00 08:01 1  /usr/lib/x/blas/libblas.so.3.11.0\n"
             "7f2-7f3 r-xp 00 08:01 2  /usr/lib/x/libc.so.6\n"
             "7f3-7f4 rw-p 00 00:00 0  [heap]\n"),
      ElementsAre("/usr/lib/x/blas/libblas.so.3.11.0"));
}

TEST(MachineFactsTest, ReadsThisMachine) {
  const MachineFacts facts =
      ReadMachineFacts(testing::TempDir(), {"127.0.0.1:1", "name:1"});
  EXPECT_GE(facts.processors, 1);
  EXPECT_GT(facts.disk_free_bytes, 0);
  EXPECT_TRUE(facts.disk_writable);
  ASSERT_EQ(facts.paths.size(), 1U);
  EXPECT_GE(facts.paths[0].mtu, 1280);
  EXPECT_FALSE(ReadMachineFacts("/no/such/folder", {}).disk_writable);
}

class DiagnosisTest : public ::testing::Test {
 protected:
  DiagnosisTest() {
    daemon_.certificate_days = 90;
    daemon_.node.phase = ports::Phase::kTraining;
    daemon_.node.plan_version = 2;
    daemon_.node.parameter_count = 1000;
    machine_.clock_synchronised = true;
    machine_.processors = 4;
    machine_.disk_free_bytes = int64_t{1} << 40;
    machine_.open_files_limit = 4096;
    machine_.blas = {"/usr/lib/x/openblas-pthread/libopenblasp-r0.3.21.so"};
    machine_.paths = {{"192.0.2.7:7600", 1500}};
  }
  std::vector<Finding> Look() {
    return Diagnose({daemon_, machine_, "/var/lib/dfld", threads_, frozen_, 3});
  }
  // What it says of `check`, the worst of it.
  Finding Of(const std::string& check) {
    Finding worst;
    for (const Finding& finding : Look()) {
      if (finding.check == check &&
          (worst.check.empty() || finding.kind > worst.kind)) {
        worst = finding;
      }
    }
    EXPECT_FALSE(worst.check.empty()) << check << " is not looked at";
    return worst;
  }
  void ExpectOnly(const std::string& check, Finding::Kind kind,
                  const std::string& text) {
    for (const Finding& finding : Look()) {
      if (finding.check == check) continue;
      EXPECT_EQ(finding.kind, Finding::Kind::kOk)
          << finding.check << ": " << finding.text;
    }
    const Finding found = Of(check);
    EXPECT_EQ(found.kind, kind);
    EXPECT_THAT(found.text, HasSubstr(text));
    EXPECT_FALSE(found.remedy.empty()) << "and what is to be done?";
  }

  control::DaemonStatus daemon_;
  MachineFacts machine_;
  int64_t threads_ = 0;
  std::string frozen_;
};

constexpr Finding::Kind kWarning = Finding::Kind::kWarning;
constexpr Finding::Kind kFault = Finding::Kind::kFault;

TEST_F(DiagnosisTest, FindsNothingWhereAllIsWell) {
  for (const Finding& finding : Look()) {
    EXPECT_EQ(finding.kind, Finding::Kind::kOk)
        << finding.check << ": " << finding.text;
    EXPECT_FALSE(finding.text.empty()) << finding.check;
  }
}

TEST_F(DiagnosisTest, FindsAFrozenTraining) {
  frozen_ = "frozen: 6m at one gradient";
  ExpectOnly("training", kFault, "6m at one gradient");
}

TEST_F(DiagnosisTest, FindsATrainingThatFails) {
  daemon_.node.phase = ports::Phase::kDegraded;
  daemon_.node.last_error = "loss is nan";
  ExpectOnly("training", kFault, "loss is nan");
}

TEST_F(DiagnosisTest, FindsANodeThatLearnsAlone) {
  daemon_.node.alone = "nobody is linked";
  ExpectOnly("exchange", kFault, "nobody is linked");
}

TEST_F(DiagnosisTest, FindsANeighbourThatDoesNotMix) {
  runtime::PeerStatus peer;
  peer.node = NodeId("bert");
  peer.neighbour = true;
  peer.not_mixing = "is paused";
  daemon_.node.peers = {peer};
  ExpectOnly("exchange", kWarning, "1 of 1 neighbours do not mix: bert");
}

TEST_F(DiagnosisTest, FindsAnotherDataContract) {
  runtime::PeerStatus peer;
  peer.node = NodeId("bert");
  peer.disagrees = {"classes", "input"};
  daemon_.node.peers = {peer};
  ExpectOnly("data contract", kFault, "bert in classes, input");
}

TEST_F(DiagnosisTest, FindsCertificates) {
  daemon_.certificate_days = 3;
  ExpectOnly("certificate", kWarning, "expires in 3.0 days");
  daemon_.certificate_days = 0;
  ExpectOnly("certificate", kFault, "no valid certificate");
  daemon_.insecure = true;
  ExpectOnly("certificate", kWarning, "security is off");
}

TEST_F(DiagnosisTest, FindsAnOlderPlan) {
  runtime::PeerStatus peer;
  peer.plan_version = 3;
  daemon_.node.peers = {peer};
  ExpectOnly("plan", kWarning, "version 3, this node 2");
  daemon_.node.peers.clear();
  daemon_.node.plan_version = 0;
  ExpectOnly("plan", kWarning, "no plan");
}

TEST_F(DiagnosisTest, FindsAClockThatNobodyKeeps) {
  machine_.clock_synchronised = false;
  ExpectOnly("clock", kWarning, "nothing keeps the clock right");
}

TEST_F(DiagnosisTest, FindsDisks) {
  machine_.disk_free_bytes = 100 << 20;
  ExpectOnly("disk", kWarning, "100 MiB are free in /var/lib/dfld");
  machine_.disk_free_bytes = int64_t{1} << 30;
  daemon_.node.parameter_count = 100000000;  // 3.2 GB of checkpoints
  ExpectOnly("disk", kWarning, "want 3051");
  daemon_.node.checkpoint_error = "no space left";
  ExpectOnly("disk", kFault, "no space left");
  machine_.disk_writable = false;
  ExpectOnly("disk", kFault, "cannot be written to");
}

TEST_F(DiagnosisTest, FindsMemoryAndThreads) {
  daemon_.memory_bytes = 2 << 20;
  daemon_.memory_limit_bytes = 1 << 20;
  ExpectOnly("memory", kWarning, "2 MiB of 1");
  daemon_.memory_bytes = 0;
  threads_ = 8;
  ExpectOnly("threads", kWarning, "8 threads for a gradient, 4 processors");
}

TEST_F(DiagnosisTest, FindsTheSlowBlas) {
  machine_.blas = {"/usr/lib/x/blas/libblas.so.3.11.0"};
  ExpectOnly("OpenBLAS", kFault, "reference BLAS");
  machine_.blas = {"/usr/lib/x/openblas-pthread/libblas.so.3"};
  machine_.openblas_threads = "8";
  ExpectOnly("OpenBLAS", kWarning, "OPENBLAS_NUM_THREADS is 8");
}

TEST_F(DiagnosisTest, FindsWaysThatTakeOnlySmallPackets) {
  machine_.paths.push_back({"198.51.100.1:7600", 576});
  ExpectOnly("MTU", kFault, "198.51.100.1:7600 (576)");
  machine_.paths[1].mtu = 1420;  // a tunnel
  EXPECT_EQ(Of("MTU").kind, Finding::Kind::kOk);
}

TEST_F(DiagnosisTest, FindsFewFilesAndWarnings) {
  machine_.open_files_limit = 256;
  ExpectOnly("open files", kWarning, "256");
  machine_.open_files_limit = 4096;
  daemon_.warnings = {"the stored plan is not taken up"};
  ExpectOnly("status", kWarning, "the stored plan is not taken up");
}

}  // namespace
}  // namespace dfl::app
