#include "daemon/data/report.h"

#include <memory>

#include "tests/unit/data/test_files.h"

namespace dfl {
namespace data {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

DatasetView ViewOf(const std::string& name, const std::string& text) {
  DataSpec spec;
  spec.format = Format::kCsv;
  spec.paths = {WriteFile(name, text)};
  spec.missing = Missing::kZero;
  absl::StatusOr<Dataset> data = Load(spec);
  EXPECT_TRUE(data.ok()) << data.status();
  return DatasetView(std::make_shared<const Dataset>(*std::move(data)));
}

DataReport ReportOf(const std::string& text) {
  return Describe(ViewOf("f", text), nullptr, Standardizer());
}

TEST(Report, SaysWhatIsThere) {
  const DatasetView train = ViewOf("a", "age,bp,y\n1,,cat\n3,4,dog\n5,7,cat\n");
  const DatasetView test = ViewOf("b", "age,bp,y\n1,1,dog\n0,0,cat\n");
  const DataReport report = Describe(train, &test, Standardizer());
  EXPECT_THAT(report.classes, ElementsAre("cat", "dog"));
  EXPECT_EQ(report.train.rows, 3);
  EXPECT_THAT(report.train.class_counts, ElementsAre(2, 1));
  ASSERT_TRUE(report.test.has_value());
  EXPECT_THAT(report.test->class_counts, ElementsAre(1, 1));
  ASSERT_EQ(report.features.size(), 2U);
  EXPECT_EQ(report.features[0].name, "age");
  EXPECT_EQ(report.features[0].least, 1);
  EXPECT_EQ(report.features[0].most, 5);
  EXPECT_DOUBLE_EQ(report.features[0].mean, 3);
  EXPECT_EQ(report.features[1].missing, 1);
  EXPECT_THAT(report.warnings, IsEmpty());
  EXPECT_THAT(
      ReportText(report),
      AllOf(HasSubstr("training: 3 rows"), HasSubstr("test:     2 rows"),
            HasSubstr("cat"), HasSubstr("2 rows, 1 to test"),
            HasSubstr("feature 1 ('bp'): 0 to 7"), HasSubstr("1 missing"),
            HasSubstr("not standardised")));
}

TEST(Report, WarnsOfFloatsThatLookLikePixels) {
  std::string text;
  for (int row = 0; row < 4; ++row) {
    for (int j = 0; j < 16; ++j)
      absl::StrAppend(&text, (row * j * 7) % 256, ",");
    absl::StrAppend(&text, row % 2, "\n");
  }
  EXPECT_THAT(ReportOf(text).warnings, Contains(HasSubstr("data.divide: 255")));
  const DataReport divided =
      Describe(ViewOf("g", text), nullptr, Standardizer(255));
  EXPECT_THAT(divided.warnings, Not(Contains(HasSubstr("data.divide"))));
}

TEST(Report, WarnsOfWhatIsDividedASecondTime) {
  const DatasetView view = ViewOf("d", "0,1,a\n0.5,0.25,b\n");
  EXPECT_THAT(Describe(view, nullptr, Standardizer()).warnings, IsEmpty());
  const DataReport divided = Describe(view, nullptr, Standardizer(255));
  EXPECT_THAT(divided.warnings,
              ElementsAre(AllOf(HasSubstr("lie in 0 to 1 and are divided by "
                                          "255"),
                                HasSubstr("multiply them by 255"),
                                HasSubstr("data.divide: 1"))));
  // Under a plan that scales otherwise.
  EXPECT_THAT(WarningsUnder(divided, false, 1), IsEmpty());
  Dataset::Answers answers;
  answers.labels = {0, 1};
  answers.classes = 2;
  const DatasetView flags(std::make_shared<const Dataset>(
      std::vector<int64_t>{2}, std::vector<uint8_t>{0, 1, 1, 0},
      std::move(answers)));
  EXPECT_THAT(Describe(flags, nullptr, Standardizer()).warnings,
              ElementsAre(HasSubstr("if they are no pixels, set data.divide: "
                                    "1")));
}

TEST(Report, WarnsOfFeaturesThatTeachNothingOrTooMuch) {
  const DataReport report =
      ReportOf("a,b,c,y\n1,7,250000,0\n2,7,1000,1\n1,7,20000000,0\n");
  EXPECT_THAT(report.warnings,
              Contains(AllOf(HasSubstr("feature 1 ('b') has the same value"))));
  EXPECT_THAT(report.warnings,
              Contains(AllOf(HasSubstr("feature 2 ('c') goes beyond 1000"),
                             HasSubstr("data.standardise"))));
  EXPECT_THAT(report.warnings, Contains(HasSubstr("rounded in float32")));
}

TEST(Report, WarnsOfOneClassOnlyAndOfClassesToTestOnly) {
  EXPECT_THAT(ReportOf("1,b\n2,b\n").warnings,
              Contains(HasSubstr("every training row is of class 'b'")));
  // Rows sorted by class are nothing to tell.
  EXPECT_THAT(ReportOf("1,a\n3,a\n2,b\n").warnings, IsEmpty());
  const DatasetView all = ViewOf("h", "1,a\n3,a\n2,b\n1,c\n");
  const DatasetView test = all.Subset({0, 3});
  EXPECT_THAT(Describe(all.Subset({0, 1, 2}), &test, Standardizer()).warnings,
              Contains(HasSubstr("no training row of this node has: c")));
}

TEST(Report, PassesOnWhatTheReaderSaw) {
  EXPECT_THAT(ReportOf(",x,y\n0,5,0\n1,3,1\n2,4,0\n").warnings,
              Contains(HasSubstr("data.drop_columns: [\"0\"]")));
}

TEST(Report, DescribesImagesByChannel) {
  Dataset::Answers answers;
  answers.labels = {0, 1};
  answers.classes = 2;
  const DatasetView view(std::make_shared<const Dataset>(
      std::vector<int64_t>{2, 1, 2},
      std::vector<uint8_t>{0, 10, 20, 30, 40, 50, 60, 70}, std::move(answers)));
  const DataReport report = Describe(view, nullptr, Standardizer());
  ASSERT_EQ(report.features.size(), 2U);
  EXPECT_EQ(report.features[0].most, 50);
  EXPECT_EQ(report.features[1].least, 20);
  EXPECT_THAT(report.classes, ElementsAre("0", "1"));
  EXPECT_THAT(report.scaling, HasSubstr("bytes / 255"));
}

}  // namespace
}  // namespace data
}  // namespace dfl
