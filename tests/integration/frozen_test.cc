// One of a few daemons is stopped by the system, as a hung box is: the others
// lose a few deadlines and go on, and it takes part again when it goes on.
// Every algorithm that waits for neighbours is tried in virtual time
// (tests/unit/runtime/silence_test.cc); here are some of each kind, side by
// side.
#include <signal.h>

#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "tests/support/daemon_process.h"

namespace dfl::testing_support {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(60);
constexpr absl::Duration kDeadline = absl::Seconds(1);
// That many more show that the others go on. Where each of them waited for the
// one that is stopped, they would take kRounds deadlines.
constexpr int64_t kRounds = 30;

struct Case {
  std::string algorithm;
  std::string topology = "complete";
  size_t nodes = 4;
};

// The last node is stopped. In a star it is a leaf.
class Frozen {
 public:
  explicit Frozen(Case frozen) : case_(std::move(frozen)) {}

  void Play() {
    Start();
    if (!failed_) Stop();
    if (!failed_) GoOn();
    (void)Signal(SIGCONT);
    if (!failed_) return;
    for (const auto& node : nodes_) std::cerr << "---- log\n" << node->log();
  }

 private:
  std::string PlanText() const {
    return absl::StrCat(
        "run: frozen\n"
        "seed: 11\n"
        "version: 1\n"
        "members: [",
        absl::StrJoin(names_, ", "),
        "]\n"
        "model: {kind: linear, classes: 0}\n"
        "batch_size: 20\n"
        "deadline: {exchange: 1s}\n"
        "evaluation: {every_steps: 0}\n"
        "topology: {kind: ",
        case_.topology,
        "}\n"
        "stop: {steps: 1000000}\n"
        "algorithm: {name: ",
        case_.algorithm, "}\n");
  }

  void Start() {
    for (size_t i = 0; i < case_.nodes; ++i) {
      names_.emplace_back(1, static_cast<char>('a' + i));
    }
    WriteFile(
        folder_.File("scenario.yaml"),
        PlanText() + "network:\n  problem: {kind: linear, n: 16, rows: 20}\n");
    std::vector<std::string> addresses;
    for (const std::string& name : names_) {
      DaemonProcess::Options options;
      options.program = "analytic_dfld";
      options.environment = {{"DFL_SCENARIO", folder_.File("scenario.yaml")}};
      options.name = name;
      options.folder = folder_.path();
      options.train_csv = "unread.csv";
      options.peers = addresses;
      nodes_.push_back(std::make_unique<DaemonProcess>(options));
      Expect(nodes_.back()->Start(), "it starts");
      if (failed_) return;
      addresses.push_back(nodes_.back()->peer_address());
    }
    client::ApplyPlanOptions apply;
    apply.yaml = PlanText();
    for (const auto& node : nodes_) {
      const auto applied = node->client().ApplyPlan(apply);
      Expect(applied.ok(),
             absl::StrCat("the plan: ", applied.status().ToString()));
    }
    for (const auto& node : nodes_) {
      Expect(node->client().Train(client::TrainAction::kStart).ok(),
             "it trains");
    }
    for (const auto& node : nodes_) Reach(*node, 50);
  }

  void Stop() {
    Expect(Signal(SIGSTOP), "it is stopped");
    const absl::Time stopped = absl::Now();
    for (size_t i = 0; i < victim(); ++i) {
      Reach(*nodes_[i], nodes_[i]->Status().step + kRounds);
    }
    EXPECT_LT(absl::Now() - stopped, 3 * kDeadline + absl::Seconds(4));
    for (size_t i = 0; i < victim(); ++i) {
      EXPECT_LE(nodes_[i]->Status().missed, 3) << names_[i];
    }
  }

  void GoOn() {
    std::vector<int64_t> received;
    std::vector<bool> neighbours;
    for (size_t i = 0; i < victim(); ++i) {
      const client::PeerStatus entry = Victim(nodes_[i]->Status());
      received.push_back(entry.models_received);
      neighbours.push_back(entry.neighbour);
    }
    Expect(Signal(SIGCONT), "it goes on");
    const absl::Time went_on = absl::Now();
    for (size_t i = 0; i < victim(); ++i) {
      if (!neighbours[i]) continue;
      Expect(nodes_[i]->StatusBecomes(kPatience,
                                      [&](const auto& status) {
                                        return Victim(status).models_received >
                                               received[i] + 1;
                                      }),
             "models come again");
    }
    EXPECT_LT(absl::Now() - went_on, absl::Seconds(4));
    for (const auto& node : nodes_) {
      Reach(*node, node->Status().step + kRounds);
      const client::NodeStatus status = node->Status();
      EXPECT_EQ(status.phase, client::Phase::kTraining);
      const auto imbalance = status.gauges.find("mass_imbalance");
      if (imbalance != status.gauges.end()) {
        EXPECT_LT(imbalance->second, 1e-3) << status.node;
      }
    }
  }

  size_t victim() const { return case_.nodes - 1; }
  bool Signal(int signal) {
    return nodes_.size() == case_.nodes &&
           kill(nodes_[victim()]->process().pid(), signal) == 0;
  }
  void Reach(DaemonProcess& node, int64_t step) {
    Expect(node.StatusBecomes(
               kPatience,
               [step](const auto& status) { return status.step >= step; }),
           absl::StrCat("step ", step));
  }
  void Expect(bool holds, const std::string& what) {
    EXPECT_TRUE(holds) << what;
    if (!holds) failed_ = true;
  }
  client::PeerStatus Victim(const client::NodeStatus& status) const {
    for (const client::PeerStatus& entry : status.peers) {
      if (entry.node == names_[victim()]) return entry;
    }
    return {};
  }

  const Case case_;
  std::vector<std::string> names_;
  TemporaryFolder folder_;
  std::vector<std::unique_ptr<DaemonProcess>> nodes_;
  bool failed_ = false;
};

void PlaySideBySide(const std::vector<Case>& cases) {
  std::vector<std::thread> threads;
  threads.reserve(cases.size());
  for (const Case& frozen : cases) {
    threads.emplace_back([&frozen] {
      SCOPED_TRACE(absl::StrCat(frozen.algorithm, ", ", frozen.nodes, " in a ",
                                frozen.topology, " graph"));
      Frozen(frozen).Play();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(FrozenTest, OneOfFourCostsTheOthersAFewDeadlinesAndTakesPartAgain) {
  PlaySideBySide({{"d-psgd"}, {"spod-gt"}, {"sync-dsgd"}, {"choco-sgd"}});
}

TEST(FrozenTest, OneWithASingleNeighbourTakesPartAgain) {
  PlaySideBySide({{"d-psgd", "complete", 2},
                  {"sgp", "complete", 2},
                  {"fedmid", "star", 4},
                  {"spod-gt", "star", 3}});
}

}  // namespace
}  // namespace dfl::testing_support
