// CIFAR-10's binary version: rows of 3073 bytes, a label and the red, green and
// blue planes of 32 x 32. https://www.cs.toronto.edu/~kriz/cifar.html
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/data/byte_stream.h"
#include "daemon/data/data_error.h"
#include "daemon/data/readers.h"
#include "daemon/data/spec_checks.h"

namespace dfl {
namespace data {
namespace {

constexpr size_t kImageBytes = 3 * 32 * 32;
constexpr size_t kRowBytes = 1 + kImageBytes;
constexpr int64_t kClasses = 10;

}  // namespace

absl::StatusOr<Dataset> ReadCifar10(const DataSpec& spec) {
  if (spec.classes != 0 && spec.classes != kClasses) {
    return absl::InvalidArgumentError(absl::StrCat(
        "data classes: ", spec.classes, " for format cifar10; allowed: 10"));
  }
  std::vector<uint8_t> images;
  Dataset::Answers answers;
  answers.classes = kClasses;
  for (int64_t c = 0; c < kClasses; ++c) {
    answers.class_names.push_back(absl::StrCat(c));
  }
  answers.class_places.resize(kClasses);
  for (const std::string& path : spec.paths) {
    DFL_ASSIGN_OR_RETURN(std::unique_ptr<ByteStream> stream,
                         ByteStream::Open(path));
    if (!stream->compressed()) {
      const uint64_t size = stream->max_remaining();
      if (size % kRowBytes != 0) {
        return CutShort(
            path, AtByte(size),
            absl::StrCat("the file ends inside row ", size / kRowBytes),
            absl::StrCat("a multiple of ", kRowBytes,
                         " bytes; copy the file again"));
      }
      if (size <= spec.max_bytes) {
        images.reserve(images.size() + size / kRowBytes * kImageBytes);
      }
    }
    int64_t rows = 0;
    char row[kRowBytes];
    while (true) {
      DFL_ASSIGN_OR_RETURN(const size_t got,
                           stream->Read(absl::MakeSpan(row, 1)));
      if (got == 0) break;
      const auto label = static_cast<unsigned char>(row[0]);
      if (label >= kClasses) {
        return WrongContent(
            path, AtByte(stream->offset() - 1),
            absl::StrCat("label ", static_cast<int>(label), " of row ", rows),
            "0 to 9");
      }
      DFL_RETURN_IF_ERROR(stream->ReadExactly(
          absl::MakeSpan(row + 1, kImageBytes), absl::StrCat("row ", rows)));
      if (images.size() + kImageBytes > spec.max_bytes) {
        return WrongContent(
            path, AtByte(stream->offset()),
            absl::StrCat("row ", rows, " is too much"),
            absl::StrCat("at most data.max_bytes = ", spec.max_bytes));
      }
      if (answers.class_places[label].empty()) {
        answers.class_places[label] =
            absl::StrCat(path, ": ", AtByte(stream->offset() - kRowBytes),
                         " (row ", rows, ")");
      }
      answers.labels.push_back(label);
      images.insert(images.end(), row + 1, row + kRowBytes);
      ++rows;
    }
    if (rows == 0) {
      return CutShort(path, AtByte(0), "no rows",
                      absl::StrCat("at least one, of ", kRowBytes, " bytes"));
    }
  }
  DFL_RETURN_IF_ERROR(CheckRows(spec,
                                static_cast<int64_t>(answers.labels.size()),
                                spec.paths.back(), "all files together"));
  DFL_ASSIGN_OR_RETURN(
      std::vector<int64_t> shape,
      ResolveShape(spec, {3, 32, 32}, spec.paths[0], AtByte(0)));
  return Dataset(std::move(shape), std::move(images), std::move(answers));
}

}  // namespace data
}  // namespace dfl
