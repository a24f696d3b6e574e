// A picture, PNG or JPEG, as one of training data.
#include <cstddef>
#include <cstdint>

#include "daemon/base/check.h"
#include "daemon/data/image_file.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/memory_file.h"

namespace dfl::fuzz {
namespace {

// Of the pixels of one picture.
constexpr uint64_t kMostBytes = uint64_t{1} << 18;

void CheckImage(const data::Image& image) {
  DFL_CHECK(image.width > 0 && image.height > 0);
  DFL_CHECK(image.channels == 1 || image.channels == 3);
  DFL_CHECK(image.pixels.size() ==
            static_cast<size_t>(image.width * image.height * image.channels));
  DFL_CHECK(image.pixels.size() <= 3 * kMostBytes);
}

}  // namespace

DFL_FUZZ_TARGET(images)(absl::string_view bytes) {
  const MemoryFile file(bytes);
  const auto image = data::ReadImage(file.path(), kMostBytes);
  if (!image.ok()) return;
  CheckImage(*image);
  const data::Image grey = data::WithChannels(*image, 1);
  CheckImage(grey);
  CheckImage(data::WithChannels(grey, 3));
  CheckImage(data::Resized(grey, 5, 7));
}

}  // namespace dfl::fuzz
