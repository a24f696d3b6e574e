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
