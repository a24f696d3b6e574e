#include "daemon/data/batch.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <set>

#include "daemon/data/batch_sampler.h"
#include "daemon/data/standardizer.h"
#include "tests/unit/data/test_files.h"

namespace dfl {
namespace data {
namespace {

using testing::ElementsAre;
using testing::FloatEq;

DatasetView FloatView(std::vector<int64_t> shape, std::vector<float> x,
                      std::vector<int64_t> labels, int64_t classes) {
  Dataset::Answers answers;
  answers.labels = std::move(labels);
  answers.classes = classes;
  return DatasetView(std::make_shared<Dataset>(std::move(shape), std::move(x),
                                               std::move(answers)));
}

DatasetView ByteView(std::vector<int64_t> shape, std::vector<uint8_t> x,
                     std::vector<int64_t> labels, int64_t classes) {
  Dataset::Answers answers;
  answers.labels = std::move(labels);
  answers.classes = classes;
  return DatasetView(std::make_shared<Dataset>(std::move(shape), std::move(x),
                                               std::move(answers)));
}

// Rows 0..n-1 of {1, 8, 16} bytes, two-channel when asked.
DatasetView Gradient(int64_t rows, std::vector<int64_t> shape) {
  int64_t d = 1;
  for (const int64_t extent : shape) d *= extent;
  std::vector<uint8_t> x(static_cast<size_t>(rows * d));
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<uint8_t>(i * 7);
  return ByteView(std::move(shape), std::move(x),
                  std::vector<int64_t>(static_cast<size_t>(rows), 0), 1);
}

TEST(DatasetView, SubsetsComposeAndCountLabels) {
  const DatasetView all =
      FloatView({1}, {10, 11, 12, 13, 14}, {0, 1, 2, 1, 0}, 3);
  EXPECT_EQ(all.size(), 5);
  EXPECT_THAT(all.LabelCounts(), ElementsAre(2, 2, 1));
  const DatasetView part = all.Subset({4, 2, 1});
  const DatasetView again = part.Subset({2, 0, 0});
  EXPECT_EQ(again.size(), 3);
  EXPECT_EQ(again.row(0), 1);
  EXPECT_EQ(again.row(1), 4);
  EXPECT_THAT(again.LabelCounts(), ElementsAre(2, 1, 0));
  EXPECT_EQ(&again.dataset(), &all.dataset());
  EXPECT_EQ(part.First(2).row(1), 2);
  EXPECT_EQ(part.First(9).size(), 3);
  EXPECT_EQ(part.Subset({}).size(), 0);
}

TEST(FillBatch, CopiesFloatsAsTheyAre) {
  const DatasetView view =
      FloatView({2}, {1, 2, 3, 4, 5, 6}, {0, 1, 1}, 2).Subset({2, 0});
  std::vector<float> out(4);
  FillBatch(view, {1, 0}, Standardizer(), absl::MakeSpan(out));
  EXPECT_THAT(out, ElementsAre(1, 2, 5, 6));
  std::vector<int64_t> labels(2);
  FillLabels(view, {1, 0}, absl::MakeSpan(labels));
  EXPECT_THAT(labels, ElementsAre(0, 1));
}

TEST(FillBatch, DividesAsTold) {
  // The same pixels as bytes and as floats.
  const DatasetView bytes = ByteView({3}, {0, 51, 255}, {0}, 1);
  const DatasetView floats = FloatView({3}, {0, 51, 255}, {0}, 1);
  std::vector<float> a(3);
  std::vector<float> b(3);
  FillBatch(bytes, {0}, Standardizer(), absl::MakeSpan(a));
  EXPECT_THAT(a, ElementsAre(0, 0.2f, 1));
  FillBatch(floats, {0}, Standardizer(), absl::MakeSpan(b));
  EXPECT_THAT(b, ElementsAre(0, 51, 255));
  for (const double divide : {1.0, 255.0, 51.0}) {
    FillBatch(bytes, {0}, Standardizer(divide), absl::MakeSpan(a));
    FillBatch(floats, {0}, Standardizer(divide), absl::MakeSpan(b));
    EXPECT_EQ(a, b);
    const auto of_bytes =
        Standardizer::FromRows(bytes, Standardizer::Per::kAll, divide);
    const auto of_floats =
        Standardizer::FromRows(floats, Standardizer::Per::kAll, divide);
    ASSERT_TRUE(of_bytes.ok() && of_floats.ok());
    EXPECT_EQ(of_bytes->mean(), of_floats->mean());
    FillBatch(bytes, {0}, *of_bytes, absl::MakeSpan(a));
    FillBatch(floats, {0}, *of_floats, absl::MakeSpan(b));
    EXPECT_EQ(a, b);
  }
}

TEST(FillBatch, FillsTargets) {
  Dataset::Answers answers;
  answers.targets = {0.5f, 1.5f};
  const DatasetView view(std::make_shared<Dataset>(
      std::vector<int64_t>{1}, std::vector<float>{1, 2}, std::move(answers)));
  std::vector<float> out(3);
  FillTargets(view, {1, 0, 1}, absl::MakeSpan(out));
  EXPECT_THAT(out, ElementsAre(1.5f, 0.5f, 1.5f));
  EXPECT_TRUE(view.LabelCounts().empty());
}

// Against the formula, value by value, for every kind of standardiser and for
// both the table and the direct path.
TEST(FillBatch, ConvertsBytesExactly) {
  const std::vector<std::vector<int64_t>> shapes = {
      {1, 28, 28}, {2, 8, 16}, {3, 2, 2}, {5}};
  for (const std::vector<int64_t>& shape : shapes) {
    const DatasetView view = Gradient(9, shape);
    const size_t d = static_cast<size_t>(view.dataset().row_size());
    for (const size_t groups :
         {size_t{0}, size_t{1}, static_cast<size_t>(shape[0]), d}) {
      Standardizer standardizer;
      if (groups > 0) {
        std::vector<float> mean(groups);
        std::vector<float> std(groups);
        for (size_t g = 0; g < groups; ++g) {
          mean[g] = 0.1f + 0.01f * static_cast<float>(g);
          std[g] = 0.3f + 0.02f * static_cast<float>(g);
        }
        const auto made = Standardizer::FromValues(mean, std, "test");
        ASSERT_TRUE(made.ok()) << made.status();
        standardizer = *made;
      }
      ASSERT_TRUE(standardizer.CheckFits(view.dataset()).ok());
      const std::vector<int64_t> rows = {8, 0, 3, 3};
      std::vector<float> out(rows.size() * d, -1);
      FillBatch(view, rows, standardizer, absl::MakeSpan(out));
      for (size_t b = 0; b < rows.size(); ++b) {
        for (size_t j = 0; j < d; ++j) {
          const uint8_t v =
              view.dataset().bytes()[static_cast<size_t>(rows[b]) * d + j];
          float expected = static_cast<float>(v) / 255.0f;
          if (groups > 0) {
            const size_t g = j / (d / groups);
            expected =
                (expected - standardizer.mean()[g]) / standardizer.std()[g];
          }
          ASSERT_EQ(out[b * d + j], expected)
              << "groups " << groups << " row " << b << " value " << j;
        }
      }
    }
  }
}

TEST(FillBatch, StandardisesFloatsByChannelAndFeature) {
  const DatasetView view =
      FloatView({2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}, {0, 1}, 2);
  std::vector<float> out(8);
  FillBatch(view, {0, 1}, *Standardizer::FromValues({1, 2}, {2, 4}, "t"),
            absl::MakeSpan(out));
  EXPECT_THAT(out, ElementsAre(0, 0.5f, 0.25f, 0.5f, 2, 2.5f, 1.25f, 1.5f));
  FillBatch(view, {0, 1},
            *Standardizer::FromValues({1, 2, 3, 4}, {1, 2, 4, 8}, "t"),
            absl::MakeSpan(out));
  EXPECT_THAT(out, ElementsAre(0, 0, 0, 0, 4, 2, 1, 0.5f));
  FillBatch(view, {1, 0}, *Standardizer::FromValues({1}, {2}, "t"),
            absl::MakeSpan(out));
  EXPECT_THAT(out, ElementsAre(2, 2.5f, 3, 3.5f, 0, 0.5f, 1, 1.5f));
}

TEST(Standardizer, LooksOnlyAtTheRowsOfTheView) {
  const DatasetView view =
      FloatView({2}, {1, 0.1f, 3, 0.1f, 1000, 7}, {0, 0, 0}, 1).Subset({0, 1});
  const auto s = Standardizer::FromRows(view, Standardizer::Per::kFeature);
  ASSERT_TRUE(s.ok()) << s.status();
  EXPECT_THAT(s->mean(), ElementsAre(2, 0.1f));
  EXPECT_THAT(s->std(), ElementsAre(1, 1));  // the second is constant
  std::vector<float> out(4);
  FillBatch(view, {0, 1}, *s, absl::MakeSpan(out));
  EXPECT_THAT(out, ElementsAre(-1, 0, 1, 0));
}

TEST(Standardizer, ComputesByChannelAndForAll) {
  const DatasetView view =
      ByteView({2, 1, 2}, {0, 255, 51, 51, 0, 255, 51, 51}, {0, 0}, 1);
  const auto channel =
      Standardizer::FromRows(view, Standardizer::Per::kChannel);
  ASSERT_TRUE(channel.ok()) << channel.status();
  EXPECT_THAT(channel->mean(), ElementsAre(FloatEq(0.5f), FloatEq(0.2f)));
  EXPECT_THAT(channel->std(), ElementsAre(FloatEq(0.5f), 1));
  const auto all = Standardizer::FromRows(view, Standardizer::Per::kAll);
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_THAT(all->mean(), ElementsAre(FloatEq(0.35f)));
}

TEST(Standardizer, ConstantFeaturesThatDoNotSumExactlyGetStdOne) {
  // 0.1f summed a million times is not a million times 0.1f.
  std::vector<float> x(1000003, 0.1f);
  const size_t n = x.size();
  const DatasetView view =
      FloatView({1}, std::move(x), std::vector<int64_t>(n, 0), 1);
  const auto s = Standardizer::FromRows(view, Standardizer::Per::kFeature);
  ASSERT_TRUE(s.ok()) << s.status();
  EXPECT_THAT(s->mean(), ElementsAre(0.1f));
  EXPECT_THAT(s->std(), ElementsAre(1));
}

TEST(Standardizer, RefusesWhatFloat32CannotHold) {
  const DatasetView view = FloatView({2}, {1, 1e10F, 2, 3e10F}, {0, 1}, 2);
  const auto fits =
      Standardizer::FromRows(view, Standardizer::Per::kFeature, 1e-20);
  ASSERT_TRUE(fits.ok()) << fits.status();
  ExpectError(
      Standardizer::FromRows(view, Standardizer::Per::kFeature, 1e-30).status(),
      absl::StatusCode::kInvalidArgument,
      {"values of feature 1 have mean 2e+40", "data.divide"});
}

TEST(Standardizer, ReadsAScalerFile) {
  const std::string path =
      WriteFile("s", "feature,mean,std\n0,0.5,2\n1,-1,0\n");
  const auto s = Standardizer::FromCsv(path, 2);
  ASSERT_TRUE(s.ok()) << s.status();
  EXPECT_THAT(s->mean(), ElementsAre(0.5f, -1));
  EXPECT_THAT(s->std(), ElementsAre(2, 1));
  EXPECT_TRUE(
      Standardizer::FromCsv(WriteFile("t", Gzip("std,mean\n1,2\n")), 1).ok());
}

TEST(Standardizer, RefusesWrongScalerFiles) {
  const struct {
    std::string text;
    std::vector<std::string> parts;
  } cases[] = {
      {"", {"line 1", "mean and std", "feature,mean,std"}},
      {"0,1,2\n", {"line 1", "mean and std", "feature,mean,std"}},
      {"feature,mean,std\n0,1,1\n", {"1 features", "2, as the data set"}},
      {"feature,mean,std\n0,1,1\n2,1,1\n", {"line 3, column 1", "'2'", "1 ("}},
      {"mean,std\n1,1\n1\n", {"line 3", "1 fields", "2, as in the header"}},
      {"mean,std\n1,1\nx,1\n", {"line 3, column 1", "'x' is not a number"}},
      {"mean,std\n1,nan\n1,1\n", {"line 2, column 2", "not finite"}},
      {"mean,std\n1,-1\n1,1\n", {"line 2, column 2", "'-1' is negative"}},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.text);
    const std::string path = WriteFile("s", c.text);
    const auto s = Standardizer::FromCsv(path, 2);
    ExpectError(s.status(), absl::StatusCode::kInvalidArgument, c.parts);
    ExpectError(s.status(), absl::StatusCode::kInvalidArgument,
                {path, "allowed: "});
  }
  ExpectError(Standardizer::FromCsv("/nowhere", 1).status(),
              absl::StatusCode::kNotFound, {"/nowhere"});
}

TEST(Standardizer, RefusesValuesThatDoNotFit) {
  ExpectError(Standardizer::FromValues({1, 2}, {1}, "plan: data.std").status(),
              absl::StatusCode::kInvalidArgument,
              {"plan: data.std", "2 means and 1 stds"});
  ExpectError(Standardizer::FromValues({1}, {-1}, "plan: data.std").status(),
              absl::StatusCode::kInvalidArgument,
              {"plan: data.std", "std -1", "not below 0"});
  const DatasetView view = Gradient(1, {2, 4, 4});
  const auto s = Standardizer::FromValues({1, 2, 3}, {1, 1, 1}, "t");
  ASSERT_TRUE(s.ok());
  ExpectError(s->CheckFits(view.dataset()), absl::StatusCode::kInvalidArgument,
              {"3 means", "1, 2", "32"});
  ExpectError(
      Standardizer::FromRows(view.Subset({}), Standardizer::Per::kAll).status(),
      absl::StatusCode::kInvalidArgument, {"no rows"});
}

std::vector<int64_t> Pass(BatchSampler& sampler) {
  std::vector<int64_t> rows;
  for (int64_t b = 0; b < sampler.batches_per_pass(); ++b) {
    const absl::Span<const int64_t> batch = sampler.Next();
    rows.insert(rows.end(), batch.begin(), batch.end());
  }
  return rows;
}

TEST(BatchSampler, GivesABatchAgain) {
  BatchSampler once(10, 4, 3);
  BatchSampler twice(10, 4, 3);
  for (int k = 0; k < 8; ++k) {  // passes of 4, 4 and 2 rows
    const absl::Span<const int64_t> next = twice.Next();
    const std::vector<int64_t> first(next.begin(), next.end());
    EXPECT_EQ(twice.Again(), absl::MakeConstSpan(first));
    twice.set_batch_size(4);
    EXPECT_EQ(twice.Again(), absl::MakeConstSpan(first));
    EXPECT_EQ(once.Next(), absl::MakeConstSpan(first)) << "batch " << k;
  }
}

TEST(BatchSampler, CoversEachRowOncePerPass) {
  for (const int64_t rows : {1, 2, 7, 32, 100}) {
    for (const int64_t batch : {1, 3, 32, 1000}) {
      SCOPED_TRACE(absl::StrCat(rows, " rows, batch ", batch));
      BatchSampler sampler(rows, batch, 5);
      EXPECT_EQ(sampler.batches_per_pass(), (rows + batch - 1) / batch);
      for (int pass = 0; pass < 3; ++pass) {
        std::vector<int64_t> seen = Pass(sampler);
        std::sort(seen.begin(), seen.end());
        std::vector<int64_t> all(static_cast<size_t>(rows));
        std::iota(all.begin(), all.end(), 0);
        ASSERT_EQ(seen, all);
      }
    }
  }
}

TEST(BatchSampler, KeepsTheShortLastBatch) {
  BatchSampler sampler(7, 3, 1);
  EXPECT_EQ(sampler.Next().size(), 3u);
  EXPECT_EQ(sampler.Next().size(), 3u);
  EXPECT_EQ(sampler.Next().size(), 1u);
  EXPECT_EQ(sampler.Next().size(), 3u);
}

TEST(BatchSampler, DiffersBetweenPassesAndSeedsAndRepeatsForOne) {
  BatchSampler a(100, 10, 1);
  BatchSampler b(100, 10, 1);
  BatchSampler c(100, 10, 2);
  const std::vector<int64_t> first = Pass(a);
  EXPECT_EQ(first, Pass(b));
  EXPECT_NE(first, Pass(c));
  EXPECT_NE(first, Pass(a));
}

// The order must never change: checkpoints name positions in it.
TEST(BatchSampler, OrderIsPinned) {
  BatchSampler sampler(8, 8, 42);
  EXPECT_THAT(sampler.Next(), ElementsAre(4, 1, 5, 2, 7, 3, 0, 6));
  EXPECT_THAT(sampler.Next(), ElementsAre(7, 1, 2, 5, 6, 0, 4, 3));
}

TEST(BatchSampler, ResumesAtEveryPosition) {
  constexpr int kBatches = 25;
  for (int stop = 0; stop <= kBatches; ++stop) {
    SCOPED_TRACE(stop);
    BatchSampler original(23, 5, 9);
    for (int i = 0; i < stop; ++i) original.Next();
    const BatchSampler::State state = original.state();
    EXPECT_LT(state.position, 23);
    BatchSampler resumed(23, 5, 12345);
    resumed.Next();
    ASSERT_TRUE(resumed.Restore(state).ok());
    for (int i = 0; i < 12; ++i) {
      const absl::Span<const int64_t> x = original.Next();
      const absl::Span<const int64_t> y = resumed.Next();
      ASSERT_EQ(std::vector<int64_t>(x.begin(), x.end()),
                std::vector<int64_t>(y.begin(), y.end()));
    }
  }
}

TEST(BatchSampler, BatchSizeMayChangeWithinAPass) {
  BatchSampler sampler(10, 4, 3);
  std::set<int64_t> seen;
  for (const int64_t i : sampler.Next()) seen.insert(i);
  sampler.set_batch_size(100);
  EXPECT_EQ(sampler.batches_per_pass(), 1);
  for (const int64_t i : sampler.Next()) seen.insert(i);
  EXPECT_EQ(seen.size(), 10u);
}

std::vector<size_t> Sizes(BatchSampler& sampler, int batches) {
  std::vector<size_t> sizes;
  for (int b = 0; b < batches; ++b) sizes.push_back(sampler.Next().size());
  return sizes;
}

TEST(BatchSampler, JoinsALastBatchThatWouldBeTooShort) {
  BatchSampler joined(33, 32, 1);
  joined.set_min_rows(2);
  EXPECT_EQ(joined.batches_per_pass(), 1);
  EXPECT_THAT(Sizes(joined, 2), ElementsAre(33, 33));
  BatchSampler later(9, 4, 1);
  later.set_min_rows(2);
  EXPECT_EQ(later.batches_per_pass(), 2);
  EXPECT_THAT(Sizes(later, 4), ElementsAre(4, 5, 4, 5));
  EXPECT_EQ(later.Again().size(), 5u);
  BatchSampler fits(10, 4, 1);
  fits.set_min_rows(2);
  EXPECT_EQ(fits.batches_per_pass(), 3);
  EXPECT_THAT(Sizes(fits, 4), ElementsAre(4, 4, 2, 4));
  BatchSampler single(5, 1, 1);
  single.set_min_rows(2);
  EXPECT_EQ(single.batches_per_pass(), 2);
  EXPECT_THAT(Sizes(single, 4), ElementsAre(2, 3, 2, 3));
}

TEST(BatchSampler, CoversEachRowOncePerPassWithAFewestNumberOfRows) {
  for (const int64_t rows : {2, 3, 7, 33, 100}) {
    for (const int64_t batch : {1, 2, 3, 32, 1000}) {
      SCOPED_TRACE(absl::StrCat(rows, " rows, batch ", batch));
      BatchSampler sampler(rows, batch, 5);
      sampler.set_min_rows(2);
      for (int pass = 0; pass < 3; ++pass) {
        std::vector<int64_t> seen;
        while (seen.size() < static_cast<size_t>(rows)) {
          const absl::Span<const int64_t> next = sampler.Next();
          ASSERT_GE(next.size(), 2u);
          seen.insert(seen.end(), next.begin(), next.end());
        }
        std::sort(seen.begin(), seen.end());
        std::vector<int64_t> all(static_cast<size_t>(rows));
        std::iota(all.begin(), all.end(), 0);
        ASSERT_EQ(seen, all);
      }
    }
  }
}

TEST(BatchSampler, DropsTheRestThatAnotherModelLeft) {
  BatchSampler sampler(9, 8, 3);
  sampler.Next();
  sampler.set_min_rows(2);
  EXPECT_EQ(sampler.Next().size(), 9u);
  EXPECT_EQ(sampler.state().pass, 2u);
}

TEST(BatchSampler, RefusesAStateOfOtherData) {
  BatchSampler sampler(10, 4, 3);
  sampler.Next();
  BatchSampler::State state = sampler.state();
  state.rows = 11;
  ExpectError(sampler.Restore(state), absl::StatusCode::kInvalidArgument,
              {"11 training rows", "allowed: 10"});
  state.rows = 10;
  for (const int64_t position : {-1, 10}) {
    state.position = position;
    ExpectError(sampler.Restore(state), absl::StatusCode::kInvalidArgument,
                {absl::StrCat(position), "0 to 9"});
  }
  EXPECT_EQ(sampler.state().position, 4);
}

}  // namespace
}  // namespace data
}  // namespace dfl
