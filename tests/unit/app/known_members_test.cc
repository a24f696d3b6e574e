#include "daemon/app/network/known_members.h"

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "daemon/simports/sim_files.h"
#include "daemon/simports/sim_loop.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dfl::app {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;
using Members = std::map<NodeId, runtime::Member>;

Members Present(const std::vector<std::string>& names) {
  Members members;
  for (const std::string& name : names) {
    members[NodeId(name)].facts.addresses = {absl::StrCat(name, ":7600")};
  }
  return members;
}

class KnownMembersTest : public testing::Test {
 protected:
  KnownMembers Make(const std::string& self = "m") {
    return KnownMembers(
        NodeId(self), files_, loop_, loop_,
        [this](std::vector<std::string> now) { candidates_ = std::move(now); },
        [this](const std::string& text) { warnings_.push_back(text); });
  }
  // A look each second.
  void LookFor(absl::Duration time, KnownMembers& known,
               const Members& members) {
    ++changes_;
    const absl::Time end = loop_.Now() + time;
    while (loop_.Now() < end) {
      known.Look(members, changes_);
      scheduler_.RunFor(absl::Seconds(1));
    }
  }
  std::string OnDisk() {
    return files_.Read(KnownMembers::kFile).value_or("nothing");
  }

  simports::SimScheduler scheduler_;
  simports::SimLoop loop_{scheduler_};
  simports::SimFiles files_;
  std::optional<std::vector<std::string>> candidates_;
  std::vector<std::string> warnings_;
  uint64_t changes_ = 0;
};

TEST_F(KnownMembersTest, AreTriedAfterARestartUntilSomebodyIsThere) {
  KnownMembers before = Make();
  before.Start();
  EXPECT_EQ(candidates_, std::nullopt);
  LookFor(absl::Seconds(10), before, Present({"a", "m", "z"}));
  EXPECT_EQ(OnDisk(), "z:7600\na:7600\n");

  KnownMembers after = Make();
  after.Start();
  EXPECT_THAT(candidates_.value(), UnorderedElementsAre("z:7600", "a:7600"));
  LookFor(KnownMembers::kStart + absl::Minutes(1), after, Present({"m"}));
  EXPECT_THAT(candidates_.value(), SizeIs(2));  // alone: they are tried on
  EXPECT_EQ(OnDisk(), "z:7600\na:7600\n");      // and not forgotten
  LookFor(absl::Seconds(2), after, Present({"m", "z"}));
  EXPECT_THAT(candidates_.value(), IsEmpty());
}

TEST_F(KnownMembersTest, ThoseWhoAreGoneOrCannotBeReachedAreLeftOut) {
  KnownMembers known = Make();
  Members members = Present({"a", "b", "c", "m"});
  members[NodeId("a")].state = ports::MemberState::kDead;
  members[NodeId("b")].facts.addresses.clear();
  LookFor(absl::Seconds(10), known, members);
  EXPECT_EQ(OnDisk(), "c:7600\n");
}

TEST_F(KnownMembersTest, NodesOfALargeNetworkKeepDifferentOnes) {
  std::vector<std::string> names;
  for (int k = 100; k < 200; ++k) names.push_back(absl::StrCat("n", k));
  KnownMembers known = Make("n150");
  LookFor(absl::Seconds(10), known, Present(names));
  EXPECT_EQ(OnDisk().substr(0, 10), "n151:7600\n");
  EXPECT_THAT(OnDisk(), HasSubstr("n182:7600\n"));
  EXPECT_THAT(OnDisk(), testing::Not(HasSubstr("n183")));
}

TEST_F(KnownMembersTest, ADiskIsWrittenToSeldomAndMayFail) {
  KnownMembers known = Make();
  LookFor(absl::Seconds(6), known, Present({"a", "m"}));
  LookFor(absl::Minutes(1), known, Present({"b", "m"}));
  EXPECT_EQ(OnDisk(), "a:7600\n");
  files_.FailWith(absl::ResourceExhaustedError("no space left"));
  LookFor(absl::Minutes(5), known, Present({"c", "m"}));
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("no space left")));
  files_.FailWith(absl::OkStatus());
  LookFor(absl::Minutes(6), known, Present({"c", "m"}));
  EXPECT_EQ(OnDisk(), "c:7600\n");
  EXPECT_THAT(warnings_, SizeIs(1));
}

TEST_F(KnownMembersTest, AFileThatIsNoListSaysNothing) {
  for (const std::string& text :
       {std::string("z:76"), std::string("\0\0", 2), std::string(),
        std::string(100000, 'x'), std::string("no address\n")}) {
    ASSERT_TRUE(files_.WriteAtomically(KnownMembers::kFile, text).ok());
    candidates_.reset();
    Make().Start();
    if (candidates_.has_value()) {
      EXPECT_THAT(*candidates_, ElementsAre("z:76"));  // torn, and an address
    }
  }
}

}  // namespace
}  // namespace dfl::app
