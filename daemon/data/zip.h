// The members of a zip archive, as far as NumPy's NPZ needs: stored or
// deflated, one disk, not encrypted, no zip64.
#ifndef DFL_DATA_ZIP_H_
#define DFL_DATA_ZIP_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/data/byte_stream.h"

namespace dfl {
namespace data {

// Thread-compatible.
class ZipArchive {
 public:
  struct Member {
    std::string name;
    uint16_t method = 0;  // 0 stored, 8 deflated
    uint16_t flags = 0;
    uint32_t crc32 = 0;
    uint64_t packed_bytes = 0;
    uint64_t bytes = 0;
    uint64_t header_offset = 0;
  };

  // Reads the directory at the end of the file.
  // Errors: as InputFile::Open; DATA_LOSS when the end is missing;
  // INVALID_ARGUMENT when it is no such archive or is inconsistent.
  static absl::StatusOr<ZipArchive> Open(const std::string& path);

  const std::vector<Member>& members() const { return members_; }

  // The decompressed bytes of the member called `name`; size and checksum are
  // verified before its end is reported.
  // Errors: INVALID_ARGUMENT lists the members when none has that name, or says
  // what in it cannot be read.
  absl::StatusOr<std::unique_ptr<ByteStream>> OpenMember(
      absl::string_view name) const;

 private:
  absl::Status ReadDirectory();

  std::shared_ptr<const InputFile> file_;
  std::vector<Member> members_;
  uint64_t directory_offset_ = 0;
};

}  // namespace data
}  // namespace dfl

#endif  // DFL_DATA_ZIP_H_
