// The plan from file to nodes, and every command that changes it.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "absl/time/clock.h"
#include "cli/exit_codes.h"
#include "daemon/config/plan_yaml.h"
#include "tests/unit/cli/fake_daemon.h"

namespace dfl::cli {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class PlanCommand : public CliTest {
 protected:
  core::RunPlan PlanOf(const control::FakeBackend& daemon) {
    const auto plan = config::ParsePlan(daemon.plan().yaml, "test");
    EXPECT_TRUE(plan.ok()) << plan.status();
    return plan.ok() ? *plan : core::RunPlan();
  }

  // Two daemons that hold kPlan in version 1.
  void ApplyToTwo() {
    a_ = &StartDaemon("box-1");
    b_ = &StartDaemon("box-2");
    environment_["DFLCTL_TARGET"] =
        "unix:" + Socket("box-1") + ",unix:" + Socket("box-2");
    const Result applied =
        Run({"plan", "apply", WriteFile("plan.yaml", kPlan)});
    ASSERT_EQ(applied.code, 0) << applied.err;
  }

  control::FakeBackend* a_ = nullptr;
  control::FakeBackend* b_ = nullptr;
};

TEST_F(PlanCommand, ValidateNeedsNoDaemon) {
  const Result good = Run({"plan", "validate", WriteFile("plan.yaml", kPlan)});
  EXPECT_EQ(good.code, 0) << good.err;
  EXPECT_EQ(good.out, "FOLDER/plan.yaml: valid\n");
  const Result bad = Run({"plan", "validate",
                          WriteFile("bad.yaml",
                                    "members: [a, b]\n"
                                    "topology:\n  kind: rign\n")});
  EXPECT_EQ(bad.code, 1);
  EXPECT_THAT(bad.out, IsEmpty());
  EXPECT_THAT(bad.err, HasSubstr("FOLDER/bad.yaml:3"));
  EXPECT_THAT(bad.err, HasSubstr("did you mean \"ring\""));
  EXPECT_EQ(Run({"plan", "validate", "-"}, kPlan).code, 0);
  EXPECT_EQ(Run({"plan", "validate", folder_.File("none")}).code, 1);
}

TEST_F(PlanCommand, ApplyGivesAllTheSameDocumentWithRunAndSeed) {
  ApplyToTwo();
  EXPECT_EQ(a_->plan().yaml, b_->plan().yaml);
  const core::RunPlan plan = PlanOf(*a_);
  EXPECT_EQ(plan.version, 1u);
  EXPECT_EQ(plan.run_id.size(), 14u);
  EXPECT_NE(plan.seed, 0u);
}

TEST_F(PlanCommand, ApplyAgainChangesNothingAndAChangedFileKeepsTheRun) {
  ApplyToTwo();
  const core::RunPlan first = PlanOf(*a_);
  const Result again = Run({"plan", "apply", WriteFile("plan.yaml", kPlan)});
  EXPECT_EQ(again.code, 0);
  EXPECT_THAT(again.err, HasSubstr("nothing changes in plan version 1"));
  EXPECT_EQ(a_->plan().version, 1u);

  const std::string changed = std::string(kPlan) + "batch_size: 64\n";
  const Result second =
      Run({"plan", "apply", WriteFile("plan.yaml", changed), "--yes"});
  EXPECT_EQ(second.code, 0) << second.err;
  EXPECT_THAT(second.err, HasSubstr("- batch_size: 32\n"));
  EXPECT_THAT(second.err, HasSubstr("+ batch_size: 64\n"));
  EXPECT_EQ(PlanOf(*b_).version, 2u);
  EXPECT_EQ(PlanOf(*b_).run_id, first.run_id);
  EXPECT_EQ(PlanOf(*b_).seed, first.seed);

  const Result fresh =
      Run({"plan", "apply", WriteFile("plan.yaml", changed), "--new-run"});
  EXPECT_EQ(fresh.code, 0) << fresh.err;
  EXPECT_NE(PlanOf(*b_).run_id, first.run_id);
  EXPECT_EQ(PlanOf(*b_).version, 3u);
}

TEST_F(PlanCommand, AFileMadeFromAnOlderVersionIsAConflict) {
  ApplyToTwo();
  const std::string old = a_->plan().yaml;
  ASSERT_EQ(Run({"topology", "set", "ring"}).code, 0);
  const Result conflict = Run({"plan", "apply", WriteFile("old.yaml", old)});
  EXPECT_EQ(conflict.code, 7);
  EXPECT_THAT(conflict.err, HasSubstr("made from plan version 1"));
}

TEST_F(PlanCommand, ADryRunShowsTheDaemonsFactsAndChangesNothing) {
  StartDaemon("box-1");
  const Result result = RunAt(
      "box-1", {"plan", "apply", WriteFile("plan.yaml", kPlan), "--dry-run"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("plan version 1 would be taken\n"));
  EXPECT_THAT(result.out, HasSubstr("  parameters    268362\n"));
  EXPECT_THAT(result.out,
              HasSubstr("  memory        5.00 MB in the worst case, "
                        "of 8.00 MB\n"
                        "                2.00 MB data\n"
                        "                3.00 MB for 3 neighbours: "
                        "vectors\n"));
  EXPECT_EQ(backends_[0]->plan().version, 0u);
}

TEST_F(PlanCommand, AnUnreachableTargetDoesNotStopTheOthers) {
  StartDaemon("box-1");
  environment_["DFLCTL_TARGET"] =
      "unix:" + Socket("box-1") + ",unix:" + Socket("box-9");
  const Result result = Run({"plan", "apply", WriteFile("plan.yaml", kPlan)});
  EXPECT_EQ(result.code, 6);
  EXPECT_THAT(result.out, HasSubstr("box-1.sock: plan version 1 taken"));
  EXPECT_THAT(result.err, HasSubstr("box-9.sock"));
  EXPECT_EQ(backends_[0]->plan().version, 1u);
}

TEST_F(PlanCommand, ShowPrintsTheDocument) {
  ApplyToTwo();
  EXPECT_EQ(Run({"plan", "show"}).out, a_->plan().yaml);
  const auto json =
      nlohmann::json::parse(Run({"plan", "show", "-o", "json"}).out);
  EXPECT_EQ(json["targets"][1]["version"], 1);
  EXPECT_EQ(json["targets"][1]["yaml"], a_->plan().yaml);
}

TEST_F(PlanCommand, WithoutAPlanTheNextCommandIsNamed) {
  StartDaemon("box-1");
  const Result result = RunAt("box-1", {"topology", "set", "ring"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, HasSubstr("dflctl plan apply FILE"));
}

TEST_F(PlanCommand, TopologyIsSetOnAllAndWaitedFor) {
  ApplyToTwo();
  const Result set = Run({"topology", "set", "ring", "--weights=laplacian",
                          "--wait", "--wait-timeout=5s"});
  EXPECT_EQ(set.code, 0) << set.err;
  EXPECT_EQ(set.out,
            "unix:FOLDER/box-1.sock: plan version 2 taken\n"
            "unix:FOLDER/box-2.sock: plan version 2 taken\n"
            "in force on 4 of 4 members\n");
  for (control::FakeBackend* daemon : {a_, b_}) {
    EXPECT_EQ(PlanOf(*daemon).version, 2u);
    EXPECT_EQ(PlanOf(*daemon).topology.kind, "ring");
    EXPECT_EQ(PlanOf(*daemon).topology.weights, "laplacian");
  }
  EXPECT_THAT(Run({"topology", "show"}).out,
              HasSubstr("box-1       0.333  box-2 (0.333), box-4 (0.333)"));
}

TEST_F(PlanCommand, TheGraphShownIsTheOneThatNodesDerive) {
  ApplyToTwo();
  ASSERT_EQ(
      Run({"topology", "set", "erdos-renyi", "--edge-probability=0.6"}).code,
      0);
  const auto shown =
      nlohmann::json::parse(Run({"topology", "show", "-o", "json"}).out);
  const auto nodes = core::DeriveNodePlans(PlanOf(*a_));
  ASSERT_TRUE(nodes.ok()) << nodes.status();
  ASSERT_EQ(shown.at("nodes").size(), nodes->size());
  for (size_t i = 0; i < nodes->size(); ++i) {
    std::vector<std::string> seen;
    for (const auto& neighbour : shown.at("nodes")[i].at("neighbours")) {
      seen.push_back(neighbour.at("node").get<std::string>());
    }
    std::vector<std::string> derived;
    for (const core::Neighbour& neighbour : (*nodes)[i].neighbours) {
      derived.push_back(neighbour.node.name());
    }
    EXPECT_EQ(seen, derived) << "node " << i;
  }
}

TEST_F(PlanCommand, TopologySetTakesTheParametersOfEachKind) {
  ApplyToTwo();
  ASSERT_EQ(Run({"topology", "set", "k-nearest", "--degree=2"}).code, 0);
  EXPECT_EQ(PlanOf(*a_).topology.degree, 2);
  const Result odd = Run({"topology", "set", "random-regular", "--degree=4"});
  EXPECT_EQ(odd.code, 2);
  EXPECT_THAT(odd.err, HasSubstr("topology.degree: 4"));
  ASSERT_EQ(
      Run({"topology", "set", "random-geometric", "--radius=0.8", "--every=5"})
          .code,
      0);
  EXPECT_EQ(PlanOf(*a_).topology.radius, 0.8);
  EXPECT_EQ(PlanOf(*a_).topology.every, 5);
  EXPECT_THAT(Run({"topology", "show"}).out,
              AllOf(HasSubstr("drawn afresh every 5 rounds"),
                    HasSubstr("connected over rounds")));
  // What another kind does not know goes with the kind.
  ASSERT_EQ(Run({"topology", "set", "torus"}).code, 0);
  EXPECT_EQ(PlanOf(*a_).topology.every, 0);
}

TEST_F(PlanCommand, ATimeVaryingTopologyIsShownByRound) {
  ApplyToTwo();
  ASSERT_EQ(Run({"algorithm", "set", "d-psgd"}).code, 0);
  ASSERT_EQ(
      Run({"topology", "set", "time-varying",
           "--edge-set=box-1,box-2 box-3,box-4", "--edge-set=box-2,box-3"})
          .code,
      0);
  EXPECT_THAT(Run({"topology", "show"}).out,
              AllOf(HasSubstr("2 sets of edges in turn, one every round"),
                    HasSubstr("box-1       0.500  box-2 (0.500)")));
  const auto second = nlohmann::json::parse(
      Run({"topology", "show", "--round=3", "-o", "json"}).out);
  EXPECT_EQ(second.at("edges"), 1);
  EXPECT_EQ(second.at("connected"), false);
  EXPECT_EQ(second.at("window_connected"), true);
  EXPECT_EQ(second.at("bipartite"), true);
  EXPECT_EQ(second.at("nodes")[1].at("neighbours")[0].at("node"), "box-3");
  EXPECT_EQ(Run({"topology", "show", "--round=-1"}).code, 2);
  EXPECT_EQ(Run({"topology", "set", "ring", "--edge-set=box-1,box-2"}).code, 2);
  EXPECT_EQ(Run({"topology", "set", "time-varying", "--edge-set=box-1"}).code,
            2);
}

TEST_F(PlanCommand, ADirectedTopologyIsShownWithBothMatrices) {
  ApplyToTwo();
  const std::vector<std::string> directed = {
      "topology",           "set",
      "explicit",           "--directed=on",
      "--edge=box-1,box-2", "--edge=box-2,box-3",
      "--edge=box-3,box-4", "--edge=box-4,box-1",
      "--edge=box-2,box-4"};
  const Result refused = Run(directed);
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("topology.directed: on, but pame"));
  ASSERT_EQ(Run({"algorithm", "set", "local"}).code, 0);
  ASSERT_EQ(Run(directed).code, 0);
  EXPECT_THAT(
      Run({"topology", "show"}).out,
      AllOf(HasSubstr("strongly connected"), HasSubstr("5, directed"),
            HasSubstr(
                "sums of A           rows 1.0000, columns 0.8333 to 1.3333"),
            HasSubstr("spectral gap of B"),
            HasSubstr("box-4  0.333  box-2, box-3  0.500  box-1")));
  const auto shown =
      nlohmann::json::parse(Run({"topology", "show", "-o", "json"}).out);
  EXPECT_EQ(shown.at("directed"), true);
  EXPECT_EQ(shown.at("connected"), true);
  EXPECT_EQ(shown.at("edges"), 5);
  const auto nodes = core::DeriveNodePlans(PlanOf(*a_));
  ASSERT_TRUE(nodes.ok()) << nodes.status();
  for (size_t i = 0; i < nodes->size(); ++i) {
    const auto& node = shown.at("nodes")[i];
    EXPECT_EQ(node.at("receiver_weight"), (*nodes)[i].receiver_weight);
    ASSERT_EQ(node.at("out_neighbours").size(),
              (*nodes)[i].out_neighbours.size());
    EXPECT_EQ(node.at("out_neighbours")[0].at("weight"),
              (*nodes)[i].out_neighbours[0].weight);
    EXPECT_NEAR(shown.at("column_sums_b")[i].get<double>(), 1, 1e-12);
    EXPECT_NEAR(shown.at("row_sums_a")[i].get<double>(), 1, 1e-12);
  }
}

TEST_F(PlanCommand, WaitEndsInATimeoutWhenANodeDoesNotTakeItUp) {
  ApplyToTwo();
  control::DaemonStatus former = control::SampleStatus("box-2");
  former.node.plan_version = 1;
  b_->SetStatus(former);
  b_->NeverReachABoundary();
  const Result late =
      Run({"topology", "set", "ring", "--wait", "--wait-timeout=300ms"});
  EXPECT_EQ(late.code, 6);
  EXPECT_THAT(late.out, HasSubstr("box-1.sock: plan version 2 taken"));
  EXPECT_THAT(late.err, HasSubstr("box-2.sock: took plan version 2, but it is "
                                  "not in force after 300ms"));
}

TEST_F(PlanCommand, WaitNamesTheMembersThatHaveNotAdoptedThePlan) {
  ApplyToTwo();
  a_->SetMembers(control::SampleMembers());
  const Result some = Run({"topology", "set", "ring", "--wait",
                           "--wait-timeout=300ms", "-o", "json"});
  EXPECT_EQ(some.code, kTimeout) << "nobody has it";
  EXPECT_THAT(some.err, HasSubstr("box-1 has not adopted it: member; plan "
                                  "version 2 is in force"))
      << "another document of that version";
  EXPECT_THAT(some.err, HasSubstr("box-2 has not adopted it: degraded: the "
                                  "model's file is missing"));
  EXPECT_THAT(some.err, HasSubstr("does not answer at the moment"));
  EXPECT_THAT(some.err, Not(HasSubstr("box-5"))) << "it is dead";
  const json printed = json::parse(some.out);
  EXPECT_EQ(printed["adopted"], 0);
  ASSERT_EQ(printed["not_adopted"].size(), 4u);
  EXPECT_EQ(printed["not_adopted"][1]["node"], "box-2");
}

TEST_F(PlanCommand, WaitNamesAllMembersThoughItsOwnTargetIsLate) {
  control::FakeBackend& daemon = StartDaemon("box-1");
  ASSERT_EQ(
      RunAt("box-1", {"plan", "apply", WriteFile("plan.yaml", kPlan)}).code, 0);
  daemon.NeverReachABoundary();
  const Result none = RunAt(
      "box-1", {"topology", "set", "ring", "--wait", "--wait-timeout=300ms"});
  EXPECT_EQ(none.code, kTimeout);
  EXPECT_THAT(none.err,
              AllOf(HasSubstr("box-1.sock: took plan version 2, but it is not "
                              "in force after 300ms"),
                    HasSubstr("box-1 has not adopted it"),
                    HasSubstr("box-2 has not adopted it"),
                    HasSubstr("box-4 has not adopted it")));
  daemon.LetOthersReachABoundary();
  const Result others = RunAt(
      "box-1", {"topology", "set", "star", "--wait", "--wait-timeout=300ms"});
  EXPECT_EQ(others.code, kPartlyDone);
  EXPECT_THAT(others.err, AllOf(HasSubstr("box-1 has not adopted it"),
                                Not(HasSubstr("box-2 has not adopted it"))));
}

TEST_F(PlanCommand, WaitThatLosesItsDaemonSaysSo) {
  control::FakeBackend& daemon = StartDaemon("box-1");
  daemon.SetMembers(control::SampleMembers());
  const std::string file = WriteFile("plan.yaml", kPlan);
  std::thread later([&] {
    while (daemon.plan().version == 0) absl::SleepFor(absl::Milliseconds(1));
    const int looks = daemon.member_looks();
    while (daemon.member_looks() == looks) {
      absl::SleepFor(absl::Milliseconds(1));
    }
    servers_.clear();
  });
  const Result result =
      RunAt("box-1", {"plan", "apply", file, "--wait", "--wait-timeout=2s"});
  later.join();
  EXPECT_EQ(result.code, kUnreachable);
  EXPECT_THAT(result.out, HasSubstr("plan version 1 taken"));
  EXPECT_THAT(result.err, HasSubstr("unix:FOLDER/box-1.sock: "));
}

TEST_F(PlanCommand, APastPlanCannotSteerTheTerminal) {
  control::FakeBackend& daemon = StartDaemon("box-1");
  control::PlanDocument past;
  past.yaml = "run: x\n# \x1b[31mred\nseed: 3\n";
  past.version = 7;
  daemon.SetPastPlan(past);
  const std::vector<std::string> show = {"plan", "show", "--version", "7"};
  EXPECT_EQ(RunAt("box-1", show).out, past.yaml) << "a file gets it as it is";
  out_is_terminal_ = true;
  EXPECT_EQ(RunAt("box-1", show).out, "run: x\n# ?[31mred\nseed: 3\n");
}

TEST_F(PlanCommand, PastPlansAreListedShownComparedAndBroughtBack) {
  ApplyToTwo();
  const std::string first = a_->plan().yaml;
  ASSERT_EQ(Run({"set", "batch_size=16"}).code, 0);
  ASSERT_EQ(Run({"set", "batch_size=8"}).code, 0);
  const Result history = Run({"plan", "history", "-o", "json"});
  ASSERT_EQ(history.code, 0) << history.err;
  const json plans = json::parse(history.out)["targets"][0]["plans"];
  ASSERT_EQ(plans.size(), 3u);
  EXPECT_EQ(plans[0]["version"], 1);
  EXPECT_EQ(plans[0]["kept"], true);
  EXPECT_EQ(plans[0]["newest"], false);
  EXPECT_EQ(plans[2]["newest"], true);
  EXPECT_THAT(Run({"plan", "history"}).out, HasSubstr("replaced"));

  EXPECT_EQ(Run({"plan", "show", "--version", "1"}).out, first);
  EXPECT_EQ(Run({"plan", "show", "--version", "9"}).code, kFailed);

  const Result diff = Run({"plan", "diff", "--from", "2"});
  EXPECT_EQ(diff.code, 0) << diff.err;
  EXPECT_THAT(diff.out, HasSubstr("- batch_size: 16"));
  EXPECT_THAT(diff.out, HasSubstr("+ batch_size: 8"));
  const json none = json::parse(
      Run({"plan", "diff", "--from", "3", "--to", "3", "-o", "json"}).out);
  EXPECT_EQ(none["changed"], false);
  EXPECT_EQ(Run({"plan", "diff"}).code, kUsage);

  const Result back = Run({"plan", "rollback"});
  ASSERT_EQ(back.code, 0) << back.err;
  EXPECT_THAT(back.err, HasSubstr("brings back plan version 2"));
  EXPECT_EQ(PlanOf(*a_).batch_size, 16);
  EXPECT_EQ(PlanOf(*a_).version, 4u);
  EXPECT_EQ(a_->plan().yaml, b_->plan().yaml);
  const Result further = Run({"plan", "rollback", "1"});
  ASSERT_EQ(further.code, 0) << further.err;
  EXPECT_EQ(PlanOf(*b_).version, 5u);
  EXPECT_NE(PlanOf(*b_).batch_size, 16);
  EXPECT_EQ(Run({"plan", "rollback", "77"}).code, kFailed);
}

TEST_F(PlanCommand, ARollbackStaysInItsRun) {
  ApplyToTwo();
  ASSERT_EQ(
      Run({"plan", "apply", WriteFile("new.yaml", kPlan), "--new-run"}).code,
      0);
  const Result back = Run({"plan", "rollback", "1"});
  EXPECT_EQ(back.code, kFailed);
  EXPECT_THAT(back.err, HasSubstr("a rollback stays in its run"));
  EXPECT_EQ(PlanOf(*a_).version, 2u);
}

TEST_F(PlanCommand, TopologyMistakesAreUsageErrors) {
  ApplyToTwo();
  const Result unknown = Run({"topology", "set", "rign"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("did you mean \"ring\"?"));
  EXPECT_EQ(
      Run({"topology", "set", "erdos-renyi", "--edge-probability=2"}).code, 2);
  EXPECT_EQ(Run({"topology", "set", "ring", "--edge=box-1,box-2"}).code, 2);
  EXPECT_EQ(Run({"topology", "set", "explicit", "--edge=box-1,box-2",
                 "--edge=box-2,box-3", "--edge=box-3,box-4"})
                .code,
            0);
  EXPECT_EQ(PlanOf(*a_).topology.edges.size(), 3u);
}

TEST_F(PlanCommand, ParticipationIsSetForAllOrForOneNode) {
  ApplyToTwo();
  ASSERT_EQ(Run({"participation", "set", "nu=1", "p=0.2"}).code, 0);
  EXPECT_EQ(core::ToString(PlanOf(*a_).algorithm.knobs.at("nu")), "1");
  ASSERT_EQ(Run({"participation", "set", "--node", "box-3", "nu=0.25"}).code,
            0);
  const core::RunPlan plan = PlanOf(*b_);
  EXPECT_EQ(core::ToString(plan.nodes.at(NodeId("box-3")).knobs.at("nu")),
            "0.25");
  EXPECT_EQ(plan.version, 3u);
  EXPECT_THAT(Run({"participation", "show"}).out, HasSubstr("box-3=0.25"));
  const auto json =
      nlohmann::json::parse(Run({"participation", "show", "-o", "json"}).out);
  EXPECT_EQ(json["plan_version"], 3);
  ASSERT_EQ(Run({"participation", "set", "--node=box-3", "nu=default"}).code,
            0);
  EXPECT_THAT(PlanOf(*a_).nodes, IsEmpty());
}

TEST_F(PlanCommand, KnobMistakesNameTheNearestOrTheRightNoun) {
  ApplyToTwo();
  const Result value = Run({"participation", "set", "nu=1.5"});
  EXPECT_EQ(value.code, 2);
  EXPECT_THAT(value.err, HasSubstr("nu: 1.5 is not in (0, 1]"));
  EXPECT_THAT(Run({"participation", "set", "nuu=1"}).err,
              HasSubstr("did you mean \"nu\"?"));
  EXPECT_THAT(Run({"participation", "set", "kappa=5..10"}).err,
              HasSubstr("dflctl period set kappa="));
  EXPECT_THAT(Run({"participation", "set", "--node=box-11", "nu=1"}).err,
              HasSubstr("did you mean \"box-1\"?"));
  EXPECT_THAT(Run({"participation", "set", "nu"}).err,
              HasSubstr("no KNOB=VALUE"));
  EXPECT_EQ(PlanOf(*a_).version, 1u);
}

TEST_F(PlanCommand, PeriodTakesARange) {
  ApplyToTwo();
  ASSERT_EQ(Run({"period", "set", "kappa=3..4"}).code, 0);
  EXPECT_EQ(core::ToString(PlanOf(*a_).algorithm.knobs.at("kappa")), "[3, 4]");
  EXPECT_THAT(Run({"period", "show"}).out, HasSubstr("[3, 4]"));
}

TEST_F(PlanCommand, AlgorithmsAreListedWithoutADaemonAndChanged) {
  EXPECT_THAT(Run({"algorithm", "list"}).out, HasSubstr("d-psgd"));
  EXPECT_THAT(Run({"algorithm", "show", "pame"}).out,
              HasSubstr("dflctl participation set:"));
  ApplyToTwo();
  const Result set = Run({"algorithm", "set", "d-psgd"});
  EXPECT_EQ(set.code, 0) << set.err;
  EXPECT_THAT(set.err, HasSubstr("knobs set for the former algorithm"));
  EXPECT_EQ(PlanOf(*a_).algorithm.name, "d-psgd");
  EXPECT_THAT(PlanOf(*a_).algorithm.knobs, IsEmpty());
  EXPECT_EQ(Run({"algorithm", "set", "dpsgd"}).code, 2);
}

TEST_F(PlanCommand, AnyValueIsReadAndSetByItsPath) {
  ApplyToTwo();
  EXPECT_EQ(Run({"get", "topology.kind"}).out, "complete\n");
  ASSERT_EQ(Run({"set", "topology.kind=ring", "stop.steps=8000",
                 "nodes.box-2.knobs.nu=1"})
                .code,
            0);
  EXPECT_EQ(Run({"get", "stop.steps"}).out, "8000\n");
  const core::RunPlan plan = PlanOf(*b_);
  EXPECT_EQ(plan.topology.kind, "ring");
  EXPECT_EQ(plan.stop.steps, 8000);
  EXPECT_EQ(plan.nodes.count(NodeId("box-2")), 1u);

  const Result unknown = Run({"set", "topology.knd=ring"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("kind"));
  EXPECT_EQ(Run({"set", "seed=5"}).code, 2);
  EXPECT_EQ(Run({"set", "topology.kind"}).code, 2);
  const Result get = Run({"get", "topolgy.kind"});
  EXPECT_EQ(get.code, 2);
  EXPECT_THAT(get.err, HasSubstr("did you mean \"topology\"?"));
}

TEST_F(PlanCommand, TwoPlansOfOneVersionAreAConflict) {
  ApplyToTwo();
  control::PlanDocument other = b_->plan();
  other.yaml = absl::StrReplaceAll(other.yaml, {{"size: 32", "size: 33"}});
  b_->SetPlan(other);
  const Result result = Run({"topology", "set", "ring"});
  EXPECT_EQ(result.code, 7);
  EXPECT_THAT(result.err, HasSubstr("different plans of version 1"));
  EXPECT_EQ(Run({"plan", "show"}).code, 7);
  // What the message says to do helps.
  const std::string file = WriteFile("chosen.yaml", a_->plan().yaml);
  EXPECT_EQ(Run({"plan", "apply", file}).code, 7);
  EXPECT_EQ(Run({"plan", "apply", file, "--replace"}).code, 0);
  EXPECT_EQ(a_->plan().yaml, b_->plan().yaml);
  EXPECT_EQ(PlanOf(*b_).version, 2u);
}

TEST_F(PlanCommand, ATargetThatMissedVersionsIsBroughtUp) {
  ApplyToTwo();
  ASSERT_EQ(RunAt("box-1", {"topology", "set", "ring"}).code, 0);
  ASSERT_EQ(RunAt("box-1", {"topology", "set", "star"}).code, 0);
  EXPECT_EQ(PlanOf(*b_).version, 1u);
  EXPECT_THAT(Run({"plan", "show"}).err, HasSubstr("holds version 1"));
  const Result set = Run({"set", "batch_size=16"});
  EXPECT_EQ(set.code, 0) << set.err;
  EXPECT_EQ(a_->plan().yaml, b_->plan().yaml);
  EXPECT_EQ(PlanOf(*b_).version, 4u);
  EXPECT_EQ(PlanOf(*b_).topology.kind, "star");
}

}  // namespace
}  // namespace dfl::cli
