// kill -9 at every write to the state directory: a daemon is led through its
// life once for each call that changes something there, dies at that call, and
// is started again. What it had confirmed before must hold then, and nothing
// that it finds may be broken.
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "tests/support/daemon_process.h"

namespace dfl::testing_support {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(30);

std::string PlanText(uint64_t version) {
  return absl::StrCat("run: crash\nseed: 11\nversion: ", version,
                      "\nmembers: [a]\n"
                      "model: {kind: linear, classes: 0}\n"
                      "batch_size: 4\n"
                      "checkpoint: {interval: 100ms}\n"
                      "evaluation: {every_steps: 0}\n"
                      "topology: {kind: complete}\n"
                      "stop: {steps: 100000000}\n"
                      "algorithm: {name: d-psgd, knobs: {eta: 0.00",
                      version, "}}\n");
}

// What the daemon has confirmed.
struct Confirmed {
  uint64_t version = 0;
  bool trains = false;
  int64_t checkpoint = 0;
};

// One life with a death, and the one after it.
class Life {
 public:
  Life(int64_t point, bool torn) {
    WriteFile(
        folder_.File("scenario.yaml"),
        PlanText(1) + "network:\n  problem: {kind: linear, n: 16, rows: 20}\n");
    options_.program = "analytic_dfld";
    options_.name = "a";
    options_.folder = folder_.path();
    options_.train_csv = "unread.csv";
    options_.environment = {{"DFL_SCENARIO", folder_.File("scenario.yaml")},
                            {"CRASH_FOLDER", folder_.File("a.state")},
                            {"CRASH_AT", absl::StrCat(point)},
                            {"CRASH_TORN", torn ? "1" : "0"},
                            {"LD_PRELOAD", DFL_CRASH_POINTS}};
  }

  // Returns whether it died on the way.
  bool Play() {
    DaemonProcess daemon(options_);
    const bool started = daemon.Start();
    if (started) Lead(daemon);
    const auto ended = daemon.Stop();
    first_log_ = daemon.log();
    return !started || !ended.has_value() || ended->signal == SIGKILL;
  }

  // The start after the death: "" or what is wrong.
  std::string Again() {
    options_.environment.erase("LD_PRELOAD");
    DaemonProcess daemon(options_);
    if (!daemon.Start()) return "it does not start: " + daemon.log();
    const std::string wrong = Check(daemon);
    if (wrong.empty()) return "";
    return absl::StrCat(wrong, "\n---- before\n", first_log_, "\n---- after\n",
                        daemon.log());
  }

 private:
  void Lead(DaemonProcess& daemon) {
    for (const uint64_t version : {1, 2}) {
      client::ApplyPlanOptions apply;
      apply.yaml = PlanText(version);
      if (!daemon.client().ApplyPlan(apply).ok()) return;
      confirmed_.version = version;
      if (!daemon.client().Train(client::TrainAction::kStart).ok()) return;
      confirmed_.trains = true;
      for (int kept = 0; kept < 2; ++kept) {
        if (!AwaitCheckpoint(daemon)) return;
      }
    }
  }

  bool AwaitCheckpoint(DaemonProcess& daemon) {
    const absl::Time limit = absl::Now() + kPatience;
    while (absl::Now() < limit) {
      const auto status = daemon.client().Status();
      if (!status.ok()) return false;
      if (status->node.checkpoint_step > confirmed_.checkpoint) {
        confirmed_.checkpoint = status->node.checkpoint_step;
        return true;
      }
      absl::SleepFor(absl::Milliseconds(5));
    }
    return false;
  }

  std::string Check(DaemonProcess& daemon) const {
    const std::string log = daemon.log();
    for (const char* word : {"aside", "broken", "damaged", "DATA_LOSS"}) {
      if (absl::StrContains(log, word)) {
        return absl::StrCat("it found something that is ", word);
      }
    }
    const client::NodeStatus status = daemon.Status();
    if (status.plan_version < confirmed_.version) {
      return absl::StrCat("plan version ", confirmed_.version,
                          " was confirmed, and it has ", status.plan_version);
    }
    if (!confirmed_.trains) return "";
    if (WentOnFrom(log) < confirmed_.checkpoint) {
      return absl::StrCat("the checkpoint of step ", confirmed_.checkpoint,
                          " was confirmed, and it goes on from ",
                          WentOnFrom(log));
    }
    const int64_t step = status.step;
    const bool trains =
        daemon.StatusBecomes(kPatience, [step](const auto& now) {
          return now.phase == client::Phase::kTraining && now.step > step + 20;
        });
    return trains ? "" : "it does not train on";
  }

  // 0: fresh.
  static int64_t WentOnFrom(const std::string& log) {
    static const std::regex kFrom(
        R"(goes on from the checkpoint of step (\d+))");
    std::smatch from;
    int64_t step = 0;
    if (std::regex_search(log, from, kFrom)) {
      (void)absl::SimpleAtoi(from[1].str(), &step);
    }
    return step;
  }

  TemporaryFolder folder_;
  DaemonProcess::Options options_;
  Confirmed confirmed_;
  std::string first_log_;
};

class CrashPoints : public testing::TestWithParam<bool> {};

TEST_P(CrashPoints, NothingConfirmedIsLostAndNothingIsBroken) {
  const bool torn = GetParam();
  std::atomic<int64_t> next{1};
  std::atomic<bool> over{false};
  std::atomic<int64_t> deaths{0};
  std::mutex mutex;
  const auto work = [&] {
    while (!over) {
      const int64_t point = next++;
      Life life(point, torn);
      if (!life.Play()) {  // it has no such point
        over = true;
        return;
      }
      ++deaths;
      const std::string wrong = life.Again();
      const std::lock_guard<std::mutex> lock(mutex);
      EXPECT_EQ(wrong, "") << "died at point " << point;
    }
  };
  std::vector<std::thread> workers;
  for (int i = 0; i < 2; ++i) workers.emplace_back(work);
  for (std::thread& worker : workers) worker.join();
  std::cout << deaths << " points\n";
  EXPECT_GE(deaths, 30);  // or the library counts nothing
}

INSTANTIATE_TEST_SUITE_P(Writes, CrashPoints, testing::Bool(),
                         [](const auto& info) {
                           return info.param ? "torn" : "whole";
                         });

}  // namespace
}  // namespace dfl::testing_support
