#include "daemon/config/guess_data.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/config/node_data.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/data/test_files.h"

namespace dfl::config {
namespace {

using data::Format;
using data::WriteFile;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The section is read by a daemon as it was meant.
DataSettings ReadBack(const DataGuess& guess) {
  SettingsSources sources;
  sources.host_name = "a";
  sources.files = {{"guess.yaml", DataSectionYaml(guess.settings)}};
  const auto loaded = LoadNodeSettings(sources);
  EXPECT_TRUE(loaded.ok()) << loaded.status() << "\n"
                           << DataSectionYaml(guess.settings);
  if (!loaded.ok()) return {};
  const auto files = ReadDataFiles(loaded->settings.data, "data");
  EXPECT_TRUE(files.ok()) << files.status();
  return loaded->settings.data;
}

TEST(GuessData, Csv) {
  const std::string train = WriteFile("a.csv",
                                      ";age;bp;color;Target\n0;5;1;red;cat\n"
                                      "1;3;;blue;dog\n2;4;2;red;cat\n");
  const std::string test = WriteFile(
      "a_test.csv", "Target;;age;bp;color\ncat;0;5;1;red\ndog;1;6;3;red\n");
  const auto guess = GuessData({test, train});
  ASSERT_TRUE(guess.ok()) << guess.status();
  const DataSettings read = ReadBack(*guess);
  EXPECT_EQ(read.common.format, Format::kCsv);
  EXPECT_EQ(read.common.delimiter, ';');
  EXPECT_EQ(read.common.label_column, "Target");
  EXPECT_THAT(read.train_paths, ElementsAre(train));
  EXPECT_THAT(read.test_paths, ElementsAre(test));
  EXPECT_EQ(read.common.missing, data::Missing::kMean);
  EXPECT_EQ(guess->report.train.rows, 3);
  EXPECT_EQ(guess->report.features.size(), 2U);
  EXPECT_THAT(guess->remarks,
              Contains(AllOf(HasSubstr("data.drop_columns: 3"),
                             HasSubstr("'red' is not a number"))));
  EXPECT_THAT(guess->remarks, Contains(HasSubstr("data.missing: mean")));
}

TEST(GuessData, CsvWithNumbersToPredict) {
  const auto guess =
      GuessData({WriteFile("r.csv", "a,b\n1,0.5\n2,0.25\n3,1.5\n")});
  ASSERT_TRUE(guess.ok()) << guess.status();
  EXPECT_EQ(ReadBack(*guess).common.task, data::Task::kRegression);
}

// They are no fractions.
TEST(GuessData, CsvWithClassesBeyondAnyInteger) {
  const auto guess =
      GuessData({WriteFile("c.csv", "a,b\n1,1e300\n2,2\n3,1e300\n1,2\n")});
  ASSERT_TRUE(guess.ok()) << guess.status();
  EXPECT_EQ(ReadBack(*guess).common.task, data::Task::kClassification);
}

TEST(GuessData, LibsvmThatCountsFromZero) {
  const auto guess =
      GuessData({WriteFile("s.svm", "# made\n1 0:1 2:3\n-1 1:2\n")});
  ASSERT_TRUE(guess.ok()) << guess.status();
  const DataSettings read = ReadBack(*guess);
  EXPECT_EQ(read.common.format, Format::kLibsvm);
  EXPECT_EQ(read.common.index_base, 0);
}

TEST(GuessData, NpzWithTrainAndTest) {
  const std::string x =
      data::Npy("|u1", "2, 2, 2, 3", "abcdefghijklmnopqrstuvwx");
  const std::string y = data::Npy("<i8", "2,", data::Raw<int64_t>({1, 0}));
  const std::string path =
      WriteFile("m.npz", data::Zip({{"x_train.npy", x, true},
                                    {"y_train.npy", y, true},
                                    {"x_test.npy", x, true},
                                    {"y_test.npy", y, true}}));
  const auto guess = GuessData({path});
  ASSERT_TRUE(guess.ok()) << guess.status();
  const DataSettings read = ReadBack(*guess);
  EXPECT_EQ(read.common.features_key, "x_train");
  EXPECT_EQ(read.test_features_key, "x_test");
  EXPECT_EQ(read.test_labels_key, "y_test");
  EXPECT_EQ(read.common.layout, data::Layout::kNhwc);
  EXPECT_THAT(read.test_paths, ElementsAre(path));
}

TEST(GuessData, NpzByShapes) {
  const auto guess = GuessData({WriteFile(
      "m.npz",
      data::Zip({{"what.npy",
                  data::Npy("<i8", "2,", data::Raw<int64_t>({1, 0})), true},
                 {"ever.npy",
                  data::Npy("<f4", "2, 2", data::Raw<float>({1, 2, 3, 4})),
                  true}}))});
  ASSERT_TRUE(guess.ok()) << guess.status();
  EXPECT_EQ(ReadBack(*guess).common.features_key, "ever");
}

TEST(GuessData, PairsInAnyOrder) {
  const std::string images =
      WriteFile("i", data::Idx(0x803, {2, 1, 2}, {1, 2, 3, 4}));
  const std::string labels = WriteFile("l", data::Idx(0x801, {2}, {1, 0}));
  auto guess = GuessData({labels, images});
  ASSERT_TRUE(guess.ok()) << guess.status();
  EXPECT_THAT(ReadBack(*guess).train_paths, ElementsAre(images, labels));
  const std::string x =
      WriteFile("x.npy", data::Npy("<f4", "2, 1", data::Raw<float>({1, 2})));
  const std::string y =
      WriteFile("y.npy", data::Npy("<f4", "2,", data::Raw<float>({0.5f, 2})));
  guess = GuessData({y, x});
  ASSERT_TRUE(guess.ok()) << guess.status();
}

TEST(GuessData, CifarAndItsTestBatch) {
  const std::string batch =
      WriteFile("data_batch_1.bin", std::string(3073 * 2, '\1'));
  const std::string test = WriteFile("test_batch.bin", std::string(3073, '\0'));
  const auto guess = GuessData({batch, test});
  ASSERT_TRUE(guess.ok()) << guess.status();
  const DataSettings read = ReadBack(*guess);
  EXPECT_EQ(read.common.format, Format::kCifar10);
  EXPECT_THAT(read.test_paths, ElementsAre(test));
}

TEST(GuessData, RefusesWhatItDoesNotKnow) {
  const struct {
    std::string bytes;
    std::vector<std::string> parts;
  } cases[] = {
      {"", {"the file is empty"}},
      {"PAR1....", {"Parquet", "CSV"}},
      {"\x89PNG....", {"single picture", "folder"}},
      {std::string("\1\2\0\3", 4), {"binary data", "NumPy"}},
      {"word\nanother\n", {"no comma", "CSV"}},
      {data::Zip(
           {{"a.npy", data::Npy("<f4", "2, 1", data::Raw<float>({1, 2})), true},
            {"b.npy", data::Npy("<f4", "2, 1", data::Raw<float>({1, 2})),
             true}}),
       {"arrays a, b", "data.features_key"}},
  };
  for (const auto& c : cases) {
    const auto guess = GuessData({WriteFile("w", c.bytes)});
    data::ExpectError(guess.status(), absl::StatusCode::kInvalidArgument,
                      c.parts);
  }
  const auto mixed = GuessData(
      {WriteFile("m.csv", "1,2\n3,4\n"), WriteFile("m.svm", "1 1:2\n0 1:3\n")});
  data::ExpectError(mixed.status(), absl::StatusCode::kInvalidArgument,
                    {"format libsvm", "is csv", "one format"});
  EXPECT_FALSE(GuessData({"/nowhere.csv"}).ok());
  EXPECT_FALSE(GuessData({}).ok());
}

}  // namespace
}  // namespace dfl::config
