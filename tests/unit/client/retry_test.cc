#include "client/retry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace dfl {
namespace client {
namespace {

// A clock that only sleeping moves.
class Retry : public ::testing::Test {
 protected:
  absl::Status Run(absl::Duration timeout, std::vector<absl::Status> answers) {
    return RetryUnavailable(
        policy_, timeout,
        [&](absl::Duration left) {
          left_.push_back(left);
          return answers[std::min(left_.size(), answers.size()) - 1];
        },
        [&] { return now_; },
        [&](absl::Duration wait) {
          waits_.push_back(wait);
          now_ += wait;
        });
  }

  RetryPolicy policy_;
  absl::Time now_ = absl::UnixEpoch();
  std::vector<absl::Duration> left_;
  std::vector<absl::Duration> waits_;
};

const absl::Status kGone = absl::UnavailableError("gone");

TEST_F(Retry, SuccessIsNotTriedAgain) {
  EXPECT_TRUE(Run(absl::Seconds(10), {absl::OkStatus()}).ok());
  EXPECT_EQ(left_.size(), 1u);
  EXPECT_EQ(left_[0], absl::Seconds(10));
}

TEST_F(Retry, OtherErrorsAreNotTriedAgain) {
  EXPECT_EQ(Run(absl::Seconds(10), {absl::AbortedError("no")}).code(),
            absl::StatusCode::kAborted);
  EXPECT_EQ(left_.size(), 1u);
}

TEST_F(Retry, WaitsDoubleUpToTheirBound) {
  policy_.max_attempts = 8;
  EXPECT_EQ(Run(absl::Seconds(60), {kGone}), kGone);
  EXPECT_EQ(left_.size(), 8u);
  EXPECT_EQ(waits_,
            (std::vector<absl::Duration>{
                absl::Milliseconds(50), absl::Milliseconds(100),
                absl::Milliseconds(200), absl::Milliseconds(400),
                absl::Milliseconds(800), absl::Seconds(1), absl::Seconds(1)}));
}

TEST_F(Retry, ALaterSuccessCounts) {
  EXPECT_TRUE(Run(absl::Seconds(10), {kGone, kGone, absl::OkStatus()}).ok());
  EXPECT_EQ(left_.back(), absl::Seconds(10) - absl::Milliseconds(150));
}

TEST_F(Retry, NoWaitBeyondTheDeadline) {
  policy_.max_attempts = 100;
  EXPECT_EQ(Run(absl::Milliseconds(160), {kGone}), kGone);
  EXPECT_EQ(left_.size(), 3u);  // at 0, 50, 150 ms
  EXPECT_LE(now_, absl::UnixEpoch() + absl::Milliseconds(160));
}

}  // namespace
}  // namespace client
}  // namespace dfl
