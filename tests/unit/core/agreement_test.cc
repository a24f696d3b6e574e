// What nodes say of their data, fixed to one contract or refused.
#include "daemon/core/contract/agreement.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/core/contract/labels.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/cpu_seconds.h"

namespace dfl::core {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using Per = InputScaling::Per;
using Over = InputScaling::Over;

DataOffer Sample() {
  DataOffer offer;
  offer.classes = {"cat", "dog"};
  offer.features = {"age", "bp"};
  offer.shape = {2};
  offer.loss = "cross-entropy";
  offer.model = std::string(64, 'a');
  return offer;
}

DataOffer With(std::vector<std::string> classes) {
  DataOffer offer = Sample();
  offer.classes = std::move(classes);
  return offer;
}

std::string Refusal(const absl::StatusOr<DataSection>& fixed) {
  EXPECT_EQ(fixed.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(fixed.status().message());
}

std::string Refusal(const absl::StatusOr<DataContract>& resolved) {
  EXPECT_EQ(resolved.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(resolved.status().message());
}

TEST(Labels, OneIntegerHasManySpellingsAndOneCanonicalOne) {
  for (const char* one : {"1", "+1", "1.0", "1e0", "01"}) {
    EXPECT_EQ(CanonicalLabel(one), "1");
  }
  EXPECT_EQ(CanonicalLabel("-1"), "-1");
  EXPECT_EQ(CanonicalLabel("-0"), "0");
  for (const char* word : {"cat", "1.5", "nan", "inf", "1e300", ""}) {
    EXPECT_EQ(CanonicalLabel(word), word);
  }
  EXPECT_THAT(SortedLabels({"b", "10", "a", "2", "+2", "-1", "b"}),
              ElementsAre("-1", "2", "10", "a", "b"));
}

TEST(Fix, StatesAllThatTheNodesAgreeOn) {
  const DataOffer offer = Sample();
  const auto fixed =
      Fix({}, kClassesOfData, {{"anna", offer}, {"bert", offer}});
  ASSERT_TRUE(fixed.ok()) << fixed.status();
  EXPECT_EQ(fixed->task, Task::kClassification);
  EXPECT_THAT(*fixed->classes, ElementsAre("cat", "dog"));
  EXPECT_THAT(*fixed->features, ElementsAre("age", "bp"));
  EXPECT_THAT(*fixed->shape, ElementsAre(2));
  EXPECT_EQ(fixed->divide, 1);
  EXPECT_EQ(fixed->per, Per::kNone);
  EXPECT_EQ(fixed->over, std::nullopt);
  EXPECT_EQ(fixed->model, offer.model);
  // What is fixed is what each node then resolves.
  const auto contract = Resolve(*fixed, kClassesOfData, offer);
  ASSERT_TRUE(contract.ok()) << contract.status();
  EXPECT_EQ(*contract, *Resolve({}, kClassesOfData, offer));
  EXPECT_EQ(contract->loss, "cross-entropy");
}

TEST(Fix, LabelsAreTheUnionOfAllNodes) {
  const auto words = Fix(
      {}, 3,
      {{"anna", With({"cat", "dog", "fox"})}, {"bert", With({"cat", "fox"})}});
  ASSERT_TRUE(words.ok()) << words.status();
  EXPECT_THAT(*words->classes, ElementsAre("cat", "dog", "fox"));
  const auto numbers =
      Fix({}, 3, {{"anna", With({"3", "10"})}, {"bert", With({"1", "3"})}});
  ASSERT_TRUE(numbers.ok()) << numbers.status();
  EXPECT_THAT(*numbers->classes, ElementsAre("1", "3", "10"));
  const auto open =
      Fix({}, kClassesOfData, {{"anna", With({"1"})}, {"bert", With({"2"})}});
  ASSERT_TRUE(open.ok()) << open.status();
  EXPECT_THAT(*open->classes, ElementsAre("1", "2"));
}

TEST(Fix, IntegersBelowTheNumberOfClassesStandForThemselves) {
  const auto fixed =
      Fix({}, 4, {{"anna", With({"0", "3"})}, {"bert", With({"1"})}});
  ASSERT_TRUE(fixed.ok()) << fixed.status();
  EXPECT_THAT(*fixed->classes, ElementsAre("0", "1", "2", "3"));
}

TEST(Fix, TooFewOrTooManyLabelsAreRefusedWithBothLists) {
  const std::string few =
      Refusal(Fix({}, 3, {{"anna", With({"2", "3"})}, {"bert", With({"3"})}}));
  EXPECT_THAT(few, AllOf(HasSubstr("classes: the plan says model.classes: 3"),
                         HasSubstr("anna says [\"2\", \"3\"]"),
                         HasSubstr("bert says [\"3\"]"),
                         HasSubstr("that makes 2 classes"),
                         HasSubstr("data.classes of the plan")));
  EXPECT_THAT(
      Refusal(Fix({}, 2, {{"anna", With({"a", "b"})}, {"bert", With({"c"})}})),
      HasSubstr("that makes 3 classes"));
  EXPECT_THAT(Refusal(Fix({}, kClassesOfData, {{"anna", With({"a"})}})),
              HasSubstr("at least two classes"));
}

TEST(Fix, ListsOfSettingsBindTheOrder) {
  DataOffer stated = With({"dog", "cat"});
  stated.classes_stated = true;
  const auto fixed =
      Fix({}, kClassesOfData, {{"anna", With({"cat"})}, {"bert", stated}});
  ASSERT_TRUE(fixed.ok()) << fixed.status();
  EXPECT_THAT(*fixed->classes, ElementsAre("dog", "cat"));
  DataOffer other = With({"cat", "dog"});
  other.classes_stated = true;
  EXPECT_THAT(
      Refusal(Fix({}, kClassesOfData, {{"anna", stated}, {"bert", other}})),
      AllOf(HasSubstr("anna says [\"dog\", \"cat\"]"),
            HasSubstr("bert says [\"cat\", \"dog\"]"),
            HasSubstr("the order binds")));
  EXPECT_THAT(
      Refusal(
          Fix({}, kClassesOfData, {{"anna", stated}, {"bert", With({"fox"})}})),
      AllOf(HasSubstr("anna says"), HasSubstr("not in it is [\"fox\"]")));
}

TEST(Fix, ThePlansClassesWinAndANodeMayLackSome) {
  DataSection plan;
  plan.classes = {{"dog", "cat", "+1"}};
  DataOffer stated = With({"cat", "dog"});
  stated.classes_stated = true;
  const auto fixed =
      Fix(plan, 3, {{"anna", With({"1", "dog"})}, {"bert", stated}});
  ASSERT_TRUE(fixed.ok()) << fixed.status();
  EXPECT_THAT(*fixed->classes, ElementsAre("dog", "cat", "1"));
  DataOffer strange = With({"dog", "horse"});
  strange.class_places = {"b.csv: line 2, column 4",
                          "b.csv: line 17, column 4"};
  EXPECT_THAT(
      Refusal(Fix(plan, 3, {{"anna", With({"dog"})}, {"bert", strange}})),
      AllOf(HasSubstr("the plan says [\"dog\", \"cat\", \"1\"]"),
            HasSubstr("bert says [\"dog\", \"horse\"], and not in it is "
                      "[\"horse\"] (b.csv: line 17, column 4)"),
            Not(HasSubstr("anna"))));
}

TEST(Fix, ATaskThatSomeDoNotHaveIsRefused) {
  DataOffer regression = Sample();
  regression.task = Task::kRegression;
  regression.classes.clear();
  EXPECT_THAT(Refusal(Fix({}, kClassesOfData,
                          {{"anna", Sample()}, {"bert", regression}})),
              AllOf(HasSubstr("task: anna says classification"),
                    HasSubstr("bert says regression"), HasSubstr("data.task")));
  EXPECT_THAT(Refusal(Fix({}, 0, {{"anna", Sample()}})),
              AllOf(HasSubstr("the plan says regression (model.classes: 0)"),
                    HasSubstr("anna says classification")));
  const auto fixed = Fix({}, kClassesOfData, {{"anna", regression}});
  ASSERT_TRUE(fixed.ok()) << fixed.status();
  EXPECT_EQ(fixed->task, Task::kRegression);
  EXPECT_EQ(fixed->classes, std::nullopt);
}

TEST(Fix, ColumnsAreMatchedByName) {
  DataOffer turned = Sample();
  turned.features = {"bp", "age"};
  const auto fixed =
      Fix({}, kClassesOfData, {{"anna", Sample()}, {"bert", turned}});
  ASSERT_TRUE(fixed.ok()) << fixed.status();
  EXPECT_THAT(*fixed->features, ElementsAre("age", "bp"));
  EXPECT_THAT(Resolve(*fixed, kClassesOfData, turned)->features,
              ElementsAre("age", "bp"));
  DataOffer other = Sample();
  other.features = {"age", "sugar"};
  EXPECT_THAT(
      Refusal(Fix({}, kClassesOfData, {{"anna", Sample()}, {"bert", other}})),
      AllOf(HasSubstr("features: anna says [\"age\", \"bp\"]"),
            HasSubstr("bert says [\"age\", \"sugar\"]"),
            HasSubstr("bert lacks [\"bp\"] and has [\"sugar\"] more")));
}

TEST(Fix, NamedAndNamelessColumnsDoNotMeetUnlessThePlanSaysSo) {
  DataOffer nameless = Sample();
  nameless.features.clear();
  EXPECT_THAT(
      Refusal(
          Fix({}, kClassesOfData, {{"anna", Sample()}, {"bert", nameless}})),
      AllOf(HasSubstr("bert says no names"), HasSubstr("features: []")));
  DataSection plan;
  plan.features = {std::vector<std::string>()};
  const auto fixed =
      Fix(plan, kClassesOfData, {{"anna", Sample()}, {"bert", nameless}});
  ASSERT_TRUE(fixed.ok()) << fixed.status();
  EXPECT_THAT(Resolve(*fixed, kClassesOfData, Sample())->features, IsEmpty());
  const auto open = Fix({}, kClassesOfData, {{"anna", nameless}});
  ASSERT_TRUE(open.ok()) << open.status();
  EXPECT_EQ(open->features, std::nullopt);
}

TEST(Fix, WidthsOfSparseFilesMustBeKnownOrEqual) {
  DataOffer wide = Sample();
  wide.features.clear();
  wide.shape = {8};
  wide.shape_is_at_least = true;
  DataOffer narrow = wide;
  narrow.shape = {7};
  EXPECT_THAT(
      Refusal(Fix({}, kClassesOfData, {{"anna", wide}, {"bert", narrow}})),
      AllOf(HasSubstr("shape: anna says [8] at least"),
            HasSubstr("bert says [7] at least"), HasSubstr("data.features")));
  wide.shape_is_at_least = false;
  const auto fixed =
      Fix({}, kClassesOfData, {{"bert", narrow}, {"anna", wide}});
  ASSERT_TRUE(fixed.ok()) << fixed.status();
  EXPECT_THAT(*fixed->shape, ElementsAre(8));
  DataSection plan;
  plan.shape = {{6}};
  EXPECT_THAT(Refusal(Fix(plan, kClassesOfData, {{"bert", narrow}})),
              AllOf(HasSubstr("the plan says [6]"), HasSubstr("[7] at least")));
}

TEST(Fix, ScalingMustBeTheSame) {
  DataOffer bytes = Sample();
  bytes.input.divide = 255;
  EXPECT_THAT(
      Refusal(Fix({}, kClassesOfData, {{"anna", bytes}, {"bert", Sample()}})),
      AllOf(HasSubstr("input: anna says {divide: 255, standardise: none}"),
            HasSubstr("bert says {divide: 1, standardise: none}"),
            HasSubstr("data.divide")));
  DataOffer own = Sample();
  own.input.per = Per::kFeature;
  EXPECT_THAT(
      Refusal(Fix({}, kClassesOfData, {{"anna", own}, {"bert", Sample()}})),
      HasSubstr("standardise: feature, over: node"));
  DataOffer given = own;
  given.input.over = Over::kGiven;
  given.input.mean = {1, 2};
  given.input.std = {1, 1};
  DataOffer others = given;
  others.input.mean = {1, 3};
  EXPECT_THAT(
      Refusal(Fix({}, kClassesOfData, {{"anna", given}, {"bert", others}})),
      AllOf(HasSubstr("mean: [1, 2]"), HasSubstr("mean: [1, 3]")));
  const auto fixed = Fix({}, kClassesOfData, {{"anna", given}});
  ASSERT_TRUE(fixed.ok()) << fixed.status();
  EXPECT_EQ(fixed->over, Over::kGiven);
  EXPECT_THAT(fixed->mean, ElementsAre(1, 2));
}

TEST(Fix, ThePlansScalingWinsOverDefaultsAndNotOverSettings) {
  DataSection plan;
  plan.divide = 255;
  plan.per = Per::kNone;
  DataOffer bytes = Sample();
  bytes.input.divide = 255;
  const auto fixed =
      Fix(plan, kClassesOfData, {{"anna", bytes}, {"bert", Sample()}});
  ASSERT_TRUE(fixed.ok()) << fixed.status();
  EXPECT_EQ(Resolve(*fixed, kClassesOfData, Sample())->input.divide, 255);
  DataOffer set = Sample();
  set.divide_stated = true;
  EXPECT_THAT(
      Refusal(Resolve(*fixed, kClassesOfData, set)),
      AllOf(HasSubstr("the plan says {divide: 255, standardise: none}"),
            HasSubstr("this node says {divide: 1, standardise: none}")));
  DataOffer own = Sample();
  own.input.per = Per::kAll;
  own.standardise_stated = true;
  EXPECT_THAT(Refusal(Resolve(*fixed, kClassesOfData, own)),
              HasSubstr("standardise: all, over: node"));
}

// Each node gives its numbers in the order of its own columns.
TEST(Fix, GivenNumbersAreMatchedByTheNamesOfFeatures) {
  DataOffer anna = Sample();
  ASSERT_EQ(anna.features.size(), 2U);
  anna.input.per = Per::kFeature;
  anna.input.over = Over::kGiven;
  anna.input.mean = {1, 100};
  anna.input.std = {2, 3};
  DataOffer bert = anna;
  std::swap(bert.features[0], bert.features[1]);
  EXPECT_THAT(
      Refusal(Fix({}, kClassesOfData, {{"anna", anna}, {"bert", bert}})),
      HasSubstr("input: "));
  bert.input.mean = {100, 1};
  bert.input.std = {3, 2};
  const auto fixed = Fix({}, kClassesOfData, {{"anna", anna}, {"bert", bert}});
  ASSERT_TRUE(fixed.ok()) << fixed.status();
  EXPECT_THAT(fixed->mean, ElementsAre(1, 100));
  const auto later = Resolve(*fixed, kClassesOfData, bert);
  ASSERT_TRUE(later.ok()) << later.status();
  EXPECT_THAT(later->input.mean, ElementsAre(1, 100));
}

// What a node tells of rows of one feature.
DataOffer Rows(const std::vector<double>& values) {
  DataOffer offer = Sample();
  offer.features.clear();
  offer.shape = {1};
  offer.input.per = Per::kFeature;
  offer.input.over = Over::kNetwork;
  double sum = 0;
  for (const double value : values) sum += value;
  const double mean = sum / static_cast<double>(values.size());
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  offer.moments = {static_cast<int64_t>(values.size()), {sum}, {squares}};
  return offer;
}

TEST(Fix, MeanAndStdOverTheNetworkAreThoseOfAllRows) {
  const auto fixed = Fix({}, kClassesOfData,
                         {{"anna", Rows({1, 2, 3, 6})}, {"bert", Rows({10})}});
  ASSERT_TRUE(fixed.ok()) << fixed.status();
  ASSERT_THAT(fixed->mean, testing::SizeIs(1));
  EXPECT_FLOAT_EQ(fixed->mean[0], 4.4F);
  // (3.4^2 + 2.4^2 + 1.4^2 + 1.6^2 + 5.6^2) / 5
  EXPECT_FLOAT_EQ(fixed->std[0], static_cast<float>(std::sqrt(53.2 / 5)));
  // A later node takes them, and one node alone cannot work them out.
  const auto later = Resolve(*fixed, kClassesOfData, Rows({7}));
  ASSERT_TRUE(later.ok()) << later.status();
  EXPECT_EQ(later->input.mean, fixed->mean);
  EXPECT_THAT(Refusal(Resolve({}, kClassesOfData, Rows({7}))),
              HasSubstr("dflctl plan apply FILE"));
}

// A sparse file that ends before the run's last feature has zeros there.
TEST(Fix, ValuesThatAFileLeavesOutCountAsZeros) {
  const auto offer = [](int64_t width, const core::Moments& moments) {
    DataOffer sparse = Rows({0});
    sparse.input.per = Per::kAll;
    sparse.shape = {width};
    sparse.shape_is_at_least = true;
    sparse.moments = moments;
    return sparse;
  };
  DataSection section;
  section.shape = {3};
  // Rows (1, 3) and (2, 2, 2), of three features: 1 3 0 2 2 2.
  const auto fixed = Fix(
      section, kClassesOfData,
      {{"anna", offer(2, {2, {4}, {2}})}, {"bert", offer(3, {3, {6}, {0}})}});
  ASSERT_TRUE(fixed.ok()) << fixed.status();
  EXPECT_FLOAT_EQ(fixed->mean[0], static_cast<float>(10.0 / 6));
  EXPECT_FLOAT_EQ(fixed->std[0],
                  static_cast<float>(std::sqrt(22.0 / 6 - 100.0 / 36)));
}

TEST(Fix, ClassesOfARegressionAreRefused) {
  DataSection section;
  section.task = Task::kRegression;
  section.classes = {"a", "b"};
  DataOffer offer = Sample();
  offer.task = Task::kRegression;
  EXPECT_THAT(
      Refusal(Fix(section, kClassesOfData, {{"anna", offer}})),
      AllOf(HasSubstr("a regression has none"), HasSubstr("data.classes")));
}

TEST(Fix, LargeValuesThatVaryLittleKeepTheirScale) {
  const auto fixed = Fix(
      {}, kClassesOfData,
      {{"anna", Rows({1.7e9, 1.7e9 + 512})}, {"bert", Rows({1.7e9 + 256})}});
  ASSERT_TRUE(fixed.ok()) << fixed.status();
  EXPECT_NEAR(fixed->std[0], std::sqrt(2 * 256.0 * 256 / 3), 0.1);
  const auto constant =
      Fix({}, kClassesOfData,
          {{"anna", Rows({0.1, 0.1, 0.1})}, {"bert", Rows({0.1})}});
  ASSERT_TRUE(constant.ok()) << constant.status();
  EXPECT_EQ(constant->std[0], 1);
}

TEST(Fix, SumsAreMatchedByTheNamesOfFeatures) {
  DataOffer anna = Sample();
  anna.input.per = Per::kFeature;
  anna.input.over = Over::kNetwork;
  anna.moments = {1, {1, 20}, {0, 0}};
  DataOffer bert = anna;
  bert.features = {"bp", "age"};
  bert.moments = {1, {40, 3}, {0, 0}};
  const auto fixed = Fix({}, kClassesOfData, {{"anna", anna}, {"bert", bert}});
  ASSERT_TRUE(fixed.ok()) << fixed.status();
  EXPECT_THAT(fixed->mean, ElementsAre(2, 30));
  bert.moments = {};
  EXPECT_THAT(
      Refusal(Fix({}, kClassesOfData, {{"anna", anna}, {"bert", bert}})),
      HasSubstr("bert tells 0 sums of its rows instead of 2"));
}

TEST(Fix, NumbersThatFloat32CannotHoldAreRefused) {
  DataOffer anna = Sample();
  anna.input.divide = 1e300;
  EXPECT_THAT(Refusal(Fix({}, kClassesOfData, {{"anna", anna}})),
              HasSubstr("input: divide is 1e+300"));
  anna.input.divide = 1;
  anna.input.per = Per::kFeature;
  anna.input.over = Over::kNetwork;
  const double infinite = std::numeric_limits<double>::infinity();
  for (const Moments& moments :
       {Moments{1, {0, 1e300}, {0, 0}}, Moments{1, {0, infinite}, {0, 0}},
        Moments{1, {0, std::nan("")}, {0, 0}}, Moments{1, {0, 1}, {0, 1e300}},
        Moments{1, {0, 1}, {0, -1}}}) {
    anna.moments = moments;
    EXPECT_THAT(Refusal(Fix({}, kClassesOfData, {{"anna", anna}})),
                HasSubstr("number 2 of 2 has mean"));
  }
  anna.moments = {1, {0, 3e38}, {0, 1e70}};
  EXPECT_TRUE(Fix({}, kClassesOfData, {{"anna", anna}}).ok());
}

TEST(Fix, TooManyNumbersOverTheNetworkAreRefusedBeforeTheyAreMade) {
  DataOffer anna = Sample();
  anna.features.clear();
  anna.shape = {10};
  anna.shape_is_at_least = true;
  anna.input.per = Per::kFeature;
  anna.input.over = Over::kNetwork;
  anna.moments.count = 1;
  anna.moments.sums.assign(10, 1);
  anna.moments.squares.assign(10, 0);
  DataSection section;
  section.shape = std::vector<int64_t>{int64_t{1} << 40};
  EXPECT_THAT(Refusal(Fix(section, kClassesOfData, {{"anna", anna}})),
              HasSubstr("mean and std of 1099511627776 features are too many"));
}

TEST(Fix, ManyFeaturesAreMatchedByNameQuickly) {
  constexpr int64_t kFeatures = 40000;
  DataOffer anna = Sample();
  anna.features.clear();
  anna.shape = {kFeatures};
  for (int64_t i = 0; i < kFeatures; ++i) {
    anna.features.push_back(absl::StrCat("feature-", 10000 + i));
  }
  anna.input.per = Per::kFeature;
  anna.input.over = Over::kNetwork;
  anna.moments.count = 1;
  anna.moments.sums.assign(kFeatures, 1);
  anna.moments.squares.assign(kFeatures, 0);
  DataOffer bert = anna;
  std::reverse(bert.features.begin(), bert.features.end());
  const double begin = CpuSeconds();
  EXPECT_TRUE(Fix({}, kClassesOfData, {{"anna", anna}, {"bert", bert}}).ok());
  anna.input.over = bert.input.over = Over::kGiven;
  anna.input.mean = bert.input.mean = std::vector<float>(kFeatures, 1);
  anna.input.std = bert.input.std = std::vector<float>(kFeatures, 2);
  EXPECT_TRUE(Fix({}, kClassesOfData, {{"anna", anna}, {"bert", bert}}).ok());
  EXPECT_LT(CpuSeconds() - begin, 3);
}

TEST(Fix, FeaturesBehindTheEndOfASparseFileAreZero) {
  DataOffer wide = Sample();
  wide.features.clear();
  wide.input.per = Per::kFeature;
  wide.input.over = Over::kNetwork;
  wide.moments = {2, {2, 8}, {0, 0}};
  DataOffer narrow = wide;
  narrow.shape = {1};
  narrow.shape_is_at_least = true;
  narrow.moments = {2, {6}, {0}};
  const auto fixed =
      Fix({}, kClassesOfData, {{"anna", wide}, {"bert", narrow}});
  ASSERT_TRUE(fixed.ok()) << fixed.status();
  EXPECT_THAT(fixed->mean, ElementsAre(2, 2));
  EXPECT_THAT(fixed->std, ElementsAre(1, 2));
}

TEST(Fix, LossAndModelMustBeTheSame) {
  DataOffer other = Sample();
  other.loss = "hinge";
  other.model = std::string(64, 'b');
  const std::string why =
      Refusal(Fix({}, kClassesOfData, {{"anna", Sample()}, {"bert", other}}));
  EXPECT_THAT(why, AllOf(HasSubstr("loss: anna says cross-entropy, bert says "
                                   "hinge"),
                         HasSubstr("model.loss of the plan"),
                         HasSubstr(absl::StrCat("model: anna says ",
                                                std::string(64, 'a')))));
  DataSection plan;
  plan.model = std::string(64, 'c');
  EXPECT_THAT(
      Refusal(Resolve(plan, kClassesOfData, Sample())),
      AllOf(HasSubstr("the plan says ccc"), HasSubstr("this node says aaa")));
}

TEST(Resolve, NamesMustBeTextThatAPlanCanHold) {
  DataOffer offer = Sample();
  offer.classes = {"gelb", "gr\xfcn"};
  offer.class_places = {"a.csv: line 2", "a.csv: line 9"};
  const auto refused = Resolve({}, kClassesOfData, offer);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.status().message()),
              AllOf(HasSubstr("class \"gr\\xfcn\" (a.csv: line 9)"),
                    HasSubstr("UTF-8")));
  offer = Sample();
  offer.features[1] = std::string(kMaxNameBytes + 1, 'x');
  EXPECT_THAT(
      std::string(Resolve({}, kClassesOfData, offer).status().message()),
      HasSubstr("1001 bytes"));
}

TEST(Fix, ManyNodesAndLongListsAreCutShort) {
  std::vector<std::string> many;
  for (int i = 0; i < 500; ++i) many.push_back(absl::StrCat("class ", i));
  std::vector<NamedOffer> offers;
  for (int i = 0; i < 300; ++i) {
    offers.push_back({absl::StrCat("node-", i), With(many)});
    if (i >= 280) offers.back().offer.features = {"a", absl::StrCat("b", i)};
  }
  const std::string why = Refusal(Fix({}, kClassesOfData, offers));
  EXPECT_LT(why.size(), 4000u);
  EXPECT_THAT(why, AllOf(HasSubstr("node-0, node-1, node-2 and 277 more say"),
                         HasSubstr("(21 values in all)")));
}

}  // namespace
}  // namespace dfl::core
