#include <sys/stat.h>

#include "daemon/data/load.h"
#include "tests/unit/data/test_files.h"

namespace dfl {
namespace data {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;

const std::vector<uint8_t> kPixels = {0, 1, 2, 3, 4, 255, 6, 7, 8, 9, 10, 11};

// Two images of 2 x 3 with labels 2 and 0.
std::string Images() { return Idx(0x803, {2, 2, 3}, kPixels); }
std::string Labels() { return Idx(0x801, {2}, {2, 0}); }

DataSpec SpecOf(const std::string& images, const std::string& labels) {
  DataSpec spec;
  spec.format = Format::kIdx;
  spec.paths = {images, labels};
  return spec;
}

TEST(Idx, ReadsImagesAsBytesWithOneChannel) {
  const auto data =
      Load(SpecOf(WriteFile("i", Images()), WriteFile("l", Labels())));
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->rows(), 2);
  EXPECT_THAT(data->shape(), ElementsAre(1, 2, 3));
  EXPECT_TRUE(data->has_bytes());
  EXPECT_THAT(data->bytes(), ElementsAreArray(kPixels));
  EXPECT_THAT(data->labels(), ElementsAre(1, 0));
  EXPECT_THAT(data->class_names(), ElementsAre("0", "2"));
  EXPECT_FALSE(data->is_regression());
}

TEST(Idx, ReadsGzipByContentAndNotByName) {
  const auto data = Load(SpecOf(WriteFile("images.plain", Gzip(Images())),
                                WriteFile("labels.gz", Labels())));
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(data->bytes(), ElementsAreArray(kPixels));
}

TEST(Idx, ReadsGzipOfSeveralMembers) {
  const std::string all = Images();
  const auto data =
      Load(SpecOf(WriteFile("i", Gzip(all.substr(0, 5)) + Gzip(all.substr(5))),
                  WriteFile("l", Labels())));
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(data->bytes(), ElementsAreArray(kPixels));
}

TEST(Idx, ShapeAndClassesCanBeGiven) {
  DataSpec spec = SpecOf(WriteFile("i", Images()), WriteFile("l", Labels()));
  spec.shape = {6};
  spec.classes = 10;
  const auto data = Load(spec);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(data->shape(), ElementsAre(6));
  EXPECT_EQ(data->classes(), 10);
}

TEST(Idx, RefusesEveryTruncation) {
  const std::string labels = WriteFile("l", Labels());
  const std::string images = WriteFile("i", Images());
  const auto load_images = [&](const std::string& path) {
    return Load(SpecOf(path, labels));
  };
  const auto load_labels = [&](const std::string& path) {
    return Load(SpecOf(images, path));
  };
  ExpectEveryTruncationRefused("cut_i", Images(), load_images);
  ExpectEveryTruncationRefused("cut_l", Labels(), load_labels);
  ExpectEveryTruncationRefused("cut_igz", Gzip(Images()), load_images);
  ExpectEveryTruncationRefused("cut_lgz", Gzip(Labels()), load_labels);
}

TEST(Idx, SurvivesEveryBitFlip) {
  const std::string labels = WriteFile("l", Labels());
  const auto load = [&](const std::string& path) {
    return Load(SpecOf(path, labels));
  };
  // All header bits count; those of pixels cannot be noticed.
  EXPECT_GE(CountRefusedBitFlips("flip", Images(), 2, load), 8u * 4u);
  // Gzip notices all but a few flags and the time stamp of its header.
  const std::string zipped = Gzip(Images());
  EXPECT_GE(CountRefusedBitFlips("flipgz", zipped, 2, load),
            8 * (zipped.size() - 10));
}

TEST(Idx, SaysWhatIsMissing) {
  const std::string labels = WriteFile("l", Labels());
  ExpectError(Load(SpecOf("/nowhere/images", labels)).status(),
              absl::StatusCode::kNotFound,
              {"/nowhere/images", "check the path"});
  ExpectWrong(Load(SpecOf(testing::TempDir(), labels)),
              {testing::TempDir(), "a folder", "a plain file"});
  // Not waited for.
  const std::string pipe = WriteFile("pipe", "");
  ASSERT_EQ(::unlink(pipe.c_str()), 0);
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  ExpectWrong(Load(SpecOf(pipe, labels)), {pipe, "not a plain file"});
  DataSpec one = SpecOf(labels, labels);
  one.paths.pop_back();
  ExpectWrong(Load(one), {"idx", "1 paths", "2 (features, then labels)"});
}

TEST(Idx, SaysWhenItMayNotRead) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may read everything";
  const std::string path = WriteFile("i", Images());
  ASSERT_EQ(::chmod(path.c_str(), 0), 0);
  ExpectError(Load(SpecOf(path, WriteFile("l", Labels()))).status(),
              absl::StatusCode::kPermissionDenied, {path, "read permission"});
}

TEST(Idx, RefusesWrongMagic) {
  const std::string labels = WriteFile("l", Labels());
  const std::string images = WriteFile("i", Images());
  const std::string wrong = WriteFile("w", Idx(0xD03, {2, 2, 3}, kPixels));
  ExpectWrong(Load(SpecOf(wrong, labels)),
              {wrong, "byte 0", "0x00000d03", "0x00000803"});
  ExpectWrong(Load(SpecOf(labels, images)),
              {images, "byte 0", "0x00000803", "swapped", "0x00000801"});
  const std::string text = WriteFile("t", "1,2,3\n4,5,6\n");
  ExpectWrong(Load(SpecOf(text, labels)), {text, "byte 0", "0x312c322c"});
}

TEST(Idx, RefusesDifferentCounts) {
  const std::string images = WriteFile("i", Images());
  const std::string labels = WriteFile("l", Idx(0x801, {3}, {0, 1, 2}));
  ExpectWrong(
      Load(SpecOf(images, labels)),
      {labels, "byte 4", "3 labels", "2, the number of images", images});
}

TEST(Idx, RefusesMoreLabelsThanClasses) {
  DataSpec spec = SpecOf(WriteFile("i", Images()),
                         WriteFile("l", Idx(0x801, {2}, {1, 10})));
  spec.classes = 1;
  ExpectWrong(Load(spec), {spec.paths[1], "byte 9 (row 1)", "label '10'",
                           "data.classes = 1"});
  spec.classes = 0;
  spec.label_values = {"1", "2"};
  ExpectWrong(Load(spec), {spec.paths[1], "byte 9 (row 1)", "label '10'",
                           "1, 2, as data.label_values"});
}

TEST(Idx, RefusesNoRowsAndEmptyShapes) {
  const std::string labels = WriteFile("l", Labels());
  const std::string none = WriteFile("n", Idx(0x801, {0}, {}));
  ExpectWrong(Load(SpecOf(labels, none)),
              {none, "byte 4", "no rows", "at least one"});
  const std::string flat = WriteFile("f", Idx(0x803, {2, 0, 3}, {}));
  ExpectWrong(Load(SpecOf(flat, labels)),
              {flat, "byte 4", "(2, 0, 3)", "at least 1"});
}

TEST(Idx, RefusesSizesThatOverflowOrPassTheLimitBeforeAllocating) {
  const std::string labels = WriteFile("l", Labels());
  const uint32_t huge = 0xFFFFFFFF;
  const std::string overflow =
      WriteFile("o", Idx(0x804, {huge, huge, huge, huge}, {1}));
  ExpectWrong(Load(SpecOf(overflow, labels)),
              {overflow, "byte 4", "4294967295", "max_bytes"});
  // Within the limit, but the file is short: plain and compressed.
  const std::string lying = Idx(0x803, {1000000, 40, 40}, {1, 2, 3});
  const std::string plain = WriteFile("p", lying);
  ExpectCut(Load(SpecOf(plain, labels)),
            {plain, "byte 16", "1600000000", "at most 3 bytes"});
  const std::string zipped = WriteFile("z", Gzip(lying));
  ExpectCut(Load(SpecOf(zipped, labels)), {zipped, "byte 16", "1600000000"});
  DataSpec small = SpecOf(WriteFile("i", Images()), labels);
  small.max_bytes = 11;
  ExpectWrong(Load(small), {small.paths[0], "(2, 2, 3)", "max_bytes = 11"});
}

TEST(Idx, RefusesTrailingBytes) {
  const std::string labels = WriteFile("l", Labels());
  const std::string plain = WriteFile("p", Images() + "xy");
  ExpectWrong(Load(SpecOf(plain, labels)),
              {plain, "byte 28", "2 bytes follow", "nothing"});
  const std::string inside = WriteFile("i", Gzip(Images() + "x"));
  ExpectWrong(Load(SpecOf(inside, labels)), {inside, "byte 28", "nothing"});
  const std::string behind = WriteFile("b", Gzip(Images()) + "x");
  ExpectWrong(Load(SpecOf(behind, labels)),
              {behind, absl::StrCat("byte ", Gzip(Images()).size()),
               "1 bytes follow the compressed data", "nothing"});
}

TEST(Idx, RefusesDamagedGzip) {
  const std::string labels = WriteFile("l", Labels());
  std::string bytes = Gzip(Images());
  bytes[bytes.size() - 6] ^= 1;  // the checksum
  const std::string path = WriteFile("g", bytes);
  ExpectWrong(Load(SpecOf(path, labels)),
              {path, "byte ", "incorrect data check", "matching checksums"});
}

TEST(Idx, RefusesRowsAndFeaturesOtherThanExpected) {
  DataSpec spec = SpecOf(WriteFile("i", Images()), WriteFile("l", Labels()));
  spec.rows = 3;
  ExpectWrong(Load(spec), {spec.paths[1], "2 rows", "rows = 3"});
  spec.rows = 2;
  spec.features = 784;
  ExpectWrong(Load(spec), {spec.paths[0], "6 features", "features = 784"});
  spec.features = 6;
  spec.shape = {1, 4, 2};
  ExpectWrong(Load(spec), {spec.paths[0], "(1, 4, 2)", "product is 6"});
}

}  // namespace
}  // namespace data
}  // namespace dfl
