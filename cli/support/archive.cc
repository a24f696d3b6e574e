#include "cli/support/archive.h"

#include <zlib.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace dfl::cli {
namespace {

constexpr size_t kBlock = 512;
constexpr size_t kMaxName = 100;
// Where the parts of a header stand.
constexpr size_t kChecksumAt = 148;
constexpr size_t kTypeAt = 156;
constexpr size_t kMagicAt = 257;

void Put(std::string& header, size_t at, const std::string& text) {
  std::copy(text.begin(), text.end(),
            header.begin() + static_cast<ptrdiff_t>(at));
}

std::string Header(const ArchiveEntry& file, absl::Time at) {
  std::string header(kBlock, '\0');
  Put(header, 0, file.name);
  Put(header, 100, "0000600");
  Put(header, 108, "0000000");  // user
  Put(header, 116, "0000000");  // group
  Put(header, 124, absl::StrFormat("%011o", file.content.size()));
  Put(header, 136, absl::StrFormat("%011o", absl::ToUnixSeconds(at)));
  header[kTypeAt] = '0';  // a file
  Put(header, kMagicAt, std::string("ustar\0", 6) + "00");
  // Summed as if the checksum were blanks.
  Put(header, kChecksumAt, "        ");
  uint32_t sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  Put(header, kChecksumAt, absl::StrFormat("%06o", sum));
  header[kChecksumAt + 6] = '\0';
  return header;
}

absl::StatusOr<std::string> Compress(std::string& plain) {
  z_stream stream{};
  constexpr int kGzip = 15 + 16;
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzip, 8,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    return absl::InternalError("zlib does not start");
  }
  std::string packed(deflateBound(&stream, plain.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(plain.data());
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const int done = deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  if (done != Z_STREAM_END) return absl::InternalError("zlib gave up");
  return packed;
}

}  // namespace

absl::StatusOr<std::string> MakeArchive(const std::vector<ArchiveEntry>& files,
                                        absl::Time at) {
  std::string tar;
  for (const ArchiveEntry& file : files) {
    if (file.name.size() >= kMaxName) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", file.name, "\" is too long a name"));
    }
    tar += Header(file, at);
    tar += file.content;
    tar.append((kBlock - tar.size() % kBlock) % kBlock, '\0');
  }
  tar.append(2 * kBlock, '\0');
  return Compress(tar);
}

}  // namespace dfl::cli
