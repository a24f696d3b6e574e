#include "daemon/web/page/recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace dfl::web {
namespace {

using page::Column;
using ::testing::IsEmpty;
using ::testing::SizeIs;

runtime::PeerStatus Peer(const char* name, int64_t step, bool linked = true) {
  runtime::PeerStatus peer;
  peer.node = NodeId(name);
  peer.neighbour = true;
  peer.linked = linked;
  peer.mixing = linked;
  peer.step = step;
  return peer;
}

TEST(PointOf, TakesWhatTheStatusHas) {
  runtime::NodeStatus status;
  const page::Point empty = PointOf(status, 3);
  EXPECT_EQ(empty.at_s, 3);
  EXPECT_EQ(empty[Column::kStep], 0);
  for (const Column column :
       {Column::kLoss, Column::kTestLoss, Column::kAccuracy, Column::kConsensus,
        Column::kLag}) {
    EXPECT_TRUE(std::isnan(empty[column])) << page::NameOf(column);
  }

  status.step = 100;
  status.loss = 0.5;
  status.evaluated = true;
  status.evaluation.loss = 0.25;
  status.evaluation.accuracy = 0.75;
  status.gauges["consensus_distance"] = 0.125;
  status.bytes_sent = 10;
  status.dense_bytes_sent = 100;
  status.peers = {Peer("b", 90), Peer("c", 105), Peer("d", 1, false)};
  const page::Point point = PointOf(status, 4);
  EXPECT_EQ(point[Column::kLoss], 0.5);
  EXPECT_EQ(point[Column::kTestLoss], 0.25);
  EXPECT_EQ(point[Column::kAccuracy], 0.75);
  EXPECT_EQ(point[Column::kConsensus], 0.125);
  EXPECT_EQ(point[Column::kDenseBytesSent], 100);
  EXPECT_EQ(point[Column::kMixing], 2);
  // Of those that are linked: d said its step long ago.
  EXPECT_EQ(point[Column::kLag], 10);
  status.peers = {Peer("c", 105)};
  EXPECT_EQ(PointOf(status, 5)[Column::kLag], -5);
}

TEST(Recorder, KnowsSinceWhenAPeerGaveNothing) {
  Recorder recorder;
  runtime::NodeStatus status;
  status.peers = {Peer("b", 0), Peer("c", 0)};
  recorder.Take(status, 1);
  EXPECT_FALSE(recorder.Ages(1)[NodeId("b")].heard_s.has_value());
  status.peers[0].bytes_received = 100;
  status.peers[0].models_received = 1;
  recorder.Take(status, 2);
  status.peers[0].bytes_received = 140;
  recorder.Take(status, 5);
  recorder.Take(status, 9);
  const auto ages = recorder.Ages(10);
  EXPECT_EQ(ages.at(NodeId("b")).heard_s, 5);
  EXPECT_EQ(ages.at(NodeId("b")).model_s, 8);
  EXPECT_FALSE(ages.at(NodeId("c")).model_s.has_value());
  EXPECT_THAT(recorder.History(), SizeIs(4));
}

TEST(Recorder, ForgetsPeersThatAreGone) {
  Recorder recorder;
  runtime::NodeStatus status;
  status.peers = {Peer("b", 0)};
  recorder.Take(status, 1);
  status.peers.clear();
  recorder.Take(status, 2);
  EXPECT_THAT(recorder.Ages(2), IsEmpty());
}

}  // namespace
}  // namespace dfl::web
