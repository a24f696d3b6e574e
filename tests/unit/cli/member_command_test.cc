// What one target tells of the whole network: status, node, ping, wait, event
// and top, against a daemon that knows box-1 to box-5.
#include <gmock/gmock.h>

#include <algorithm>
#include <thread>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "cli/exit_codes.h"
#include "daemon/control/member_proto.h"
#include "daemon/records/record_content.h"
#include "tests/unit/cli/fake_daemon.h"

namespace dfl::cli {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

class MemberCommandTest : public CliTest {
 protected:
  MemberCommandTest() : daemon_(StartDaemon("box-1")) {
    environment_["DFLCTL_TARGET"] = "unix:" + Socket("box-1");
  }

  json Ask(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"-o", "json"});
    const Result result = Run(arguments);
    EXPECT_FALSE(result.out.empty()) << result.err;
    return json::parse(result.out, nullptr, /*allow_exceptions=*/false);
  }
  static std::vector<std::string> Names(const json& members) {
    std::vector<std::string> names;
    for (const json& member : members) {
      names.push_back(member.at("node").get<std::string>());
    }
    return names;
  }
  // All who are there say that they are in `phase`.
  void SetPhase(ports::Phase phase) {
    for (const char* name : {"box-1", "box-2", "box-3", "box-4"}) {
      control::DaemonStatus status = control::SampleStatus(name);
      status.node.phase = phase;
      daemon_.SetReport(name,
                        control::MemberReport(status, absl::Milliseconds(250)));
    }
  }

  control::FakeBackend& daemon_;
};

TEST_F(MemberCommandTest, StatusOfOneTargetIsThatOfAllMembers) {
  const Result result = Run({"status"});
  EXPECT_EQ(result.code, 0) << result.err;
  const std::vector<std::string> lines = absl::StrSplit(result.out, '\n');
  ASSERT_EQ(lines.size(), 7u) << result.out;
  EXPECT_THAT(lines[0], AllOf(StartsWith("NODE   STATE     PHASE     "),
                              HasSubstr("  AGE")));
  EXPECT_THAT(lines[1], StartsWith("box-1  member    training  1000/4000"));
  EXPECT_THAT(lines[2], StartsWith("box-2  degraded  training"));
  EXPECT_THAT(lines[3], StartsWith("box-3  suspect   training"));
  EXPECT_THAT(lines[5], StartsWith("box-5  dead      -  "));
  EXPECT_THAT(result.err,
              HasSubstr("box-2 is degraded: the model's file is missing"));
  // What is said of several is one line.
  EXPECT_THAT(result.err,
              HasSubstr("box-1, box-2, box-3 and 1 more: 3 mini-batches"));
  EXPECT_THAT(Run({"status", "-o", "wide"}).out,
              AllOf(HasSubstr("SAVED"), HasSubstr("site=north"),
                    HasSubstr("10.0.0.2:7600"), HasSubstr("LibTorch 2.6.0"),
                    HasSubstr("2 (2 of 2 processors are idle)")));
}

TEST_F(MemberCommandTest, StatusInJsonHasTheTargetAndItsMembers) {
  const json status = Ask({"status"});
  EXPECT_EQ(status["targets"][0]["status"]["node"], "box-1");
  EXPECT_THAT(Names(status["members"]),
              ElementsAre("box-1", "box-2", "box-3", "box-4", "box-5"));
  const json& second = status["members"][1];
  EXPECT_EQ(second["state"], "degraded");
  EXPECT_EQ(second["status"]["step"], 1000);
  EXPECT_GE(second["age_seconds"].get<double>(), 0.25);
  EXPECT_EQ(second["labels"]["site"], "south");
  const json& dead = status["members"][4];
  EXPECT_EQ(dead["ok"], false);
  EXPECT_EQ(dead["error"]["code"], "unreachable");
  EXPECT_FALSE(dead.contains("status"));
  // A line for each member.
  const std::string lines = Run({"status", "-o", "jsonl"}).out;
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 5);
}

TEST_F(MemberCommandTest, LocalIsTheTargetAlone) {
  const json status = Ask({"status", "--local"});
  EXPECT_FALSE(status.contains("members"));
  EXPECT_THAT(daemon_.questions(), IsEmpty());
}

TEST_F(MemberCommandTest, ASelectionIsByNameOrByLabel) {
  EXPECT_THAT(Names(Ask({"status", "--node", "box-2,box-3"})["members"]),
              ElementsAre("box-2", "box-3"));
  EXPECT_THAT(Names(Ask({"node", "list", "--label", "site=south"})["members"]),
              ElementsAre("box-2", "box-4"));
  const Result wrong = Run({"status", "--node", "box-22"});
  EXPECT_EQ(wrong.code, 1);
  EXPECT_THAT(wrong.err, HasSubstr("box-2"));
  EXPECT_EQ(Run({"status", "--local", "--node", "box-2"}).code, 2);
}

TEST_F(MemberCommandTest, WhoDoesNotAnswerIsNamedAndTheExitCodeIsSix) {
  daemon_.SetReport("box-3", absl::DeadlineExceededError("no answer in 5s"));
  const Result result = Run({"status"});
  EXPECT_EQ(result.code, kPartlyDone);
  EXPECT_THAT(result.err, HasSubstr("dflctl: box-3: no answer in 5s\n"));
  EXPECT_THAT(result.out, HasSubstr("box-4  member"));
}

TEST_F(MemberCommandTest, AMembersTextCannotSteerTheTerminal) {
  control::MemberTable members = control::SampleMembers();
  members.members[1].reason = "\x1b[31mred";
  daemon_.SetMembers(members);
  daemon_.SetReport("box-3", absl::InternalError("\x1b]0;title"));
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{"status"},
                                             {"node", "list"},
                                             {"node", "show", "box-2"},
                                             {"node", "show", "box-3"},
                                             {"top", "--once"}}) {
    const Result result = Run(command);
    EXPECT_THAT(result.out + result.err, Not(HasSubstr("\x1b")))
        << command.back();
  }
}

TEST_F(MemberCommandTest, NodeListIsTheTableOfMembers) {
  const Result result = Run({"node", "list"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, StartsWith("NODE   STATE      FOR  TAKES PART  "));
  EXPECT_THAT(result.out, HasSubstr("\nbox-4  member    40 s  observe"));
  EXPECT_THAT(result.out, HasSubstr("the model's file is missing\n"));
  EXPECT_THAT(daemon_.questions(), IsEmpty());
  const json list = Ask({"node", "list"});
  EXPECT_EQ(list["node"], "box-1");
  EXPECT_EQ(list["members"][0]["plan_hash"], "00c0ffee00c0ffee");
}

TEST_F(MemberCommandTest, NodeShowIsOneMemberWithItsOwnReport) {
  const Result result = Run({"node", "show", "box-2"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("state          degraded\n"),
                    HasSubstr("reason         the model's file is missing\n"),
                    HasSubstr("step           1000/4000\n")));
  // One that is gone is shown, and that it says nothing; the target answers.
  const Result gone = Run({"node", "show", "box-5"});
  EXPECT_EQ(gone.code, kPartlyDone);
  EXPECT_THAT(gone.out, HasSubstr("state          dead\n"));
}

TEST_F(MemberCommandTest, PingTellsTimeAndLinks) {
  daemon_.SetReport("box-3", absl::DeadlineExceededError("no answer in 2s"));
  const Result one = Run({"ping", "box-2"});
  EXPECT_EQ(one.code, 0) << one.err;
  EXPECT_EQ(one.out, "box-2: 1.00 ms over 2 links\n");
  const Result both = Run({"ping", "box-2", "box-3", "--within=2s"});
  EXPECT_EQ(both.code, kPartlyDone);
  EXPECT_THAT(both.err, HasSubstr("box-3: "));
  const json pings = Ask({"ping", "box-2"});
  EXPECT_EQ(pings["pings"][0]["round_trip_seconds"], 0.001);
  EXPECT_EQ(pings["pings"][0]["hops"], 2);
  EXPECT_EQ(Run({"ping", "box-2", "--within=1ms"}).code, 2);
}

TEST_F(MemberCommandTest, WaitEndsWhenAllConditionsHold) {
  SetPhase(ports::Phase::kFinished);
  const Result result = Run({"wait", "--for", "phase=finished", "--for",
                             "members>=4", "--for", "step>=1000"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.out, "met after 0 s\n");
}

TEST_F(MemberCommandTest, WaitWaitsForWhatIsNotYetSo) {
  std::thread later([this] {
    // Once it was seen not to be so.
    while (daemon_.questions().empty()) absl::SleepFor(absl::Milliseconds(1));
    SetPhase(ports::Phase::kFinished);
  });
  const Result result =
      Run({"wait", "--for", "phase=finished", "--timeout=60s"});
  later.join();
  EXPECT_EQ(result.code, 0) << result.err;
}

TEST_F(MemberCommandTest, ATimeoutOfWaitIsFiveAndNamesWhoIsMissing) {
  control::DaemonStatus slow = control::SampleStatus("box-2");
  slow.node.step = 7;
  daemon_.SetReport("box-2",
                    control::MemberReport(slow, absl::Milliseconds(250)));
  const Result step =
      Run({"wait", "--for", "step>=1000", "--timeout=100ms", "-o", "json"});
  EXPECT_EQ(step.code, kTimeout);
  EXPECT_THAT(step.err, HasSubstr("dflctl: step>=1000: box-2 is at step 7\n"));
  const json told = json::parse(step.out);
  EXPECT_EQ(told["met"], false);
  EXPECT_THAT(Names(told["missing"]), ElementsAre("box-2"));
  const Result members = Run({"wait", "--for=members>=9", "--timeout=100ms"});
  EXPECT_EQ(members.code, kTimeout);
  EXPECT_THAT(members.err, HasSubstr("4 of 9 members are there"));
}

TEST_F(MemberCommandTest, WaitForAPlanNamesWhoHasNotAdoptedIt) {
  control::PlanDocument plan;
  plan.yaml = kPlan;
  plan.version = 3;
  daemon_.SetPlan(plan);
  control::MemberTable members = control::SampleMembers();
  for (control::MemberInfo& member : members.members) {
    member.plan_version = 3;
    member.plan_hash = records::PlanMark(plan.yaml);
  }
  members.members[1].plan_version = 2;
  daemon_.SetMembers(members);
  const Result result =
      Run({"wait", "--for", "plan=adopted", "--timeout=100ms"});
  EXPECT_EQ(result.code, kTimeout);
  EXPECT_THAT(result.err,
              HasSubstr("plan=adopted: box-2 has plan version 2 in force; it "
                        "is degraded: the model's file is missing\n"));
  members.members[1].plan_version = 3;
  daemon_.SetMembers(members);
  EXPECT_EQ(Run({"wait", "--for", "plan=adopted"}).code, 0);
  // Two documents of one version are not one plan.
  members.members[2].plan_hash = 1;
  daemon_.SetMembers(members);
  EXPECT_THAT(Run({"wait", "--for", "plan=adopted", "--timeout=100ms"}).err,
              HasSubstr("box-3 has another plan of version 3"));
}

// What the target holds counts, and not what it has in force itself.
TEST_F(MemberCommandTest, WaitForAPlanLooksAtTheTargetAsAtTheOthers) {
  control::PlanDocument plan;
  plan.yaml = kPlan;
  plan.version = 3;
  daemon_.SetPlan(plan);
  control::MemberTable members = control::SampleMembers();
  for (control::MemberInfo& member : members.members) {
    member.plan_version = 3;
    member.plan_hash = records::PlanMark(plan.yaml);
  }
  members.members[0].plan_hash = 1;
  daemon_.SetMembers(members);
  const Result one = Run({"wait", "--for", "plan=adopted", "--timeout=100ms"});
  EXPECT_EQ(one.code, kTimeout);
  EXPECT_THAT(one.err, AllOf(HasSubstr("box-1 has another plan of version 3"),
                             Not(HasSubstr("box-2 has another plan"))));
  // All have the same one, and it is another.
  for (control::MemberInfo& member : members.members) member.plan_hash = 1;
  daemon_.SetMembers(members);
  EXPECT_EQ(Run({"wait", "--for", "plan=adopted", "--timeout=100ms"}).code,
            kTimeout);
}

TEST_F(MemberCommandTest, WaitForTheEndIsNotForOneThatDrains) {
  SetPhase(ports::Phase::kFinished);
  daemon_.SetReport("box-2",
                    control::MemberReport(control::SampleStatus("box-2"),
                                          absl::Milliseconds(250)));
  EXPECT_EQ(Run({"wait", "--for", "phase=finished", "--timeout=100ms"}).code,
            kTimeout);
  control::MemberTable members = control::SampleMembers();
  members.members[1].state = control::MemberState::kDraining;
  daemon_.SetMembers(members);
  // It is there all the same.
  const Result result = Run({"wait", "--for", "phase=finished", "--for",
                             "members>=4", "--timeout=20s"});
  EXPECT_EQ(result.code, 0) << result.err;
}

// As before a machine is switched off: it drains, and is waited for.
TEST_F(MemberCommandTest, WaitIsForThoseThatDrainWhereNobodyElseIsMeant) {
  control::MemberTable members = control::SampleMembers();
  for (control::MemberInfo& member : members.members) {
    if (member.state != control::MemberState::kDead) {
      member.state = control::MemberState::kDraining;
    }
  }
  daemon_.SetMembers(members);
  SetPhase(ports::Phase::kTraining);
  const Result early =
      Run({"wait", "--for", "phase=paused", "--timeout=100ms"});
  EXPECT_EQ(early.code, kTimeout);
  EXPECT_THAT(early.err, HasSubstr("box-1 is training"));
  SetPhase(ports::Phase::kPaused);
  const Result result = Run({"wait", "--for", "phase=paused", "--timeout=20s"});
  EXPECT_EQ(result.code, 0) << result.err;
}

TEST_F(MemberCommandTest, WaitForTheEndGivesUpWhereItCannotCome) {
  SetPhase(ports::Phase::kFailed);
  const Result result = Run({"wait", "--for", "phase=finished"});
  EXPECT_EQ(result.code, kTrainingFailed);
  EXPECT_THAT(result.err, HasSubstr("box-1 is failed"));
}

TEST_F(MemberCommandTest, WaitUnderstandsWhatItIsTold) {
  EXPECT_THAT(Run({"wait", "--for", "phase=finishd"}).err,
              HasSubstr("did you mean \"finished\"?"));
  EXPECT_EQ(Run({"wait", "--for", "step>=many"}).code, 2);
  EXPECT_EQ(Run({"wait", "--for", "weather=fine"}).code, 2);
  EXPECT_EQ(Run({"wait"}).code, 2);
  EXPECT_EQ(Run({"wait", "--for", "members>=1", "--timeout=x"}).code, 2);
}

TEST_F(MemberCommandTest, EventsAreListedByTime) {
  daemon_.Emit(ports::PhaseChanged{ports::Phase::kIdle, ports::Phase::kTraining,
                                   "started"});
  const Result result = Run({"event", "list"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out,
              AllOf(StartsWith("TIME "), HasSubstr("phase-changed")));
  const json events = Ask({"event", "list", "--kind", "phase-changed"});
  ASSERT_EQ(events["events"].size(), 1u);
  EXPECT_EQ(events["events"][0]["kind"], "phase-changed");
  EXPECT_EQ(events["targets"][0]["forgotten"], 0);
  EXPECT_THAT(Run({"event", "list", "--kind", "phase-chnged"}).err,
              HasSubstr("did you mean \"phase-changed\"?"));
}

TEST_F(MemberCommandTest, TopOnceIsATableOrADocument) {
  const Result table = Run({"top", "--once", "--sort", "state"});
  EXPECT_EQ(table.code, 0) << table.err;
  const std::vector<std::string> lines = absl::StrSplit(table.out, '\n');
  EXPECT_THAT(lines[1], StartsWith("box-2  degraded"));
  const json top = Ask({"top", "--once", "--filter", "box-1"});
  ASSERT_EQ(top["members"].size(), 1u);
  const json& first = top["members"][0];
  EXPECT_EQ(first["step"], 1000);
  EXPECT_EQ(first["neighbours"], 2);
  EXPECT_EQ(first["staleness_steps"], 2);
  EXPECT_NEAR(first["saved_share"].get<double>(), 1 - 1234567.0 / 45000000,
              1e-9);
  // Nobody sits there.
  const Result nobody = Run({"top"});
  EXPECT_EQ(nobody.code, 2);
  EXPECT_THAT(nobody.err, HasSubstr("--once"));
  EXPECT_EQ(Run({"top", "--once", "--sort", "los"}).code, 2);
}

// A plan that follows the network has the graph of those who are there.
TEST_F(MemberCommandTest, TheGraphOfAPlanThatFollowsTheNetworkIsShown) {
  control::PlanDocument plan;
  plan.yaml =
      "run: 00c0ffee00c0ffee\nversion: 1\nseed: 1\nparticipants: all\n"
      "model: {kind: cnn}\nalgorithm: {name: d-psgd}\n"
      "topology: {kind: ring}\n";
  plan.version = 1;
  daemon_.SetPlan(plan);
  const json shown = Ask({"topology", "show"});
  // Box-4 only watches, and box-5 is dead.
  EXPECT_THAT(Names(shown["nodes"]), ElementsAre("box-1", "box-2", "box-3"));
  // A node of its own knobs may be one that is not there yet.
  const Result set =
      Run({"participation", "set", "--node", "box-22", "nu=0.5", "--dry-run"});
  EXPECT_THAT(set.err, HasSubstr("no member is called \"box-22\" at the "
                                 "moment; did you mean \"box-2\"?"));
}

TEST_F(MemberCommandTest, APlanIsWarnedOfWhoseMembersAreNotThere) {
  const std::string file =
      WriteFile("plan.yaml",
                "members: [box-1, box-2, nobody]\nmodel: {kind: cnn}\n"
                "algorithm: {name: d-psgd}\ntopology: {kind: path}\n");
  const Result applied = Run({"plan", "apply", file, "--dry-run"});
  EXPECT_THAT(applied.err, HasSubstr("not in the network now: nobody"));
}

// Any of several targets answers for the network.
TEST_F(MemberCommandTest, WaitTellsWhatItWaitsForMeanwhile) {
  const Result result =
      Run({"wait", "--for", "members>=99", "--timeout=3500ms"});
  EXPECT_EQ(result.code, kTimeout);
  EXPECT_THAT(result.err, HasSubstr("dflctl: not yet after "));
  EXPECT_THAT(result.err, HasSubstr("members>=99: "));
}

TEST_F(MemberCommandTest, ATargetThatIsDownIsPassedOver) {
  const Result result = Run({"node", "list", "-t", "unix:" + Socket("none"),
                             "-t", "unix:" + Socket("box-1")});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("box-4"));
}

TEST_F(MemberCommandTest, NamesAreCompletedWithThoseOfMembers) {
  EXPECT_THAT(Run({"__complete", "node", "show", "box-"}).out,
              StartsWith("box-1\nbox-2\nbox-3\nbox-4\nbox-5\n"));
  EXPECT_THAT(Run({"__complete", "status", "--label", "site=s"}).out,
              StartsWith("site=south\n"));
}

}  // namespace
}  // namespace dfl::cli
