// One picture, PNG or JPEG, to bytes. Decoded as it is stored: no colour
// profile, no gamma and no EXIF orientation is applied, which is also what
// Python's Pillow does. Room-internal.
#ifndef DFL_DATA_IMAGE_FILE_H_
#define DFL_DATA_IMAGE_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace dfl {
namespace data {

struct Image {
  int64_t width = 0;
  int64_t height = 0;
  int64_t channels = 0;         // 1 grey, 3 red, green and blue
  std::vector<uint8_t> pixels;  // [height, width, channels]
};

// The most pixels of one picture.
inline constexpr int64_t kMaxImagePixels = int64_t{1} << 28;

// Reads and decodes the file. Palettes become colours; an alpha channel that is
// opaque everywhere is dropped.
// Errors: as InputFile::Open; DATA_LOSS for a file that ends early;
// INVALID_ARGUMENT for what is no PNG or JPEG, is damaged, larger than
// `max_bytes` or kMaxImagePixels, has 16 bits a channel, transparent pixels or
// printer's colours (CMYK).
absl::StatusOr<Image> ReadImage(const std::string& path, uint64_t max_bytes);

// `image` with one channel (0.299 red + 0.587 green + 0.114 blue, rounded) or
// three (the grey one thrice).
Image WithChannels(const Image& image, int64_t channels);

// `image` resized to height x width: each new pixel is the mean of the old ones
// weighted by a triangle around it, which is as wide as two new pixels or two
// old ones, whichever are larger (bilinear with smoothing when it shrinks, as
// Pillow's resize). The aspect ratio is not kept.
Image Resized(const Image& image, int64_t height, int64_t width);

}  // namespace data
}  // namespace dfl

#endif  // DFL_DATA_IMAGE_FILE_H_
