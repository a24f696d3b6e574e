#include <algorithm>
#include <cmath>
#include <limits>

#include "daemon/data/load.h"
#include "tests/unit/data/test_files.h"

namespace dfl {
namespace data {
namespace {

using testing::ElementsAre;

DataSpec NpySpec(const std::string& x, const std::string& y) {
  DataSpec spec;
  spec.format = Format::kNpy;
  spec.paths = {WriteFile("x", x), WriteFile("y", y)};
  return spec;
}
DataSpec NpzSpec(const std::string& archive) {
  DataSpec spec;
  spec.format = Format::kNpz;
  spec.paths = {WriteFile("z", archive)};
  return spec;
}

std::string X() {
  return Npy("<f4", "2, 3", Raw<float>({1, -2, 0.5f, 4, 5, 6}));
}
std::string Text(absl::Span<const uint8_t> bytes) {
  return std::string(bytes.begin(), bytes.end());
}
std::string Y() { return Npy("<i8", "2,", Raw<int64_t>({1, 0})); }

// Values of `size` bytes in the other byte order.
std::string Swapped(std::string bytes, size_t size) {
  for (size_t i = 0; i < bytes.size(); i += size) {
    std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(i),
                 bytes.begin() + static_cast<std::ptrdiff_t>(i + size));
  }
  return bytes;
}

TEST(Npy, ReadsHalvesExactly) {
  // The largest, the smallest, a third, a negative, and both zeros.
  const auto data = Load(NpySpec(
      Npy("<f2", "2, 3",
          Raw<uint16_t>({0x7BFF, 0x0001, 0x3555, 0xC000, 0x8000, 0x0400})),
      Y()));
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(data->floats(),
              ElementsAre(65504, std::ldexp(1.0f, -24), 0.333251953125f, -2, 0,
                          std::ldexp(1.0f, -14)));
  const DataSpec infinite =
      NpySpec(Npy("<f2", "2, 1", Raw<uint16_t>({0x7C00, 0})), Y());
  ExpectWrong(Load(infinite), {"value inf", "finite"});
}

TEST(Npy, TruthValuesAreOneAndZero) {
  const auto data = Load(NpySpec(Npy("|b1", "2, 2", Raw<uint8_t>({1, 0, 0, 1})),
                                 Npy("|b1", "2,", Raw<uint8_t>({1, 0}))));
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_FALSE(data->has_bytes());
  EXPECT_THAT(data->floats(), ElementsAre(1, 0, 0, 1));
  EXPECT_THAT(data->class_names(), ElementsAre("0", "1"));
  EXPECT_THAT(data->labels(), ElementsAre(1, 0));
}

TEST(Npy, ReadsLabelsOfEveryKind) {
  const struct {
    std::string y;
    std::vector<std::string> names;
  } cases[] = {
      {Npy("|i1", "2,", Raw<int8_t>({1, -1})), {"-1", "1"}},
      {Npy("<u2", "2,", Raw<uint16_t>({7, 3})), {"3", "7"}},
      {Npy(">u4", "2,", Swapped(Raw<uint32_t>({70000, 3}), 4)), {"3", "70000"}},
      {Npy("<u8", "2,", Raw<uint64_t>({2, 1})), {"1", "2"}},
      {Npy("<f2", "2, 1", Raw<uint16_t>({0x4000, 0x3C00})), {"1", "2"}},
      {Npy("|S3", "2,", "dogcat"), {"cat", "dog"}},
      {Npy("<U2", "2,", Raw<uint32_t>({'o', 0xE9, 'a', 0})),
       {"a", "o\xC3\xA9"}},
  };
  for (const auto& c : cases) {
    const auto data = Load(NpySpec(X(), c.y));
    ASSERT_TRUE(data.ok()) << data.status();
    EXPECT_EQ(data->class_names(), c.names);
    EXPECT_THAT(data->labels(), ElementsAre(1, 0));
  }
}

TEST(Npy, ReadsImagesWithChannelsLast) {
  // 2 rows of 1 x 2 pixels with 3 channels.
  const std::string x = Npy("|u1", "2, 1, 2, 3", "abcdefghijkl");
  DataSpec spec = NpySpec(x, Y());
  spec.layout = Layout::kNhwc;
  auto data = Load(spec);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(data->shape(), ElementsAre(3, 1, 2));
  EXPECT_EQ(Text(data->bytes()), "adbecfgjhkil");
  spec.layout = Layout::kNchw;
  data = Load(spec);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(data->shape(), ElementsAre(1, 2, 3));
  // Nobody said, and it does look like the other one.
  spec = NpySpec(Npy("|u1", "2, 2, 1, 3", "abcdefghijkl"), Y());
  ExpectWrong(Load(spec), {spec.paths[0], "(2, 1, 3)", "data.layout: nhwc"});
  // Fortran order and channels last together.
  spec =
      NpySpec(Npy("<f4", "2, 1, 2, 3",
                  Raw<float>({0, 6, 3, 9, 1, 7, 4, 10, 2, 8, 5, 11}), "True"),
              Y());
  spec.layout = Layout::kNhwc;
  data = Load(spec);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(data->floats(),
              ElementsAre(0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11));
}

TEST(Npy, ReadsMissingValuesAsTold) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  DataSpec spec = NpySpec(Npy("<f4", "2, 2", Raw<float>({1, nan, 3, 4})), Y());
  ExpectWrong(Load(spec), {"value nan is missing", "data.missing"});
  spec.missing = Missing::kMean;
  auto data = Load(spec);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(data->floats(), ElementsAre(1, 4, 3, 4));
  spec.missing = Missing::kDrop;
  data = Load(spec);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(data->floats(), ElementsAre(3, 4));
  EXPECT_THAT(data->class_names(), ElementsAre("0"));
}

TEST(Npz, ReadsStoredAndDeflatedMembers) {
  const auto data = Load(NpzSpec(Zip({{"X.npy", X(), true},
                                      {"other.txt", "?", true},
                                      {"y.npy", Y(), false}})));
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(data->shape(), ElementsAre(3));
  EXPECT_THAT(data->floats(), ElementsAre(1, -2, 0.5f, 4, 5, 6));
  EXPECT_THAT(data->labels(), ElementsAre(1, 0));
  EXPECT_EQ(data->classes(), 2);
}

TEST(Npz, TakesKeys) {
  DataSpec spec =
      NpzSpec(Zip({{"images.npy", X(), true}, {"target.npy", Y(), true}}));
  ExpectWrong(Load(spec), {spec.paths[0], "byte ", "'X.npy'", "'images.npy'",
                           "'target.npy'"});
  spec.features_key = "images";
  spec.labels_key = "target";
  EXPECT_TRUE(Load(spec).ok());
}

TEST(Npy, ReadsEveryType) {
  const std::string y = Npy("|u1", "2, 1", Raw<uint8_t>({0, 3}));
  const std::vector<std::string> arrays = {
      Npy("<f4", "2, 2", Raw<float>({1, 2, 3, 4})),
      Npy("<f8", "2, 2", Raw<double>({1, 2, 3, 4})),
      Npy("|i1", "2, 2", Raw<int8_t>({1, 2, 3, 4})),
      // 1, 2, 3 and 4 as halves, and all the rest.
      Npy("<f2", "2, 2", Raw<uint16_t>({0x3C00, 0x4000, 0x4200, 0x4400})),
      Npy(">f2", "2, 2", std::string("\x3C\0\x40\0\x42\0\x44\0", 8)),
      Npy(">f4", "2, 2", Swapped(Raw<float>({1, 2, 3, 4}), 4)),
      Npy(">f8", "2, 2", Swapped(Raw<double>({1, 2, 3, 4}), 8)),
      Npy("<i2", "2, 2", Raw<int16_t>({1, 2, 3, 4})),
      Npy("<u2", "2, 2", Raw<uint16_t>({1, 2, 3, 4})),
      Npy(">u2", "2, 2", Swapped(Raw<uint16_t>({1, 2, 3, 4}), 2)),
      Npy("<u4", "2, 2", Raw<uint32_t>({1, 2, 3, 4})),
      Npy("<u8", "2, 2", Raw<uint64_t>({1, 2, 3, 4})),
      Npy(">i8", "2, 2", Swapped(Raw<int64_t>({1, 2, 3, 4}), 8)),
      // Columns first.
      Npy("<f4", "2, 2", Raw<float>({1, 3, 2, 4}), "True"),
      Npy("<i4", "2, 2", Raw<int32_t>({1, 2, 3, 4})),
      Npy("<i8", "2, 2", Raw<int64_t>({1, 2, 3, 4}))};
  for (const std::string& x : arrays) {
    const auto data = Load(NpySpec(x, y));
    ASSERT_TRUE(data.ok()) << data.status();
    EXPECT_THAT(data->floats(), ElementsAre(1, 2, 3, 4));
    EXPECT_THAT(data->labels(), ElementsAre(0, 1));
    EXPECT_THAT(data->class_names(), ElementsAre("0", "3"));
  }
  const auto bytes = Load(NpySpec(Npy("|u1", "2, 2, 2", "abcdefgh"), y));
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_TRUE(bytes->has_bytes());
  EXPECT_THAT(bytes->shape(), ElementsAre(1, 2, 2));
}

TEST(Npy, ReadsRegressionTargetsAndWholeFloatLabels) {
  DataSpec spec = NpySpec(X(), Npy("<f8", "2,", Raw<double>({1.5, -2})));
  spec.task = Task::kRegression;
  auto data = Load(spec);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(data->targets(), ElementsAre(1.5f, -2));
  data = Load(NpySpec(X(), Npy("<f4", "2,", Raw<float>({2, 1}))));
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(data->labels(), ElementsAre(1, 0));
}

TEST(Npy, ReadsVersion2Headers) {
  std::string x = X();
  const std::string header = x.substr(10, 118);
  x = absl::StrCat("\x93NUMPY", absl::string_view("\x02\x00", 2),
                   Little(118, 4), header, x.substr(128));
  EXPECT_TRUE(Load(NpySpec(x, Y())).ok());
}

TEST(Npy, RefusesEveryTruncation) {
  DataSpec spec = NpySpec(X(), Y());
  ExpectEveryTruncationRefused("cut", X(), [&](const std::string& path) {
    DataSpec cut = spec;
    cut.paths[0] = path;
    return Load(cut);
  });
  ExpectEveryTruncationRefused("cut", Y(), [&](const std::string& path) {
    DataSpec cut = spec;
    cut.paths[1] = path;
    return Load(cut);
  });
}

TEST(Npz, RefusesEveryTruncation) {
  const auto load = [](const std::string& path) {
    DataSpec spec;
    spec.format = Format::kNpz;
    spec.paths = {path};
    return Load(spec);
  };
  ExpectEveryTruncationRefused(
      "cut", Zip({{"X.npy", X(), true}, {"y.npy", Y(), false}}), load);
}

TEST(Npz, SurvivesEveryBitFlipAndNoticesThoseOfValues) {
  const std::string archive =
      Zip({{"X.npy", X(), false}, {"y.npy", Y(), true}});
  const auto load = [](const std::string& path) {
    DataSpec spec;
    spec.format = Format::kNpz;
    spec.paths = {path};
    return Load(spec);
  };
  // Stored or deflated, the members' own bytes are under checksums.
  EXPECT_GE(CountRefusedBitFlips("flip", archive, 2, load), 8 * X().size());
}

TEST(Npy, RefusesWrongContent) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  const std::string values = Raw<float>({1, 2, 3, 4, 5, 6});
  const struct {
    std::string x;
    std::vector<std::string> parts;
  } cases[] = {
      {Npy("<f4", "2, 3", Raw<float>({1, 2, 3, 4, nan, 6})),
       {"byte 144 (row 1, column 1, from 0)", "value nan", "data.missing"}},
      {Npy("<f8", "2, 3", Raw<double>({1, 2, -inf, 4, 5, 6})),
       {"byte 144 (row 0, column 2, from 0)", "value -inf", "finite"}},
      {Npy("<f8", "2, 3", Raw<double>({1e39, 2, 3, 4, 5, 6})),
       {"byte 128", "value 1e+39", "fit float32"}},
      {Npy("<c8", "2, 3", values), {"byte 20", "'<c8'", "f2 to f8"}},
      {Npy("|O", "2, 3", values), {"byte 20", "'|O'", "astype('float32')"}},
      {Npy("<f4", "2, 3", values, "Maybe"), {"byte ", "True or False"}},
      {Npy("<U1", "2, 3", values), {"features are text", "numbers"}},
      {Npy("<f4", "6,", values), {"(6)", "(rows, features)"}},
      {Npy("<f4", "", values.substr(0, 4)), {"()", "(rows, features)"}},
      {Npy("<f4", "0, 3", ""), {"(0, 3)", "at least 1"}},
      {Npy("<f4", "2, 3", values + "x"), {"byte 152", "1 bytes follow"}},
      {Npy("<f4", "2, x", values), {"byte ", "a number"}},
      {Npy("<f4", "99999999999999999999999, 2", values),
       {"byte ", "a smaller number"}},
      {Npy("<f4", "4294967296, 4294967296, 4294967296", values),
       {"byte 10", "4294967296", "max_bytes"}},
      {"\x93NUMPZ" + X().substr(6), {"byte 0", "NUMPZ", "numpy.save"}},
      {X().substr(0, 6) + "\x04" + X().substr(7),
       {"byte 6", "version 4.0", "1.0, 2.0 or 3.0"}},
      {X().substr(0, 10) + "[" + X().substr(11), {"byte 10", "starts with {"}},
  };
  for (const auto& c : cases) {
    const DataSpec spec = NpySpec(c.x, Y());
    ExpectWrong(Load(spec), c.parts);
    ExpectWrong(Load(spec), {spec.paths[0]});
  }
}

TEST(Npy, RefusesHeadersThatClaimMoreThanTheFile) {
  const DataSpec spec = NpySpec(Npy("<f4", "20000, 3000", Raw<float>({1})),
                                Npy("|u1", "20000,", std::string(20000, '\0')));
  ExpectCut(Load(spec),
            {spec.paths[0], "byte 128", "240000000", "at most 4 follow"});
}

TEST(Npy, RefusesWrongLabels) {
  const struct {
    std::string y;
    std::vector<std::string> parts;
  } cases[] = {
      {Npy("<i8", "2,", Raw<int64_t>({0, -1})),
       {"byte 136 (row 1", "label '-1'", "data.classes = 1"}},
      {Npy("<i4", "2,", Raw<int32_t>({3, 0})),
       {"byte 128 (row 0", "label '3'", "data.classes = 1"}},
      {Npy("<f8", "2,", Raw<double>({0.5, 0})),
       {"byte 128", "label 0.5", "integers", "data.task: regression"}},
      {Npy("<f8", "2,", Raw<double>({std::nan(""), 0})),
       {"byte 128", "label nan is missing"}},
      {Npy("<i4", "3,", Raw<int32_t>({0, 1, 2})), {"(3)", "(2) for features"}},
      {Npy("<i4", "2, 2", Raw<int32_t>({0, 1, 2, 0})),
       {"(2, 2)", "(2) for features", "argmax"}},
  };
  for (const auto& c : cases) {
    DataSpec spec = NpySpec(X(), c.y);
    spec.classes = 1;
    ExpectWrong(Load(spec), c.parts);
    ExpectWrong(Load(spec), {spec.paths[1]});
  }
}

TEST(Npz, RefusesDamagedArchives) {
  const std::string good = Zip({{"X.npy", X(), false}, {"y.npy", Y(), true}});
  const std::string path = WriteFile("p", good + "xyz");
  DataSpec spec;
  spec.format = Format::kNpz;
  spec.paths = {path};
  ExpectWrong(Load(spec), {path, absl::StrCat("byte ", good.size()),
                           "3 bytes follow", "nothing"});
  std::string flipped = good;
  flipped[35 + 128] ^= 1;  // the first value of X
  spec = NpzSpec(flipped);
  ExpectWrong(Load(spec), {spec.paths[0], "member X.npy", "byte 152",
                           "checksum", "directory says"});
  spec = NpzSpec(X());
  ExpectWrong(Load(spec), {spec.paths[0], "byte 0", "0x4d554e93", "zip"});
  std::string method = good;
  const size_t directory = good.find("PK\x01\x02");
  method[directory + 10] = 12;  // bzip2
  spec = NpzSpec(method);
  ExpectWrong(Load(spec), {spec.paths[0], "member X.npy", "method 12", "8"});
}

TEST(Npz, RefusesMembersThatInflateBeyondTheDirectory) {
  // 1 MB of zeros in about 1 kB; the header says so, the limit says no.
  DataSpec spec = NpzSpec(
      Zip({{"X.npy", Npy("|u1", "2, 500000", std::string(1000000, '\0')), true},
           {"y.npy", Y(), true}}));
  EXPECT_TRUE(Load(spec).ok());
  spec.max_bytes = 999999;
  ExpectWrong(Load(spec), {spec.paths[0], "member X.npy", "(2, 500000)",
                           "max_bytes = 999999"});
}

}  // namespace
}  // namespace data
}  // namespace dfl
