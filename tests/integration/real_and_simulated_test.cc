// One plan on real daemons over loopback and in the simulator: the same bits.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/sim/scenario.h"
#include "daemon/sim/simulation.h"
#include "tests/integration/linear_parameters.h"
#include "tests/support/daemon_process.h"

namespace dfl::testing_support {
namespace {

constexpr int64_t kNodes = 8;
constexpr int64_t kRounds = 200;

constexpr char kPlan[] =
    "run: beside\n"
    "seed: 11\n"
    "members: [a, b, c, d, e, f, g, h]\n"
    "model: {kind: linear, classes: 0}\n"
    "topology: {kind: complete}\n"
    "batch_size: 10\n"
    // No machine is so slow that it is missed. Round 0 waits for all to begin.
    "deadline: {exchange: 60s}\n"
    "evaluation: {every_steps: 0}\n";
constexpr char kNetwork[] =
    "network:\n"
    "  problem: {kind: linear, n: 40, rows: 30}\n"
    "  links: {delay: 2ms, jitter: 3ms}\n"
    "  compute: {time: 5ms, extra: 5ms}\n";

struct Case {
  std::string name;
  std::string algorithm;
  std::string values;
  int64_t steps_a_round;
};
void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }

class RealAndSimulated : public testing::TestWithParam<Case> {
 protected:
  void TearDown() override {
    if (!HasFailure()) return;
    for (const auto& node : nodes_) std::cerr << "---- log\n" << node->log();
  }

  std::string Plan() const {
    return absl::StrCat(kPlan, "algorithm: ", GetParam().algorithm,
                        "\ncodec: {coordinates: dense, values: ",
                        GetParam().values, "}\nstop: {steps: ", Steps(), "}\n");
  }
  static int64_t Steps() { return kRounds * GetParam().steps_a_round; }

  void StartNodes() {
    WriteFile(folder_.File("scenario.yaml"), Plan() + kNetwork);
    std::vector<std::string> addresses;
    for (const char* name : {"a", "b", "c", "d", "e", "f", "g", "h"}) {
      DaemonProcess::Options options;
      options.program = "analytic_dfld";
      gates_.push_back(folder_.File(absl::StrCat(name, ".gate")));
      ASSERT_EQ(mkfifo(gates_.back().c_str(), 0600), 0);
      options.environment = {{"DFL_SCENARIO", folder_.File("scenario.yaml")},
                             {"DFL_GATE", gates_.back()}};
      options.name = name;
      options.folder = folder_.path();
      options.train_csv = "unread.csv";
      options.peers = addresses;
      nodes_.push_back(std::make_unique<DaemonProcess>(options));
      ASSERT_TRUE(nodes_.back()->Start()) << nodes_.back()->log();
      addresses.push_back(nodes_.back()->peer_address());
    }
  }

  void WaitForAll(const std::function<bool(const client::NodeStatus&)>& is) {
    for (const auto& node : nodes_) {
      ASSERT_TRUE(node->StatusBecomes(absl::Seconds(120), is))
          << node->Status().node << ", step " << node->Status().step;
    }
  }
  // How many others it sees of which this holds.
  template <typename Condition>
  static bool SeesAll(const client::NodeStatus& status, Condition condition) {
    return std::count_if(status.peers.begin(), status.peers.end(), condition) ==
           kNodes - 1;
  }

  // All know the plan, all others, and that these train, before any has its
  // first gradient.
  void Run() {
    for (const auto& node : nodes_) {
      client::ApplyPlanOptions apply;
      apply.yaml = Plan();
      const auto applied = node->client().ApplyPlan(apply);
      ASSERT_TRUE(applied.ok()) << applied.status();
    }
    ASSERT_NO_FATAL_FAILURE(WaitForAll([](const client::NodeStatus& status) {
      return SeesAll(status, [](const auto& peer) { return peer.linked; });
    }));
    for (const auto& node : nodes_) {
      const auto started = node->client().Train(client::TrainAction::kStart);
      ASSERT_TRUE(started.ok()) << started.status();
    }
    ASSERT_NO_FATAL_FAILURE(WaitForAll([](const client::NodeStatus& status) {
      return SeesAll(status, [](const auto& peer) {
        return peer.phase == client::Phase::kTraining;
      });
    }));
    for (const std::string& gate : gates_) {
      int file = -1;
      ASSERT_TRUE(Eventually(absl::Seconds(30), [&] {
        file = open(gate.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
        return file >= 0;
      }));
      close(file);
    }
    ASSERT_NO_FATAL_FAILURE(WaitForAll([](const client::NodeStatus& status) {
      return status.phase == client::Phase::kFinished;
    }));
    for (const auto& node : nodes_) {
      const client::NodeStatus status = node->Status();
      EXPECT_EQ(status.step, Steps());
      for (const client::PeerStatus& peer : status.peers) {
        EXPECT_EQ(peer.missed, 0) << status.node << ": " << peer.node;
        EXPECT_EQ(peer.models_received, status.peers[0].models_received);
      }
    }
  }

  TemporaryFolder folder_;
  std::vector<std::unique_ptr<DaemonProcess>> nodes_;
  std::vector<std::string> gates_;
};

TEST_P(RealAndSimulated, EndWithTheSameBits) {
  ASSERT_NO_FATAL_FAILURE(StartNodes());
  ASSERT_NO_FATAL_FAILURE(Run());

  const auto scenario = sim::ParseScenario(Plan() + kNetwork, "scenario.yaml");
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  auto simulation = sim::Simulation::Create(*scenario);
  ASSERT_TRUE(simulation.ok()) << simulation.status();
  const sim::Result result =
      (*simulation)->Run([](const sim::Progress&) { return true; });
  ASSERT_EQ(result.end, sim::End::kFinished) << result.why;
  EXPECT_EQ(result.neighbours_missed, 0);

  for (int64_t i = 0; i < kNodes; ++i) {
    const absl::Span<const float> simulated = (*simulation)->parameters(i);
    const std::vector<float> real =
        LinearParameters(*nodes_[static_cast<size_t>(i)]);
    ASSERT_EQ(real.size(), simulated.size());
    EXPECT_NE(real[0], 0.0F);
    EXPECT_EQ(std::memcmp(real.data(), simulated.data(), real.size() * 4), 0)
        << "node " << i << ": " << real[0] << " and " << simulated[0];
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, RealAndSimulated,
    testing::Values(
        Case{"DpsgdFp32", "{name: d-psgd, knobs: {eta: 0.02}}", "fp32", 1},
        Case{"DpsgdInt8", "{name: d-psgd, knobs: {eta: 0.02}}", "int8", 1},
        Case{"DepositumFp32", "{name: depositum, knobs: {T0: 2}}", "fp32", 2},
        Case{"DepositumInt8", "{name: depositum, knobs: {T0: 2}}", "int8", 2}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace dfl::testing_support
