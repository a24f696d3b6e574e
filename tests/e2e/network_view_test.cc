// One daemon answers for the network: three real ones, of which two know the
// first only, asked through the last.
#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/daemon_process.h"

namespace dfl::testing_support {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::Key;

class NetworkView : public testing::Test {
 protected:
  void SetUp() override {
    WriteBlobs(folder_.File("train.csv"), 60, 4, 3, 1);
    for (const char* name : {"a", "b", "c"}) {
      DaemonProcess::Options options;
      options.name = name;
      options.folder = folder_.path();
      options.train_csv = folder_.File("train.csv");
      if (!nodes_.empty()) options.peers = {nodes_[0]->peer_address()};
      nodes_.push_back(std::make_unique<DaemonProcess>(options));
      ASSERT_TRUE(nodes_.back()->Start()) << nodes_.back()->log();
    }
  }
  void TearDown() override {
    if (!HasFailure()) return;
    for (const auto& node : nodes_) std::cerr << "---- log\n" << node->log();
  }

  client::ControlClient& last() { return nodes_.back()->client(); }

  // The last daemon's table.
  std::map<std::string, client::Member> Table() {
    std::map<std::string, client::Member> members;
    const auto table = last().Members({});
    EXPECT_TRUE(table.ok()) << table.status();
    if (!table.ok()) return members;
    for (const client::Member& member : table->members) {
      members[member.node] = member;
    }
    return members;
  }
  bool AllAreThere() {
    return Eventually(absl::Seconds(20), [&] {
      const auto members = Table();
      return members.size() == 3 &&
             std::all_of(members.begin(), members.end(), [](const auto& one) {
               return one.second.present() && !one.second.suspect;
             });
    });
  }
  // What became of asking each.
  std::map<std::string, client::MemberAnswer> Ask(
      const client::MemberSelection& selection) {
    std::map<std::string, client::MemberAnswer> answers;
    client::AskOptions options;
    options.selection = selection;
    const absl::Status end = last().AskMembers(
        options,
        [&](const client::MemberAnswer& answer) {
          answers[answer.member.node] = answer;
          return true;
        },
        nullptr);
    EXPECT_TRUE(end.ok()) << end;
    return answers;
  }

  TemporaryFolder folder_;
  std::vector<std::unique_ptr<DaemonProcess>> nodes_;
};

TEST_F(NetworkView, OneDaemonTellsWhatAllSayOfThemselves) {
  ASSERT_TRUE(AllAreThere());
  const auto answers = Ask({});
  EXPECT_THAT(answers, ElementsAre(Key("a"), Key("b"), Key("c")));
  for (const auto& [name, answer] : answers) {
    ASSERT_TRUE(answer.status.ok()) << name << ": " << answer.status.status();
    EXPECT_EQ(answer.status->node.node, name);
    // Its own, and not what others know of it.
    const auto own = nodes_[static_cast<size_t>(name[0] - 'a')]->Status();
    EXPECT_EQ(answer.status->node.incarnation, own.incarnation);
    EXPECT_LT(answer.age_seconds, 10);
  }
  const auto ping = last().Ping("b", absl::Seconds(5));
  ASSERT_TRUE(ping.ok()) << ping.status();
  EXPECT_GE(ping->hops, 1);
  EXPECT_EQ(last().Ping("nobody", absl::Seconds(1)).status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(NetworkView, AMemberThatIsGoneIsAnAnswerAndAnEvent) {
  ASSERT_TRUE(AllAreThere());
  nodes_[1]->Kill();
  EXPECT_TRUE(Eventually(absl::Seconds(30), [&] {
    return Table()["b"].state == client::MemberState::kDead;
  }));
  EXPECT_THAT(Ask({}), ElementsAre(Key("a"), Key("c")));
  const auto answers = Ask({{"a", "b"}, {}});
  ASSERT_THAT(answers, ElementsAre(Key("a"), Key("b")));
  EXPECT_TRUE(answers.at("a").status.ok());
  EXPECT_EQ(answers.at("b").status.status().code(),
            absl::StatusCode::kUnavailable);
  const auto events = last().Events({{"member"}, 256});
  ASSERT_TRUE(events.ok()) << events.status();
  EXPECT_THAT(events->events,
              Contains(Field(&client::Event::text, HasSubstr("b is dead"))));
}

}  // namespace
}  // namespace dfl::testing_support
