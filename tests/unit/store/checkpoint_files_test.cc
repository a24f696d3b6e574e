#include "daemon/store/checkpoint_files.h"

#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/checksum.h"
#include "daemon/base/rng.h"
#include "daemon/simports/sim_files.h"
#include "dfl/storage/v1/storage.pb.h"
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
constexpr int64_t kKeep = 2;

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
  head.written = absl::FromUnixSeconds(1700000000 + step);
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
  ASSERT_TRUE(store.Write(Sample(10), kKeep).ok());
  CheckpointFiles later(files);
  const auto read = later.Read("run-1", 10);
  ASSERT_TRUE(read.ok()) << read.status();
  ExpectEqual(*read, Sample(10));
}

TEST(CheckpointFiles, KeepsTheLastTwoOverRestarts) {
  SimFiles files;
  for (const int64_t step : {1, 2, 3}) {
    CheckpointFiles store(files);
    ASSERT_TRUE(store.Write(Sample(step), kKeep).ok());
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
    ASSERT_TRUE(store.Write(Sample(3), kKeep).ok());
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

// All but the checksums may be made up.
TEST(CheckpointFiles, AHeadThatCannotBeIsBroken) {
  struct Case {
    const char* what;
    void (*change)(CheckpointHead&);
  };
  constexpr auto kMost = int64_t{1} << 53;
  const Case good[] = {
      {"nothing", [](CheckpointHead&) {}},
      {"large", [](CheckpointHead& h) { h.step = kMost; }},
      {"no partners", [](CheckpointHead& h) { h.partners.clear(); }},
      {"no position", [](CheckpointHead& h) { h.position.reset(); }},
  };
  const Case bad[] = {
      {"count", [](CheckpointHead& h) { h.step = -1; }},
      {"count", [](CheckpointHead& h) { h.step = kMost + 1; }},
      {"count", [](CheckpointHead& h) { h.pace.steps = -1; }},
      {"count", [](CheckpointHead& h) { h.pace.rounds = kMost + 1; }},
      {"count", [](CheckpointHead& h) { h.idle = -1; }},
      {"count", [](CheckpointHead& h) { h.gradients = -1; }},
      {"count", [](CheckpointHead& h) { h.epochs.per_pass = -1; }},
      {"count",
       [](CheckpointHead& h) {
         h.epochs.from = std::numeric_limits<int64_t>::min();
       }},
      {"count", [](CheckpointHead& h) { h.epochs.counted = -1; }},
      {"count", [](CheckpointHead& h) { h.epochs.before = -1; }},
      {"count", [](CheckpointHead& h) { h.epochs.before = std::nan(""); }},
      {"count", [](CheckpointHead& h) { h.position->row = -1; }},
      {"count", [](CheckpointHead& h) { h.position->rows = -1; }},
      {"partners", [](CheckpointHead& h) { h.partners = {"b", "a"}; }},
      {"partners", [](CheckpointHead& h) { h.partners = {"a", "a"}; }},
      {"partners", [](CheckpointHead& h) { h.partners = {"no name!"}; }},
      {"partners", [](CheckpointHead& h) { h.partners = {""}; }},
  };
  const auto read = [](const Case& c) {
    Checkpoint checkpoint = Sample(1);
    c.change(checkpoint.head);
    SimFiles files;
    EXPECT_TRUE(
        WriteCheckpoint(files, "checkpoint.0", 1, checkpoint, kGo).ok());
    const absl::Status head =
        ReadCheckpointHead(files, "checkpoint.0").status();
    EXPECT_EQ(ReadCheckpoint(files, "checkpoint.0").status(), head);
    return head;
  };
  for (const Case& c : good) EXPECT_TRUE(read(c).ok()) << c.what;
  for (const Case& c : bad) {
    const absl::Status status = read(c);
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.what));
  }
}

// The file of `head`, which need not be true, with a right checksum.
std::string FileOf(const dfl::storage::v1::CheckpointHead& head,
                   const std::string& body) {
  const auto number = [](uint32_t value) {
    std::string raw(sizeof(value), '\0');
    std::memcpy(raw.data(), &value, sizeof(value));
    return raw;
  };
  const std::string text = head.SerializeAsString();
  const std::string start = absl::StrCat(
      "DFLCKPT\n", number(1), number(static_cast<uint32_t>(text.size())), text);
  return absl::StrCat(start, number(Crc32c(start)), body, number(Crc32c(body)));
}

TEST(CheckpointFiles, LengthsBeyondTheFileAreTornAndTakeNoMemory) {
  dfl::storage::v1::CheckpointHead head;
  head.set_generation(1);
  for (int i = 0; i < 7; ++i) head.add_contract(0);
  const auto status = [&head] {
    SimFiles files;
    EXPECT_TRUE(files.WriteAtomically("c", FileOf(head, "12345678")).ok());
    EXPECT_EQ(ReadCheckpointHead(files, "c").status().message() == "it is torn",
              ReadCheckpoint(files, "c").status().message() == "it is torn");
    return ReadCheckpoint(files, "c").status();
  };
  head.set_parameter_count(1);  // the state of an algorithm is missing
  EXPECT_TRUE(absl::IsDataLoss(status()));
  // So many that their bytes are none, modulo 2^64.
  for (const uint64_t count :
       {uint64_t{2}, uint64_t{1} << 40, uint64_t{1} << 61, uint64_t{1} << 62,
        (uint64_t{1} << 61) + 1, ~uint64_t{0}}) {
    head.set_parameter_count(count);
    EXPECT_EQ(status().message(), "it is torn") << count;
  }
  head.set_parameter_count(1);
  head.set_buffer_count(uint64_t{1} << 62);
  EXPECT_EQ(status().message(), "it is torn");
  head.set_buffer_count(0);
  head.set_algorithm_bytes(~uint64_t{0});
  EXPECT_EQ(status().message(), "it is torn");
  // Of one purpose there is one.
  head.set_algorithm_bytes(0);
  for (int i = 0; i < 2; ++i) {
    dfl::storage::v1::Generator& generator =
        *head.mutable_decisions()->add_generators();
    generator.set_purpose("asks");
    for (uint64_t word = 1; word <= 4; ++word) generator.add_state(word);
  }
  EXPECT_THAT(std::string(status().message()), HasSubstr("generator"));
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
  ASSERT_TRUE(store.Write(Sample(1), kKeep).ok());
  ASSERT_TRUE(store.Write(Sample(2), kKeep).ok());
  files.set_capacity(0);
  EXPECT_TRUE(absl::IsResourceExhausted(store.Write(Sample(3), kKeep)));
  EXPECT_THAT(Steps(store), ElementsAre(2, 1));
  files.set_capacity(-1);
  ASSERT_TRUE(store.Write(Sample(3), kKeep).ok());
  EXPECT_THAT(Steps(store), ElementsAre(3, 2));
}

// A node that ends and starts without a step keeps both.
TEST(CheckpointFiles, TheSameStepAgainLeavesTheOneBefore) {
  SimFiles files;
  CheckpointFiles store(files);
  ASSERT_TRUE(store.Write(Sample(1), kKeep).ok());
  ASSERT_TRUE(store.Write(Sample(2), kKeep).ok());
  Checkpoint again = Sample(2);
  again.head.tracker_epoch = 9;
  ASSERT_TRUE(store.Write(again, kKeep).ok());
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
  EXPECT_THAT(notes, ElementsAre(HasSubstr("checkpoint.0 cannot be read")));
  EXPECT_THAT(store.Kept().aside[0].reason, HasSubstr("input/output error"));
  files.FailWith(absl::OkStatus());
  EXPECT_THAT(Steps(store), ElementsAre(1));
}

TEST(CheckpointFiles, AnEndStopsWhatIsBeingWritten) {
  SimFiles files;
  CheckpointFiles store(files);
  ASSERT_TRUE(store.Write(Sample(1), kKeep).ok());
  store.Stop();
  EXPECT_TRUE(absl::IsCancelled(store.Write(Sample(2), kKeep)));
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
  ASSERT_TRUE(store.Write(large, kKeep).ok());
  const auto read = store.Read("run-1", 1);
  ASSERT_TRUE(read.ok()) << read.status();
  ExpectEqual(*read, large);
}

// ---------------------------------------------------------------- retention --

TEST(CheckpointFiles, KeepsAsManyAsThePlanSays) {
  SimFiles files;
  CheckpointFiles store(files);
  for (int64_t step = 1; step <= 6; ++step) {
    ASSERT_TRUE(store.Write(Sample(step), 4).ok());
  }
  EXPECT_THAT(Steps(store), ElementsAre(6, 5, 4, 3));
  EXPECT_THAT(files.names(), ElementsAre("checkpoint.0", "checkpoint.1",
                                         "checkpoint.2", "checkpoint.3"));
  CheckpointFiles later(files);
  EXPECT_THAT(Steps(later), ElementsAre(6, 5, 4, 3));
}

// Wherever the newest ones lie.
TEST(CheckpointFiles, ALowerNumberRemovesTheSurplusAtTheNextWrite) {
  for (int64_t last = 4; last <= 8; ++last) {
    SimFiles files;
    CheckpointFiles store(files);
    for (int64_t step = 1; step <= last; ++step) {
      ASSERT_TRUE(store.Write(Sample(step), 4).ok());
    }
    EXPECT_EQ(Steps(store).size(), 4U);
    ASSERT_TRUE(store.Write(Sample(last + 1), 2).ok());
    EXPECT_THAT(Steps(store), ElementsAre(last + 1, last)) << last;
    EXPECT_THAT(files.names(), ElementsAre("checkpoint.0", "checkpoint.1"))
        << last;
    EXPECT_TRUE(store.Read("run-1", last).ok()) << last;
    CheckpointFiles later(files);
    EXPECT_THAT(Steps(later), ElementsAre(last + 1, last)) << last;
    ASSERT_TRUE(later.Write(Sample(last + 2), 3).ok());
    EXPECT_THAT(Steps(later), ElementsAre(last + 2, last + 1, last)) << last;
  }
}

TEST(CheckpointFiles, AFullDiskRemovesNoSurplus) {
  SimFiles files;
  CheckpointFiles store(files);
  for (int64_t step = 1; step <= 4; ++step) {
    ASSERT_TRUE(store.Write(Sample(step), 4).ok());
  }
  files.set_capacity(0);
  EXPECT_TRUE(absl::IsResourceExhausted(store.Write(Sample(5), 2)));
  EXPECT_THAT(Steps(store), ElementsAre(4, 3, 2, 1));
}

// --------------------------------------------------------------- for people --

TEST(CheckpointFiles, TellsWhatIsThere) {
  SimFiles files;
  {
    CheckpointFiles store(files);
    ASSERT_TRUE(store.Write(Sample(1), kKeep).ok());
    ASSERT_TRUE(store.Write(Sample(2), kKeep).ok());
    ASSERT_TRUE(files.WriteAtomically("checkpoint.0", "nonsense").ok());
  }
  for (const bool again : {false, true}) {
    CheckpointFiles store(files);
    const KeptCheckpoints kept = store.Kept();
    ASSERT_EQ(kept.whole.size(), 1U) << again;
    EXPECT_EQ(kept.whole[0].file, "checkpoint.1");
    EXPECT_EQ(kept.whole[0].read.head, Sample(2).head);
    EXPECT_EQ(kept.whole[0].read.bytes,
              static_cast<int64_t>(files.Read("checkpoint.1")->size()));
    ASSERT_EQ(kept.aside.size(), 1U) << again;
    EXPECT_EQ(kept.aside[0].file, "checkpoint.0.aside");
    EXPECT_EQ(kept.aside[0].bytes, 8);
    EXPECT_EQ(kept.aside[0].reason, "it is torn");
  }
}

TEST(CheckpointFiles, OpensTheNewestThatIsWhole) {
  SimFiles files;
  CheckpointFiles store(files);
  EXPECT_TRUE(absl::IsNotFound(store.OpenNewest().status()));
  ASSERT_TRUE(store.Write(Sample(1), kKeep).ok());
  ASSERT_TRUE(store.Write(Sample(2), kKeep).ok());
  const auto newest = store.OpenNewest();
  ASSERT_TRUE(newest.ok()) << newest.status();
  EXPECT_EQ(newest->kept.read.head.step, 2);
  EXPECT_EQ(newest->reader->size(), newest->kept.read.bytes);
  // Its vectors are damaged, which its head does not show.
  files.FlipBit("checkpoint.1", 8 * (newest->reader->size() - 6));
  const auto other = store.OpenNewest();
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_EQ(other->kept.read.head.step, 1);
  EXPECT_THAT(store.Kept().aside[0].reason,
              HasSubstr("the checksum of its vectors is wrong"));
}

// ---------------------------------------------------------------- restoring --

class UploadTest : public testing::Test {
 protected:
  // What `dflctl checkpoint save --to` wrote.
  static std::string FileOf(int64_t step) {
    SimFiles elsewhere;
    EXPECT_TRUE(
        WriteCheckpoint(elsewhere, "checkpoint.0", 1, Sample(step), kGo).ok());
    return *elsewhere.Read("checkpoint.0");
  }
  void SetUp() override {
    ASSERT_TRUE(store_.Write(Sample(1), kKeep).ok());
    ASSERT_TRUE(store_.Write(Sample(2), kKeep).ok());
  }
  absl::StatusOr<std::unique_ptr<CheckpointUpload>> Receive(size_t bytes) {
    return store_.Receive(static_cast<int64_t>(bytes),
                          [this](const ReadHead& read) {
                            ++checked_;
                            checked_head_ = read;
                            return verdict_;
                          });
  }
  // The first error of bringing `file` in pieces.
  absl::Status Bring(const std::string& file, size_t piece) {
    auto upload = Receive(file.size());
    if (!upload.ok()) return upload.status();
    for (size_t at = 0; at < file.size(); at += piece) {
      const absl::Status taken = (*upload)->Append(file.substr(at, piece));
      if (!taken.ok()) return taken;
    }
    const auto read = (*upload)->Finish();
    if (!read.ok()) return read.status();
    restored_ = *read;
    return store_.Place().status();
  }
  void ExpectOnlyTheOldOnes() {
    EXPECT_THAT(Steps(store_), ElementsAre(2, 1));
    EXPECT_THAT(files_.names(), ElementsAre("checkpoint.0", "checkpoint.1"));
  }

  SimFiles files_;
  CheckpointFiles store_{files_};
  int checked_ = 0;
  ReadHead checked_head_;
  absl::Status verdict_;
  Checkpoint restored_;
};

TEST_F(UploadTest, APlacedOneIsTheNewestAndTheOthersStayUntilItIsTaken) {
  int64_t step = 7;
  for (const size_t piece : {1, 17, 64, 1 << 20}) {
    checked_ = 0;
    ASSERT_TRUE(Bring(FileOf(step), piece).ok());
    EXPECT_EQ(checked_, 1);
    EXPECT_EQ(checked_head_.head, Sample(step).head);
    EXPECT_EQ(checked_head_.lengths.parameters, 3U);
    EXPECT_EQ(checked_head_.lengths.buffers, 1U);
    ExpectEqual(restored_, Sample(step));
    EXPECT_EQ(Steps(store_).size(), 3U);
    EXPECT_EQ(Steps(store_)[0], step);
    store_.Settle(kKeep);
    EXPECT_EQ(Steps(store_).size(), 2U);
    EXPECT_THAT(files_.names(), ElementsAre("checkpoint.0", "checkpoint.1"));
    ExpectEqual(*store_.Read("run-1", step), Sample(step));
    --step;  // an older one still
  }
  // What is written later is newer.
  ASSERT_TRUE(store_.Write(Sample(5), kKeep).ok());
  EXPECT_THAT(Steps(store_), ElementsAre(5, 4));
}

TEST_F(UploadTest, OneThatIsNotTakenGoesAgain) {
  ASSERT_TRUE(Bring(FileOf(7), 64).ok());
  store_.Withdraw(store_.Kept().whole[0].read.generation);
  ExpectOnlyTheOldOnes();
}

// What a node writes while the file is on its way is older than the file.
TEST_F(UploadTest, IsNewerThanWhatIsWrittenMeanwhile) {
  const std::string file = FileOf(7);
  auto upload = Receive(file.size());
  ASSERT_TRUE(upload.ok()) << upload.status();
  ASSERT_TRUE((*upload)->Append(file).ok());
  ASSERT_TRUE(store_.Write(Sample(3), kKeep).ok());
  ASSERT_TRUE((*upload)->Finish().ok());
  ASSERT_TRUE(store_.Place().ok());
  store_.Settle(kKeep);
  EXPECT_THAT(Steps(store_), ElementsAre(7, 3));
}

TEST_F(UploadTest, ItsHeadIsCheckedBeforeItsVectorsCome) {
  verdict_ = absl::FailedPreconditionError("another node's");
  const std::string file = FileOf(7);
  auto upload = Receive(file.size());
  ASSERT_TRUE(upload.ok()) << upload.status();
  EXPECT_EQ((*upload)->Append(file.substr(0, file.size() - 40)), verdict_);
  upload->reset();
  ExpectOnlyTheOldOnes();
}

TEST_F(UploadTest, WhatIsBrokenIsRefusedAndLeavesNothing) {
  const std::string file = FileOf(7);
  const auto refuses = [&](const std::string& broken, const std::string& what) {
    const absl::Status status = Bring(broken, 64);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << what << ": " << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("give one that `dflctl checkpoint save --to` wrote"))
        << what;
    ExpectOnlyTheOldOnes();
  };
  for (size_t length = 1; length < file.size(); ++length) {
    refuses(file.substr(0, length), "length " + std::to_string(length));
  }
  refuses(file + "x", "longer");
  refuses("PK\3\4 an archive of something else", "foreign");
  for (size_t bit = 0; bit < 8 * file.size(); bit += 3) {
    std::string flipped = file;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    const uint32_t version = static_cast<uint8_t>(flipped[8]);
    if (bit / 8 >= 8 && bit / 8 < 12 && version != 0) continue;  // below
    refuses(flipped, "bit " + std::to_string(bit));
  }
  std::string newer = file;
  newer[8] = static_cast<char>(kCheckpointFormat + 1);
  const absl::Status status = Bring(newer, 64);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("a newer dfld can read it"));
  ExpectOnlyTheOldOnes();
}

TEST_F(UploadTest, AFullDiskLeavesTheOldOnes) {
  const std::string file = FileOf(7);
  int64_t used = 0;
  for (const std::string& name : files_.names()) {
    used += static_cast<int64_t>(files_.Read(name)->size());
  }
  files_.set_capacity(used + static_cast<int64_t>(file.size()) / 2);
  EXPECT_TRUE(absl::IsResourceExhausted(Bring(file, 64)));
  ExpectOnlyTheOldOnes();
  files_.set_capacity(-1);
  EXPECT_TRUE(Bring(file, 64).ok());
}

TEST_F(UploadTest, AnInterruptedOneLeavesNothing) {
  const std::string file = FileOf(7);
  auto upload = Receive(file.size());
  ASSERT_TRUE(upload.ok()) << upload.status();
  ASSERT_TRUE((*upload)->Append(file.substr(0, file.size() - 1)).ok());
  // One at a time.
  EXPECT_TRUE(absl::IsResourceExhausted(Receive(file.size()).status()));
  upload->reset();
  ExpectOnlyTheOldOnes();
  upload = Receive(file.size());
  ASSERT_TRUE(upload.ok()) << upload.status();
  ASSERT_TRUE((*upload)->Append(file).ok());
  ASSERT_TRUE((*upload)->Finish().ok());
  upload->reset();
  ExpectOnlyTheOldOnes();
}

// The process is killed between the last piece and the rename.
TEST_F(UploadTest, WhatAKilledProcessLeftIsRemovedAtTheNextStart) {
  ASSERT_TRUE(files_.WriteAtomically("checkpoint.incoming", FileOf(7)).ok());
  CheckpointFiles later(files_);
  EXPECT_THAT(Steps(later), ElementsAre(2, 1));
  EXPECT_THAT(files_.names(), ElementsAre("checkpoint.0", "checkpoint.1"));
}

}  // namespace
}  // namespace dfl::store
