// IDX: 4 bytes 0 0 type rank, then `rank` big-endian 32-bit extents, then the
// values. https://yann.lecun.org/exdb/mnist
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/base/status_macros.h"
#include "daemon/data/byte_stream.h"
#include "daemon/data/data_error.h"
#include "daemon/data/labels.h"
#include "daemon/data/readers.h"
#include "daemon/data/spec_checks.h"

namespace dfl {
namespace data {
namespace {

constexpr uint32_t kUnsignedBytes = 0x00000800;  // low byte: the rank

uint32_t BigEndian32(const char* p) {
  const auto* u = reinterpret_cast<const unsigned char*>(p);
  return static_cast<uint32_t>(u[0]) << 24 | static_cast<uint32_t>(u[1]) << 16 |
         static_cast<uint32_t>(u[2]) << 8 | static_cast<uint32_t>(u[3]);
}

struct IdxArray {
  std::vector<uint64_t> extents;
  std::vector<uint8_t> values;
};

// `kind` is "images" (rank 2 to 4) or "labels" (rank 1).
absl::StatusOr<IdxArray> ReadArray(const DataSpec& spec,
                                   const std::string& path, bool images) {
  DFL_ASSIGN_OR_RETURN(std::unique_ptr<ByteStream> stream,
                       ByteStream::Open(path));
  char word[4];
  DFL_RETURN_IF_ERROR(
      stream->ReadExactly(absl::MakeSpan(word), "the magic number"));
  const uint32_t magic = BigEndian32(word);
  const uint32_t rank = magic & 0xFF;
  const bool is_bytes = (magic & 0xFFFFFF00) == kUnsignedBytes;
  const bool is_images = is_bytes && rank >= 2 && rank <= 4;
  const bool is_labels = is_bytes && rank == 1;
  if (images ? !is_images : !is_labels) {
    return WrongContent(
        path, AtByte(0),
        absl::StrFormat(
            "the magic number is 0x%08x%s", magic,
            images && is_labels    ? " (labels: are the two paths swapped?)"
            : !images && is_images ? " (images: are the two paths swapped?)"
                                   : ""),
        images ? "0x00000803 (images of unsigned bytes; also 0x00000802 and "
                 "0x00000804)"
               : "0x00000801 (labels of unsigned bytes)");
  }
  IdxArray array;
  for (uint32_t i = 0; i < rank; ++i) {
    DFL_RETURN_IF_ERROR(
        stream->ReadExactly(absl::MakeSpan(word), "the header"));
    array.extents.push_back(BigEndian32(word));
  }
  DFL_RETURN_IF_ERROR(
      CheckRows(spec, static_cast<int64_t>(array.extents[0]), path, AtByte(4)));
  DFL_ASSIGN_OR_RETURN(const uint64_t bytes,
                       CheckedBytes(spec, array.extents, 1, path, AtByte(4)));
  DFL_RETURN_IF_ERROR(stream->ReadArray(
      bytes, images ? "the images" : "the labels", &array.values));
  DFL_RETURN_IF_ERROR(stream->ExpectEnd());
  return array;
}

}  // namespace

absl::StatusOr<Dataset> ReadIdx(const DataSpec& spec) {
  const std::string& images_path = spec.paths[0];
  const std::string& labels_path = spec.paths[1];
  // Labels first: they are small, so a wrong pair is found at once.
  DFL_ASSIGN_OR_RETURN(IdxArray labels, ReadArray(spec, labels_path, false));
  DFL_ASSIGN_OR_RETURN(IdxArray images, ReadArray(spec, images_path, true));
  if (labels.extents[0] != images.extents[0]) {
    return WrongContent(
        labels_path, AtByte(4), absl::StrCat(labels.extents[0], " labels"),
        absl::StrCat(images.extents[0], ", the number of images in ",
                     images_path));
  }
  std::vector<int64_t> natural;
  if (images.extents.size() == 3) natural.push_back(1);
  for (size_t i = 1; i < images.extents.size(); ++i) {
    natural.push_back(static_cast<int64_t>(images.extents[i]));
  }
  DFL_ASSIGN_OR_RETURN(std::vector<int64_t> shape,
                       ResolveShape(spec, natural, images_path, AtByte(4)));
  LabelCollector collector(spec);
  for (size_t i = 0; i < labels.values.size(); ++i) {
    DFL_RETURN_IF_ERROR(collector.Add(
        absl::StrCat(static_cast<int>(labels.values[i])), labels_path,
        [i] { return absl::StrCat(AtByte(8 + i), " (row ", i, ")"); }));
  }
  DFL_ASSIGN_OR_RETURN(Dataset::Answers answers, collector.Finish());
  return Dataset(std::move(shape), std::move(images.values),
                 std::move(answers));
}

}  // namespace data
}  // namespace dfl
