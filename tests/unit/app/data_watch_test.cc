// When data files are read anew, and by what it is seen that they have changed.
#include "daemon/app/new_data/data_watch.h"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "daemon/app/new_data/data_marks.h"
#include "gtest/gtest.h"

namespace dfl::app {
namespace {

namespace fs = std::filesystem;

using Next = DataWatch::Next;

// Files as they are at a moment, told apart by a number.
DataMarks Marks(uint64_t digest) { return {1, 100, digest}; }

// -------------------------------------------------------------- DataWatch ----

TEST(DataWatch, FilesThatAreAsTheyWereAreNotRead) {
  DataWatch watch(Marks(1));
  EXPECT_EQ(watch.Look(Marks(1)), Next::kAsTaken);
  EXPECT_EQ(watch.Look(Marks(1)), Next::kAsTaken);
}

TEST(DataWatch, AChangeIsReadOnceTwoLooksFindTheSame) {
  DataWatch watch(Marks(1));
  EXPECT_EQ(watch.Look(Marks(2)), Next::kLookSoon);
  EXPECT_EQ(watch.Look(Marks(2)), Next::kRead);
  watch.SetTaken(Marks(2));
  EXPECT_EQ(watch.Look(Marks(2)), Next::kAsTaken);
  EXPECT_EQ(watch.Look(Marks(1)), Next::kLookSoon) << "the first files again";
}

TEST(DataWatch, AFileThatIsBeingWrittenIsNotRead) {
  DataWatch watch(Marks(1));
  for (uint64_t size = 2; size < 20; ++size) {
    EXPECT_EQ(watch.Look(Marks(size)), Next::kLookSoon);
  }
  EXPECT_EQ(watch.Look(Marks(19)), Next::kRead);
}

TEST(DataWatch, WhatHasChangedWhileItWasReadIsLookedAtAgain) {
  DataWatch watch(Marks(1));
  EXPECT_EQ(watch.Look(Marks(2)), Next::kLookSoon);
  EXPECT_EQ(watch.Look(Marks(2)), Next::kRead);  // and 3 was found afterwards
  EXPECT_EQ(watch.Look(Marks(3)), Next::kLookSoon);
  EXPECT_EQ(watch.Look(Marks(3)), Next::kRead);
  watch.SetTaken(Marks(3));
  EXPECT_EQ(watch.taken(), Marks(3));
}

TEST(DataWatch, RefusedFilesRestAndAreTriedAgainNowAndThen) {
  DataWatch watch(Marks(1));
  EXPECT_EQ(watch.Look(Marks(2)), Next::kLookSoon);
  EXPECT_EQ(watch.Look(Marks(2)), Next::kRead);
  watch.SetRefused(Marks(2));
  for (int time = 0; time < 2; ++time) {
    for (int i = 1; i < DataWatch::kLooksBeforeRetry; ++i) {
      EXPECT_EQ(watch.Look(Marks(2)), Next::kRest) << i;
    }
    EXPECT_EQ(watch.Look(Marks(2)), Next::kRead);
    watch.SetRefused(Marks(2));
  }
  EXPECT_EQ(watch.Look(Marks(3)), Next::kLookSoon) << "somebody mends them";
  EXPECT_EQ(watch.Look(Marks(3)), Next::kRead);
}

TEST(DataWatch, FilesThatAreBackNeedNoReading) {
  DataWatch watch(Marks(1));
  EXPECT_EQ(watch.Look(Marks(2)), Next::kLookSoon);
  EXPECT_EQ(watch.Look(Marks(1)), Next::kAsTaken) << "before they were read";
  EXPECT_EQ(watch.Look(Marks(2)), Next::kLookSoon);
  EXPECT_EQ(watch.Look(Marks(2)), Next::kRead);
  watch.SetRefused(Marks(2));
  EXPECT_EQ(watch.Look(Marks(1)), Next::kAsTaken);
  EXPECT_EQ(watch.Look(Marks(2)), Next::kLookSoon) << "that is long ago";
}

// -------------------------------------------------------------- DataMarks ----

class DataMarksTest : public testing::Test {
 public:
  ~DataMarksTest() override { fs::remove_all(folder_); }

 protected:
  DataMarksTest() {
    std::string name = testing::TempDir() + "/marks-XXXXXX";
    folder_ = mkdtemp(name.data());
  }

  std::string File(const std::string& name) const {
    return folder_ + "/" + name;
  }
  void Write(const std::string& name, const std::string& text) const {
    fs::create_directories(fs::path(File(name)).parent_path());
    std::ofstream(File(name)) << text;
  }

  std::string folder_;
};

TEST_F(DataMarksTest, CountFilesAndTheirBytes) {
  Write("a.csv", "1,2\n");
  Write("b.csv", "3,4\n5,6\n");
  const DataMarks marks = MarksOf({File("a.csv"), File("b.csv")});
  EXPECT_EQ(marks.files, 2);
  EXPECT_EQ(marks.bytes, 12);
  EXPECT_EQ(MarksOf({File("a.csv"), File("b.csv")}), marks);
  EXPECT_FALSE(MarksOf({File("b.csv"), File("a.csv")}) == marks)
      << "rows are joined in this order";
}

TEST_F(DataMarksTest, TellWhatHappensToAFile) {
  Write("a.csv", "1,2\n");
  const std::vector<std::string> paths = {File("a.csv")};
  const DataMarks first = MarksOf(paths);
  std::ofstream(File("a.csv"), std::ios::app) << "3,4\n";
  const DataMarks longer = MarksOf(paths);
  EXPECT_FALSE(longer == first) << "rows were appended";
  // As long as before, and last changed at the same time.
  Write("b.csv", "9,9\n8,8\n");
  fs::last_write_time(File("b.csv"), fs::last_write_time(File("a.csv")));
  fs::rename(File("b.csv"), File("a.csv"));
  const DataMarks replaced = MarksOf(paths);
  EXPECT_FALSE(replaced == longer) << "another file has its name";
  fs::last_write_time(File("a.csv"), fs::last_write_time(File("a.csv")) +
                                         std::chrono::seconds(1));
  EXPECT_FALSE(MarksOf(paths) == replaced) << "it was written to in place";
  fs::rename(File("a.csv"), File("away.csv"));
  const DataMarks gone = MarksOf(paths);
  EXPECT_EQ(gone.files, 0);
  EXPECT_EQ(MarksOf(paths), gone);
  fs::create_symlink(File("away.csv"), File("a.csv"));
  EXPECT_EQ(MarksOf(paths).files, 1) << "links are followed";
}

TEST_F(DataMarksTest, TellWhatHappensInAFolderOfPictures) {
  Write("parts/good/1.png", "one");
  Write("parts/good/2.png", "two");
  Write("parts/bad/1.png", "three");
  const std::vector<std::string> paths = {File("parts")};
  const DataMarks first = MarksOf(paths);
  EXPECT_EQ(first.files, 3);
  // What is no picture says nothing.
  Write("parts/good/.3.png.part", "half");
  Write("parts/Thumbs.db", "x");
  EXPECT_EQ(MarksOf(paths), first);
  fs::rename(File("parts/good/.3.png.part"), File("parts/good/3.png"));
  const DataMarks more = MarksOf(paths);
  EXPECT_EQ(more.files, 4);
  fs::rename(File("parts/good/3.png"), File("parts/bad/3.png"));
  const DataMarks moved = MarksOf(paths);
  EXPECT_EQ(moved.files, 4);
  EXPECT_FALSE(moved == more) << "of another class";
  fs::create_directory(File("parts/odd"));
  EXPECT_FALSE(MarksOf(paths) == moved) << "a class without pictures";
}

TEST_F(DataMarksTest, AreOfAllFilesThatTheSettingsName) {
  config::DataSettings settings;
  settings.train_paths = {"a", "b"};
  settings.test_paths = {"c"};
  EXPECT_EQ(DataPaths(settings), (std::vector<std::string>{"a", "b", "c"}));
  settings.standardise.file = "d";
  EXPECT_EQ(DataPaths(settings).back(), "d");
}

}  // namespace
}  // namespace dfl::app
