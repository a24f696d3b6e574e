// Sixty-four daemons on one machine: they meet, see who comes and goes, and are
// steered from one of them. One test after the other, on one network.
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/network/living_network.h"

namespace dfl::testing_support {
namespace {

constexpr int kDaemons = 64;

constexpr char kPlan[] =
    "model: {kind: logistic, classes: 3}\n"
    "algorithm: {name: pame, knobs: {nu: 1, p: 0.5, kappa: [5, 10]}}\n"
    "topology: {kind: hashed, degree: 4}\n"
    "batch_size: 8\n"
    "evaluation: {every_steps: 0}\n";

// Lets a process run for a twentieth of the time.
class Throttle {
 public:
  explicit Throttle(Process& process)
      : process_(process), thread_([this] {
          while (!done_) {
            process_.Signal(SIGSTOP);
            absl::SleepFor(absl::Milliseconds(95));
            process_.Signal(SIGCONT);
            absl::SleepFor(absl::Milliseconds(5));
          }
        }) {}
  ~Throttle() {
    done_ = true;
    thread_.join();
  }

 private:
  Process& process_;
  std::atomic<bool> done_{false};
  std::thread thread_;
};

class SixtyFour : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    network = new LivingNetwork();
    network->Add(kDaemons);
    started = network->StartFrom(0);
  }
  static void TearDownTestSuite() { delete network; }

  void SetUp() override { ASSERT_TRUE(started) << network->error(); }

  static void Tell(const std::string& what, absl::Duration took) {
    std::cout << what << ": " << absl::FormatDuration(took) << "\n";
  }

  static LivingNetwork* network;
  static bool started;
};
LivingNetwork* SixtyFour::network = nullptr;
bool SixtyFour::started = false;

TEST_F(SixtyFour, AFormOneMembership) {
  const absl::Duration took = network->UntilTablesAgree(absl::Seconds(60));
  Tell("one membership after the last start", took);
  EXPECT_LE(took, absl::Seconds(10)) << network->error();
}

TEST_F(SixtyFour, BOneMoreIsInSoon) {
  network->Add(1);
  ASSERT_TRUE(network->StartFrom(kDaemons)) << network->error();
  const absl::Duration took = network->UntilTablesAgree(absl::Seconds(60));
  Tell("one more is in", took);
  EXPECT_LE(took, absl::Seconds(5)) << network->error();
}

TEST_F(SixtyFour, CAKilledOneIsSeenByAll) {
  network->Kill(kDaemons);
  const absl::Duration took = network->UntilAllSee(
      LivingNetwork::NameOf(kDaemons),
      [](const client::Member& member) { return !member.present(); },
      absl::Seconds(60));
  Tell("kill -9 is seen by all", took);
  EXPECT_LE(took, absl::Seconds(5)) << network->error();
}

TEST_F(SixtyFour, DAThrottledOneIsNobodysDeath) {
  std::vector<std::string> dead;
  {
    const Throttle throttle((*network)[5].process());
    const absl::Time end = SteadyNow() + absl::Seconds(30);
    while (SteadyNow() < end) {
      for (int i = 0; i < kDaemons; i += 7) {
        for (const auto& [name, member] : network->TableOf(i)) {
          if (name == LivingNetwork::NameOf(5) ||
              name == LivingNetwork::NameOf(kDaemons) || member.present()) {
            continue;
          }
          dead.push_back(absl::StrCat(name, " at ", LivingNetwork::NameOf(i)));
        }
      }
      SleepBetweenLooks();
    }
  }
  EXPECT_THAT(dead, testing::IsEmpty());
  EXPECT_LT(network->UntilTablesAgree(absl::Seconds(30)), absl::Seconds(30))
      << network->error();
}

// When something of that kind happened to the node last, by its own account.
absl::Time LastOf(DaemonProcess& daemon, const std::string& kind) {
  client::EventFilter filter;
  filter.kinds = {kind};
  filter.limit = 1;
  const auto list = daemon.client().Events(filter);
  return !list.ok() || list->events.empty()
             ? absl::InfiniteFuture()
             : absl::FromUnixNanos(list->events[0].unix_nanos);
}

// The version in force and the steps of all.
std::map<int, client::NodeStatus> StatusOfAll(LivingNetwork& network) {
  std::map<int, client::NodeStatus> all;
  for (int i = 0; i < network.size(); ++i) {
    if (network.IsUp(i)) all[i] = network[i].Status();
  }
  return all;
}

TEST_F(SixtyFour, EAPlanGivenToOneTrainsAll) {
  WriteFile(network->folder() + "/plan.yaml", kPlan);
  const Outcome applied =
      network->Dflctl(7, {"plan", "apply", network->folder() + "/plan.yaml",
                          "--start", "--yes", "--wait"});
  ASSERT_EQ(applied.exit_code, 0) << applied.out << applied.err;
  EXPECT_TRUE(Eventually(absl::Seconds(60), [&] {
    const auto all = StatusOfAll(*network);
    return std::all_of(all.begin(), all.end(), [](const auto& entry) {
      return entry.second.step > 20 &&
             entry.second.phase == client::Phase::kTraining;
    });
  }));
}

TEST_F(SixtyFour, FAChangeGivenToOneIsInForceOnAllSoon) {
  const struct {
    const char* what;
    std::vector<std::string> command;
  } changes[] = {
      {"topology", {"topology", "set", "hashed", "--degree=6", "--yes"}},
      {"period", {"period", "set", "kappa=20", "--yes"}},
      {"algorithm", {"algorithm", "set", "pame", "sigma0=10", "--yes"}},
  };
  for (const auto& change : changes) {
    const auto before = StatusOfAll(*network);
    const absl::Time began = absl::Now();
    const Outcome given = network->Dflctl(40, change.command);
    ASSERT_EQ(given.exit_code, 0)
        << change.what << ": " << given.out << given.err;
    const uint64_t version = before.begin()->second.plan_version + 1;
    std::map<int, client::NodeStatus> after;
    ASSERT_TRUE(Eventually(absl::Seconds(30), [&] {
      after = StatusOfAll(*network);
      return std::all_of(after.begin(), after.end(), [&](const auto& entry) {
        return entry.second.plan_version >= version;
      });
    })) << change.what;
    const absl::Time taken = LastOf((*network)[40], "record");
    absl::Time last = taken;
    for (const auto& [i, status] : after) {
      last = std::max(last, LastOf((*network)[i], "plan-adopted"));
    }
    Tell(absl::StrCat("a change of ", change.what, ": dflctl's part"),
         taken - began);
    Tell(absl::StrCat("a change of ", change.what, " is in force on all"),
         last - taken);
    EXPECT_LE(last - taken, absl::Seconds(2)) << change.what;
    for (const auto& [i, status] : after) {
      EXPECT_GE(status.step, before.at(i).step) << LivingNetwork::NameOf(i);
    }
  }
}

TEST_F(SixtyFour, GChurnLeavesNothingBehind) {
  const int first = network->size();
  for (int k = 0; k < 15; ++k) {
    network->Add(1);
    ASSERT_TRUE(network->StartFrom(network->size() - 1)) << network->error();
    if (k % 3 == 0) {
      network->Kill(network->size() - 1);
    } else {
      ASSERT_TRUE(network->Stop(network->size() - 1));
    }
  }
  EXPECT_LT(network->UntilTablesAgree(absl::Seconds(30)), absl::Seconds(30))
      << network->error();
  for (int i = 0; i < first; ++i) {
    if (!network->IsUp(i)) continue;
    int present = 0;
    for (const auto& [name, member] : network->TableOf(i)) {
      present += member.present() ? 1 : 0;
    }
    EXPECT_EQ(present, network->up()) << LivingNetwork::NameOf(i);
  }
}

}  // namespace
}  // namespace dfl::testing_support
