#include <png.h>

#include <csetjmp>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/data/data_error.h"
#include "daemon/data/image_codecs.h"

namespace dfl {
namespace data {
namespace {

// What libpng's callbacks work with. It outlives every longjmp.
struct Source {
  absl::string_view bytes;
  size_t position = 0;
  bool cut = false;
  char error[200] = "";
};

void OnError(png_structp png, png_const_charp text) {
  auto* const source = static_cast<Source*>(png_get_error_ptr(png));
  std::strncpy(source->error, text, sizeof(source->error) - 1);
  png_longjmp(png, 1);
}

void OnWarning(png_structp, png_const_charp) {}

void OnRead(png_structp png, png_bytep out, png_size_t count) {
  auto* const source = static_cast<Source*>(png_get_io_ptr(png));
  if (count > source->bytes.size() - source->position) {
    source->cut = true;
    png_error(png, "the file ends early");
  }
  std::memcpy(out, source->bytes.data() + source->position, count);
  source->position += count;
}

struct Header {
  png_uint_32 width = 0;
  png_uint_32 height = 0;
  int bits = 0;
  int channels = 0;  // after the transformations
};

// The two steps between which sizes are checked. Nothing with a destructor
// lives in a frame that longjmp leaves.
bool ReadHeader(png_structp png, png_infop info, Header* header) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  png_read_info(png, info);
  header->width = png_get_image_width(png, info);
  header->height = png_get_image_height(png, info);
  header->bits = png_get_bit_depth(png, info);
  const int type = png_get_color_type(png, info);
  if (type == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png);
  if (type == PNG_COLOR_TYPE_GRAY && header->bits < 8) {
    png_set_expand_gray_1_2_4_to_8(png);
  }
  if (png_get_valid(png, info, PNG_INFO_tRNS) != 0) {
    png_set_tRNS_to_alpha(png);
  }
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
  header->channels = png_get_channels(png, info);
  return true;
}

bool ReadPixels(png_structp png, png_bytepp rows) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  png_read_image(png, rows);
  png_read_end(png, nullptr);
  return true;
}

absl::Status Failed(const Source& source, const std::string& path) {
  if (source.cut) {
    return CutShort(path, AtByte(source.bytes.size()),
                    "the PNG picture ends early",
                    "a complete file; copy it again");
  }
  return WrongContent(
      path, AtByte(source.position),
      absl::StrCat("a damaged PNG picture (", source.error, ")"),
      "a PNG picture that libpng reads; save it again");
}

// Drops an alpha channel that hides nothing.
absl::StatusOr<Image> WithoutAlpha(Image image, const std::string& path) {
  if (image.channels == 1 || image.channels == 3) return image;
  const auto all = static_cast<size_t>(image.channels);
  const auto pixels = static_cast<size_t>(image.width * image.height);
  Image out = image;
  out.channels = image.channels - 1;
  out.pixels.clear();
  for (size_t i = 0; i < pixels; ++i) {
    const uint8_t* const pixel = image.pixels.data() + i * all;
    if (pixel[all - 1] != 255) {
      const auto width = static_cast<size_t>(image.width);
      return WrongContent(
          path, absl::StrCat("pixel (", i % width, ", ", i / width, ")"),
          "it is transparent, so its colour depends on what is behind",
          "opaque pictures; flatten it on a background");
    }
    out.pixels.insert(out.pixels.end(), pixel, pixel + all - 1);
  }
  return out;
}

}  // namespace

absl::StatusOr<Image> DecodePng(absl::string_view bytes,
                                const std::string& path, uint64_t max_bytes) {
  Source source;
  source.bytes = bytes;
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &source,
                                           OnError, OnWarning);
  png_infop info = png == nullptr ? nullptr : png_create_info_struct(png);
  struct Owner {
    png_structpp png;
    png_infopp info;
    ~Owner() { png_destroy_read_struct(png, info, nullptr); }
  } owner{&png, &info};
  if (info == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat(path, ": not enough memory to decode"));
  }
  png_set_read_fn(png, &source, OnRead);
  Header header;
  if (!ReadHeader(png, info, &header)) return Failed(source, path);
  if (header.bits == 16) {
    return WrongContent(path, AtByte(0), "16 bits a channel",
                        "8 bits a channel; convert the picture, or save the "
                        "values with numpy (format npz)");
  }
  DFL_RETURN_IF_ERROR(CheckImageSize(header.width, header.height,
                                     static_cast<uint64_t>(header.channels),
                                     path, max_bytes));
  Image image;
  image.width = header.width;
  image.height = header.height;
  image.channels = header.channels;
  const size_t row_bytes =
      static_cast<size_t>(image.width) * static_cast<size_t>(image.channels);
  image.pixels.resize(row_bytes * header.height);
  std::vector<png_bytep> rows(header.height);
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i] = image.pixels.data() + i * row_bytes;
  }
  if (!ReadPixels(png, rows.data())) return Failed(source, path);
  return WithoutAlpha(std::move(image), path);
}

}  // namespace data
}  // namespace dfl
