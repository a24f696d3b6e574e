// Links that carry little, and machines that get another address.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/faults/machines.h"
#include "tests/support/process.h"

namespace dfl::testing_support {
namespace {

// 607,503 parameters, 2.4 MB: a model takes ten seconds at 2 Mbit/s, and a step
// some milliseconds.
constexpr char kLargePlan[] = R"(
run: thin
seed: 3
version: 1
participants: {fixed: [m0, m1]}
model: {kind: mlp, classes: 3, hidden: [800, 750]}
batch_size: 8
algorithm: {name: draco}
evaluation: {every_steps: 0}
)";

class SlowNetworkTest : public MachinesTest {
 protected:
  static std::string AddressOf(int i) {
    return absl::StrCat("10.77.0.", i + 1);
  }
  void StartMachines(int count) {
    for (int i = 0; i < count; ++i) {
      networks_->AddHost(absl::StrCat("m", i), {AddressOf(i) + "/24"});
    }
    for (int i = 0; i < count; ++i) {
      StartOn(absl::StrCat("m", i), absl::StrCat("cluster: plant-4\npeers: [\"",
                                                 AddressOf(0), ":7600\"]\n"));
    }
  }
  static void RunAt(const std::string& host,
                    const std::vector<std::string>& command) {
    std::vector<std::string> all = Networks::On(host);
    all.insert(all.end(), command.begin(), command.end());
    MustRun(all);
  }
  static int64_t ModelsTaken(const client::NodeStatus& status) {
    int64_t models = 0;
    for (const client::PeerStatus& peer : status.peers) {
      models += peer.models_received;
    }
    return models;
  }
};

TEST_F(SlowNetworkTest, AModelOfManyPeriodsArrivesWhileTheyGoOn) {
  StartMachines(2);
  for (const char* host : {"m0", "m1"}) {
    RunAt(host, {"tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate",
                 "2mbit", "burst", "32kbit", "latency", "400ms"});
  }
  ASSERT_TRUE(BecomeLinked(*daemons_.at("m0"), "m1"));
  client::ApplyPlanOptions apply;
  apply.yaml = kLargePlan;
  for (const auto& [name, daemon] : daemons_) {
    const auto applied = daemon->client().ApplyPlan(apply);
    ASSERT_TRUE(applied.ok()) << applied.status();
    ASSERT_TRUE(daemon->client().Train(client::TrainAction::kStart).ok());
  }
  for (const auto& [name, daemon] : daemons_) {
    ASSERT_TRUE(daemon->StatusBecomes(kPatience, [](const auto& status) {
      return status.step > 10;
    })) << name;
  }
  std::map<std::string, int64_t> first;
  for (const auto& [name, daemon] : daemons_) {
    ASSERT_TRUE(daemon->StatusBecomes(kPatience, [](const auto& status) {
      return ModelsTaken(status) >= 1;
    })) << name;
    first[name] = daemon->Status().step;
  }
  for (const auto& [name, daemon] : daemons_) {
    EXPECT_TRUE(daemon->StatusBecomes(kPatience, [](const auto& status) {
      return ModelsTaken(status) >= 2;
    })) << name;
    EXPECT_GT(daemon->Status().step, first[name] + 50)
        << name << " waited for a model";
  }
}

TEST_F(SlowNetworkTest, AMachineThatGetsAnotherAddressIsFoundAgain) {
  StartMachines(3);
  for (const char* other : {"m0", "m1"}) {
    ASSERT_TRUE(BecomeLinked(*daemons_.at("m2"), other));
  }
  RunAt("m2", {"ip", "address", "delete", AddressOf(2) + "/24", "dev", "eth0"});
  RunAt("m2", {"ip", "address", "add", "10.77.0.99/24", "dev", "eth0"});
  const auto is_at = [&](DaemonProcess& daemon) {
    return daemon.StatusBecomes(kPatience, [](const auto& status) {
      for (const client::PeerStatus& peer : status.peers) {
        if (peer.node == "m2" && peer.linked) {
          return absl::StartsWith(peer.address, "10.77.0.99:");
        }
      }
      return false;
    });
  };
  EXPECT_TRUE(is_at(*daemons_.at("m0")));
  EXPECT_TRUE(is_at(*daemons_.at("m1")));
}

}  // namespace
}  // namespace dfl::testing_support
