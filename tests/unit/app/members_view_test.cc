// What control tells of members, over the table that membership keeps.
#include "daemon/app/views/members_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/synchronization/notification.h"
#include "daemon/app/event_hub.h"
#include "daemon/app/event_loop.h"
#include "daemon/app/logger.h"
#include "dfl/control/v1/control.pb.h"
#include "tests/unit/app/backend_stage.h"

namespace dfl::app {
namespace {

using ::testing::HasSubstr;

class MembersViewTest : public ::testing::Test {
 public:
  ~MembersViewTest() override {
    view_.reset();
    loop_.RunAndWait([this] { node_.reset(); });
    worker_.Stop();
    loop_.Stop();
  }

 protected:
  void Start(bool enabled, ports::MemberFacts facts = {}) {
    runtime::NodeOptions node;
    node.self = NodeId("anna");
    runtime::MembershipOptions membership;
    membership.enabled = enabled;
    membership.self = node.self;
    membership.starts = 4;
    membership.facts = std::move(facts);
    loop_.RunAndWait([&] {
      node_ = std::make_unique<runtime::LinkedNode>(
          node, loop_, transport_, worker_, events_, runtime::RecordOptions(),
          membership);
    });
    view_ = std::make_unique<MembersView>(node.self, loop_,
                                          &node_->membership(), [] {
                                            control::DaemonStatus status;
                                            status.node.node = NodeId("anna");
                                            status.node.step = 7;
                                            return status;
                                          });
  }
  control::MemberTable Published() {
    loop_.RunAndWait([this] { view_->Publish(runtime::NodeStatus()); });
    return view_->Members();
  }
  absl::StatusOr<std::string> Ask(const std::string& name) {
    absl::StatusOr<std::string> result = absl::UnknownError("not called");
    absl::Notification called;
    view_->Ask(NodeId(name), absl::Seconds(5),
               [&](absl::StatusOr<std::string> answer) {
                 result = std::move(answer);
                 called.Notify();
               });
    called.WaitForNotification();
    return result;
  }
  absl::StatusOr<control::MemberPing> Ping(const std::string& name) {
    absl::StatusOr<control::MemberPing> result =
        absl::UnknownError("not called");
    absl::Notification called;
    view_->Ping(NodeId(name), absl::Seconds(5),
                [&](absl::StatusOr<control::MemberPing> answer) {
                  result = std::move(answer);
                  called.Notify();
                });
    called.WaitForNotification();
    return result;
  }

  Logger log_{{config::LogLevel::kError, config::LogFormat::kText}, "anna"};
  EventLoop loop_{"test-node"};
  EventHub events_{log_};
  Worker worker_{loop_, "test-encode"};
  DeafTransport transport_;
  std::unique_ptr<runtime::LinkedNode> node_;
  std::unique_ptr<MembersView> view_;
};

TEST_F(MembersViewTest, WithoutMembershipANodeKnowsOfItselfAlone) {
  Start(false);
  const control::MemberTable table = Published();
  EXPECT_TRUE(table.membership_off);
  ASSERT_EQ(table.members.size(), 1u);
  EXPECT_EQ(table.members[0].node, NodeId("anna"));
  EXPECT_EQ(table.members[0].state, control::MemberState::kAlone);
  EXPECT_TRUE(table.members[0].self);
  EXPECT_EQ(Ask("bert").status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(Ask("bert").status().message()),
              HasSubstr("membership is off"));
  EXPECT_EQ(Ping("bert").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(MembersViewTest, TellsWhatTheNodeSaysOfItself) {
  ports::MemberFacts facts;
  facts.labels = {{"site", "north"}};
  facts.addresses = {"10.0.0.1:7600"};
  facts.rows = 150;
  facts.pace = ports::Pace::kWan;
  facts.condition = ports::Condition::kDegraded;
  facts.reason = "the model's file is missing";
  Start(true, facts);
  const control::MemberTable table = Published();
  EXPECT_FALSE(table.membership_off);
  ASSERT_EQ(table.members.size(), 1u);
  const control::MemberInfo& self = table.members[0];
  EXPECT_TRUE(self.self);
  // Worse than to be alone, which it is as well.
  EXPECT_EQ(self.state, control::MemberState::kDegraded);
  EXPECT_EQ(self.reason, "the model's file is missing");
  EXPECT_EQ(self.labels.at("site"), "north");
  EXPECT_EQ(self.rows, 150);
  EXPECT_EQ(self.pace, "wan");
  EXPECT_EQ(self.starts, 4u);
}

TEST_F(MembersViewTest, ANodeWithAModelAndNobodyElseIsAlone) {
  ports::MemberFacts facts;
  facts.condition = ports::Condition::kWell;
  Start(true, facts);
  EXPECT_EQ(Published().members[0].state, control::MemberState::kAlone);
}

TEST_F(MembersViewTest, AnswersForItself) {
  Start(true);
  const absl::StatusOr<std::string> answer = Ask("anna");
  ASSERT_TRUE(answer.ok()) << answer.status();
  dfl::control::v1::MemberReport report;
  ASSERT_TRUE(report.ParseFromString(*answer));
  EXPECT_EQ(report.status().node().node(), "anna");
  EXPECT_EQ(report.status().node().step(), 7);
  const auto ping = Ping("anna");
  ASSERT_TRUE(ping.ok()) << ping.status();
  EXPECT_EQ(ping->hops, 0);
}

TEST_F(MembersViewTest, AMemberThatIsNoneIsNotFound) {
  Start(true);
  EXPECT_EQ(Ask("bert").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Ping("bert").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(MembersViewTest, KeepsTheNewestEventsAndCountsTheOthers) {
  for (int i = 0; i < 300; ++i) {
    events_.Report(ports::StepFinished{i, 0.5});
    events_.Report(ports::PlanAdopted{static_cast<uint64_t>(i), i});
  }
  const control::KeptEvents kept = events_.Events();
  ASSERT_EQ(kept.events.size(), 256u);
  EXPECT_EQ(kept.forgotten, 44);
  EXPECT_EQ(std::get<ports::PlanAdopted>(kept.events.front().event).version,
            44u);
  EXPECT_EQ(std::get<ports::PlanAdopted>(kept.events.back().event).version,
            299u);
}

}  // namespace
}  // namespace dfl::app
