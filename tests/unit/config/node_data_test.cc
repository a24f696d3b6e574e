#include "daemon/config/node_data.h"

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/data/test_files.h"

namespace dfl::config {
namespace {

using data::WriteFile;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Two features and a class; row r is (r, 10 r), of class r % 3.
std::string Rows(int64_t count) {
  std::string text;
  for (int64_t r = 0; r < count; ++r) {
    absl::StrAppend(&text, r, ",", 10 * r, ",", r % 3, "\n");
  }
  return text;
}

DataSettings Settings(int64_t parts = 4) {
  DataSettings settings;
  settings.common.format = data::Format::kCsv;
  settings.train_paths = {WriteFile("train", Rows(40))};
  settings.test_paths = {WriteFile("test", Rows(9))};
  settings.partition.kind = "iid";
  settings.partition.count = parts;
  return settings;
}

TEST(NodeData, PartsShareOneDataSetAndAreAllOfIt) {
  const DataSettings settings = Settings();
  const auto files = ReadDataFiles(settings, "data");
  ASSERT_TRUE(files.ok()) << files.status();
  std::set<int64_t> rows;
  for (int64_t i = 0; i < 4; ++i) {
    const auto part = TakePart(*files, settings, i, "data");
    ASSERT_TRUE(part.ok()) << part.status();
    EXPECT_EQ(&part->train.dataset(), &files->train.dataset());
    EXPECT_EQ(&part->test->dataset(), &files->test->dataset());
    EXPECT_EQ(part->train.size(), 10);
    EXPECT_EQ(part->test->size(), 9);
    for (int64_t r = 0; r < part->train.size(); ++r) {
      rows.insert(part->train.row(r));
    }
  }
  EXPECT_EQ(rows.size(), 40U);
}

TEST(NodeData, StandardisesByTheNodesOwnRows) {
  DataSettings settings = Settings();
  settings.standardise.per = StandardiseSettings::Per::kFeature;
  const auto files = ReadDataFiles(settings, "data");
  ASSERT_TRUE(files.ok()) << files.status();
  const auto first = TakePart(*files, settings, 0, "data");
  const auto second = TakePart(*files, settings, 1, "data");
  ASSERT_TRUE(first.ok() && second.ok());
  ASSERT_EQ(first->standardizer.mean().size(), 2U);
  EXPECT_NE(first->standardizer.mean(), second->standardizer.mean());
  EXPECT_NEAR(first->standardizer.mean()[1], 10 * first->standardizer.mean()[0],
              1e-3);
}

TEST(NodeData, TheTestSetsColumnsAreTakenByName) {
  DataSettings settings = Settings();
  settings.train_paths = {WriteFile("a", "age,bp,y\n1,2,0\n3,4,1\n")};
  settings.test_paths = {WriteFile("b", "bp,y,age\n6,1,5\n")};
  const auto files = ReadDataFiles(settings, "data");
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_THAT(files->test->dataset().floats(), ElementsAre(5, 6));
  EXPECT_THAT(files->test->dataset().labels(), ElementsAre(1));
  settings.test_paths = {WriteFile("c", "bp,y,sex\n6,1,5\n")};
  EXPECT_THAT(ReadDataFiles(settings, "data").status().message(),
              AllOf(HasSubstr("data.test.paths: "), HasSubstr("'sex'")));
  settings.test_paths = {WriteFile("d", "1,2,3,1\n")};
  EXPECT_THAT(ReadDataFiles(settings, "data").status().message(),
              AllOf(HasSubstr("3 features without names"),
                    HasSubstr("2, as the files read before: age, bp")));
  settings.train_paths = {WriteFile("e", "1,2,1\n3,4,0\n")};
  EXPECT_THAT(ReadDataFiles(settings, "data").status().message(),
              AllOf(HasSubstr("rows of shape (3)"), HasSubstr("(2)")));
}

TEST(NodeData, BothSetsNumberTheirClassesTogether) {
  DataSettings settings = Settings();
  settings.train_paths = {WriteFile("a", "1,cat\n2,fox\n")};
  settings.test_paths = {WriteFile("b", "1,fox\n2,dog\n")};
  auto files = ReadDataFiles(settings, "data");
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_THAT(files->train.dataset().labels(), ElementsAre(0, 2));
  EXPECT_THAT(files->test->dataset().labels(), ElementsAre(2, 1));
  // Labels 1 to 3, and a test set without the last.
  settings.common.classes = 3;
  settings.train_paths = {WriteFile("c", "1,1\n2,2\n3,3\n")};
  settings.test_paths = {WriteFile("d", "1,1\n2,2\n")};
  files = ReadDataFiles(settings, "data");
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_THAT(files->test->dataset().labels(), ElementsAre(0, 1));
  EXPECT_EQ(files->test->dataset().classes(), 3);
  settings.common.classes = 2;
  settings.train_paths = {WriteFile("e", "1,cat\n2,fox\n")};
  settings.test_paths = {WriteFile("f", "1,fox\n2,dog\n")};
  EXPECT_THAT(ReadDataFiles(settings, "data").status().message(),
              AllOf(HasSubstr("cat, dog, fox"), HasSubstr("classes = 2")));
}

TEST(NodeData, BytesAndFloatsNeedADivision) {
  DataSettings settings;
  settings.common.format = data::Format::kNpz;
  const std::string y = data::Npy("|u1", "2,", data::Raw<uint8_t>({1, 0}));
  settings.train_paths = {WriteFile(
      "u", data::Zip({{"X.npy", data::Npy("|u1", "2, 1", "\x33\xFF"), false},
                      {"y.npy", y, false}}))};
  settings.test_paths = {WriteFile(
      "f",
      data::Zip({{"X.npy",
                  data::Npy("<f4", "2, 1", data::Raw<float>({51, 255})), false},
                 {"y.npy", y, false}}))};
  EXPECT_THAT(ReadDataFiles(settings, "data").status().message(),
              AllOf(HasSubstr("floats, which are not divided"),
                    HasSubstr("bytes, which are divided by 255"),
                    HasSubstr("data.divide: 255")));
  settings.common.divide = 255;
  EXPECT_TRUE(ReadDataFiles(settings, "data").ok());
}

TEST(NodeData, TheWiderSetSaysTheWidthOfBoth) {
  DataSettings settings;
  settings.common.format = data::Format::kLibsvm;
  settings.train_paths = {WriteFile("a", "0 1:1\n1 2:2\n")};
  settings.test_paths = {WriteFile("b", "0 3:1\n")};
  const auto files = ReadDataFiles(settings, "data");
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_THAT(files->train.dataset().floats(), ElementsAre(1, 0, 0, 0, 2, 0));
  EXPECT_THAT(files->test->dataset().floats(), ElementsAre(0, 0, 1));
}

TEST(NodeData, MissingTestValuesBecomeTheTrainingMean) {
  DataSettings settings = Settings();
  settings.common.missing = data::Missing::kMean;
  settings.train_paths = {WriteFile("a", "a,b,y\n1,2,0\n3,4,1\n")};
  settings.test_paths = {WriteFile("b", "b,a,y\n,100,1\n9,,0\n")};
  const auto files = ReadDataFiles(settings, "data");
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_THAT(files->test->dataset().floats(), ElementsAre(100, 3, 2, 9));
}

TEST(NodeData, WithoutTestFilesThereIsNoTest) {
  DataSettings settings = Settings();
  settings.test_paths.clear();
  const auto files = ReadDataFiles(settings, "data");
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_FALSE(files->test.has_value());
}

TEST(NodeData, ErrorsNameTheKeyAsTheCallerHasIt) {
  DataSettings settings = Settings();
  settings.train_paths = {"/nowhere/train.csv"};
  EXPECT_THAT(ReadDataFiles(settings, "network.problem").status().message(),
              HasSubstr("network.problem.train.paths: "));
  settings = Settings();
  settings.test_paths = {"/nowhere/test.csv"};
  EXPECT_THAT(ReadDataFiles(settings, "data").status().message(),
              HasSubstr("data.test.paths: "));

  settings = Settings(100);
  auto files = ReadDataFiles(settings, "data");
  ASSERT_TRUE(files.ok());
  EXPECT_THAT(TakePart(*files, settings, 99, "data").status().message(),
              HasSubstr("data.partition: "));

  settings = Settings();
  settings.common.task = data::Task::kRegression;
  settings.partition.kind = "dirichlet";
  files = ReadDataFiles(settings, "data");
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_THAT(TakePart(*files, settings, 0, "data").status().message(),
              HasSubstr("\"dirichlet\" splits by label and the data has none"));

  settings = Settings();
  settings.standardise.mean = {1, 2, 3};
  settings.standardise.std = {1, 2, 3};
  files = ReadDataFiles(settings, "data");
  ASSERT_TRUE(files.ok());
  EXPECT_THAT(TakePart(*files, settings, 0, "data").status().message(),
              HasSubstr("data.standardise: "));
}

}  // namespace
}  // namespace dfl::config
