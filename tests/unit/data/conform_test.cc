#include "daemon/data/conform.h"

#include <memory>

#include "tests/support/cpu_seconds.h"
#include "tests/unit/data/test_files.h"

namespace dfl {
namespace data {
namespace {

using testing::ElementsAre;

DatasetView ViewOf(const std::string& name, const std::string& text,
                   Format format = Format::kCsv) {
  DataSpec spec;
  spec.format = format;
  spec.paths = {WriteFile(name, text)};
  absl::StatusOr<Dataset> data = Load(spec);
  EXPECT_TRUE(data.ok()) << data.status();
  return DatasetView(std::make_shared<const Dataset>(*std::move(data)));
}

core::DataContract Contract(std::vector<std::string> classes, int64_t width) {
  core::DataContract contract;
  contract.classes = std::move(classes);
  contract.shape = {width};
  return contract;
}

// One node has three classes, another two of them.
TEST(Conform, OneSpellingIsOneNumberOnAllNodes) {
  const core::DataContract contract = Contract({"1", "2", "3"}, 1);
  const auto a = Conform(ViewOf("a", "5,1\n6,2\n7,3\n"), contract);
  const auto b = Conform(ViewOf("b", "5,2.0\n6,+1\n"), contract);
  ASSERT_TRUE(a.ok() && b.ok()) << a.status() << b.status();
  EXPECT_THAT(a->dataset().labels(), ElementsAre(0, 1, 2));
  EXPECT_THAT(b->dataset().labels(), ElementsAre(1, 0));
  EXPECT_EQ(b->dataset().classes(), 3);
  const core::DataContract words = Contract({"cat", "dog", "fox"}, 1);
  const auto c = Conform(ViewOf("c", "5,fox\n6,cat\n"), words);
  ASSERT_TRUE(c.ok()) << c.status();
  EXPECT_THAT(c->dataset().labels(), ElementsAre(2, 0));
  EXPECT_THAT(c->LabelCounts(), ElementsAre(1, 0, 1));
}

TEST(Conform, RefusesALabelThatTheRunLacks) {
  const auto data =
      Conform(ViewOf("a", "5,cat\n6,cow\n"), Contract({"cat", "dog"}, 1));
  ExpectError(
      data.status(), absl::StatusCode::kInvalidArgument,
      {"line 2, column 2", "label 'cow'", "allowed: cat, dog", "the run"});
}

TEST(Conform, SharesTheFeaturesWhereColumnsStay) {
  const DatasetView view = ViewOf("a", "x,y\n5,b\n6,a\n").Subset({1});
  const auto data = Conform(view, Contract({"b", "a"}, 1));
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->dataset().floats().data(), view.dataset().floats().data());
  EXPECT_EQ(data->size(), 1);
  EXPECT_EQ(data->row(0), 1);
  EXPECT_THAT(data->dataset().labels(), ElementsAre(0, 1));
}

TEST(Conform, TakesColumnsByName) {
  core::DataContract contract = Contract({"0", "1"}, 3);
  contract.features = {"age", "bp", "sugar"};
  const auto data =
      Conform(ViewOf("a", "sugar,age,bp,y\n3,1,2,0\n6,4,5,1\n"), contract);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(data->dataset().floats(), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(data->dataset().columns().names, contract.features);
  const auto other =
      Conform(ViewOf("b", "sugar,age,iron,y\n3,1,2,0\n6,4,5,1\n"), contract);
  ExpectError(other.status(), absl::StatusCode::kInvalidArgument,
              {"with iron, without bp", "age, bp, sugar", "data.drop_columns"});
}

TEST(Conform, TakesManyColumnsByNameQuickly) {
  constexpr int64_t kColumns = 80000;
  core::DataContract contract = Contract({"0", "1"}, kColumns);
  std::string header;
  std::string rows[2];
  for (int64_t i = 0; i < kColumns; ++i) {
    contract.features.push_back(
        absl::StrCat("column-", 10000 + kColumns - 1 - i));
    absl::StrAppend(&header, "column-", 10000 + i, ",");
    for (std::string& row : rows) absl::StrAppend(&row, i, ",");
  }
  const DatasetView view =
      ViewOf("a", header + "y\n" + rows[0] + "0\n" + rows[1] + "1\n");
  const double begin = CpuSeconds();
  const auto data = Conform(view, contract);
  EXPECT_LT(CpuSeconds() - begin, 1);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->dataset().floats()[0], kColumns - 1);
}

TEST(OfferOf, TellsWhereEachOfManyClassesIsQuickly) {
  std::string text;
  for (int i = 0; i < 60000; ++i)
    absl::StrAppend(&text, "1,c", 10000 + i, "\n");
  const DatasetView view = ViewOf("a", text);
  const double begin = CpuSeconds();
  const core::DataOffer offer = OfferOf(view.dataset(), nullptr);
  EXPECT_LT(CpuSeconds() - begin, 1);
  ASSERT_EQ(offer.class_places.size(), 60000U);
  EXPECT_THAT(offer.class_places.back(),
              testing::HasSubstr("line 60000, column 2"));
}

TEST(Conform, WidensWhatNamesNoWidth) {
  const DatasetView view = ViewOf("a", "0 1:1\n1 2:2\n", Format::kLibsvm);
  const auto data = Conform(view, Contract({"0", "1"}, 3));
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(data->dataset().floats(), ElementsAre(1, 0, 0, 0, 2, 0));
  const auto narrow = Conform(view, Contract({"0", "1"}, 1));
  ExpectError(narrow.status(), absl::StatusCode::kInvalidArgument,
              {"shape [2]", "allowed: [1]", "data.features"});
  const auto fixed =
      Conform(ViewOf("b", "1,2,0\n3,4,1\n"), Contract({"0", "1"}, 3));
  EXPECT_FALSE(fixed.ok());
}

TEST(Conform, RefusesAnotherTask) {
  core::DataContract contract;
  contract.task = core::Task::kRegression;
  contract.shape = {1};
  ExpectError(Conform(ViewOf("a", "5,0\n6,1\n"), contract).status(),
              absl::StatusCode::kInvalidArgument,
              {"classification", "allowed: regression", "data.task"});
}

TEST(ScalingOf, FollowsTheRun) {
  const DatasetView view = ViewOf("a", "0,10,0\n4,30,1\n");
  core::DataContract contract = Contract({"0", "1"}, 2);
  contract.input.divide = 2;
  auto scaling = ScalingOf(contract, view);
  ASSERT_TRUE(scaling.ok()) << scaling.status();
  EXPECT_EQ(scaling->DivideOf(view.dataset()), 2);
  EXPECT_TRUE(scaling->mean().empty());
  contract.input.per = core::InputScaling::Per::kFeature;
  scaling = ScalingOf(contract, view);
  ASSERT_TRUE(scaling.ok()) << scaling.status();
  EXPECT_THAT(scaling->mean(), ElementsAre(1, 10));
  EXPECT_THAT(scaling->std(), ElementsAre(1, 5));
  contract.input.over = core::InputScaling::Over::kNetwork;
  EXPECT_FALSE(ScalingOf(contract, view).ok());
  contract.input.mean = {7, 8};
  contract.input.std = {2, 3};
  scaling = ScalingOf(contract, view);
  ASSERT_TRUE(scaling.ok()) << scaling.status();
  EXPECT_THAT(scaling->mean(), ElementsAre(7, 8));
  contract.input.mean = {7, 8, 9};
  contract.input.std = {2, 3, 4};
  EXPECT_FALSE(ScalingOf(contract, view).ok());
}

// The moments of two parts make those of the whole.
TEST(MomentsOf, PartsMakeTheWhole) {
  const DatasetView all = ViewOf("a", "0,10,0\n4,30,1\n2,50,1\n");
  const auto per = core::InputScaling::Per::kFeature;
  const core::Moments a = MomentsOf(all.Subset({0, 1}), per, 2);
  const core::Moments b = MomentsOf(all.Subset({2}), per, 2);
  const core::Moments whole = MomentsOf(all, per, 2);
  EXPECT_EQ(whole.count, 3);
  EXPECT_EQ(a.count + b.count, 3);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_DOUBLE_EQ(a.sums[i] + b.sums[i], whole.sums[i]);
    const double mean = whole.sums[i] / 3;
    const auto about = [&](const core::Moments& part) {
      const double own = part.sums[i] / static_cast<double>(part.count);
      return part.squares[i] +
             static_cast<double>(part.count) * (own - mean) * (own - mean);
    };
    EXPECT_DOUBLE_EQ(about(a) + about(b), whole.squares[i]);
  }
  EXPECT_TRUE(MomentsOf(all, core::InputScaling::Per::kNone, 1).sums.empty());
  EXPECT_EQ(MomentsOf(all, core::InputScaling::Per::kAll, 1).count, 6);
}

TEST(OfferOf, TellsWhatBothSetsHave) {
  const DatasetView train = ViewOf("a", "u,v,y\n1,2,10\n3,4,9\n");
  const DatasetView test = ViewOf("b", "u,v,y\n1,2,x\n3,4,9\n");
  const core::DataOffer offer = OfferOf(train.dataset(), &test.dataset());
  EXPECT_THAT(offer.classes, ElementsAre("9", "10", "x"));
  EXPECT_FALSE(offer.classes_stated);
  EXPECT_THAT(offer.features, ElementsAre("u", "v"));
  EXPECT_THAT(offer.shape, ElementsAre(2));
  EXPECT_FALSE(offer.shape_is_at_least);
}

}  // namespace
}  // namespace data
}  // namespace dfl
