#include "daemon/data/zip.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "daemon/base/status_macros.h"
#include "daemon/data/data_error.h"

namespace dfl {
namespace data {
namespace {

// APPNOTE.TXT 4.3.7, 4.3.12, 4.3.16.
constexpr uint32_t kLocalMagic = 0x04034b50;
constexpr uint32_t kDirectoryMagic = 0x02014b50;
constexpr uint32_t kEndMagic = 0x06054b50;
constexpr size_t kLocalBytes = 30;
constexpr size_t kDirectoryBytes = 46;
constexpr size_t kEndBytes = 22;
constexpr uint16_t kEncrypted = 1;

uint16_t Little16(const char* p) {
  const auto* u = reinterpret_cast<const unsigned char*>(p);
  return static_cast<uint16_t>(u[0] | u[1] << 8);
}
uint32_t Little32(const char* p) {
  return static_cast<uint32_t>(Little16(p)) |
         static_cast<uint32_t>(Little16(p + 2)) << 16;
}

absl::Status NoZip64(const std::string& path, uint64_t offset) {
  return WrongContent(path, AtByte(offset), "a zip64 archive",
                      "archives below 4 GiB; save the arrays with numpy.save "
                      "and use format npy");
}

}  // namespace

absl::StatusOr<ZipArchive> ZipArchive::Open(const std::string& path) {
  ZipArchive archive;
  DFL_ASSIGN_OR_RETURN(archive.file_, InputFile::Open(path));
  DFL_RETURN_IF_ERROR(archive.ReadDirectory());
  return archive;
}

absl::Status ZipArchive::ReadDirectory() {
  const std::string& path = file_->path();
  const uint64_t size = file_->size();
  char magic[4] = {};
  if (size < 4) {
    return CutShort(path, AtByte(size), "the file ends inside its first header",
                    "a complete zip archive");
  }
  DFL_RETURN_IF_ERROR(file_->ReadAt(0, absl::MakeSpan(magic)));
  const uint32_t first = Little32(magic);
  if (first != kLocalMagic && first != kEndMagic) {
    return WrongContent(path, AtByte(0),
                        absl::StrFormat("the magic number is 0x%08x", first),
                        "0x04034b50 (a zip archive, as numpy.savez writes)");
  }
  // Only a comment of at most 65535 bytes may follow the end record.
  const size_t tail_bytes =
      static_cast<size_t>(std::min<uint64_t>(size, kEndBytes + 65535));
  const uint64_t tail_offset = size - tail_bytes;
  std::vector<char> tail(tail_bytes);
  DFL_RETURN_IF_ERROR(file_->ReadAt(tail_offset, absl::MakeSpan(tail)));
  const char* end = nullptr;
  const char* elsewhere = nullptr;  // an end record that is not at the end
  for (size_t i = tail_bytes < kEndBytes ? 0 : tail_bytes - kEndBytes + 1;
       i-- > 0;) {
    if (Little32(tail.data() + i) != kEndMagic) continue;
    if (i + kEndBytes + Little16(tail.data() + i + 20) == tail_bytes) {
      end = tail.data() + i;
      break;
    }
    if (elsewhere == nullptr) elsewhere = tail.data() + i;
  }
  if (end == nullptr && elsewhere != nullptr) {
    const uint64_t at =
        tail_offset + static_cast<uint64_t>(elsewhere - tail.data());
    const uint64_t stop = at + kEndBytes + Little16(elsewhere + 20);
    if (stop < size) {
      return WrongContent(
          path, AtByte(stop),
          absl::StrCat(size - stop, " bytes follow the archive's end"),
          "nothing there");
    }
  }
  if (end == nullptr) {
    return CutShort(path, AtByte(size),
                    "the archive's directory, which stands last, is missing",
                    "a complete zip archive; copy it again");
  }
  const uint64_t end_offset =
      tail_offset + static_cast<uint64_t>(end - tail.data());
  const uint16_t entries = Little16(end + 10);
  const uint64_t directory_bytes = Little32(end + 12);
  directory_offset_ = Little32(end + 16);
  if (entries == 0xFFFF || directory_offset_ == 0xFFFFFFFF) {
    return NoZip64(path, end_offset);
  }
  if (Little16(end + 4) != 0 || Little16(end + 6) != 0 ||
      Little16(end + 8) != entries ||
      directory_offset_ + directory_bytes != end_offset) {
    return WrongContent(
        path, AtByte(end_offset),
        absl::StrCat("the directory is said to be bytes ", directory_offset_,
                     " to ", directory_offset_ + directory_bytes, " with ",
                     Little16(end + 8), " of ", entries, " members"),
        absl::StrCat("one disk, and a directory that ends at byte ",
                     end_offset));
  }
  std::vector<char> directory(static_cast<size_t>(directory_bytes));
  DFL_RETURN_IF_ERROR(
      file_->ReadAt(directory_offset_, absl::MakeSpan(directory)));
  size_t at = 0;
  for (uint16_t i = 0; i < entries; ++i) {
    const uint64_t here = directory_offset_ + at;
    const size_t left = directory.size() - at;
    const char* const p = directory.data() + at;
    const size_t record = left < kDirectoryBytes
                              ? left + 1
                              : kDirectoryBytes + Little16(p + 28) +
                                    Little16(p + 30) + Little16(p + 32);
    if (record > left || Little32(p) != kDirectoryMagic) {
      return WrongContent(path, AtByte(here),
                          absl::StrCat("no directory record of member ", i),
                          absl::StrCat(entries, " records"));
    }
    Member member;
    member.flags = Little16(p + 8);
    member.method = Little16(p + 10);
    member.crc32 = Little32(p + 16);
    member.packed_bytes = Little32(p + 20);
    member.bytes = Little32(p + 24);
    member.header_offset = Little32(p + 42);
    member.name.assign(p + kDirectoryBytes, Little16(p + 28));
    if (member.packed_bytes == 0xFFFFFFFF || member.bytes == 0xFFFFFFFF ||
        member.header_offset == 0xFFFFFFFF) {
      return NoZip64(path, here);
    }
    members_.push_back(std::move(member));
    at += record;
  }
  if (at != directory.size()) {
    return WrongContent(
        path, AtByte(directory_offset_ + at),
        absl::StrCat(directory.size() - at, " bytes follow the last record"),
        "nothing there");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ByteStream>> ZipArchive::OpenMember(
    absl::string_view name) const {
  const std::string& path = file_->path();
  const auto found =
      std::find_if(members_.begin(), members_.end(),
                   [name](const Member& m) { return m.name == name; });
  if (found == members_.end()) {
    std::vector<std::string> names;
    for (const Member& m : members_) {
      if (names.size() == 20) break;
      names.push_back(Quoted(m.name));
    }
    return WrongContent(
        path, AtByte(directory_offset_),
        absl::StrCat("no member ", Quoted(name)),
        names.empty()
            ? "an archive with members"
            : absl::StrCat(absl::StrJoin(names, ", "),
                           "; data.features_key and data.labels_key name the "
                           "two arrays, for test files data.test.features_key "
                           "and data.test.labels_key"));
  }
  const std::string place =
      absl::StrCat(AtByte(found->header_offset), " (member ", name, ")");
  if ((found->flags & kEncrypted) != 0 ||
      (found->method != 0 && found->method != 8)) {
    return WrongContent(
        path, place,
        (found->flags & kEncrypted) != 0
            ? std::string("encrypted")
            : absl::StrCat("compression method ", found->method),
        "0 (stored) or 8 (deflated), not encrypted");
  }
  char header[kLocalBytes] = {};
  const bool fits = found->header_offset + kLocalBytes <= directory_offset_;
  if (fits) {
    DFL_RETURN_IF_ERROR(
        file_->ReadAt(found->header_offset, absl::MakeSpan(header)));
  }
  const uint64_t begin = found->header_offset + kLocalBytes +
                         Little16(header + 26) + Little16(header + 28);
  if (!fits || Little32(header) != kLocalMagic ||
      begin + found->packed_bytes > directory_offset_ ||
      (found->method == 0 && found->packed_bytes != found->bytes)) {
    return WrongContent(path, place,
                        "the member's header contradicts the directory",
                        absl::StrCat("a member of ", found->packed_bytes,
                                     " bytes before byte ", directory_offset_));
  }
  auto stream = std::make_unique<ByteStream>(
      file_, absl::StrCat(path, " (member ", name, ")"), begin,
      found->packed_bytes,
      found->method == 0 ? ByteStream::Encoding::kPlain
                         : ByteStream::Encoding::kDeflate);
  stream->ExpectTotal(found->bytes, found->crc32);
  return stream;
}

}  // namespace data
}  // namespace dfl
