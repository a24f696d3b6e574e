// Whether nodes learn together, and what those say that learn alone.
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/simports/analytic_learner.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/runtime/sim_cluster.h"

namespace dfl::runtime {
namespace {

using ports::Phase;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// A learner whose data mean what the test says.
class ContractLearner : public simports::FakeLearner {
 public:
  explicit ContractLearner(
      const std::function<void(core::DataContract&)>& change)
      : simports::FakeLearner(1000, 7), info_(simports::FakeLearner::model()) {
    info_.contract.classes = {"cat", "dog", "fox"};
    info_.contract.features = {"height", "weight"};
    info_.contract.shape = {2};
    if (change) change(info_.contract);
  }
  const ports::ModelInfo& model() const override { return info_; }

 private:
  ports::ModelInfo info_;
};

PeerStatus PeerOf(SimCluster& cluster, int64_t node, int64_t peer) {
  for (const PeerStatus& status : cluster.node(node).Status().peers) {
    if (status.node == cluster.id(peer)) return status;
  }
  return {};
}

int64_t Mixing(SimCluster& cluster, int64_t node) {
  int64_t count = 0;
  for (const PeerStatus& peer : cluster.node(node).Status().peers) {
    if (peer.mixing) ++count;
  }
  return count;
}

ClusterOptions Two(std::function<void(core::DataContract&)> change = {}) {
  ClusterOptions options;
  options.nodes = 2;
  options.learner = [change](int64_t node) {
    return std::make_unique<ContractLearner>(
        node == 1 ? change : std::function<void(core::DataContract&)>());
  };
  return options;
}

// Two daemons that differ in one field, forced past every check before: they do
// not mix, and both say so within two seconds.
TEST(Together, EachFieldOfTheContractKeepsTwoNodesApartAndIsTold) {
  const std::map<std::string, std::function<void(core::DataContract&)>> fields =
      {{"task", [](auto& c) { c.task = core::Task::kRegression; }},
       {"classes", [](auto& c) { c.classes = {"cat", "fox"}; }},
       {"features", [](auto& c) { c.features = {"weight", "height"}; }},
       {"shape", [](auto& c) { c.shape = {3}; }},
       {"input", [](auto& c) { c.input.divide = 255; }},
       {"loss", [](auto& c) { c.loss = "hinge"; }},
       {"model", [](auto& c) { c.model = std::string(64, '7'); }}};
  ASSERT_EQ(fields.size(), core::kContractFields.size());
  for (const auto& [field, change] : fields) {
    SCOPED_TRACE(field);
    SimCluster c(Two(change));
    core::RunPlan plan = c.MakePlan("d-psgd");
    plan.stop.steps = 2000;
    c.Run(plan);
    c.RunFor(absl::Seconds(2));
    for (int64_t i = 0; i < 2; ++i) {
      const PeerStatus peer = PeerOf(c, i, 1 - i);
      EXPECT_TRUE(peer.linked);
      EXPECT_FALSE(peer.mixing);
      EXPECT_THAT(peer.disagrees, ElementsAre(field));
      EXPECT_THAT(peer.not_mixing,
                  AllOf(StartsWith(field + ": "), HasSubstr(" here, "),
                        HasSubstr(" there; set ")));
      const auto told = c.log(i).Of<ports::Disagrees>();
      ASSERT_EQ(told.size(), 1U);
      EXPECT_EQ(told[0].peer, c.id(1 - i));
      EXPECT_EQ(told[0].text, peer.not_mixing);
    }
    ASSERT_TRUE(c.RunUntil([&] { return c.AllFinished(); }));
    for (int64_t i = 0; i < 2; ++i) {
      const NodeStatus status = c.node(i).Status();
      EXPECT_EQ(status.models_received, 0);
      EXPECT_THAT(status.phase_reason,
                  HasSubstr("2000 steps are done; learned alone: no model came "
                            "from its 1 neighbour, because n"));
      EXPECT_THAT(status.phase_reason, HasSubstr(field));
      EXPECT_EQ(c.log(i).Count<ports::Disagrees>(), 1);
      EXPECT_EQ(c.log(i).Count<ports::LearnsAlone>(), 1);
    }
  }
}

TEST(Together, NodesThatMixSaySoAndSoTheyDoAtTheEnd) {
  ClusterOptions options;
  options.nodes = 3;
  RunTwice(options, [](SimCluster& c) {
    core::RunPlan plan = c.MakePlan("d-psgd");
    plan.stop.steps = 1000;
    c.Run(plan);
    ASSERT_TRUE(c.RunToStep(20));
    for (int64_t i = 0; i < 3; ++i) {
      EXPECT_EQ(Mixing(c, i), 2);
      EXPECT_EQ(PeerOf(c, i, (i + 1) % 3).not_mixing, "");
    }
    ASSERT_TRUE(c.RunUntil([&] { return c.AllFinished(); }));
    c.RunFor(absl::Seconds(5));
    for (int64_t i = 0; i < 3; ++i) {
      EXPECT_EQ(Mixing(c, i), 2);
      EXPECT_EQ(c.node(i).Status().alone, "");
      EXPECT_EQ(c.node(i).Status().phase_reason, "1000 steps are done");
      EXPECT_EQ(c.log(i).Count<ports::LearnsAlone>(), 0);
      EXPECT_EQ(c.log(i).Count<ports::Disagrees>(), 0);
    }
  });
}

// Another run, another algorithm, not started, no plan, not linked, frozen: the
// node learns alone, says why once, and says when it is over.
class Alone : public testing::Test {
 protected:
  // n0 trains by `plan`; what n1 does is the test's.
  void Begin(const std::function<void(core::RunPlan&)>& other,
             bool start = true) {
    plan_ = c_.MakePlan("d-psgd");
    core::RunPlan second = plan_;
    if (other) other(second);
    ASSERT_TRUE(c_.SetPlan(0, plan_).ok());
    ASSERT_TRUE(c_.SetPlan(1, second).ok());
    ASSERT_TRUE(c_.node(0).Start().ok());
    if (start) {
      ASSERT_TRUE(c_.node(1).Start().ok());
    }
  }
  // n0 learns alone, and says why.
  void ExpectAlone(const std::string& why) {
    c_.RunFor(absl::Seconds(12));
    EXPECT_THAT(c_.node(0).Status().alone,
                AllOf(HasSubstr("1 neighbour, because n1: "), HasSubstr(why)));
    EXPECT_EQ(c_.log(0).Count<ports::LearnsAlone>(), 1);
    EXPECT_FALSE(PeerOf(c_, 0, 1).mixing);
    EXPECT_THAT(PeerOf(c_, 0, 1).not_mixing, HasSubstr(why));
  }
  void ExpectTogether() {
    c_.RunFor(absl::Seconds(8));
    EXPECT_EQ(c_.node(0).Status().alone, "");
    const auto told = c_.log(0).Of<ports::LearnsAlone>();
    ASSERT_EQ(told.size(), 2U);
    EXPECT_EQ(told[1].why, "");
    EXPECT_TRUE(PeerOf(c_, 0, 1).mixing);
  }

  SimCluster c_{Two()};
  core::RunPlan plan_;
};

TEST_F(Alone, InAnotherRun) {
  Begin([](core::RunPlan& plan) { plan.run_id = "run-2"; });
  ExpectAlone("run: run-1 here, run-2 there; apply one plan to both");
  EXPECT_EQ(c_.log(0).Count<ports::Disagrees>(), 1);
  // The cause changes: told again.
  plan_.run_id = "run-3";
  ASSERT_TRUE(c_.SetPlan(1, plan_, true).ok());
  c_.RunFor(absl::Milliseconds(100));  // to the next boundary
  ASSERT_TRUE(c_.node(1).Start().ok());
  c_.RunFor(absl::Seconds(5));
  EXPECT_EQ(c_.log(0).Count<ports::Disagrees>(), 2);
  plan_.run_id = "run-1";
  ASSERT_TRUE(c_.SetPlan(1, plan_, true).ok());
  c_.RunFor(absl::Milliseconds(100));  // to the next boundary
  ASSERT_TRUE(c_.node(1).Start().ok());
  ExpectTogether();
}

TEST_F(Alone, WithAnotherAlgorithm) {
  Begin([](core::RunPlan& plan) { plan.algorithm.name = "decefl"; });
  ExpectAlone("algorithm: d-psgd here, decefl there");
}

TEST_F(Alone, BesideOneThatWasNotStarted) {
  Begin({}, false);
  ExpectAlone("it has not been started");
  ASSERT_TRUE(c_.node(1).Start().ok());
  ExpectTogether();
}

TEST_F(Alone, BesideOneThatIsPaused) {
  Begin({});
  ASSERT_TRUE(c_.RunToStep(20));
  ASSERT_TRUE(c_.node(1).Pause().ok());
  ExpectAlone("it is paused");
  EXPECT_THAT(c_.node(0).Status().alone,
              StartsWith("no model has come since step "));
  ASSERT_TRUE(c_.node(1).Resume().ok());
  ExpectTogether();
}

TEST_F(Alone, BesideOneThatIsGone) {
  Begin({});
  ASSERT_TRUE(c_.RunToStep(20));
  c_.Crash(1);
  ExpectAlone("it is not linked: ");
  c_.Restart(1);
  ASSERT_TRUE(c_.node(1).Start().ok());
  ExpectTogether();
}

TEST_F(Alone, BesideOneThatIsFrozenLongBeforeItsLinkIsGivenUp) {
  Begin({});
  ASSERT_TRUE(c_.RunToStep(20));
  c_.network().BlackHole("n0:1", "n1:1");
  c_.RunFor(absl::Seconds(8));
  EXPECT_TRUE(PeerOf(c_, 0, 1).linked);
  EXPECT_THAT(c_.node(0).Status().alone, HasSubstr("linked and silent"));
  c_.network().Heal("n0:1", "n1:1");
  c_.RunFor(absl::Seconds(15));
  EXPECT_EQ(c_.node(0).Status().alone, "");
}

// One that computes for a minute says nothing meanwhile; it is not frozen.
TEST(Together, ASlowNeighbourIsNoReason) {
  ClusterOptions options;
  options.nodes = 2;
  options.gradient_delay = [](int64_t) { return absl::Seconds(30); };
  SimCluster c(options);
  c.Run(c.MakePlan("d-psgd"));
  ASSERT_TRUE(c.RunToStep(3, absl::Minutes(5)));
  for (int64_t i = 0; i < 2; ++i) {
    EXPECT_EQ(c.node(i).Status().alone, "");
    EXPECT_EQ(c.log(i).Count<ports::LearnsAlone>(), 0);
    EXPECT_EQ(Mixing(c, i), 1);
  }
}

// What exchanges nothing by its nature is not alone.
TEST(Together, AnAlgorithmWithoutExchangeIsNotAlone) {
  ClusterOptions options;
  options.nodes = 2;
  SimCluster c(options);
  core::RunPlan plan = c.MakePlan("local");
  plan.stop.steps = 1000;
  c.Run(plan);
  ASSERT_TRUE(c.RunUntil([&] { return c.AllFinished(); }));
  EXPECT_EQ(c.node(0).Status().phase_reason, "1000 steps are done");
  EXPECT_EQ(c.log(0).Count<ports::LearnsAlone>(), 0);
}

}  // namespace
}  // namespace dfl::runtime
