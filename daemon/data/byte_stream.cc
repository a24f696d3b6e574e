#include "daemon/data/byte_stream.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/base/config.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/base/check.h"
#include "daemon/base/status_macros.h"
#include "daemon/data/data_error.h"

#ifndef ABSL_IS_LITTLE_ENDIAN
#error "Binary data files are read as they lie; big-endian is not supported."
#endif

namespace dfl {
namespace data {
namespace {

constexpr size_t kInputBytes = size_t{64} << 10;
// zlib: "the limit for the compression ratio is 1032:1".
constexpr uint64_t kMaxRatio = 1032;

absl::Status ErrnoStatus(const std::string& path, absl::string_view what) {
  const int error = errno;
  const std::string message =
      absl::StrCat(path, ": ", what, ": ", std::strerror(error));
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return absl::NotFoundError(
          absl::StrCat(message, "; check the path in the data settings"));
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(
          absl::StrCat(message, "; the daemon's user needs read permission"));
    default:
      return absl::UnavailableError(message);
  }
}

}  // namespace

absl::StatusOr<std::shared_ptr<const InputFile>> InputFile::Open(
    const std::string& path) {
  if (path.empty() || path.find('\0') != std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("path ", Quoted(path),
                     " is empty or has a zero byte; allowed: a file's path"));
  }
  // O_NONBLOCK: a pipe must be refused, not waited for.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return ErrnoStatus(path, "cannot open");
  std::shared_ptr<InputFile> file(new InputFile(path, fd, 0));
  struct stat info;
  if (::fstat(fd, &info) != 0) return ErrnoStatus(path, "cannot stat");
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": is ", S_ISDIR(info.st_mode) ? "a folder" : "not a plain file",
        "; allowed: a plain file"));
  }
  file->size_ = static_cast<uint64_t>(info.st_size);
  return std::shared_ptr<const InputFile>(std::move(file));
}

InputFile::InputFile(std::string path, int fd, uint64_t size)
    : path_(std::move(path)), fd_(fd), size_(size) {}

InputFile::~InputFile() { ::close(fd_); }

absl::Status InputFile::ReadAt(uint64_t offset, absl::Span<char> out) const {
  size_t done = 0;
  while (done < out.size()) {
    const ssize_t got = ::pread(fd_, out.data() + done, out.size() - done,
                                static_cast<off_t>(offset + done));
    if (got < 0) {
      if (errno == EINTR) continue;
      return ErrnoStatus(path_, absl::StrCat("cannot read ", AtByte(offset)));
    }
    if (got == 0) {
      return CutShort(path_, AtByte(offset + done), "the file ends here",
                      absl::StrCat(size_, " bytes, its size when opened"));
    }
    done += static_cast<size_t>(got);
  }
  return absl::OkStatus();
}

struct ByteStream::Inflater {
  z_stream z = {};
  std::vector<char> input;
  bool started = false;   // inside a gzip member or deflate stream
  bool finished = false;  // everything was read and verified
};

absl::StatusOr<std::unique_ptr<ByteStream>> ByteStream::Open(
    const std::string& path) {
  DFL_ASSIGN_OR_RETURN(std::shared_ptr<const InputFile> file,
                       InputFile::Open(path));
  Encoding encoding = Encoding::kPlain;
  if (file->size() >= 2) {
    char magic[2];
    DFL_RETURN_IF_ERROR(file->ReadAt(0, absl::MakeSpan(magic, 2)));
    if (magic[0] == '\x1f' && magic[1] == '\x8b') encoding = Encoding::kGzip;
  }
  const uint64_t size = file->size();
  return std::make_unique<ByteStream>(std::move(file), path, 0, size, encoding);
}

ByteStream::ByteStream(std::shared_ptr<const InputFile> file, std::string name,
                       uint64_t begin, uint64_t length, Encoding encoding)
    : file_(std::move(file)),
      name_(std::move(name)),
      position_(begin),
      end_(begin + length),
      encoding_(encoding) {
  DFL_CHECK(end_ >= begin && end_ <= file_->size());
  if (encoding_ == Encoding::kPlain) return;
  inflater_ = std::make_unique<Inflater>();
  inflater_->input.resize(kInputBytes);
  // 15: the largest window; +16: gzip; negative: raw deflate.
  const int window = encoding_ == Encoding::kGzip ? 15 + 16 : -15;
  DFL_CHECK(inflateInit2(&inflater_->z, window) == Z_OK);
  inflater_->started = true;
}

ByteStream::~ByteStream() {
  if (inflater_ != nullptr) inflateEnd(&inflater_->z);
}

uint64_t ByteStream::max_remaining() const {
  const uint64_t left = end_ - position_;
  if (inflater_ == nullptr) return left;
  // The window may still hold what one input buffer expands to.
  const uint64_t input = left + inflater_->z.avail_in + kInputBytes;
  return input > UINT64_MAX / kMaxRatio ? UINT64_MAX : input * kMaxRatio;
}

std::string ByteStream::Place() const {
  if (inflater_ == nullptr) return AtByte(position_);
  return absl::StrCat("byte ", position_ - inflater_->z.avail_in,
                      " of the compressed file (", offset_, " decompressed)");
}

absl::StatusOr<size_t> ByteStream::Read(absl::Span<char> out) {
  absl::StatusOr<size_t> got =
      inflater_ == nullptr ? ReadPlain(out) : Inflate(out);
  if (!got.ok()) return got;
  offset_ += *got;
  if (has_expected_total_) {
    crc_ = static_cast<uint32_t>(
        ::crc32_z(crc_, reinterpret_cast<const Bytef*>(out.data()), *got));
    if (*got < out.size()) DFL_RETURN_IF_ERROR(VerifyTotal());
  }
  return got;
}

void ByteStream::ExpectTotal(uint64_t bytes, uint32_t crc) {
  DFL_CHECK(offset_ == 0);
  has_expected_total_ = true;
  expected_bytes_ = bytes;
  expected_crc_ = crc;
}

absl::Status ByteStream::VerifyTotal() const {
  if (offset_ == expected_bytes_ && crc_ == expected_crc_) {
    return absl::OkStatus();
  }
  return WrongContent(
      name_, AtByte(offset_),
      absl::StrFormat("%d bytes with checksum 0x%08x", offset_, crc_),
      absl::StrFormat("%d with 0x%08x, as the archive's directory says",
                      expected_bytes_, expected_crc_));
}

absl::StatusOr<size_t> ByteStream::ReadPlain(absl::Span<char> out) {
  const size_t n =
      static_cast<size_t>(std::min<uint64_t>(out.size(), end_ - position_));
  DFL_RETURN_IF_ERROR(file_->ReadAt(position_, out.subspan(0, n)));
  position_ += n;
  return n;
}

absl::Status ByteStream::FillInput() {
  z_stream& z = inflater_->z;
  if (z.avail_in > 0 || position_ == end_) return absl::OkStatus();
  const size_t n =
      static_cast<size_t>(std::min<uint64_t>(kInputBytes, end_ - position_));
  DFL_RETURN_IF_ERROR(
      file_->ReadAt(position_, absl::MakeSpan(inflater_->input.data(), n)));
  position_ += n;
  z.next_in = reinterpret_cast<Bytef*>(inflater_->input.data());
  z.avail_in = static_cast<uInt>(n);
  return absl::OkStatus();
}

absl::StatusOr<size_t> ByteStream::Inflate(absl::Span<char> out) {
  z_stream& z = inflater_->z;
  size_t done = 0;
  while (done < out.size() && !inflater_->finished) {
    DFL_RETURN_IF_ERROR(FillInput());
    const size_t room = std::min<size_t>(out.size() - done, size_t{1} << 30);
    z.next_out = reinterpret_cast<Bytef*>(out.data() + done);
    z.avail_out = static_cast<uInt>(room);
    const int code = inflate(&z, Z_NO_FLUSH);
    done += room - z.avail_out;
    if (code == Z_STREAM_END) {
      DFL_RETURN_IF_ERROR(FillInput());
      if (z.avail_in == 0) {
        inflater_->finished = true;
      } else if (encoding_ == Encoding::kGzip && z.next_in[0] == 0x1f) {
        // Another member; inflate checks the rest of its header.
        DFL_CHECK(inflateReset(&z) == Z_OK);
      } else {
        return WrongContent(name_, Place(),
                            absl::StrCat(end_ - position_ + z.avail_in,
                                         " bytes follow the compressed data"),
                            encoding_ == Encoding::kGzip
                                ? "nothing, or another gzip member"
                                : "nothing");
      }
    } else if (code == Z_OK || code == Z_BUF_ERROR) {
      if (z.avail_in == 0 && position_ == end_ && z.avail_out > 0) {
        return CutShort(name_, Place(),
                        "the compressed data ends before its last block",
                        "a complete file; copy it again");
      }
    } else {
      if (code == Z_MEM_ERROR) {
        return absl::ResourceExhaustedError(
            absl::StrCat(name_, ": not enough memory to decompress"));
      }
      return WrongContent(
          name_, Place(),
          absl::StrCat("damaged compressed data (",
                       z.msg == nullptr ? "needs a dictionary" : z.msg, ")"),
          encoding_ == Encoding::kGzip ? "gzip with matching checksums"
                                       : "deflate data");
    }
  }
  return done;
}

absl::Status ByteStream::ReadExactly(absl::Span<char> out,
                                     absl::string_view what) {
  size_t done = 0;
  while (done < out.size()) {
    DFL_ASSIGN_OR_RETURN(const size_t got, Read(out.subspan(done)));
    if (got == 0) {
      return CutShort(
          name_, AtByte(offset_),
          absl::StrCat("the ", compressed() ? "data" : "file", " ends inside ",
                       what, ", ", out.size() - done, " bytes too early"),
          "a complete file; copy it again");
    }
    done += got;
  }
  return absl::OkStatus();
}

absl::Status ByteStream::CheckCount(uint64_t count, uint64_t value_bytes,
                                    absl::string_view what) const {
  const uint64_t limit = max_remaining();
  if (count <= limit / value_bytes) return absl::OkStatus();
  return CutShort(
      name_, AtByte(offset_),
      absl::StrCat(what, " should be ", count, " values of ", value_bytes,
                   " bytes, but at most ", limit, " bytes follow"),
      "a header that fits the file's size; copy the file again");
}

absl::Status ByteStream::ExpectEnd() {
  char next;
  DFL_ASSIGN_OR_RETURN(const size_t got, Read(absl::MakeSpan(&next, 1)));
  if (got == 0) return absl::OkStatus();
  return WrongContent(
      name_, AtByte(offset_ - 1),
      compressed()
          ? "more data follows the last value"
          : absl::StrCat(end_ - position_ + 1, " bytes follow the last value"),
      "nothing there");
}

}  // namespace data
}  // namespace dfl
