// Half an hour on a bad network: 5 % of all packets are lost, and every ten
// seconds a machine's connections are reset. Resident memory must stay flat.
//
//   DFL_SOAK_MINUTES   how long, 30 when it is not set; a sixth is warm-up
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "tests/faults/machines.h"

namespace dfl::testing_support {
namespace {

constexpr int kMachines = 4;
constexpr absl::Duration kResetEvery = absl::Seconds(10);
constexpr absl::Duration kResetLasts = absl::Milliseconds(300);
constexpr int64_t kMayGrowKib = 1024;

constexpr char kPlan[] = R"(
run: soak
seed: 3
version: 1
participants: all
model: {kind: mlp, classes: 3, hidden: [256, 256]}
batch_size: 8
algorithm: {name: k-gt, knobs: {K: 4}}
deadline: {exchange: 1s}
checkpoint: {interval: 10s}
evaluation: {every_steps: 200}
)";

absl::Duration SoakTime() {
  const char* minutes = std::getenv("DFL_SOAK_MINUTES");
  double number = 30;
  if (minutes != nullptr) (void)absl::SimpleAtod(minutes, &number);
  return absl::Minutes(number);
}

int64_t ResidentKib(DaemonProcess& daemon) {
  const std::string status =
      ReadFile(absl::StrCat("/proc/", daemon.process().pid(), "/status"));
  for (const auto line : absl::StrSplit(status, '\n')) {
    int64_t kib = 0;
    const std::vector<std::string> words =
        absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    if (words.size() > 1 && words[0] == "VmRSS:" &&
        absl::SimpleAtoi(words[1], &kib)) {
      return kib;
    }
  }
  return 0;
}

class SoakTest : public MachinesTest {
 protected:
  static void Iptables(const std::string& host,
                       std::vector<std::string> arguments) {
    std::vector<std::string> command = Networks::On(host);
    command.push_back("iptables");
    command.insert(command.end(), arguments.begin(), arguments.end());
    MustRun(command);
  }

  // What it has resident, by machine, at the least within a minute: what is
  // free by then was only borrowed.
  std::map<std::string, int64_t> LeastResident(absl::Duration within) {
    std::map<std::string, int64_t> least;
    const absl::Time end = absl::Now() + within;
    while (absl::Now() < end) {
      for (const auto& [name, daemon] : daemons_) {
        const int64_t now = ResidentKib(*daemon);
        const auto [it, first] = least.try_emplace(name, now);
        it->second = std::min(it->second, now);
      }
      ResetOne();
    }
    return least;
  }

  // One machine after the other has its connections reset.
  void ResetOne() {
    const std::string host = absl::StrCat("m", resets_++ % kMachines);
    const std::vector<std::string> rule = {
        "INPUT", "-p", "tcp", "-j", "REJECT", "--reject-with", "tcp-reset"};
    std::vector<std::string> add = rule;
    add.insert(add.begin(), "-I");
    Iptables(host, add);
    absl::SleepFor(kResetLasts);
    std::vector<std::string> remove = rule;
    remove.insert(remove.begin(), "-D");
    Iptables(host, remove);
    absl::SleepFor(kResetEvery - kResetLasts);
  }

  int64_t resets_ = 0;
};

TEST_F(SoakTest, MemoryStaysFlat) {
  for (int i = 0; i < kMachines; ++i) {
    networks_->AddHost(absl::StrCat("m", i),
                       {absl::StrCat("10.77.0.", i + 1, "/24")});
  }
  for (int i = 0; i < kMachines; ++i) {
    StartOn(absl::StrCat("m", i),
            "cluster: plant-4\npeers: [\"10.77.0.1:7600\"]\n");
  }
  client::ApplyPlanOptions apply;
  apply.yaml = kPlan;
  const auto applied = daemons_.at("m0")->client().ApplyPlan(apply);
  ASSERT_TRUE(applied.ok()) << applied.status();
  for (const auto& [name, daemon] : daemons_) {
    ASSERT_TRUE(daemon->StatusBecomes(kPatience, [](const auto& status) {
      return status.plan_version == 1;
    })) << name;
    ASSERT_TRUE(daemon->client().Train(client::TrainAction::kStart).ok());
  }
  for (const auto& [name, daemon] : daemons_) {
    ASSERT_TRUE(daemon->StatusBecomes(kPatience, [](const auto& status) {
      return status.step > 100;
    })) << name;
  }
  for (int i = 0; i < kMachines; ++i) {
    Iptables(absl::StrCat("m", i),
             {"-A", "INPUT", "-i", "eth0", "-m", "statistic", "--mode",
              "random", "--probability", "0.05", "-j", "DROP"});
  }
  const absl::Duration all = SoakTime();
  const absl::Duration window = all / 10;
  const absl::Time end = absl::Now() + all - window;
  const absl::Time warm = absl::Now() + all / 6;
  while (absl::Now() < warm) ResetOne();
  const auto before = LeastResident(window);
  std::map<std::string, int64_t> step;
  for (const auto& [name, daemon] : daemons_)
    step[name] = daemon->Status().step;
  while (absl::Now() < end) ResetOne();
  const auto after = LeastResident(window);
  for (const auto& [name, kib] : after) {
    std::cout << name << ": " << before.at(name) << " KiB, then " << kib
              << " KiB; " << daemons_.at(name)->Status().step << " steps, "
              << resets_ << " resets\n";
    EXPECT_LE(kib - before.at(name), kMayGrowKib) << name;
    EXPECT_GT(daemons_.at(name)->Status().step, step.at(name)) << name;
  }
  for (const auto& [name, daemon] : daemons_) {
    EXPECT_TRUE(daemon->Stop().has_value()) << name << " is not gone in 10 s";
  }
}

}  // namespace
}  // namespace dfl::testing_support
