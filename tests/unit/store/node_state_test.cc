#include "daemon/store/node_state.h"

#include <cstdint>
#include <memory>
#include <string>

#include "daemon/base/checksum.h"
#include "daemon/base/rng.h"
#include "daemon/runtime/keeper/state_files.h"
#include "daemon/simports/sim_files.h"
#include "dfl/storage/v1/storage.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dfl::store {
namespace {

using simports::SimFiles;
using testing::ElementsAre;
using testing::HasSubstr;

using runtime::DesiredPhase;
using runtime::KeptPlan;
using runtime::RunState;
using runtime::StateFiles;

const NodeStateCodec kCodec;

RunState Sample(uint64_t version) {
  RunState state;
  state.node = "box-7";
  state.starts = version + 10;
  state.plan = std::make_shared<KeptPlan>(
      KeptPlan{"members: [box-7]\n", version, "run-1", "a record"});
  state.desired_phase = DesiredPhase::kTraining;
  state.added_peers = {"box-8:7000", "[fd00::9]:7000"};
  state.obeyed_order = version + 20;
  return state;
}

void Save(SimFiles& files, uint64_t version) {
  StateFiles store(files, kCodec);
  ASSERT_TRUE(store.Load().ok());
  ASSERT_TRUE(store.Save(Sample(version)).ok());
}

StateFiles::Loaded MustLoad(SimFiles& files) {
  StateFiles store(files, kCodec);
  absl::StatusOr<StateFiles::Loaded> loaded = store.Load();
  EXPECT_TRUE(loaded.ok()) << loaded.status();
  return loaded.ok() ? *std::move(loaded) : StateFiles::Loaded();
}

TEST(NodeState, AFreshDirectoryHoldsNone) {
  SimFiles files;
  const StateFiles::Loaded loaded = MustLoad(files);
  EXPECT_FALSE(loaded.found);
  EXPECT_EQ(loaded.note, "");
  EXPECT_EQ(loaded.state.starts, 0u);
  EXPECT_EQ(loaded.state.desired_phase, DesiredPhase::kIdle);
}

TEST(NodeState, ComesBackAsItWasSaved) {
  SimFiles files;
  for (const DesiredPhase phase :
       {DesiredPhase::kIdle, DesiredPhase::kTraining, DesiredPhase::kPaused,
        DesiredPhase::kStopped}) {
    StateFiles store(files, kCodec);
    ASSERT_TRUE(store.Load().ok());
    RunState state = Sample(3);
    state.desired_phase = phase;
    ASSERT_TRUE(store.Save(state).ok());
    const StateFiles::Loaded loaded = MustLoad(files);
    EXPECT_TRUE(loaded.found);
    EXPECT_EQ(loaded.note, "");
    EXPECT_EQ(loaded.state.node, "box-7");
    EXPECT_EQ(loaded.state.starts, 13u);
    EXPECT_EQ(loaded.state.plan->text, "members: [box-7]\n");
    EXPECT_EQ(loaded.state.plan->version, 3u);
    EXPECT_EQ(loaded.state.plan->run_id, "run-1");
    EXPECT_EQ(loaded.state.plan->record, "a record");
    EXPECT_EQ(loaded.state.desired_phase, phase);
    EXPECT_THAT(loaded.state.added_peers,
                ElementsAre("box-8:7000", "[fd00::9]:7000"));
  }
}

TEST(NodeState, TwoFilesAreWrittenInTurnAndTheNewestHolds) {
  SimFiles files;
  for (uint64_t version = 1; version <= 5; ++version) {
    Save(files, version);
    EXPECT_EQ(MustLoad(files).state.plan->version, version);
  }
  EXPECT_THAT(files.names(), ElementsAre("node_state.0", "node_state.1"));
  StateFiles store(files, kCodec);
  ASSERT_TRUE(store.Load().ok());
  EXPECT_EQ(store.generation(), 5u);
}

// The fifth generation stands in node_state.0, the fourth in node_state.1.
void SaveFive(SimFiles& files) {
  for (uint64_t version = 1; version <= 5; ++version) Save(files, version);
}

TEST(NodeState, EveryTruncationFallsBackToTheGenerationBeforeAndSaysSo) {
  SimFiles files;
  SaveFive(files);
  const std::string whole = *files.Read("node_state.0");
  for (size_t size = 0; size < whole.size(); ++size) {
    ASSERT_TRUE(
        files.WriteAtomically("node_state.0", whole.substr(0, size)).ok());
    const StateFiles::Loaded loaded = MustLoad(files);
    EXPECT_TRUE(loaded.found);
    EXPECT_EQ(loaded.state.plan->version, 4u) << "cut to " << size;
    EXPECT_THAT(loaded.note, HasSubstr("node_state.0: "));
    EXPECT_THAT(loaded.note, HasSubstr("the other generation, 4 "
                                       "(node_state.1), is used instead"));
  }
}

TEST(NodeState, EveryFlippedBitFallsBackToTheGenerationBefore) {
  SimFiles files;
  SaveFive(files);
  const auto bits =
      static_cast<int64_t>(8 * files.Read("node_state.0")->size());
  for (int64_t bit = 0; bit < bits; ++bit) {
    files.FlipBit("node_state.0", bit);
    const StateFiles::Loaded loaded = MustLoad(files);
    EXPECT_EQ(loaded.state.plan->version, 4u) << "bit " << bit;
    EXPECT_NE(loaded.note, "") << "bit " << bit;
    files.FlipBit("node_state.0", bit);
  }
}

TEST(NodeState, TheBrokenFileIsTheOneWrittenNext) {
  SimFiles files;
  SaveFive(files);
  ASSERT_TRUE(files.WriteAtomically("node_state.0", "").ok());
  Save(files, 6);
  const StateFiles::Loaded loaded = MustLoad(files);
  EXPECT_EQ(loaded.state.plan->version, 6u);
  EXPECT_EQ(loaded.note, "");
}

TEST(NodeState, ATornFirstGenerationCountsAsNoneAndIsSaid) {
  SimFiles files;
  ASSERT_TRUE(files.WriteAtomically("node_state.0", "").ok());
  const StateFiles::Loaded loaded = MustLoad(files);
  EXPECT_FALSE(loaded.found);
  EXPECT_THAT(loaded.note, HasSubstr("node_state.0: it is empty"));
  EXPECT_THAT(loaded.note, HasSubstr("starts as new"));
}

// The bytes of a file that holds `state`, with a right checksum.
std::string FileOf(const dfl::storage::v1::NodeState& state) {
  dfl::storage::v1::NodeStateFile file;
  file.set_format_version(1);
  file.set_state(state.SerializeAsString());
  file.set_checksum(
      ExtendCrc32c(Crc32c(absl::string_view("\x01\0\0\0", 4)), file.state()));
  return file.SerializeAsString();
}

TEST(NodeState, APlanWithoutATextIsBroken) {
  dfl::storage::v1::NodeState state;
  state.set_generation(1);
  EXPECT_TRUE(kCodec.Decode(FileOf(state)).ok());
  state.mutable_plan()->set_version(7);
  state.mutable_plan()->set_run_id("run-1");
  const absl::Status refused = kCodec.Decode(FileOf(state)).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(refused.message(), "its plan has no text");
  state.mutable_plan()->Clear();
  EXPECT_FALSE(kCodec.Decode(FileOf(state)).ok());
  state.mutable_plan()->set_text("seed: 1\n");
  EXPECT_TRUE(kCodec.Decode(FileOf(state)).ok());
  state.clear_generation();
  EXPECT_EQ(kCodec.Decode(FileOf(state)).status().code(),
            absl::StatusCode::kDataLoss);
}

TEST(NodeState, TwoBrokenFilesAreAnErrorThatSaysWhatToDo) {
  SimFiles files;
  ASSERT_TRUE(files.WriteAtomically("node_state.0", "").ok());
  ASSERT_TRUE(files.WriteAtomically("node_state.1", "junk").ok());
  StateFiles store(files, kCodec);
  const absl::Status status = store.Load().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("node_state.0: "));
  EXPECT_THAT(std::string(status.message()), HasSubstr("node_state.1: "));
  EXPECT_THAT(std::string(status.message()), HasSubstr("Remove both"));
}

TEST(NodeState, StateOfANewerDaemonIsNotOverwritten) {
  SimFiles files;
  SaveFive(files);
  storage::v1::NodeStateFile file;
  ASSERT_TRUE(file.ParseFromString(*files.Read("node_state.0")));
  file.set_format_version(2);
  file.set_checksum(
      ExtendCrc32c(Crc32c(std::string("\2\0\0\0", 4)), file.state()));
  ASSERT_TRUE(
      files.WriteAtomically("node_state.0", file.SerializeAsString()).ok());
  StateFiles store(files, kCodec);
  const absl::Status status = store.Load().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("node_state.0: it has format 2 and this dfld knows 1"));
}

TEST(NodeState, AFullDiskKeepsTheGenerationBefore) {
  SimFiles files;
  SaveFive(files);
  files.set_capacity(10);
  StateFiles store(files, kCodec);
  ASSERT_TRUE(store.Load().ok());
  EXPECT_EQ(store.Save(Sample(6)).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(MustLoad(files).state.plan->version, 5u);
  // With room again, the same store goes on.
  files.set_capacity(-1);
  ASSERT_TRUE(store.Save(Sample(6)).ok());
  EXPECT_EQ(MustLoad(files).state.plan->version, 6u);
}

TEST(NodeState, ADiskThatCannotBeReadIsAnError) {
  SimFiles files;
  SaveFive(files);
  files.FailWith(absl::InternalError("input/output error"));
  StateFiles store(files, kCodec);
  const absl::Status status = store.Load().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("input/output error"));
}

// A disk that calls a write safe too early loses at most what it lied about.
TEST(NodeState, PowerCutsNeverLoseASyncedGeneration) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    SimFiles files;
    Rng rng(seed);
    uint64_t synced = 0;
    for (uint64_t version = 1; version <= 8; ++version) {
      files.set_lies(false);
      files.Sync();
      synced = MustLoad(files).state.plan->version;
      files.set_lies(true);
      Save(files, version);
      if (rng.Below(2) == 0) files.Crash(rng);
      const uint64_t found = MustLoad(files).state.plan->version;
      EXPECT_TRUE(found == version || found == synced)
          << found << " is neither " << version << " nor " << synced;
    }
  }
}

}  // namespace
}  // namespace dfl::store
