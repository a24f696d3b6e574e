#include "daemon/data/load.h"
#include "tests/unit/data/test_files.h"

namespace dfl {
namespace data {
namespace {

using testing::ElementsAre;

// One row: `label`, then bytes (k * step) mod 256.
std::string Row(int label, int step) {
  std::string row(3073, '\0');
  row[0] = static_cast<char>(label);
  for (int k = 0; k < 3072; ++k) {
    row[static_cast<size_t>(k) + 1] = static_cast<char>(k * step);
  }
  return row;
}

DataSpec SpecOf(std::vector<std::string> paths) {
  DataSpec spec;
  spec.format = Format::kCifar10;
  spec.paths = std::move(paths);
  return spec;
}

TEST(Cifar10, JoinsFilesInOrder) {
  const auto data = Load(SpecOf({WriteFile("a", Row(3, 1) + Row(9, 2)),
                                 WriteFile("b", Gzip(Row(0, 3)))}));
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->rows(), 3);
  EXPECT_THAT(data->shape(), ElementsAre(3, 32, 32));
  EXPECT_THAT(data->labels(), ElementsAre(3, 9, 0));
  EXPECT_EQ(data->classes(), 10);
  EXPECT_EQ(data->bytes()[5], 5);
  EXPECT_EQ(data->bytes()[3072 + 200], (200 * 2) % 256);
  EXPECT_EQ(data->bytes()[2 * 3072 + 1000], (1000 * 3) % 256);
}

TEST(Cifar10, RefusesEveryTruncation) {
  const auto load = [](const std::string& path) {
    return Load(SpecOf({path}));
  };
  ExpectEveryTruncationRefused("cut", Row(3, 7), load);
  ExpectEveryTruncationRefused("cutgz", Gzip(Row(3, 7)), load);
}

TEST(Cifar10, SaysWhichRowIsCut) {
  const std::string two = Row(1, 1) + Row(2, 2);
  const std::string path = WriteFile("c", two.substr(0, 6000));
  ExpectCut(Load(SpecOf({path})), {path, "byte 6000", "row 1", "3073"});
  const std::string zipped = WriteFile("z", Gzip(two.substr(0, 6000)));
  ExpectCut(Load(SpecOf({zipped})), {zipped, "byte 6000", "row 1"});
}

TEST(Cifar10, NoticesMissingRowsWhenTold) {
  DataSpec spec = SpecOf({WriteFile("a", Row(1, 1))});
  spec.rows = 2;
  ExpectWrong(Load(spec), {spec.paths[0], "1 rows", "rows = 2"});
}

TEST(Cifar10, RefusesLabelOutOfRange) {
  const std::string path = WriteFile("a", Row(1, 1) + Row(10, 1));
  ExpectWrong(Load(SpecOf({path})),
              {path, "byte 3073", "label 10 of row 1", "0 to 9"});
}

TEST(Cifar10, RefusesTooMuch) {
  DataSpec spec = SpecOf({WriteFile("a", Row(1, 1) + Row(2, 1))});
  spec.max_bytes = 3072;
  ExpectWrong(Load(spec), {spec.paths[0], "row 1", "max_bytes = 3072"});
}

TEST(Cifar10, RefusesOtherClassCounts) {
  DataSpec spec = SpecOf({WriteFile("a", Row(1, 1))});
  spec.classes = 100;
  ExpectWrong(Load(spec), {"classes", "100", "10"});
}

}  // namespace
}  // namespace data
}  // namespace dfl
