#include "daemon/store/checkpoint_files.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "daemon/base/rng.h"
#include "daemon/simports/sim_files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dfl::store {
namespace {

using runtime::Checkpoint;
using runtime::CheckpointHead;
using simports::SimFiles;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::atomic<bool> kGo{false};

Checkpoint Sample(int64_t step) {
  Checkpoint sample;
  CheckpointHead& head = sample.head;
  head.node = "box-7";
  head.run_id = "run-1";
  head.plan_version = 3;
  head.contract.fill(17);
  head.algorithm = "k-gt";
  head.step = step;
  head.pace = {5 * step, step};
  head.idle = 2;
  head.tracker_epoch = 4;
  head.partners = {"box-1", "box-2"};
  head.decisions.seed = ~uint64_t{0};
  head.decisions.stream = 8;
  head.decisions.generators["asks"] = {1, 2, 3, ~uint64_t{0}};
  head.gradients = 5 * step;
  head.position = ports::BatchPosition{9, 100, 2, 32};
  head.epochs = {10, 0.5, 20, 5 * step};
  auto model = std::make_shared<runtime::Snapshot>();
  model->parameters = {1.5F, -2.0F, static_cast<float>(step)};
  model->buffers = {0.25F};
  model->step = step;
  model->steps = 5 * step;
  sample.model = model;
  sample.gradient = {0.5F, 0.0F, -1.0F};
  sample.algorithm.algorithm = "k-gt";
  sample.algorithm.fields["step"] = step;
  sample.algorithm.fields["z"] = FlatVector{1, 2, 3};
  return sample;
}

void ExpectEqual(const Checkpoint& a, const Checkpoint& b) {
  EXPECT_EQ(a.head, b.head);
  EXPECT_EQ(a.model->parameters, b.model->parameters);
  EXPECT_EQ(a.model->buffers, b.model->buffers);
  EXPECT_EQ(a.model->step, b.model->step);
  EXPECT_EQ(a.model->steps, b.model->steps);
  EXPECT_EQ(a.gradient, b.gradient);
  EXPECT_EQ(a.algorithm, b.algorithm);
}

std::vector<int64_t> Steps(CheckpointFiles& store,
                           std::vector<std::string>* told = nullptr) {
  std::vector<std::string> notes;
  std::vector<int64_t> steps;
  for (const CheckpointHead& head : store.List(notes)) {
    steps.push_back(head.step);
  }
  if (told != nullptr) *told = notes;
  return steps;
}

TEST(CheckpointFiles, GivesBackWhatWasWritten) {
  SimFiles files;
  CheckpointFiles store(files);
  ASSERT_TRUE(store.Write(Sample(10)).ok());
  CheckpointFiles later(files);
  const auto read = later.Read("run-1", 10);
  ASSERT_TRUE(read.ok()) << read.status();
  ExpectEqual(*read, Sample(10));
}

TEST(CheckpointFiles, KeepsTheLastTwoOverRestarts) {
  SimFiles files;
  for (const int64_t step : {1, 2, 3}) {
    CheckpointFiles store(files);
    ASSERT_TRUE(store.Write(Sample(step)).ok());
  }
  CheckpointFiles store(files);
  EXPECT_THAT(Steps(store), ElementsAre(3, 2));
  EXPECT_TRUE(store.Read("run-1", 2).ok());
  EXPECT_TRUE(absl::IsNotFound(store.Read("run-1", 1).status()));
  EXPECT_TRUE(absl::IsNotFound(store.Read("run-2", 3).status()));
}

// Every length that a torn file may have, and every bit that may flip.
TEST(CheckpointFiles, NamesWhatIsBrokenAndUsesTheOther) {
  SimFiles whole;
  ASSERT_TRUE(WriteCheckpoint(whole, "checkpoint.1", 2, Sample(2), kGo).ok());
  const std::string bytes = *whole.Read("checkpoint.1");
  const auto try_with = [&](const std::string& broken,
                            const std::string& what) {
    SimFiles files;
    ASSERT_TRUE(WriteCheckpoint(files, "checkpoint.0", 1, Sample(1), kGo).ok());
    ASSERT_TRUE(files.WriteAtomically("checkpoint.1", broken).ok());
    CheckpointFiles store(files);
    std::vector<std::string> notes;
    const std::vector<int64_t> steps = Steps(store, &notes);
    const bool found_by_head = steps == std::vector<int64_t>{1};
    if (!found_by_head) {
      const auto read = store.Read("run-1", 2);
      ASSERT_FALSE(read.ok()) << what;
      EXPECT_THAT(read.status().message(), HasSubstr("checkpoint.1.aside"))
          << what;
      EXPECT_THAT(Steps(store), ElementsAre(1)) << what;
    } else {
      ASSERT_EQ(notes.size(), 1U) << what;
      EXPECT_THAT(notes[0], HasSubstr("it is kept as checkpoint.1.aside"));
    }
    EXPECT_EQ(*files.Read("checkpoint.1.aside"), broken) << what;
    EXPECT_TRUE(store.Read("run-1", 1).ok()) << what;
    // The next one is written where the broken one was.
    ASSERT_TRUE(store.Write(Sample(3)).ok());
    EXPECT_THAT(Steps(store), ElementsAre(3, 1)) << what;
  };
  for (size_t length = 0; length < bytes.size(); ++length) {
    try_with(bytes.substr(0, length), "length " + std::to_string(length));
  }
  try_with(bytes + "x", "longer");
  try_with("PK\3\4 an archive of something else", "foreign");
  for (size_t bit = 0; bit < 8 * bytes.size(); bit += 3) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    try_with(flipped, "bit " + std::to_string(bit));
  }
}

TEST(CheckpointFiles, ANewerFormatIsSetAsideAndSaysSo) {
  SimFiles files;
  ASSERT_TRUE(WriteCheckpoint(files, "checkpoint.0", 1, Sample(1), kGo).ok());
  std::string bytes = *files.Read("checkpoint.0");
  bytes[8] = 2;  // the format's version
  ASSERT_TRUE(files.WriteAtomically("checkpoint.0", bytes).ok());
  CheckpointFiles store(files);
  std::vector<std::string> notes;
  EXPECT_THAT(Steps(store, &notes), IsEmpty());
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_THAT(notes[0], HasSubstr("it has format 2 and this dfld knows 1"));
}

TEST(CheckpointFiles, AFullDiskLeavesBoth) {
  SimFiles files;
  CheckpointFiles store(files);
  ASSERT_TRUE(store.Write(Sample(1)).ok());
  ASSERT_TRUE(store.Write(Sample(2)).ok());
  files.set_capacity(0);
  EXPECT_TRUE(absl::IsResourceExhausted(store.Write(Sample(3))));
  EXPECT_THAT(Steps(store), ElementsAre(2, 1));
  files.set_capacity(-1);
  ASSERT_TRUE(store.Write(Sample(3)).ok());
  EXPECT_THAT(Steps(store), ElementsAre(3, 2));
}

// A node that ends and starts without a step keeps both.
TEST(CheckpointFiles, TheSameStepAgainLeavesTheOneBefore) {
  SimFiles files;
  CheckpointFiles store(files);
  ASSERT_TRUE(store.Write(Sample(1)).ok());
  ASSERT_TRUE(store.Write(Sample(2)).ok());
  Checkpoint again = Sample(2);
  again.head.tracker_epoch = 9;
  ASSERT_TRUE(store.Write(again).ok());
  EXPECT_THAT(Steps(store), ElementsAre(2, 1));
  EXPECT_EQ(store.Read("run-1", 2)->head.tracker_epoch, 9U);
}

// What cannot be read now may be whole: it stays, and is read later.
TEST(CheckpointFiles, ADiskThatFailsForAMomentLosesNothing) {
  SimFiles files;
  ASSERT_TRUE(WriteCheckpoint(files, "checkpoint.0", 1, Sample(1), kGo).ok());
  CheckpointFiles store(files);
  files.FailWith(absl::InternalError("input/output error"));
  std::vector<std::string> notes;
  EXPECT_THAT(Steps(store, &notes), IsEmpty());
  ASSERT_EQ(notes.size(), 2U);
  EXPECT_THAT(notes[0], HasSubstr("checkpoint.0 cannot be read"));
  files.FailWith(absl::OkStatus());
  EXPECT_THAT(Steps(store), ElementsAre(1));
}

TEST(CheckpointFiles, AnEndStopsWhatIsBeingWritten) {
  SimFiles files;
  CheckpointFiles store(files);
  ASSERT_TRUE(store.Write(Sample(1)).ok());
  store.Stop();
  EXPECT_TRUE(absl::IsCancelled(store.Write(Sample(2))));
  EXPECT_THAT(Steps(store), ElementsAre(1));
}

// Longer than a piece.
TEST(CheckpointFiles, ALargeOneIsWrittenInPieces) {
  Checkpoint large = Sample(1);
  auto model = std::make_shared<runtime::Snapshot>(*large.model);
  model->parameters.assign(700001, 0.5F);
  model->parameters[700000] = 7;
  large.gradient.assign(700001, -1.0F);
  large.algorithm.fields["z"] = FlatVector(700001, 2.0F);
  large.model = model;
  SimFiles files;
  CheckpointFiles store(files);
  ASSERT_TRUE(store.Write(large).ok());
  const auto read = store.Read("run-1", 1);
  ASSERT_TRUE(read.ok()) << read.status();
  ExpectEqual(*read, large);
}

}  // namespace
}  // namespace dfl::store
