#include "daemon/simports/sim_files.h"

#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/contract/files_contract.h"

namespace dfl::simports {
namespace {

using ::testing::ElementsAre;

TEST(SimFiles, ReadsWhatWasWritten) {
  SimFiles files;
  EXPECT_EQ(files.Read("state").status().code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(files.WriteAtomically("state", "one").ok());
  ASSERT_TRUE(files.WriteAtomically("state", "two").ok());
  ASSERT_TRUE(files.WriteAtomically("model", "m").ok());
  EXPECT_EQ(*files.Read("state"), "two");
  EXPECT_THAT(files.names(), ElementsAre("model", "state"));
  EXPECT_TRUE(files.Remove("model").ok());
  EXPECT_TRUE(files.Remove("model").ok());
  EXPECT_THAT(files.names(), ElementsAre("state"));
}

TEST(SimFiles, AFullDiskKeepsTheOldContent) {
  SimFiles files;
  files.set_capacity(10);
  ASSERT_TRUE(files.WriteAtomically("state", "123456").ok());
  // Old and new stand side by side until the rename.
  EXPECT_EQ(files.WriteAtomically("state", "abcdef").code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(*files.Read("state"), "123456");
  EXPECT_TRUE(files.WriteAtomically("state", "abcd").ok());
}

TEST(SimFiles, AFailingDiskChangesNothing) {
  SimFiles files;
  ASSERT_TRUE(files.WriteAtomically("state", "old").ok());
  files.FailWith(absl::InternalError("Input/output error"));
  EXPECT_EQ(files.Read("state").status().code(), absl::StatusCode::kInternal);
  EXPECT_FALSE(files.WriteAtomically("state", "new").ok());
  EXPECT_FALSE(files.Remove("state").ok());
  files.FailWith(absl::OkStatus());
  EXPECT_EQ(*files.Read("state"), "old");
}

TEST(SimFiles, TheLastWriteMayBeTorn) {
  SimFiles files;
  files.TearLastWrite();
  ASSERT_TRUE(files.WriteAtomically("a", "12345678").ok());
  ASSERT_TRUE(files.WriteAtomically("b", "12345678").ok());
  files.TearLastWrite();
  EXPECT_EQ(*files.Read("a"), "12345678");
  EXPECT_EQ(*files.Read("b"), "1234");
  files.Empty();
  EXPECT_TRUE(files.names().empty());
  files.TearLastWrite();
  EXPECT_TRUE(files.names().empty());
}

TEST(SimFiles, AnHonestDiskKeepsEverythingOverACrash) {
  Rng rng(1);
  SimFiles files;
  ASSERT_TRUE(files.WriteAtomically("state", "new").ok());
  files.Crash(rng);
  EXPECT_EQ(*files.Read("state"), "new");
}

TEST(SimFiles, ALyingDiskKeepsUndoesOrTearsWhatWasNotSynced) {
  Rng rng(7);
  std::set<std::string> seen;
  for (int i = 0; i < 200; ++i) {
    SimFiles files;
    files.set_lies(true);
    ASSERT_TRUE(files.WriteAtomically("safe", "safe").ok());
    ASSERT_TRUE(files.WriteAtomically("state", "old").ok());
    files.Sync();
    ASSERT_TRUE(files.WriteAtomically("state", "new!").ok());
    files.Crash(rng);
    EXPECT_EQ(*files.Read("safe"), "safe");
    seen.insert(*files.Read("state"));
  }
  EXPECT_THAT(seen, ElementsAre("", "n", "ne", "new", "new!", "old"));
}

TEST(SimFiles, FlipsOneBit) {
  SimFiles files;
  ASSERT_TRUE(files.WriteAtomically("state", "AA").ok());
  files.FlipBit("state", 9);
  EXPECT_EQ(*files.Read("state"), "AC");
}

}  // namespace
}  // namespace dfl::simports

namespace dfl::testing_support {
namespace {

class SimDisk final : public FilesUnderTest {
 public:
  ports::Files& files() override { return files_; }

 private:
  simports::SimFiles files_;
};

INSTANTIATE_TEST_SUITE_P(SimFiles, FilesContract, testing::Values([] {
                           return std::unique_ptr<FilesUnderTest>(
                               new SimDisk());
                         }));

}  // namespace
}  // namespace dfl::testing_support
