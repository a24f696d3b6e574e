// When the daemon is live and ready, and what probes are told.
#include "daemon/web/health.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dfl::web {
namespace {

using ::testing::HasSubstr;

const absl::Time kNow = absl::FromUnixSeconds(1000);

Sample Fresh() {
  Sample sample;
  sample.at = kNow - absl::Milliseconds(200);
  return sample;
}

HttpRequest Asked(bool verbose) {
  HttpRequest request;
  if (verbose) request.query["verbose"] = "";
  return request;
}

TEST(HealthTest, ANodeThatMovesIsLiveAndReady) {
  const Sample sample = Fresh();
  const Health health = CheckHealth(&sample, kNow, false);
  EXPECT_TRUE(health.IsLive());
  EXPECT_TRUE(health.IsReady());
  EXPECT_EQ(AnswerReady(health, Asked(false)).body, "ok\n");
}

TEST(HealthTest, AFrozenLoopIsNotLive) {
  const Sample sample = Fresh();
  const Health soon = CheckHealth(&sample, sample.at + kLoopPatience, false);
  EXPECT_TRUE(soon.IsLive());
  const Health late =
      CheckHealth(&sample, sample.at + kLoopPatience + absl::Seconds(1), false);
  EXPECT_FALSE(late.IsLive());
  EXPECT_FALSE(late.IsReady());
  const HttpResponse answer = AnswerLive(late, Asked(false));
  EXPECT_EQ(answer.status, 503);
  EXPECT_THAT(answer.body,
              HasSubstr("[-] loop: the node's loop has not moved for 1m1s"));
}

TEST(HealthTest, AFrozenTrainingIsNotLive) {
  Sample sample = Fresh();
  sample.frozen = "frozen: 6m at one gradient";
  const Health health = CheckHealth(&sample, kNow, false);
  EXPECT_FALSE(health.IsLive());
  EXPECT_THAT(AnswerLive(health, Asked(false)).body,
              HasSubstr("[-] training: frozen: 6m at one gradient"));
}

TEST(HealthTest, PeersAndDisksDoNotCountForLife) {
  Sample sample = Fresh();
  sample.daemon.node.alone = "nobody is there";
  sample.daemon.node.checkpoint_error = "the disk is full";
  EXPECT_TRUE(CheckHealth(&sample, kNow, false).IsLive());
  EXPECT_TRUE(CheckHealth(&sample, kNow, false).IsReady());
}

TEST(HealthTest, WithoutItsIdentityItIsNotReady) {
  Sample sample = Fresh();
  sample.not_ready = {"there is no valid certificate"};
  const Health health = CheckHealth(&sample, kNow, false);
  EXPECT_TRUE(health.IsLive());
  EXPECT_FALSE(health.IsReady());
  const HttpResponse answer = AnswerReady(health, Asked(true));
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(answer.body,
            "[+] loop: ok\n[+] training: ok\n[+] start: ok\n"
            "[-] taking part: there is no valid certificate\nnot ok\n");
}

TEST(HealthTest, WhileItStartsAndStopsItIsLiveAndNotReady) {
  const Health starting = CheckHealth(nullptr, kNow, false);
  EXPECT_TRUE(starting.IsLive());
  EXPECT_FALSE(starting.IsReady());
  const Sample sample = Fresh();
  const Health stopping = CheckHealth(&sample, kNow, true);
  EXPECT_TRUE(stopping.IsLive());
  EXPECT_FALSE(stopping.IsReady());
  EXPECT_THAT(AnswerReady(stopping, Asked(false)).body,
              HasSubstr("the daemon is going down"));
}

}  // namespace
}  // namespace dfl::web
