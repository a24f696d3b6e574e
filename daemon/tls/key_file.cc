#include "daemon/tls/key_file.h"

#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/base/atomic_file.h"
#include "daemon/base/check.h"
#include "daemon/base/status_macros.h"
#include "daemon/tls/openssl_types.h"

namespace dfl::tls {
namespace {

constexpr size_t kMaxFile = 1 << 20;
constexpr uint32_t kOthers = 077;
constexpr uint32_t kGroupReads = 040;

// Fills everything but the path; returns errno or 0.
int ReadInto(int fd, PemFile& file) {
  struct stat about = {};
  if (fstat(fd, &about) != 0) return errno;
  if (!S_ISREG(about.st_mode)) return EINVAL;
  file.mode = about.st_mode & 07777;
  file.owner = about.st_uid;
  file.own_group = about.st_gid == getegid();
  char buffer[4096];
  while (true) {
    const ssize_t got = read(fd, buffer, sizeof(buffer));
    if (got == 0) return 0;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    file.content.append(buffer, static_cast<size_t>(got));
    if (file.content.size() > kMaxFile) return EFBIG;
  }
}

// OpenSSL asks for a password only when the key is encrypted.
int NoPassword(char*, int, int, void* asked) {
  *static_cast<bool*>(asked) = true;
  return -1;
}

}  // namespace

PemFile ReadPemFile(const std::string& path) {
  PemFile file;
  file.path = path;
  // A FIFO must not block the caller.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    file.error = errno;
    return file;
  }
  file.error = ReadInto(fd, file);
  if (file.error != 0) file.content.clear();
  close(fd);
  return file;
}

absl::Status CheckRead(const PemFile& file, absl::string_view cure) {
  switch (file.error) {
    case 0:
      return absl::OkStatus();
    case ENOENT:
    case ENOTDIR:
      return absl::NotFoundError(
          absl::StrCat(file.path, ": there is no such file; ", cure));
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(absl::StrCat(
          file.path,
          ": this user may not read it, or may not enter a folder above it; "
          "see `namei -l ",
          file.path, "` and change owner or rights"));
    case EINVAL:
      return absl::FailedPreconditionError(
          absl::StrCat(file.path, ": is no file; name a file in PEM form"));
    case EFBIG:
      return absl::FailedPreconditionError(
          absl::StrCat(file.path, ": has more than ", kMaxFile >> 20,
                       " MiB; name a file in PEM form"));
    default:
      return absl::FailedPreconditionError(absl::StrCat(
          file.path, ": cannot be read: ", std::strerror(file.error)));
  }
}

absl::Status CheckRights(const PemFile& file, uint32_t reader) {
  const bool lent = file.owner == 0 && reader != 0 && file.own_group &&
                    (file.mode & kOthers) == kGroupReads;
  if ((file.mode & kOthers) != 0 && !lent) {
    return absl::PermissionDeniedError(absl::StrFormat(
        "%s: its rights are %04o, so others than its owner may use the key; "
        "allowed: 0600 or 0400: `chmod 600 %s`",
        file.path, file.mode, file.path));
  }
  if (file.owner != reader && file.owner != 0) {
    return absl::PermissionDeniedError(absl::StrFormat(
        "%s: belongs to user id %u, and this process runs as %u; the key must "
        "belong to it or to root: `chown %u %s`",
        file.path, file.owner, reader, reader, file.path));
  }
  return absl::OkStatus();
}

PrivateKey::PrivateKey(evp_pkey_st* key) : key_(key, EVP_PKEY_free) {}

PrivateKey PrivateKey::Generate() {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  DFL_CHECK(key != nullptr);
  return PrivateKey(key);
}

absl::StatusOr<PrivateKey> PrivateKey::FromPem(absl::string_view pem,
                                               absl::string_view where) {
  if (absl::StripAsciiWhitespace(pem).empty()) {
    return absl::InvalidArgumentError(absl::StrCat(where, ": is empty"));
  }
  const BioPtr bio = ReadBio(pem);
  bool asked = false;
  ERR_clear_error();
  EVP_PKEY* key =
      PEM_read_bio_PrivateKey(bio.get(), nullptr, NoPassword, &asked);
  if (key != nullptr) return PrivateKey(key);
  // OpenSSL gives the same reason for a damaged block and for none.
  const bool no_pem = !absl::StrContains(pem, "PRIVATE KEY-----");
  const std::string reason = TakeOpenSslError();
  if (asked) {
    return absl::InvalidArgumentError(absl::StrCat(
        where,
        ": the key is encrypted, and nobody is there to type its password; "
        "decrypt it: `openssl pkey -in ",
        where, " -out NEW`"));
  }
  if (no_pem) {
    return absl::InvalidArgumentError(absl::StrCat(
        where, ": has no key in PEM form (-----BEGIN PRIVATE KEY-----)"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat(where, ": the key is damaged: ", reason));
}

std::string PrivateKey::ToPem() const {
  const BioPtr bio = WriteBio();
  DFL_CHECK(PEM_write_bio_PKCS8PrivateKey(bio.get(), key_.get(), nullptr,
                                          nullptr, 0, nullptr, nullptr) == 1);
  return Written(bio.get());
}

bool PrivateKey::Matches(const Certificate& certificate) const {
  const EVP_PKEY* other = X509_get0_pubkey(certificate.x509());
  const bool same = other != nullptr && EVP_PKEY_eq(key_.get(), other) == 1;
  ERR_clear_error();
  return same;
}

absl::StatusOr<PrivateKey> LoadKey(const PemFile& file, uint32_t reader,
                                   const Certificate& certificate,
                                   absl::string_view certificate_path) {
  const std::string name =
      certificate.identity().ok() ? certificate.identity()->name : "NAME";
  const std::string cure =
      absl::StrCat("copy the key.pem that `dflctl cert issue ", name, "` made");
  DFL_RETURN_IF_ERROR(CheckRead(file, cure));
  DFL_RETURN_IF_ERROR(CheckRights(file, reader));
  const absl::StatusOr<PrivateKey> key =
      PrivateKey::FromPem(file.content, file.path);
  if (!key.ok()) {
    return absl::Status(key.status().code(),
                        absl::StrCat(key.status().message(), "; or ", cure));
  }
  if (!key->Matches(certificate)) {
    return absl::FailedPreconditionError(absl::StrCat(
        file.path, ": is not the key of ", certificate_path, " (",
        certificate.subject(), ", serial ", certificate.serial(),
        "); copy both files of one `dflctl cert issue ", name, "`"));
  }
  return key;
}

absl::Status WritePrivate(const std::string& path, absl::string_view pem) {
  const std::string temporary = absl::StrCat(path, ".new");
  // One that is there keeps its rights when it is overwritten.
  unlink(temporary.c_str());
  DFL_ASSIGN_OR_RETURN(const std::unique_ptr<AtomicFile> file,
                       AtomicFile::CreatePrivate(path, temporary));
  DFL_RETURN_IF_ERROR(file->Append(pem));
  return file->Commit();
}

absl::Status WritePublic(const std::string& path, absl::string_view pem) {
  return AtomicFile::Write(path, pem);
}

}  // namespace dfl::tls
