#include <csetjmp>
#include <cstdio>  // jpeglib.h needs it before itself

#include <jpeglib.h>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/data/data_error.h"
#include "daemon/data/image_codecs.h"

namespace dfl {
namespace data {
namespace {

struct Errors {
  jpeg_error_mgr base;
  std::jmp_buf jump;
  char text[JMSG_LENGTH_MAX];
  long warnings;
};

void OnError(j_common_ptr jpeg) {
  auto* const errors = reinterpret_cast<Errors*>(jpeg->err);
  jpeg->err->format_message(jpeg, errors->text);
  std::longjmp(errors->jump, 1);
}

// A warning is damage that libjpeg papers over: an early end, for instance.
void OnMessage(j_common_ptr jpeg, int level) {
  auto* const errors = reinterpret_cast<Errors*>(jpeg->err);
  if (level >= 0) return;
  if (errors->warnings++ == 0) {
    jpeg->err->format_message(jpeg, errors->text);
  }
}

// Nothing with a destructor lives in a frame that longjmp leaves.
bool ReadHeader(jpeg_decompress_struct* jpeg, Errors* errors,
                absl::string_view bytes) {
  if (setjmp(errors->jump) != 0) return false;
  jpeg_create_decompress(jpeg);
  jpeg_mem_src(jpeg, reinterpret_cast<const unsigned char*>(bytes.data()),
               bytes.size());
  jpeg_read_header(jpeg, TRUE);
  return true;
}

bool ReadPixels(jpeg_decompress_struct* jpeg, Errors* errors, uint8_t* out) {
  if (setjmp(errors->jump) != 0) return false;
  jpeg->out_color_space = jpeg->num_components == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg->dct_method = JDCT_ISLOW;
  jpeg_start_decompress(jpeg);
  const size_t row_bytes = static_cast<size_t>(jpeg->output_width) *
                           static_cast<size_t>(jpeg->output_components);
  while (jpeg->output_scanline < jpeg->output_height) {
    JSAMPROW row = out + jpeg->output_scanline * row_bytes;
    jpeg_read_scanlines(jpeg, &row, 1);
  }
  jpeg_finish_decompress(jpeg);
  return true;
}

}  // namespace

absl::StatusOr<Image> DecodeJpeg(absl::string_view bytes,
                                 const std::string& path, uint64_t max_bytes) {
  Errors errors = {};
  jpeg_decompress_struct jpeg = {};
  jpeg.err = jpeg_std_error(&errors.base);
  errors.base.error_exit = OnError;
  errors.base.emit_message = OnMessage;
  struct Owner {
    jpeg_decompress_struct* jpeg;
    ~Owner() { jpeg_destroy_decompress(jpeg); }
  } owner{&jpeg};
  const auto failed = [&] {
    return WrongContent(
        path, AtByte(0),
        absl::StrCat("a damaged JPEG picture (", errors.text, ")"),
        "a whole JPEG picture; copy or save it again");
  };
  if (!ReadHeader(&jpeg, &errors, bytes)) return failed();
  if (jpeg.num_components != 1 && jpeg.num_components != 3) {
    return WrongContent(
        path, AtByte(0),
        absl::StrCat(jpeg.num_components, " channels (printer's colours)"),
        "grey, or red, green and blue; convert the picture");
  }
  Image image;
  image.width = jpeg.image_width;
  image.height = jpeg.image_height;
  image.channels = jpeg.num_components;
  DFL_RETURN_IF_ERROR(CheckImageSize(jpeg.image_width, jpeg.image_height,
                                     static_cast<uint64_t>(jpeg.num_components),
                                     path, max_bytes));
  image.pixels.resize(
      static_cast<size_t>(image.width * image.height * image.channels));
  if (!ReadPixels(&jpeg, &errors, image.pixels.data())) return failed();
  if (errors.warnings > 0) return failed();
  return image;
}

absl::Status CheckImageSize(uint64_t width, uint64_t height, uint64_t channels,
                            const std::string& path, uint64_t max_bytes) {
  const bool fits = width > 0 && height > 0 &&
                    width <= static_cast<uint64_t>(kMaxImagePixels) / height &&
                    width * height <= max_bytes / channels;
  if (fits) return absl::OkStatus();
  return WrongContent(
      path, AtByte(0),
      absl::StrCat("a picture of ", width, " x ", height, " pixels"),
      absl::StrCat("at most ", kMaxImagePixels,
                   " pixels, and data.max_bytes = ", max_bytes));
}

}  // namespace data
}  // namespace dfl
