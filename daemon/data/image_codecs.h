// PNG by libpng and JPEG by libjpeg-turbo, from memory. Both libraries leave an
// error by longjmp; nothing of that leaves these functions. Room-internal.
#ifndef DFL_DATA_IMAGE_CODECS_H_
#define DFL_DATA_IMAGE_CODECS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/data/image_file.h"

namespace dfl {
namespace data {

// `bytes` is the whole file `path`. Errors: as ReadImage.
absl::StatusOr<Image> DecodePng(absl::string_view bytes,
                                const std::string& path, uint64_t max_bytes);
absl::StatusOr<Image> DecodeJpeg(absl::string_view bytes,
                                 const std::string& path, uint64_t max_bytes);

// Whether a picture of that size may be decoded; before memory is taken.
absl::Status CheckImageSize(uint64_t width, uint64_t height, uint64_t channels,
                            const std::string& path, uint64_t max_bytes);

}  // namespace data
}  // namespace dfl

#endif  // DFL_DATA_IMAGE_CODECS_H_
