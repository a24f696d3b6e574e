// Public data sets, where they are installed. Debian's dataset-fashion-mnist is
// one of the project's test packages; the rest is looked for in
// $DFL_SHARED_DATA and skipped without it.
#include <cmath>
#include <cstdlib>

#include "daemon/data/batch.h"
#include "daemon/data/load.h"
#include "daemon/data/standardizer.h"
#include "tests/unit/data/test_files.h"

namespace dfl {
namespace data {
namespace {

using testing::Each;
using testing::ElementsAre;

bool Exists(const std::string& path) {
  return ::access(path.c_str(), R_OK) == 0;
}

DatasetView ViewOf(absl::StatusOr<Dataset> data) {
  return DatasetView(std::make_shared<const Dataset>(std::move(data).value()));
}

TEST(FashionMnist, HasSixThousandRowsAClass) {
  const std::string folder = "/usr/share/datasets/fashion-mnist";
  const DataSpec train_spec = MnistTrainingSpec(folder);
  if (!Exists(train_spec.paths[0])) {
    GTEST_SKIP() << "Debian's dataset-fashion-mnist is not installed";
  }
  auto train = Load(train_spec);
  ASSERT_TRUE(train.ok()) << train.status();
  EXPECT_EQ(train->rows(), 60000);
  EXPECT_THAT(train->shape(), ElementsAre(1, 28, 28));
  EXPECT_EQ(train->classes(), 10);
  const DatasetView view = ViewOf(std::move(train));
  EXPECT_THAT(view.LabelCounts(), Each(6000));
  // Known figures of this data set.
  const auto all = Standardizer::FromRows(view, Standardizer::Per::kAll);
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_NEAR(all->mean()[0], 0.2860, 5e-5);
  EXPECT_NEAR(all->std()[0], 0.3530, 5e-5);
  auto test = Load(MnistTestSpec(folder));
  ASSERT_TRUE(test.ok()) << test.status();
  EXPECT_EQ(test->rows(), 10000);
  EXPECT_THAT(ViewOf(std::move(test)).LabelCounts(), Each(1000));
}

class SharedData : public testing::Test {
 protected:
  // The file's path, or "" and the test is skipped.
  std::string Find(const std::string& name) {
    const char* const folder = std::getenv("DFL_SHARED_DATA");
    if (folder == nullptr) return "";
    const std::string path = absl::StrCat(folder, "/", name);
    return Exists(path) ? path : "";
  }
};

#define DFL_FIND_OR_SKIP(path, name)                              \
  const std::string path = Find(name);                            \
  if (path.empty()) {                                             \
    GTEST_SKIP() << "no file " << name << " in $DFL_SHARED_DATA"; \
  }

TEST_F(SharedData, Mnist) {
  DFL_FIND_OR_SKIP(folder, "mnist");
  auto train = Load(MnistTrainingSpec(folder));
  ASSERT_TRUE(train.ok()) << train.status();
  EXPECT_EQ(train->rows(), 60000);
  EXPECT_THAT(
      ViewOf(std::move(train)).LabelCounts(),
      ElementsAre(5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949));
  auto test = Load(MnistTestSpec(folder));
  ASSERT_TRUE(test.ok()) << test.status();
  EXPECT_EQ(test->rows(), 10000);
}

TEST_F(SharedData, Cifar10) {
  DFL_FIND_OR_SKIP(path, "cifar10/train_subset_small.bin.gz");
  DataSpec spec;
  spec.format = Format::kCifar10;
  spec.paths = {path};
  const auto data = Load(spec);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->rows(), 1000);
  EXPECT_THAT(data->shape(), ElementsAre(3, 32, 32));
}

TEST_F(SharedData, Libsvm) {
  const struct {
    std::string name;
    int64_t rows;
    int64_t features;
  } cases[] = {{"libsvm/a9a", 32561, 123},
               {"libsvm/w8a.gz", 49749, 300},
               {"libsvm/german.numer_scale.gz", 1000, 24}};
  for (const auto& c : cases) {
    DFL_FIND_OR_SKIP(path, c.name);
    DataSpec spec;
    spec.format = Format::kLibsvm;
    spec.paths = {path};
    const auto data = Load(spec);
    ASSERT_TRUE(data.ok()) << data.status();
    EXPECT_EQ(data->rows(), c.rows);
    EXPECT_THAT(data->shape(), ElementsAre(c.features));
    EXPECT_THAT(data->class_names(), ElementsAre("-1", "1"));
  }
  // a9a's test part lacks the last feature.
  DFL_FIND_OR_SKIP(path, "libsvm/a9a.t");
  DataSpec spec;
  spec.format = Format::kLibsvm;
  spec.paths = {path};
  spec.features = 123;
  const auto data = Load(spec);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->rows(), 16281);
}

TEST_F(SharedData, CwruArchiveAndScaler) {
  DFL_FIND_OR_SKIP(path, "cwru/cwru_fft_train.npz");
  DFL_FIND_OR_SKIP(scaler, "cwru/scaler.csv");
  DataSpec spec;
  spec.format = Format::kNpz;
  spec.paths = {path};
  auto data = Load(spec);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->rows(), 12000);
  EXPECT_THAT(data->shape(), ElementsAre(300));
  EXPECT_EQ(data->classes(), 10);
  const DatasetView view = ViewOf(std::move(data));
  // Its scaler was computed elsewhere from the same rows.
  const auto given = Standardizer::FromCsv(scaler, 300);
  ASSERT_TRUE(given.ok()) << given.status();
  const auto own = Standardizer::FromRows(view, Standardizer::Per::kFeature);
  ASSERT_TRUE(own.ok()) << own.status();
  for (size_t j = 0; j < 300; ++j) {
    ASSERT_NEAR(own->mean()[j] / given->mean()[j], 1, 1e-4) << j;
    ASSERT_NEAR(own->std()[j] / given->std()[j], 1, 1e-4) << j;
  }
}

TEST_F(SharedData, Csv) {
  struct Case {
    std::string name;
    int64_t rows;
    int64_t features;
    int64_t classes;
    Header header;
    std::vector<std::string> drop;
  };
  const Case cases[] = {
      {"poker/poker-hand-training-true.data", 25010, 10, 10, Header::kAuto, {}},
      {"iot-device-id/iot_device_train.csv", 1000, 297, 10, Header::kAuto, {}},
      {"sklearn/breast_cancer.csv", 569, 30, 2, Header::kSkip, {}},
      {"sklearn/wine_data.csv", 178, 13, 3, Header::kSkip, {}},
      {"sklearn/iris.csv", 150, 4, 3, Header::kSkip, {}},
      {"sklearn/digits.csv.gz", 1797, 64, 10, Header::kAuto, {}},
      {"letters/uci-letter-recognition.csv.gz",
       20000,
       16,
       26,
       Header::kAuto,
       {"0"}},
      {"letters/uci-pendigits.csv.gz", 10992, 16, 10, Header::kAuto, {"0"}}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    DFL_FIND_OR_SKIP(path, c.name);
    DataSpec spec;
    spec.format = Format::kCsv;
    spec.paths = {path};
    spec.header = c.header;
    spec.drop_columns = c.drop;
    const auto data = Load(spec);
    ASSERT_TRUE(data.ok()) << data.status();
    EXPECT_EQ(data->rows(), c.rows);
    EXPECT_EQ(data->row_size(), c.features);
    EXPECT_EQ(data->classes(), c.classes);
  }
}

TEST_F(SharedData, TestSetOfOtherClassesNeedsTheTrainingSetsNames) {
  DFL_FIND_OR_SKIP(train_path, "iot-device-id/iot_device_train.csv");
  DFL_FIND_OR_SKIP(test_path, "iot-device-id/iot_device_test.csv");
  DataSpec spec;
  spec.format = Format::kCsv;
  spec.paths = {train_path};
  spec.label_column = "device_category";
  const auto train = Load(spec);
  ASSERT_TRUE(train.ok()) << train.status();
  spec.paths = {test_path};
  spec.label_values = train->class_names();
  const auto test = Load(spec);
  ASSERT_TRUE(test.ok()) << test.status();
  EXPECT_EQ(test->rows(), 900);
  EXPECT_EQ(test->classes(), train->classes());
}

}  // namespace
}  // namespace data
}  // namespace dfl
