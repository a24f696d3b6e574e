#include "daemon/data/image_file.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/base/status_macros.h"
#include "daemon/data/byte_stream.h"
#include "daemon/data/data_error.h"
#include "daemon/data/image_codecs.h"

namespace dfl {
namespace data {
namespace {

constexpr absl::string_view kPng("\x89PNG\r\n\x1a\n", 8);
constexpr absl::string_view kJpeg("\xFF\xD8\xFF", 3);

// The weights of old pixels for each new one, along one axis.
struct Taps {
  int64_t first = 0;
  std::vector<double> weights;  // their sum is 1
};

std::vector<Taps> TriangleTaps(int64_t from, int64_t to) {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double reach = std::max(scale, 1.0);
  std::vector<Taps> all(static_cast<size_t>(to));
  for (int64_t i = 0; i < to; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * scale;
    Taps& taps = all[static_cast<size_t>(i)];
    taps.first =
        std::max<int64_t>(0, static_cast<int64_t>(std::floor(centre - reach)));
    const int64_t last = std::min<int64_t>(
        from - 1, static_cast<int64_t>(std::ceil(centre + reach)));
    double sum = 0;
    for (int64_t j = taps.first; j <= last; ++j) {
      const double distance =
          std::fabs(static_cast<double>(j) + 0.5 - centre) / reach;
      taps.weights.push_back(std::max(0.0, 1 - distance));
      sum += taps.weights.back();
    }
    for (double& weight : taps.weights) weight /= sum;
  }
  return all;
}

// Resizes the middle one of three axes, [outer, from, inner].
std::vector<float> Along(const std::vector<float>& in, int64_t outer,
                         int64_t from, int64_t inner, int64_t to) {
  const std::vector<Taps> taps = TriangleTaps(from, to);
  std::vector<float> out(static_cast<size_t>(outer * to * inner));
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t t = 0; t < to; ++t) {
      const Taps& tap = taps[static_cast<size_t>(t)];
      for (int64_t i = 0; i < inner; ++i) {
        double sum = 0;
        for (size_t k = 0; k < tap.weights.size(); ++k) {
          const int64_t j = tap.first + static_cast<int64_t>(k);
          sum += tap.weights[k] *
                 static_cast<double>(
                     in[static_cast<size_t>((o * from + j) * inner + i)]);
        }
        out[static_cast<size_t>((o * to + t) * inner + i)] =
            static_cast<float>(sum);
      }
    }
  }
  return out;
}

}  // namespace

absl::StatusOr<Image> ReadImage(const std::string& path, uint64_t max_bytes) {
  DFL_ASSIGN_OR_RETURN(const std::shared_ptr<const InputFile> file,
                       InputFile::Open(path));
  if (file->size() > max_bytes) {
    return WrongContent(path, AtByte(0), absl::StrCat(file->size(), " bytes"),
                        absl::StrCat("at most data.max_bytes = ", max_bytes));
  }
  std::vector<char> bytes(file->size());
  DFL_RETURN_IF_ERROR(file->ReadAt(0, absl::MakeSpan(bytes)));
  const absl::string_view text(bytes.data(), bytes.size());
  if (absl::StartsWith(text, kPng)) return DecodePng(text, path, max_bytes);
  if (absl::StartsWith(text, kJpeg)) return DecodeJpeg(text, path, max_bytes);
  return WrongContent(
      path, AtByte(0),
      absl::StrCat("the file starts with ", Quoted(text.substr(0, 8))),
      "a PNG or JPEG picture, by its content; convert other kinds");
}

Image WithChannels(const Image& image, int64_t channels) {
  if (image.channels == channels) return image;
  Image out;
  out.width = image.width;
  out.height = image.height;
  out.channels = channels;
  const auto pixels = static_cast<size_t>(image.width * image.height);
  out.pixels.reserve(pixels * static_cast<size_t>(channels));
  for (size_t i = 0; i < pixels; ++i) {
    if (channels == 3) {
      out.pixels.insert(out.pixels.end(), 3, image.pixels[i]);
      continue;
    }
    const uint8_t* const rgb = image.pixels.data() + 3 * i;
    // In integers, so that it is the same everywhere.
    out.pixels.push_back(static_cast<uint8_t>(
        (299 * rgb[0] + 587 * rgb[1] + 114 * rgb[2] + 500) / 1000));
  }
  return out;
}

Image Resized(const Image& image, int64_t height, int64_t width) {
  if (image.height == height && image.width == width) return image;
  const std::vector<float> raw(image.pixels.begin(), image.pixels.end());
  const std::vector<float> narrow =
      Along(raw, image.height, image.width, image.channels, width);
  const std::vector<float> small =
      Along(narrow, 1, image.height, width * image.channels, height);
  Image out;
  out.width = width;
  out.height = height;
  out.channels = image.channels;
  out.pixels.reserve(small.size());
  for (const float value : small) {
    out.pixels.push_back(static_cast<uint8_t>(
        std::clamp(std::floor(value + 0.5f), 0.0f, 255.0f)));
  }
  return out;
}

}  // namespace data
}  // namespace dfl
