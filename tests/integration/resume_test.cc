// Real daemons that are killed, or end in order, and go on from their
// checkpoints: one of them while the others train on, and all at once.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/daemon_process.h"

namespace dfl::testing_support {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr absl::Duration kPatience = absl::Seconds(60);
// What a restart may take to the first round with the others, from when it
// listens.
constexpr absl::Duration kBack = absl::Seconds(3);

class ResumeTest : public testing::Test {
 protected:
  void Begin(const std::string& algorithm,
             std::vector<std::string> wrapper_of_last = {}) {
    algorithm_ = algorithm;
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
      if (name == names_.back()) options.wrapper = wrapper_of_last;
      nodes_.push_back(std::make_unique<DaemonProcess>(options));
      ASSERT_TRUE(nodes_.back()->Start()) << nodes_.back()->log();
      addresses.push_back(nodes_.back()->peer_address());
    }
    for (const auto& node : nodes_) {
      client::ApplyPlanOptions apply;
      apply.yaml = PlanText();
      const auto applied = node->client().ApplyPlan(apply);
      ASSERT_TRUE(applied.ok()) << applied.status();
    }
    for (const auto& node : nodes_) {
      ASSERT_TRUE(node->client().Train(client::TrainAction::kStart).ok());
    }
  }

  void TearDown() override {
    if (!HasFailure()) return;
    for (const auto& node : nodes_) {
      std::cerr << "---- log\n" << node->log();
    }
  }

  std::string PlanText() const {
    return absl::StrCat(
        "run: resume\n"
        "seed: 11\n"
        "version: 1\n"
        "members: [",
        absl::StrJoin(names_, ", "),
        "]\n"
        "model: {kind: linear, classes: 0}\n"
        "batch_size: 4\n"
        "deadline: {exchange: 1s}\n"
        "checkpoint: {interval: 500ms}\n"
        "evaluation: {every_steps: 0}\n"
        "topology: {kind: ring}\n"
        "stop: {steps: 1000000}\n"
        "algorithm: {name: ",
        algorithm_, "}\n");
  }

  static bool Reaches(DaemonProcess& node, int64_t step) {
    return node.StatusBecomes(kPatience,
                              [step](const client::NodeStatus& status) {
                                return status.step >= step;
                              });
  }
  static bool Trains(DaemonProcess& node) {
    return node.StatusBecomes(kPatience, [](const client::NodeStatus& status) {
      return status.phase == client::Phase::kTraining;
    });
  }

  // The step of the checkpoint that it went on from; the last one where it went
  // back to an older one. -1: none.
  static int64_t WentOnFrom(const DaemonProcess& node) {
    static const std::regex kFrom(
        R"(goes on from the checkpoint of step (\d+))");
    const std::string log = node.log();
    int64_t step = -1;
    for (auto it = std::sregex_iterator(log.begin(), log.end(), kFrom);
         it != std::sregex_iterator(); ++it) {
      (void)absl::SimpleAtoi((*it)[1].str(), &step);
    }
    return step;
  }

  // What the two ends of an edge see differently, but for rounding.
  static double LostMass(const client::NodeStatus& status) {
    const auto it = status.gauges.find("mass_imbalance");
    return it == status.gauges.end() || it->second < 1e-3 ? 0 : it->second;
  }

  const std::vector<std::string> names_ = {"a", "b", "c", "d"};
  std::string algorithm_;
  TemporaryFolder folder_;
  std::vector<std::unique_ptr<DaemonProcess>> nodes_;
};

TEST_F(ResumeTest, OneThatEndedInOrderGoesOnFromWhereItEnded) {
  Begin("k-gt");
  DaemonProcess& d = *nodes_[3];
  ASSERT_TRUE(Reaches(d, 200));
  const int64_t before = d.Status().step;
  const auto ended = d.Stop();
  ASSERT_TRUE(ended.has_value()) << "no clean stop within 10 s";
  EXPECT_EQ(ended->code, 0);
  ASSERT_TRUE(d.Start()) << d.log();
  EXPECT_GE(WentOnFrom(d), before);
  EXPECT_THAT(d.log(), Not(HasSubstr("took the model of")));
  EXPECT_TRUE(Trains(d));
  const int64_t now = nodes_[0]->Status().step;
  for (const auto& node : nodes_) {
    EXPECT_TRUE(Reaches(*node, now + 500)) << node->name();
    EXPECT_EQ(LostMass(node->Status()), 0) << node->name();
  }
}

class KilledTest : public ResumeTest,
                   public testing::WithParamInterface<std::string> {};

TEST_P(KilledTest, IsBackWithItsModelWithinThreeSeconds) {
  Begin(GetParam());
  DaemonProcess& d = *nodes_[3];
  // So long that the others are not twice as far when it is back.
  absl::SleepFor(absl::Seconds(6));
  for (int kill = 0; kill < 3; ++kill) {
    absl::SleepFor(absl::Seconds(2));
    d.Kill();
    ASSERT_TRUE(d.Start()) << d.log();
    const absl::Time listens = absl::Now();
    ASSERT_TRUE(Trains(d)) << d.log();
    EXPECT_LE(absl::Now() - listens, kBack) << d.log();
    EXPECT_GT(WentOnFrom(d), 0) << d.log();
    EXPECT_THAT(d.log(), Not(HasSubstr("took the model of")));
    EXPECT_TRUE(Reaches(d, nodes_[0]->Status().step + 200));
  }
  for (const auto& node : nodes_) {
    EXPECT_EQ(LostMass(node->Status()), 0) << node->name();
    EXPECT_TRUE(node->Stop().has_value());
  }
}

INSTANTIATE_TEST_SUITE_P(Algorithms, KilledTest,
                         testing::Values("d-psgd", "beer"),
                         [](const auto& info) {
                           return info.param == "d-psgd" ? "d_psgd" : "beer";
                         });

TEST_F(ResumeTest, AllGoOnFromOneStepAfterThePowerWasOut) {
  Begin("d-psgd");
  for (int outage = 0; outage < 2; ++outage) {
    absl::SleepFor(absl::Seconds(3));
    for (const auto& node : nodes_) node->Kill();
    for (const auto& node : nodes_) node->Launch();
    for (const auto& node : nodes_) {
      ASSERT_TRUE(node->AwaitReady()) << node->log();
    }
    std::set<int64_t> from;
    for (const auto& node : nodes_) {
      ASSERT_TRUE(Trains(*node)) << node->log();
      from.insert(WentOnFrom(*node));
    }
    EXPECT_EQ(from.size(), 1U) << absl::StrJoin(from, ", ");
    EXPECT_GT(*from.begin(), 0);
  }
}

// A full disk is told, stops nobody, and is used again once it has room.
TEST_F(ResumeTest, AFullDiskMakesItDegradedUntilThereIsRoom) {
  if (geteuid() != 0) GTEST_SKIP() << "a small disk of its own takes root";
  const std::string state = folder_.File("d.state");
  Begin("d-psgd", {"unshare", "-m", "sh", "-c",
                   absl::StrCat("mkdir -p ", state,
                                " && mount -t tmpfs -o size=400k none ", state,
                                " && exec \"$@\""),
                   "sh"});
  DaemonProcess& d = *nodes_[3];
  ASSERT_TRUE(Reaches(d, 200)) << d.log();
  const std::string within =
      absl::StrCat("nsenter -t ", d.process().pid(), " -m sh -c '");
  ASSERT_NE(std::system(absl::StrCat(within, "dd if=/dev/zero of=", state,
                                     "/filler bs=1k 2>/dev/null'")
                            .c_str()),
            0)
      << "it is full then";
  const auto says = [&](const std::string& text) {
    const absl::Time limit = absl::Now() + kPatience;
    while (absl::Now() < limit) {
      if (d.log().find(text) != std::string::npos) return true;
      absl::SleepFor(absl::Milliseconds(50));
    }
    return false;
  };
  EXPECT_TRUE(says("its checkpoint is not written")) << d.log();
  EXPECT_THAT(d.log(), HasSubstr("No space left on device"));
  EXPECT_EQ(d.Status().phase, client::Phase::kTraining);
  ASSERT_EQ(std::system(absl::StrCat(within, "rm ", state, "/filler'").c_str()),
            0);
  EXPECT_TRUE(says("checkpoints are written again")) << d.log();
}

// Where the others were is on disk: "c" knows b's address from a alone, and a
// is gone when it comes back.
TEST(KnownMembers, AreFoundAgainWithoutThoseOfTheSettings) {
  TemporaryFolder folder;
  const auto make = [&](const std::string& name,
                        const std::vector<std::string>& peers) {
    DaemonProcess::Options options;
    options.name = name;
    options.folder = folder.path();
    options.data_yaml = "participation: observe\n";
    options.peers = peers;
    return DaemonProcess(options);
  };
  DaemonProcess a = make("a", {});
  ASSERT_TRUE(a.Start()) << a.log();
  DaemonProcess b = make("b", {a.peer_address()});
  ASSERT_TRUE(b.Start()) << b.log();
  DaemonProcess c = make("c", {a.peer_address()});
  ASSERT_TRUE(c.Start()) << c.log();
  ASSERT_TRUE(Eventually(kPatience, [&] {
    const auto kept = ReadFile(folder.File("c.state/members"));
    return kept.find(b.peer_address()) != std::string::npos;
  })) << c.log();
  c.Kill();
  a.Kill();
  ASSERT_TRUE(c.Start()) << c.log();
  EXPECT_TRUE(c.StatusBecomes(kPatience, [](const client::NodeStatus& status) {
    return std::any_of(
        status.peers.begin(), status.peers.end(),
        [](const auto& peer) { return peer.node == "b" && peer.linked; });
  })) << c.log();
}

}  // namespace
}  // namespace dfl::testing_support
