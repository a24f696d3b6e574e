#include "daemon/app/service/life_signs.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dfl::app {
namespace {

using ::testing::HasSubstr;

TEST(StatusLine, SaysWhatTheNodeDoes) {
  runtime::NodeStatus status;
  EXPECT_EQ(StatusLine(status), "idle, step 0, round 0");
  status.phase = ports::Phase::kTraining;
  status.step = 1200;
  status.round = 120;
  status.stop_rounds = 500;
  status.loss = 0.43211;
  EXPECT_EQ(StatusLine(status),
            "training, step 1200, round 120 of 500, loss 0.4321");
}

TEST(StatusLine, CountsNeighboursThatAreMixedWith) {
  runtime::NodeStatus status;
  status.peers.resize(4);
  status.peers[0].neighbour = status.peers[0].mixing = true;
  status.peers[1].neighbour = true;  // not mixed with
  status.peers[2].neighbour = status.peers[2].mixing = true;
  status.peers[3].linked = true;  // no neighbour
  EXPECT_THAT(StatusLine(status), HasSubstr(", 2 of 3 neighbours"));
}

TEST(FrozenLine, SaysSinceWhenAndWhatIsUsual) {
  EXPECT_EQ(FrozenLine({absl::Seconds(312.5), absl::Milliseconds(120)}),
            "frozen: the training is at one mini-batch since 5m12s, which "
            "takes 120ms usually");
  EXPECT_EQ(FrozenLine({absl::Seconds(312.5), absl::ZeroDuration()}),
            "frozen: the training is at one mini-batch since 5m12s, and has "
            "not finished one before");
}

}  // namespace
}  // namespace dfl::app
