// Questions to members anywhere in the network, and probes on demand.
#include "daemon/runtime/membership/queries.h"

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/unit/membership/path_node.h"

namespace dfl::runtime {
namespace {

constexpr int32_t kTopic = 3;

class QueriesTest : public testing::Test {
 protected:
  QueriesTest() : nodes_(network_, 24) {}
  void SetUp() override { ASSERT_TRUE(nodes_.Settle()); }

  // A node that `from` is not linked with.
  PathNode& Far(const PathNode& from) {
    for (const auto& node : nodes_.nodes) {
      if (node->id != from.id && !from.IsLinked(node->id.name())) return *node;
    }
    ADD_FAILURE() << "all are linked";
    return nodes_[1];
  }

  absl::StatusOr<std::string> Ask(PathNode& from, const NodeId& target,
                                  absl::Duration within = absl::Seconds(4)) {
    std::optional<absl::StatusOr<std::string>> result;
    from.queries.Ask(target, kTopic, within,
                     [&](absl::StatusOr<std::string> answer) {
                       EXPECT_FALSE(result.has_value());
                       result = std::move(answer);
                     });
    EXPECT_FALSE(result.has_value());
    scheduler_.RunUntil([&] { return result.has_value(); },
                        within + absl::Seconds(1));
    return result.has_value() ? *result : absl::InternalError("never done");
  }

  simports::SimScheduler scheduler_;
  simports::SimNetwork network_{scheduler_, 1, {}};
  PathNetwork nodes_;
};

TEST_F(QueriesTest, AMemberThatIsNotLinkedAnswers) {
  PathNode& far = Far(nodes_[0]);
  far.queries.SetAnswer(kTopic, [] { return "all is well"; });
  const auto answer = Ask(nodes_[0], far.id);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(*answer, "all is well");
  EXPECT_EQ(far.queries.kept(), 0U);
  // And a node itself.
  nodes_[0].queries.SetAnswer(kTopic, [] { return "here"; });
  EXPECT_EQ(*Ask(nodes_[0], nodes_[0].id), "here");
}

TEST_F(QueriesTest, ALongAnswerComesInPartsOfOneAnswer) {
  PathNode& far = Far(nodes_[0]);
  int asked = 0;
  std::string sent;
  far.queries.SetAnswer(kTopic, [&] {
    ++asked;
    sent.assign(static_cast<size_t>(ports::kMaxAnswerBytes), 'a');
    for (size_t i = 0; i < sent.size(); i += 1000) {
      sent[i] = static_cast<char>('a' + i / 1000 % 26);
    }
    return sent;
  });
  const auto answer = Ask(nodes_[0], far.id, absl::Seconds(20));
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(*answer, sent);
  EXPECT_EQ(asked, 1);
}

TEST_F(QueriesTest, AnEmptyAnswerIsOne) {
  PathNode& far = Far(nodes_[0]);
  far.queries.SetAnswer(kTopic, [] { return ""; });
  const auto answer = Ask(nodes_[0], far.id);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(*answer, "");
}

TEST_F(QueriesTest, ALostQuestionIsAskedOnceMore) {
  PathNode& far = Far(nodes_[0]);
  far.queries.SetAnswer(kTopic, [] { return std::string(50000, 'x'); });
  far.lose_queries = 1;
  const auto answer = Ask(nodes_[0], far.id);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->size(), 50000U);
  far.lose_queries = 2;
  EXPECT_TRUE(absl::IsDeadlineExceeded(Ask(nodes_[0], far.id).status()));
}

TEST_F(QueriesTest, WhyThereIsNoAnswer) {
  PathNode& far = Far(nodes_[0]);
  const absl::Status none = Ask(nodes_[0], far.id).status();
  EXPECT_TRUE(absl::IsUnavailable(none));
  EXPECT_EQ(none.message(),
            absl::StrCat(far.id.name(), " answers no questions of topic 3"));
  far.queries.SetAnswer(
      kTopic, [] { return absl::FailedPreconditionError("it has no plan"); });
  const absl::Status own = Ask(nodes_[0], far.id).status();
  EXPECT_TRUE(absl::IsUnavailable(own));
  EXPECT_EQ(own.message(), "it has no plan");
  far.queries.SetAnswer(kTopic, [] {
    return std::string(static_cast<size_t>(ports::kMaxAnswerBytes) + 1, 'x');
  });
  EXPECT_TRUE(absl::IsUnavailable(Ask(nodes_[0], far.id).status()));
  EXPECT_TRUE(absl::IsNotFound(Ask(nodes_[0], NodeId("stranger")).status()));
  far.deaf = true;
  const absl::Time start = scheduler_.Now();
  const absl::Status late =
      Ask(nodes_[0], far.id, absl::Milliseconds(700)).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(late));
  EXPECT_EQ(late.message(),
            absl::StrCat(far.id.name(), " did not answer within 700ms"));
  EXPECT_EQ(scheduler_.Now() - start, absl::Milliseconds(700));
  // Somebody who is linked with nobody.
  PathNode lonely(network_, "lonely");
  lonely.standing.Stop();
  lonely.Set(far.id, PathNetwork::MemberOf(far));
  const absl::Status no_way = Ask(lonely, far.id).status();
  EXPECT_TRUE(absl::IsNotFound(no_way)) << no_way;
}

TEST_F(QueriesTest, ManyQuestionsWaitForEachOtherAndAllEnd) {
  for (const auto& node : nodes_.nodes) {
    const std::string text = node->id.name();
    node->queries.SetAnswer(kTopic, [text] { return text; });
  }
  size_t answered = 0;
  for (int i = 0; i < 300; ++i) {
    const NodeId target = nodes_[static_cast<size_t>(1 + i % 23)].id;
    nodes_[0].queries.Ask(target, kTopic, absl::Seconds(10),
                          [&, target](absl::StatusOr<std::string> answer) {
                            ASSERT_TRUE(answer.ok()) << answer.status();
                            EXPECT_EQ(*answer, target.name());
                            ++answered;
                          });
    EXPECT_LE(nodes_[0].queries.under_way(), Queries::kMostUnderWay);
  }
  scheduler_.RunFor(absl::Seconds(5));
  EXPECT_EQ(answered, 300U);
  EXPECT_EQ(nodes_[0].queries.under_way(), 0U);
}

TEST_F(QueriesTest, AnswersThatNobodyFetchesAreFew) {
  PathNode& far = Far(nodes_[0]);
  far.queries.SetAnswer(kTopic, [] { return std::string(100000, 'x'); });
  for (uint64_t i = 1; i <= 200; ++i) {
    ports::QueryFrame query;
    query.route = {.origin = NodeId("nobody"), .target = far.id};
    query.number = i;
    query.topic = kTopic;
    far.queries.OnFrame(nodes_[0].id, query);
    EXPECT_LE(far.queries.kept(), Queries::kMostKept);
  }
  scheduler_.RunFor(absl::Seconds(10));
  PathNode& near = nodes_[0];
  EXPECT_TRUE(Ask(near, far.id).ok());
}

TEST_F(QueriesTest, ADestroyedAskerIsNotCalledBack) {
  PathNode& far = Far(nodes_[0]);
  far.deaf = true;
  bool called = false;
  nodes_[0].queries.Ask(far.id, kTopic, absl::Seconds(1),
                        [&](const auto&) { called = true; });
  nodes_.nodes[0].reset();
  nodes_.nodes.erase(nodes_.nodes.begin());
  scheduler_.RunFor(absl::Seconds(5));
  EXPECT_FALSE(called);
}

class PingsTest : public QueriesTest {
 protected:
  absl::StatusOr<Ping> SendPing(PathNode& from, const NodeId& target,
                                absl::Duration within = absl::Seconds(1)) {
    std::optional<absl::StatusOr<Ping>> result;
    from.pings.Send(target, within,
                    [&](absl::StatusOr<Ping> ping) { result = ping; });
    EXPECT_FALSE(result.has_value());
    scheduler_.RunUntil([&] { return result.has_value(); },
                        within + absl::Seconds(1));
    return result.has_value() ? *result : absl::InternalError("never done");
  }
  uint64_t AskIncarnation(PathNode& from, const NodeId& target) {
    std::optional<uint64_t> result;
    from.pings.AskIncarnation(
        target, absl::Seconds(1),
        [&](uint64_t incarnation) { result = incarnation; });
    scheduler_.RunUntil([&] { return result.has_value(); }, absl::Seconds(2));
    return result.value_or(4711);
  }
};

TEST_F(PingsTest, TheyTellTheTimeAndTheWay) {
  const auto near = SendPing(
      nodes_[0], *nodes_[0].standing.overlay().LinksOf(nodes_[0].id).begin());
  ASSERT_TRUE(near.ok()) << near.status();
  EXPECT_EQ(near->hops, 1);
  EXPECT_GT(near->round_trip, absl::ZeroDuration());
  PathNode& far = Far(nodes_[0]);
  const auto there = SendPing(nodes_[0], far.id);
  ASSERT_TRUE(there.ok()) << there.status();
  EXPECT_GE(there->hops, 2);
  EXPECT_GT(there->round_trip, near->round_trip);
  EXPECT_TRUE(SendPing(nodes_[0], nodes_[0].id).ok());
  EXPECT_TRUE(
      absl::IsNotFound(SendPing(nodes_[0], NodeId("stranger")).status()));
  far.deaf = true;
  EXPECT_TRUE(absl::IsDeadlineExceeded(SendPing(nodes_[0], far.id).status()));
}

TEST_F(PingsTest, TheHolderOfANameIsFoundThoughItsNearestWayIsBroken) {
  PathNode& far = Far(nodes_[0]);
  EXPECT_EQ(nodes_[0].pings.IncarnationOf(far.id), 1U);
  EXPECT_EQ(nodes_[0].pings.IncarnationOf(NodeId("stranger")), 0U);
  EXPECT_EQ(AskIncarnation(nodes_[0], far.id), 1U);
  const NodeId first = nodes_[0].standing.overlay().NextHop(
      far.id, NodeId(), nodes_[0].routes.LinkedPeers());
  for (const auto& node : nodes_.nodes) {
    if (node->id == first) node->deaf = true;
  }
  EXPECT_FALSE(SendPing(nodes_[0], far.id).ok());
  EXPECT_EQ(AskIncarnation(nodes_[0], far.id), 1U);
  far.deaf = true;
  EXPECT_EQ(AskIncarnation(nodes_[0], far.id), 0U);
}

}  // namespace
}  // namespace dfl::runtime
