#include "daemon/config/node_contract.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/data/test_files.h"

namespace dfl::config {
namespace {

using core::InputScaling;
using data::WriteFile;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::IsEmpty;

DataSettings Settings() {
  DataSettings settings;
  settings.common.format = data::Format::kCsv;
  settings.train_paths = {WriteFile("train", "a,b,y\n1,10,cat\n3,30,fox\n")};
  settings.test_paths = {WriteFile("test", "b,y,a\n0,dog,0\n")};
  return settings;
}

core::DataOffer OfferUnder(const DataSettings& settings,
                           const core::DataSection& section = {}) {
  const auto files = ReadDataFiles(settings, "data");
  EXPECT_TRUE(files.ok()) << files.status();
  const auto part = TakePart(*files, settings, 0, "data");
  EXPECT_TRUE(part.ok()) << part.status();
  return MakeOffer(*part, settings, section);
}

TEST(NodeContract, TellsWhatTheFilesHold) {
  const core::DataOffer offer = OfferUnder(Settings());
  EXPECT_EQ(offer.task, core::Task::kClassification);
  EXPECT_THAT(offer.classes, ElementsAre("cat", "dog", "fox"));
  EXPECT_FALSE(offer.classes_stated);
  EXPECT_THAT(offer.class_places,
              ElementsAre(EndsWith("train: line 2, column 3 ('y')"),
                          EndsWith("test: line 2, column 2 ('y')"),
                          EndsWith("train: line 3, column 3 ('y')")));
  EXPECT_THAT(offer.features, ElementsAre("a", "b"));
  EXPECT_THAT(offer.shape, ElementsAre(2));
  EXPECT_EQ(offer.input, InputScaling());
  EXPECT_FALSE(offer.divide_stated);
  EXPECT_FALSE(offer.standardise_stated);
  EXPECT_EQ(offer.moments, core::Moments());
}

TEST(NodeContract, StatedLabelsBindInTheirOrder) {
  DataSettings settings = Settings();
  settings.common.label_values = {"fox", "dog", "cat", "cow"};
  const core::DataOffer offer = OfferUnder(settings);
  EXPECT_TRUE(offer.classes_stated);
  EXPECT_THAT(offer.classes, ElementsAre("fox", "dog", "cat", "cow"));
}

TEST(NodeContract, SettingsWinOverThePlanAndDefaultsGiveWay) {
  core::DataSection section;
  section.divide = 255;
  section.per = InputScaling::Per::kFeature;
  section.over = InputScaling::Over::kNetwork;
  core::DataOffer offer = OfferUnder(Settings(), section);
  EXPECT_EQ(offer.input.divide, 255);
  EXPECT_EQ(offer.input.per, InputScaling::Per::kFeature);
  EXPECT_EQ(offer.input.over, InputScaling::Over::kNetwork);
  EXPECT_EQ(offer.moments.count, 2);
  EXPECT_DOUBLE_EQ(offer.moments.sums[1], 40 / 255.0);
  // The plan has the numbers already.
  section.mean = {1, 2};
  section.std = {3, 4};
  offer = OfferUnder(Settings(), section);
  EXPECT_THAT(offer.moments.sums, IsEmpty());

  DataSettings settings = Settings();
  settings.common.divide = 2;
  settings.standardise.per = StandardiseSettings::Per::kAll;
  offer = OfferUnder(settings, section);
  EXPECT_TRUE(offer.divide_stated);
  EXPECT_TRUE(offer.standardise_stated);
  EXPECT_EQ(offer.input.divide, 2);
  EXPECT_EQ(offer.input.per, InputScaling::Per::kAll);
  EXPECT_EQ(offer.input.over, InputScaling::Over::kNode);
  EXPECT_THAT(offer.input.mean, IsEmpty());
}

// What nobody set is taken from the plan, but for values that speak against it:
// the plan's number may be another node's default.
TEST(NodeContract, ValuesThatSpeakAgainstTheDivisionSayTheirOwn) {
  core::DataSection section;
  section.divide = 255;
  DataSettings small = Settings();
  small.train_paths = {WriteFile("train", "a,b,y\n1,0.1,cat\n0,0.5,fox\n")};
  core::DataOffer offer = OfferUnder(small, section);
  EXPECT_TRUE(offer.divide_stated);
  EXPECT_EQ(offer.input.divide, 1);

  DataSettings bytes = Settings();
  bytes.common.format = data::Format::kIdx;
  section.divide = 1;
  bytes.train_paths = {
      WriteFile("images", data::Idx(0x803, {2, 1, 2}, {1, 2, 3, 4})),
      WriteFile("labels", data::Idx(0x801, {2}, {1, 0}))};
  bytes.test_paths.clear();
  offer = OfferUnder(bytes, section);
  EXPECT_TRUE(offer.divide_stated);
  EXPECT_EQ(offer.input.divide, 255);
}

TEST(NodeContract, GivenNumbersAreOfEachFeature) {
  DataSettings settings = Settings();
  settings.standardise.mean = {1, 2};
  settings.standardise.std = {3, 4};
  const core::DataOffer offer = OfferUnder(settings);
  EXPECT_EQ(offer.input.per, InputScaling::Per::kFeature);
  EXPECT_EQ(offer.input.over, InputScaling::Over::kGiven);
  EXPECT_THAT(offer.input.std, ElementsAre(3, 4));
}

// Two nodes with their columns in another order and without all classes.
TEST(NodeContract, RowsTakeTheFormOfTheRun) {
  core::DataContract contract;
  contract.classes = {"fox", "dog", "cat"};
  contract.features = {"b", "a"};
  contract.shape = {2};
  contract.input.per = InputScaling::Per::kFeature;
  const DataSettings settings = Settings();
  const auto files = ReadDataFiles(settings, "data");
  ASSERT_TRUE(files.ok()) << files.status();
  const auto part = TakePart(*files, settings, 0, "data");
  ASSERT_TRUE(part.ok()) << part.status();
  const auto rows = ConformTo(contract, *part);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_THAT(rows->train.dataset().floats(), ElementsAre(10, 1, 30, 3));
  EXPECT_THAT(rows->train.dataset().labels(), ElementsAre(2, 0));
  EXPECT_THAT(rows->test->dataset().labels(), ElementsAre(1));
  EXPECT_THAT(rows->standardizer.mean(), ElementsAre(20, 2));
}

TEST(NodeContract, LibsvmNamesALeastWidth) {
  DataSettings settings;
  settings.common.format = data::Format::kLibsvm;
  settings.train_paths = {WriteFile("s", "0 1:1\n1 7:2\n")};
  const core::DataOffer offer = OfferUnder(settings);
  EXPECT_TRUE(offer.shape_is_at_least);
  EXPECT_THAT(offer.shape, ElementsAre(7));
}

}  // namespace
}  // namespace dfl::config
