// What one daemon tells of the network's members, and what it has its members
// tell of themselves.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "daemon/control/member_asks.h"
#include "daemon/control/member_proto.h"
#include "dfl/control/v1/control.grpc.pb.h"
#include "tests/unit/control/control_server_fixture.h"

namespace dfl::control {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

std::vector<std::string> Names(const client::MemberTable& table) {
  std::vector<std::string> names;
  for (const client::Member& member : table.members) {
    names.push_back(member.node);
  }
  return names;
}

// A network of `count` members, n01 the one that is asked.
MemberTable ManyMembers(int count) {
  MemberTable table;
  table.self = NodeId("n01");
  for (int i = 1; i <= count; ++i) {
    MemberInfo member;
    member.node = NodeId(absl::StrCat("n", i < 10 ? "0" : "", i));
    member.pace = "lan";
    table.members.push_back(std::move(member));
  }
  table.members[0].self = true;
  return table;
}

class MemberCallTest : public ControlServerTest {
 protected:
  absl::StatusOr<std::vector<std::string>> Select(
      const client::MemberSelection& selection) {
    const auto table = client_->Members(selection);
    if (!table.ok()) return table.status();
    return Names(*table);
  }

  // All answers, in the order in which they came.
  absl::StatusOr<std::vector<client::MemberAnswer>> Ask(
      const client::AskOptions& options) {
    std::vector<client::MemberAnswer> answers;
    const absl::Status end = client_->AskMembers(
        options,
        [&](const client::MemberAnswer& answer) {
          answers.push_back(answer);
          return true;
        },
        nullptr);
    if (!end.ok()) return end;
    return answers;
  }
};

TEST_F(MemberCallTest, ListsAllThatIsKnownOfMembers) {
  Start();
  const auto table = client_->Members({});
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->node, "box-1");
  EXPECT_FALSE(table->membership_off);
  ASSERT_EQ(table->members.size(), 5u);
  const client::Member& first = table->members[0];
  EXPECT_TRUE(first.self);
  EXPECT_EQ(first.state, client::MemberState::kMember);
  EXPECT_EQ(first.participation, client::Participation::kTrain);
  EXPECT_THAT(first.labels, ElementsAre(Pair("site", "north")));
  EXPECT_THAT(first.addresses, ElementsAre("10.0.0.1:7600"));
  EXPECT_EQ(first.rows, 1000);
  EXPECT_EQ(first.plan_version, 2u);
  EXPECT_EQ(first.plan_hash, "00c0ffee00c0ffee");
  EXPECT_EQ(first.seconds_in_state, 10);
  EXPECT_EQ(first.pace, "lan");
  EXPECT_EQ(first.starts, 3u);
  EXPECT_FALSE(first.linked);
  EXPECT_TRUE(table->members[1].linked);
  EXPECT_EQ(table->members[1].state, client::MemberState::kDegraded);
  EXPECT_EQ(table->members[1].reason, "the model's file is missing");
  EXPECT_FALSE(table->members[1].self);
  EXPECT_TRUE(table->members[2].suspect);
  EXPECT_EQ(table->members[3].participation, client::Participation::kObserve);
  EXPECT_EQ(table->members[4].state, client::MemberState::kDead);
  EXPECT_FALSE(table->members[4].present());
}

TEST_F(MemberCallTest, EveryStateHasItsWord) {
  Start();
  MemberTable table = SampleMembers();
  table.membership_off = true;
  const std::vector<MemberState> states = {
      MemberState::kAlone,    MemberState::kJoining,  MemberState::kMember,
      MemberState::kDegraded, MemberState::kDraining, MemberState::kLeft,
      MemberState::kDead};
  table.members.resize(1);
  std::vector<std::string> words;
  for (const MemberState state : states) {
    table.members[0].state = state;
    backend_.SetMembers(table);
    const auto listed = client_->Members({});
    ASSERT_TRUE(listed.ok()) << listed.status();
    EXPECT_TRUE(listed->membership_off);
    words.push_back(client::MemberStateName(listed->members[0].state));
  }
  EXPECT_THAT(words, ElementsAre("alone", "joining", "member", "degraded",
                                 "draining", "left", "dead"));
}

TEST_F(MemberCallTest, SelectsByNamesAndLabels) {
  Start();
  EXPECT_THAT(*Select({{"box-4", "box-2"}, {}}), ElementsAre("box-2", "box-4"));
  EXPECT_THAT(*Select({{}, {"site=north"}}),
              ElementsAre("box-1", "box-3", "box-5"));
  EXPECT_THAT(*Select({{"box-2", "box-1"}, {"site=north"}}),
              ElementsAre("box-1", "box-2", "box-3", "box-5"));
}

TEST_F(MemberCallTest, ASelectionOfNobodySaysWhatIsNear) {
  Start();
  const absl::Status named = Select({{"box-1", "boxx-2"}, {}}).status();
  EXPECT_EQ(named.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(named.message()),
              AllOf(HasSubstr("boxx-2"), HasSubstr("box-2")));
  const absl::Status labelled = Select({{}, {"site=nort"}}).status();
  EXPECT_EQ(labelled.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(labelled.message()), HasSubstr("site=north"));
  EXPECT_EQ(Select({{}, {"north"}}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(
      Select({std::vector<std::string>(5000, "box-1"), {}}).status().code(),
      absl::StatusCode::kInvalidArgument);
  client::AskOptions options;
  options.selection.nodes = {"box-6"};
  EXPECT_EQ(Ask(options).status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(backend_.questions(), IsEmpty());
}

TEST_F(MemberCallTest, AsksAllThatAreThereAndTellsTheirOwnStatus) {
  Start();
  const auto answers = Ask({});
  ASSERT_TRUE(answers.ok()) << answers.status();
  std::vector<std::string> nodes;
  for (const client::MemberAnswer& answer : *answers) {
    ASSERT_TRUE(answer.status.ok()) << answer.status.status();
    EXPECT_EQ(answer.status->node.node, answer.member.node);
    EXPECT_EQ(answer.status->node.step, 1000);
    EXPECT_EQ(answer.asked, 4);
    // What the member says, and the way of the answer.
    EXPECT_GE(answer.age_seconds, 0.25);
    EXPECT_LT(answer.age_seconds, 10);
    nodes.push_back(answer.member.node);
  }
  EXPECT_THAT(nodes, UnorderedElementsAre("box-1", "box-2", "box-3", "box-4"));
  EXPECT_THAT(backend_.questions(), ElementsAre("box-1 in 5s", "box-2 in 5s",
                                                "box-3 in 5s", "box-4 in 5s"));
}

TEST_F(MemberCallTest, OneThatIsGoneIsNotAskedAndOnlyToldOfWhenNamed) {
  Start();
  client::AskOptions options;
  options.selection.labels = {"site=north"};
  auto answers = Ask(options);
  ASSERT_TRUE(answers.ok()) << answers.status();
  EXPECT_EQ(answers->size(), 2u);
  options.selection.nodes = {"box-5"};
  answers = Ask(options);
  ASSERT_TRUE(answers.ok()) << answers.status();
  ASSERT_EQ(answers->size(), 3u);
  for (const client::MemberAnswer& answer : *answers) {
    if (answer.member.node != "box-5") continue;
    EXPECT_EQ(answer.status.status().code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string(answer.status.status().message()),
                AllOf(HasSubstr("dead"), HasSubstr("50s")));
  }
  for (const std::string& question : backend_.questions()) {
    EXPECT_FALSE(absl::StartsWith(question, "box-5")) << question;
  }
}

TEST_F(MemberCallTest, AMemberThatDoesNotAnswerIsNoErrorOfTheCall) {
  Start();
  backend_.SetReport("box-2", absl::DeadlineExceededError("no answer in time"));
  backend_.SetReport("box-3", "no report at all");
  backend_.SetReport("box-4",
                     MemberReport(SampleStatus("box-1"), absl::Seconds(1)));
  const auto answers = Ask({});
  ASSERT_TRUE(answers.ok()) << answers.status();
  ASSERT_EQ(answers->size(), 4u);
  std::map<std::string, absl::Status> ends;
  for (const client::MemberAnswer& answer : *answers) {
    ends[answer.member.node] = answer.status.status();
  }
  EXPECT_TRUE(ends["box-1"].ok());
  EXPECT_EQ(ends["box-2"], absl::DeadlineExceededError("no answer in time"));
  EXPECT_EQ(ends["box-3"].code(), absl::StatusCode::kInternal);
  EXPECT_EQ(ends["box-4"].code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(ends["box-4"].message()), HasSubstr("another node"));
}

TEST_F(MemberCallTest, SixteenAtOnceAndEachAnswerAsItComes) {
  Start();
  backend_.SetMembers(ManyMembers(40));
  backend_.KeepAnswers();
  absl::Mutex mutex;
  int came = 0;
  absl::Status end = absl::UnknownError("it goes on");
  std::thread asker([&] {
    end = client_->AskMembers(
        {},
        [&](const client::MemberAnswer&) {
          const absl::MutexLock lock(&mutex);
          ++came;
          return true;
        },
        nullptr);
  });
  const auto told = [&](int count) {
    return Eventually([&] {
      const absl::MutexLock lock(&mutex);
      return came == count;
    });
  };
  EXPECT_TRUE(Eventually([&] { return backend_.kept_answers() == 16; }));
  EXPECT_EQ(backend_.questions().size(), static_cast<size_t>(kAsksAtOnce));
  // An answer is told though the others are not there, and makes room for the
  // next question.
  backend_.ReleaseAnswers(3);
  EXPECT_TRUE(told(3));
  EXPECT_TRUE(Eventually([&] { return backend_.kept_answers() == 16; }));
  EXPECT_EQ(backend_.questions().size(), 19u);
  for (int released = 3; released < 40;) {
    const int now = std::min(16, 40 - released);
    EXPECT_TRUE(Eventually([&] { return backend_.kept_answers() == now; }));
    backend_.ReleaseAnswers(16);
    released += now;
    EXPECT_TRUE(told(released));
  }
  asker.join();
  EXPECT_TRUE(end.ok()) << end;
}

TEST_F(MemberCallTest, ACallerThatWantsNoMoreLeavesNothingBehind) {
  options_.max_asks = 1;
  Start();
  backend_.KeepAnswers();
  // Stopped while nobody has answered.
  int polls = 0;
  absl::Status end = client_->AskMembers(
      {}, [](const client::MemberAnswer&) { return true; },
      [&] { return ++polls > 2; });
  EXPECT_TRUE(end.ok()) << end;
  // Answers that come after all hurt nobody.
  EXPECT_EQ(backend_.kept_answers(), 4);
  backend_.ReleaseAnswers(2);
  // Its place is free again.
  const absl::Time deadline = absl::Now() + absl::Seconds(10);
  int answers = 0;
  do {
    end = client_->AskMembers(
        {},
        [&](const client::MemberAnswer&) {
          ++answers;
          return false;
        },
        [&] {
          backend_.ReleaseAnswers(1);
          return absl::Now() > deadline;
        });
  } while (absl::IsResourceExhausted(end) && absl::Now() < deadline);
  EXPECT_TRUE(end.ok()) << end;
  EXPECT_EQ(answers, 1);
}

TEST_F(MemberCallTest, TooManyWhoAskAtOnceAreTurnedAway) {
  options_.max_asks = 1;
  Start();
  backend_.KeepAnswers();
  absl::Status first;
  std::thread asker([&] {
    first = client_->AskMembers(
        {}, [](const client::MemberAnswer&) { return true; }, nullptr);
  });
  EXPECT_TRUE(Eventually([&] { return backend_.kept_answers() == 4; }));
  auto other = *client::ControlClient::Connect(server_->addresses()[0]);
  const absl::Status second = other->AskMembers(
      {}, [](const client::MemberAnswer&) { return true; }, nullptr);
  EXPECT_EQ(second.code(), absl::StatusCode::kResourceExhausted) << second;
  backend_.ReleaseAnswers(4);
  asker.join();
  EXPECT_TRUE(first.ok()) << first;
}

TEST_F(MemberCallTest, ADaemonThatGoesDownMeanwhileIsAClearError) {
  Start();
  backend_.KeepAnswers();
  absl::Notification first;
  absl::Status end;
  std::thread asker([&] {
    end = client_->AskMembers(
        {},
        [&](const client::MemberAnswer&) {
          first.Notify();
          return true;
        },
        nullptr);
  });
  ASSERT_TRUE(Eventually([&] { return backend_.kept_answers() == 4; }));
  backend_.ReleaseAnswers(1);
  first.WaitForNotification();
  server_.reset();
  asker.join();
  EXPECT_EQ(end.code(), absl::StatusCode::kUnavailable) << end;
  EXPECT_THAT(std::string(end.message()), HasSubstr(options_.unix_socket));
  backend_.ReleaseAnswers(3);
}

TEST_F(MemberCallTest, ADaemonThatFallsSilentIsNotWaitedForForEver) {
  Start();
  client::ClientOptions options;
  options.timeout = absl::Milliseconds(400);
  client_ = *client::ControlClient::Connect(server_->addresses()[0], options);
  client::AskOptions ask;
  ask.within = absl::Milliseconds(100);
  backend_.KeepAnswers();
  // Not one answer.
  absl::Status end = client_->AskMembers(
      ask, [](const client::MemberAnswer&) { return true; }, nullptr);
  EXPECT_EQ(end.code(), absl::StatusCode::kDeadlineExceeded) << end;
  EXPECT_THAT(std::string(end.message()), HasSubstr("no answer within"));
  backend_.ReleaseAnswers(4);
  // One, and then none.
  int answers = 0;
  bool released = false;
  end = client_->AskMembers(
      ask,
      [&](const client::MemberAnswer&) {
        ++answers;
        return true;
      },
      [&] {
        if (!released && backend_.kept_answers() == 4) {
          released = true;
          backend_.ReleaseAnswers(1);
        }
        return false;
      });
  EXPECT_EQ(answers, 1);
  EXPECT_EQ(end.code(), absl::StatusCode::kDeadlineExceeded) << end;
  EXPECT_THAT(std::string(end.message()), HasSubstr("and then nothing"));
}

TEST_F(MemberCallTest, AStreamIsOpenedAgainAsLongAsNothingHasCome) {
  client::ClientOptions options;
  options.max_attempts = 8;
  auto early = *client::ControlClient::Connect(options_.unix_socket, options);
  int answers = 0;
  absl::Status asked;
  absl::Status watched;
  std::thread caller([&] {
    asked = early->AskMembers(
        {},
        [&](const client::MemberAnswer&) {
          ++answers;
          return true;
        },
        nullptr);
    watched = early->Watch(
        absl::Seconds(1), [](const client::WatchUpdate&) { return false; },
        nullptr);
  });
  Start();
  caller.join();
  EXPECT_TRUE(asked.ok()) << asked;
  EXPECT_EQ(answers, 4);
  EXPECT_TRUE(watched.ok()) << watched;
}

TEST_F(MemberCallTest, PingsAMember) {
  Start();
  const auto ping = client_->Ping("box-3", absl::Seconds(1));
  ASSERT_TRUE(ping.ok()) << ping.status();
  EXPECT_EQ(ping->round_trip, absl::Milliseconds(1));
  EXPECT_EQ(ping->hops, 2);
  EXPECT_THAT(backend_.questions(), ElementsAre("box-3 in 1s"));
  backend_.SetReport("box-3", absl::NotFoundError("no way to box-3"));
  EXPECT_EQ(client_->Ping("box-3", absl::Seconds(1)).status(),
            absl::NotFoundError("no way to box-3"));
  EXPECT_EQ(client_->Ping("", absl::Seconds(1)).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(MemberCallTest, TellsWhatHappenedLately) {
  Start();
  backend_.SetForgottenEvents(7);
  backend_.Emit(ports::LinkUp{NodeId("box-2"), "10.0.0.2:7600"});
  backend_.Emit(ports::StepFinished{5, 0.5});
  backend_.Emit(ports::MemberChanged{NodeId("box-3"), false, "is dead"});
  backend_.Emit(ports::MemberChanged{NodeId("box-3"), true, "is back"});
  const auto all = client_->Events({});
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(all->forgotten, 7);
  ASSERT_EQ(all->events.size(), 3u);
  EXPECT_EQ(all->events[0].kind, "link-up");
  EXPECT_EQ(all->events[0].unix_nanos, 1700000000000000000);
  const auto members = client_->Events({{"member"}, 256});
  ASSERT_TRUE(members.ok()) << members.status();
  ASSERT_EQ(members->events.size(), 2u);
  EXPECT_EQ(members->events[0].text, "box-3 is dead");
  const auto last = client_->Events({{"member", "link-up"}, 1});
  ASSERT_TRUE(last.ok()) << last.status();
  ASSERT_EQ(last->events.size(), 1u);
  EXPECT_EQ(last->events[0].text, "box-3 is back");
  const auto misspelt = client_->Events({{"membre"}, 256});
  EXPECT_EQ(misspelt.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(misspelt.status().message()), HasSubstr("member"));
}

// Every kind of the contract has a name, and that name means it.
TEST(EventKinds, EachHasAName) {
  const auto* kinds = dfl::control::v1::EventKind_descriptor();
  EXPECT_EQ(client::EventKinds().size(),
            static_cast<size_t>(kinds->value_count()) - 1);
}

TEST_F(MemberCallTest, AKindOfANewerClientIsRefused) {
  Start();
  const auto stub =
      dfl::control::v1::ControlService::NewStub(grpc::CreateChannel(
          "unix:" + options_.unix_socket, grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  dfl::control::v1::ListEventsRequest request;
  request.add_kinds(static_cast<dfl::control::v1::EventKind>(999));
  dfl::control::v1::ListEventsResponse response;
  const grpc::Status status = stub->ListEvents(&context, request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("999"));
}

}  // namespace
}  // namespace dfl::control
