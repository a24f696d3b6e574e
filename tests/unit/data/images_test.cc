// Pictures are made in the test by the libraries that read them.
#include <png.h>

#include <cstdio>  // jpeglib.h needs it before itself
#include <cstdlib>
#include <filesystem>
#include <utility>

#include <jpeglib.h>

#include "daemon/data/image_file.h"
#include "daemon/data/load.h"
#include "tests/unit/data/test_files.h"

namespace dfl {
namespace data {
namespace {

using testing::ElementsAre;

// A PNG of `pixels`, as libpng's simplified interface writes it.
std::string Png(uint32_t width, uint32_t height, uint32_t format,
                const std::vector<uint8_t>& pixels) {
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  image.width = width;
  image.height = height;
  image.format = format;
  png_alloc_size_t size = 0;
  EXPECT_NE(png_image_write_to_memory(&image, nullptr, &size, 0, pixels.data(),
                                      0, nullptr),
            0)
      << image.message;
  std::string out(size, '\0');
  EXPECT_NE(png_image_write_to_memory(&image, &out[0], &size, 0, pixels.data(),
                                      0, nullptr),
            0)
      << image.message;
  out.resize(size);
  return out;
}

std::string Jpeg(uint32_t width, uint32_t height, int channels,
                 std::vector<uint8_t> pixels) {
  jpeg_compress_struct jpeg = {};
  jpeg_error_mgr errors = {};
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&jpeg, &bytes, &size);
  jpeg.image_width = width;
  jpeg.image_height = height;
  jpeg.input_components = channels;
  jpeg.in_color_space = channels == 1   ? JCS_GRAYSCALE
                        : channels == 3 ? JCS_RGB
                                        : JCS_CMYK;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, 100, TRUE);
  jpeg_start_compress(&jpeg, TRUE);
  while (jpeg.next_scanline < jpeg.image_height) {
    JSAMPROW row = pixels.data() +
                   jpeg.next_scanline * width * static_cast<uint32_t>(channels);
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
  std::string out(reinterpret_cast<char*>(bytes), size);
  std::free(bytes);
  return out;
}

// A folder of this test's own, with files CLASS/NAME in it.
std::string Folder(
    const std::vector<std::pair<std::string, std::string>>& files) {
  static int made = 0;
  const std::string root = WriteFile(absl::StrCat("root", made++), "");
  std::filesystem::remove_all(root);
  std::filesystem::create_directories(root);
  for (const auto& [name, bytes] : files) {
    const std::filesystem::path path = std::filesystem::path(root) / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << bytes;
  }
  return root;
}

DataSpec SpecOf(const std::string& folder) {
  DataSpec spec;
  spec.format = Format::kImages;
  spec.paths = {folder};
  return spec;
}

const std::vector<uint8_t> kGrey = {0, 50, 100, 150, 200, 250};  // 3 x 2
const std::vector<uint8_t> kRgb = {255, 0,  0,  0,  255, 0,  0,  0,  255,
                                   10,  20, 30, 40, 50,  60, 70, 80, 90};

TEST(Images, ReadsAFolderWithASubfolderAClass) {
  const auto data = Load(SpecOf(Folder({
      {"good/b.png", Png(3, 2, PNG_FORMAT_GRAY, kGrey)},
      {"good/a.png", Png(3, 2, PNG_FORMAT_GRAY, {1, 2, 3, 4, 5, 6})},
      {"cracked/x.jpg", Jpeg(3, 2, 1, {9, 9, 9, 9, 9, 9})},
      {".DS_Store", "clutter"},
      {"good/Thumbs.db", "clutter"},
  })));
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(data->shape(), ElementsAre(1, 2, 3));
  EXPECT_TRUE(data->has_bytes());
  EXPECT_THAT(data->class_names(), ElementsAre("cracked", "good"));
  EXPECT_THAT(data->labels(), ElementsAre(0, 1, 1));
  EXPECT_THAT(data->bytes().subspan(6, 6), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(data->bytes().subspan(12, 6),
              ElementsAre(0, 50, 100, 150, 200, 250));
}

TEST(Images, ChannelsComeFirst) {
  const auto data = Load(SpecOf(
      Folder({{"a/1.png", Png(3, 2, PNG_FORMAT_RGB, kRgb)},
              {"b/1.png", Png(3, 2, PNG_FORMAT_RGBA,
                              {1, 2, 3, 255, 4, 5, 6, 255, 7, 8, 9, 255,
                               1, 2, 3, 255, 4, 5, 6, 255, 7, 8, 9, 255})}})));
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(data->shape(), ElementsAre(3, 2, 3));
  EXPECT_THAT(data->bytes().subspan(0, 18),
              ElementsAre(255, 0, 0, 10, 40, 70, 0, 255, 0, 20, 50, 80, 0, 0,
                          255, 30, 60, 90));
  EXPECT_THAT(data->bytes().subspan(18, 6), ElementsAre(1, 4, 7, 1, 4, 7));
}

TEST(Images, DecodesColourJpeg) {
  std::vector<uint8_t> pixels;
  for (int i = 0; i < 64; ++i) pixels.insert(pixels.end(), {200, 100, 50});
  const std::string path = WriteFile("j", Jpeg(8, 8, 3, pixels));
  const auto image = ReadImage(path, 1 << 20);
  ASSERT_TRUE(image.ok()) << image.status();
  EXPECT_EQ(image->channels, 3);
  for (size_t i = 0; i < image->pixels.size(); ++i) {
    EXPECT_NEAR(image->pixels[i], pixels[i], 3) << i;
  }
}

TEST(Images, RefusesDifferentShapesUnlessToldToResize) {
  DataSpec spec =
      SpecOf(Folder({{"a/1.png", Png(3, 2, PNG_FORMAT_GRAY, kGrey)},
                     {"b/2.png", Png(2, 3, PNG_FORMAT_GRAY, kGrey)}}));
  ExpectWrong(Load(spec), {"b/2.png", "2 x 3 pixels", "a/1.png", "3 x 2",
                           "data.resize: [height, width]"});
  spec.resize = {4, 5};
  const auto data = Load(spec);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(data->shape(), ElementsAre(1, 4, 5));
}

TEST(Images, RefusesGreyAmongColoursUnlessTold) {
  DataSpec spec =
      SpecOf(Folder({{"a/1.png", Png(3, 2, PNG_FORMAT_RGB, kRgb)},
                     {"b/2.png", Png(3, 2, PNG_FORMAT_GRAY, kGrey)}}));
  ExpectWrong(Load(spec), {"b/2.png", "grey", "a/1.png", "data.channels: 1"});
  spec.channels = 3;
  auto data = Load(spec);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(data->shape(), ElementsAre(3, 2, 3));
  spec.channels = 1;
  data = Load(spec);
  ASSERT_TRUE(data.ok()) << data.status();
  // 0.299 red + 0.587 green + 0.114 blue.
  EXPECT_THAT(data->bytes().subspan(0, 3), ElementsAre(76, 150, 29));
}

TEST(Images, ResizesByWeightedMeans) {
  Image image;
  image.width = 4;
  image.height = 1;
  image.channels = 1;
  image.pixels = {0, 0, 200, 200};
  EXPECT_THAT(Resized(image, 1, 4).pixels, ElementsAre(0, 0, 200, 200));
  // A flat picture stays flat at any size.
  Image flat = image;
  flat.pixels = {7, 7, 7, 7};
  for (const int64_t width : {1, 2, 3, 9}) {
    EXPECT_THAT(Resized(flat, 2, width).pixels, testing::Each(7));
  }
  const Image half = Resized(image, 1, 2);
  ASSERT_EQ(half.pixels.size(), 2U);
  // Weights 3, 3, 1 of 7 about the first new pixel's centre.
  EXPECT_EQ(half.pixels[0], 29);
  EXPECT_EQ(half.pixels[1], 171);
  // Between two old pixels when it grows.
  Image two = image;
  two.width = 2;
  two.pixels = {0, 100};
  EXPECT_THAT(Resized(two, 1, 4).pixels, ElementsAre(0, 25, 75, 100));
}

TEST(Images, RefusesWrongContent) {
  const std::string good = Png(3, 2, PNG_FORMAT_GRAY, kGrey);
  std::vector<uint8_t> see_through(24, 255);
  see_through[7] = 10;
  std::string flipped = good;
  flipped[flipped.size() - 20] ^= 1;
  const struct {
    std::string name;
    std::string bytes;
    std::vector<std::string> parts;
  } cases[] = {
      {"a/x.gif", "GIF89a...", {"'GIF89a..'", "PNG or JPEG"}},
      {"a/x.png", "", {"''", "PNG or JPEG"}},
      {"a/x.png",
       Png(3, 2, PNG_FORMAT_RGBA, see_through),
       {"pixel (1, 0)", "transparent", "flatten"}},
      {"a/x.png", flipped, {"damaged PNG"}},
      {"a/x.jpg",
       Jpeg(2, 1, 4, {1, 2, 3, 4, 5, 6, 7, 8}),
       {"4 channels", "convert"}},
      {"a/x.jpg", Jpeg(3, 2, 1, kGrey).substr(0, 60), {"damaged JPEG"}},
      {"x.png", good, {"file beside the subfolders", "'x.png'"}},
      {"a/b/x.png", good, {"a folder inside a class's folder"}},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    const DataSpec spec = SpecOf(Folder({{c.name, c.bytes}}));
    ExpectWrong(Load(spec), c.parts);
    ExpectWrong(Load(spec), {spec.paths[0]});
  }
  ExpectWrong(Load(SpecOf(Folder({}))), {"no pictures", "a subfolder a class"});
  ExpectError(Load(SpecOf("/nowhere/at/all")).status(),
              absl::StatusCode::kNotFound, {"/nowhere/at/all", "a folder"});
}

TEST(Images, RefusesEveryTruncation) {
  for (const std::string& whole :
       {Png(3, 2, PNG_FORMAT_RGB, kRgb), Jpeg(3, 2, 3, kRgb)}) {
    for (size_t n = 0; n < whole.size(); ++n) {
      const std::string path = WriteFile("cut", whole.substr(0, n));
      EXPECT_FALSE(ReadImage(path, 1 << 20).ok()) << n;
    }
  }
}

// No damage crashes or makes more of the picture than the header says. Every
// third bit: all places in a byte come up.
TEST(Images, SurvivesBitFlips) {
  for (const std::string& whole :
       {Png(3, 2, PNG_FORMAT_RGB, kRgb), Jpeg(3, 2, 3, kRgb)}) {
    for (size_t bit = 0; bit < whole.size() * 8; bit += 3) {
      std::string flipped = whole;
      flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
      const auto image = ReadImage(WriteFile("flip", flipped), 1 << 20);
      if (!image.ok()) continue;
      EXPECT_EQ(
          image->pixels.size(),
          static_cast<size_t>(image->width * image->height * image->channels));
    }
  }
}

TEST(Images, BoundsMemory) {
  const std::string path = WriteFile("p", Png(3, 2, PNG_FORMAT_RGB, kRgb));
  ExpectError(ReadImage(path, 10).status(), absl::StatusCode::kInvalidArgument,
              {path, "max_bytes = 10"});
  std::vector<uint8_t> many(1000 * 1000, 0);
  const std::string large =
      WriteFile("l", Png(1000, 1000, PNG_FORMAT_GRAY, many));
  ExpectError(ReadImage(large, 900000).status(),
              absl::StatusCode::kInvalidArgument,
              {large, "1000 x 1000", "max_bytes = 900000"});
}

}  // namespace
}  // namespace data
}  // namespace dfl
