// Networks that are cut, in both directions, in one, again and again: what the
// daemons on either side see, and that they are one network afterwards.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/faults/machines.h"
#include "tests/support/process.h"

namespace dfl::testing_support {
namespace {

using ::testing::IsEmpty;
using ::testing::UnorderedElementsAreArray;

// Of the LAN pace; see docs/membership.md.
constexpr absl::Duration kHeartbeat = absl::Seconds(5);

constexpr char kPlan[] = R"(
participants: all
model: {kind: logistic, classes: 3}
batch_size: 8
algorithm: {name: pame, knobs: {nu: 1, p: 0.5, kappa: [5, 10]}}
evaluation: {every_steps: 0}
)";

class PartitionTest : public MachinesTest {
 protected:
  // m0, m1 and so on, each of which knows the first's address.
  void StartMachines(int count) {
    for (int i = 0; i < count; ++i) {
      names_.push_back(absl::StrCat("m", i));
      networks_->AddHost(names_.back(), {AddressOf(i) + "/24"});
    }
    for (const std::string& name : names_) {
      StartOn(name, absl::StrCat("cluster: plant-4\npeers: [\"", AddressOf(0),
                                 ":7600\"]\n"));
    }
  }
  static std::string AddressOf(int i) {
    return absl::StrCat("10.77.0.", i + 1);
  }
  DaemonProcess& daemon(const std::string& name) { return *daemons_.at(name); }

  Outcome DflctlAt(const std::string& name,
                   std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(),
                     {Program("dflctl"), "--target=" + daemon(name).target()});
    return RunCommand(arguments);
  }

  std::set<std::string> PresentAt(const std::string& name) {
    std::set<std::string> present;
    const auto table = daemon(name).client().Members({});
    if (!table.ok()) return present;
    for (const client::Member& member : table->members) {
      if (member.present()) present.insert(member.node);
    }
    return present;
  }
  // Whether each of `names` sees all of them, and nobody else, within `limit`.
  bool SeeOneAnother(const std::vector<std::string>& names,
                     absl::Duration limit) {
    const std::set<std::string> all(names.begin(), names.end());
    return Eventually(limit, [&] {
      return std::all_of(
          names.begin(), names.end(),
          [&](const std::string& name) { return PresentAt(name) == all; });
    });
  }
  bool AreLinked(const std::string& a, const std::string& b) {
    return IsLinked(daemon(a).Status(), b);
  }
  // Whether both ends say `linked`, within `limit`.
  bool AgreeOnLink(const std::string& a, const std::string& b, bool linked,
                   absl::Duration limit) {
    return Eventually(limit, [&] {
      return AreLinked(a, b) == linked && AreLinked(b, a) == linked;
    });
  }
  std::map<std::string, int64_t> StepsOfAll() {
    std::map<std::string, int64_t> steps;
    for (const std::string& name : names_) {
      steps[name] = daemon(name).Status().step;
    }
    return steps;
  }
  // Those of whom not one step was made within `limit`.
  std::vector<std::string> WhoStands(absl::Duration limit) {
    const auto before = StepsOfAll();
    std::vector<std::string> standing;
    Eventually(limit, [&] {
      standing.clear();
      for (const auto& [name, step] : StepsOfAll()) {
        if (step <= before.at(name)) standing.push_back(name);
      }
      return standing.empty();
    });
    return standing;
  }

  std::vector<std::string> names_;
};

TEST_F(PartitionTest, BothPartsTrainOnAndBecomeOneAgain) {
  StartMachines(8);
  ASSERT_TRUE(SeeOneAnother(names_, kPatience));
  WriteFile(folder_.File("plan.yaml"), kPlan);
  const Outcome applied =
      DflctlAt("m4", {"plan", "apply", folder_.File("plan.yaml"), "--start",
                      "--yes", "--wait"});
  ASSERT_EQ(applied.exit_code, 0) << applied.out << applied.err;
  ASSERT_THAT(WhoStands(kPatience), IsEmpty());
  const std::string run = daemon("m0").Status().run_id;

  const std::vector<std::string> few = {"m0", "m1", "m2"};
  const std::vector<std::string> many = {"m3", "m4", "m5", "m6", "m7"};
  const absl::Time cut = absl::Now();
  networks_->CutOff(few);
  EXPECT_TRUE(SeeOneAnother(few, absl::Seconds(30)));
  EXPECT_TRUE(SeeOneAnother(many, absl::Seconds(30)));
  // What is ordered on one side is in force there.
  const Outcome changed = DflctlAt("m5", {"set", "batch_size=16", "--yes"});
  EXPECT_EQ(changed.exit_code, 0) << changed.err;
  while (absl::Now() - cut < absl::Minutes(1)) {
    EXPECT_THAT(WhoStands(absl::Seconds(15)), IsEmpty());
    absl::SleepFor(absl::Seconds(2));
  }
  for (const std::string& name : many) {
    EXPECT_EQ(daemon(name).Status().plan_version, 2u) << name;
  }
  EXPECT_EQ(daemon("m0").Status().plan_version, 1u);

  const auto before = StepsOfAll();
  networks_->JoinAgain();
  EXPECT_TRUE(SeeOneAnother(names_, kPatience));
  EXPECT_TRUE(Eventually(kPatience, [&] {
    return std::all_of(names_.begin(), names_.end(), [&](const auto& name) {
      const client::NodeStatus status = daemon(name).Status();
      return status.plan_version == 2 && status.run_id == run;
    });
  }));
  EXPECT_THAT(WhoStands(absl::Seconds(15)), IsEmpty());
  // Nobody began anew, and those of the former parts mix.
  for (const auto& [name, step] : StepsOfAll()) {
    EXPECT_GT(step, before.at(name)) << name;
  }
  EXPECT_TRUE(AgreeOnLink("m0", "m7", true, kPatience));
}

TEST_F(PartitionTest, OneDirectionIsNoLinkAtEitherEnd) {
  if (RunCommand({"iptables", "--version"}).exit_code != 0) {
    GTEST_SKIP() << "there is no iptables (Debian: iptables)";
  }
  StartMachines(3);
  ASSERT_TRUE(SeeOneAnother(names_, kPatience));
  ASSERT_TRUE(AgreeOnLink("m1", "m2", true, kPatience));
  Networks::CutOneWay("m2", AddressOf(1));
  const absl::Time cut = absl::Now();
  // One heartbeat more for the look itself.
  EXPECT_TRUE(AgreeOnLink("m1", "m2", false, 4 * kHeartbeat));
  while (absl::Now() - cut < absl::Minutes(1)) {
    EXPECT_EQ(AreLinked("m1", "m2"), AreLinked("m2", "m1"));
    // Both live, as the third one knows.
    EXPECT_THAT(PresentAt("m0"), UnorderedElementsAreArray(names_));
    absl::SleepFor(absl::Seconds(5));
  }
  Networks::HealOneWay("m2", AddressOf(1));
  EXPECT_TRUE(AgreeOnLink("m1", "m2", true, kPatience));
  EXPECT_TRUE(SeeOneAnother(names_, kPatience));
}

TEST_F(PartitionTest, AFlappingLinkIsTheSameAtBothEnds) {
  StartMachines(3);
  ASSERT_TRUE(SeeOneAnother(names_, kPatience));
  for (int i = 0; i < 20; ++i) {
    Networks::Pull("m1");
    absl::SleepFor(absl::Milliseconds(700));
    Networks::Plug("m1");
    absl::SleepFor(absl::Milliseconds(700));
  }
  EXPECT_TRUE(AgreeOnLink("m0", "m1", true, 3 * kHeartbeat));
  EXPECT_TRUE(AgreeOnLink("m1", "m2", true, 3 * kHeartbeat));
  EXPECT_TRUE(SeeOneAnother(names_, 3 * kHeartbeat));
}

}  // namespace
}  // namespace dfl::testing_support
