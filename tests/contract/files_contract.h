// What every ports::Files keeps to. A test of an implementation includes this
// and instantiates FilesContract with a factory.
#ifndef DFL_TESTS_CONTRACT_FILES_CONTRACT_H_
#define DFL_TESTS_CONTRACT_FILES_CONTRACT_H_

#include <functional>
#include <memory>
#include <string>

#include "daemon/ports/files.h"
#include "gtest/gtest.h"

namespace dfl::testing_support {

// An empty state directory.
class FilesUnderTest {
 public:
  virtual ~FilesUnderTest() = default;
  virtual ports::Files& files() = 0;
};

class FilesContract : public testing::TestWithParam<
                          std::function<std::unique_ptr<FilesUnderTest>()>> {
 protected:
  ports::Files& files() { return made_->files(); }
  std::unique_ptr<ports::FileReader> MustOpen(const std::string& name) {
    auto reader = files().Open(name);
    EXPECT_TRUE(reader.ok()) << reader.status();
    return reader.ok() ? *std::move(reader) : nullptr;
  }
  std::unique_ptr<ports::FileWriter> MustReplace(const std::string& name) {
    auto writer = files().Replace(name);
    EXPECT_TRUE(writer.ok()) << writer.status();
    return writer.ok() ? *std::move(writer) : nullptr;
  }
  std::string Range(ports::FileReader& reader, int64_t offset, size_t size) {
    std::string out(size, '?');
    EXPECT_TRUE(reader.Read(offset, absl::MakeSpan(out.data(), size)).ok());
    return out;
  }

 private:
  const std::unique_ptr<FilesUnderTest> made_ = GetParam()();
};

TEST_P(FilesContract, WritesReadsReplacesAndRemoves) {
  EXPECT_EQ(files().Read("a").status().code(), absl::StatusCode::kNotFound);
  const std::string bytes("x\0y\n", 4);
  ASSERT_TRUE(files().WriteAtomically("a", bytes).ok());
  EXPECT_EQ(*files().Read("a"), bytes);
  ASSERT_TRUE(files().WriteAtomically("a", "").ok());
  EXPECT_EQ(*files().Read("a"), "");
  ASSERT_TRUE(files().Remove("a").ok());
  ASSERT_TRUE(files().Remove("a").ok());  // absent is fine
  EXPECT_EQ(files().Open("a").status().code(), absl::StatusCode::kNotFound);
}

TEST_P(FilesContract, RenamesInPlaceOfWhatIsThere) {
  ASSERT_TRUE(files().WriteAtomically("a", "1").ok());
  ASSERT_TRUE(files().WriteAtomically("b", "2").ok());
  ASSERT_TRUE(files().Rename("a", "b").ok());
  EXPECT_EQ(*files().Read("b"), "1");
  EXPECT_EQ(files().Open("a").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(files().Rename("a", "b").code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(*files().Read("b"), "1");
}

TEST_P(FilesContract, ReadsAnyRange) {
  ASSERT_TRUE(files().WriteAtomically("a", "0123456789").ok());
  const auto reader = MustOpen("a");
  ASSERT_NE(reader, nullptr);
  EXPECT_EQ(reader->size(), 10);
  EXPECT_EQ(Range(*reader, 7, 3), "789");
  EXPECT_EQ(Range(*reader, 0, 4), "0123");
  EXPECT_EQ(Range(*reader, 10, 0), "");
}

TEST_P(FilesContract, ARangePastTheEndIsRefused) {
  ASSERT_TRUE(files().WriteAtomically("a", "0123456789").ok());
  const auto reader = MustOpen("a");
  ASSERT_NE(reader, nullptr);
  char out[4];
  for (const int64_t offset : {int64_t{7}, int64_t{11}, int64_t{-1}}) {
    EXPECT_EQ(reader->Read(offset, out).code(), absl::StatusCode::kOutOfRange)
        << offset;
  }
}

TEST_P(FilesContract, PiecesAppearTogetherAndOnlyOnceCommitted) {
  ASSERT_TRUE(files().WriteAtomically("a", "old").ok());
  const auto writer = MustReplace("a");
  ASSERT_NE(writer, nullptr);
  ASSERT_TRUE(writer->Append("one, ").ok());
  ASSERT_TRUE(writer->Append("").ok());
  ASSERT_TRUE(writer->Append("two").ok());
  EXPECT_EQ(*files().Read("a"), "old");
  ASSERT_TRUE(writer->Commit().ok());
  EXPECT_EQ(*files().Read("a"), "one, two");
}

TEST_P(FilesContract, AWriterThatIsGivenUpChangesNothing) {
  ASSERT_TRUE(files().WriteAtomically("a", "old").ok());
  auto writer = MustReplace("a");
  ASSERT_NE(writer, nullptr);
  ASSERT_TRUE(writer->Append("new").ok());
  writer.reset();
  EXPECT_EQ(*files().Read("a"), "old");
  ASSERT_TRUE(files().WriteAtomically("a", "newer").ok());
  EXPECT_EQ(*files().Read("a"), "newer");
}

TEST_P(FilesContract, AReaderKeepsWhatItOpened) {
  ASSERT_TRUE(files().WriteAtomically("a", "old").ok());
  const auto reader = MustOpen("a");
  ASSERT_NE(reader, nullptr);
  ASSERT_TRUE(files().WriteAtomically("a", "newer").ok());
  EXPECT_EQ(Range(*reader, 0, 3), "old");
  ASSERT_TRUE(files().Remove("a").ok());
  EXPECT_EQ(reader->size(), 3);
  EXPECT_EQ(Range(*reader, 0, 3), "old");
}

}  // namespace dfl::testing_support

#endif  // DFL_TESTS_CONTRACT_FILES_CONTRACT_H_
