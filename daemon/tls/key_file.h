// Private keys, and the files that hold them or certificates.
//
// A file is read once into a PemFile, and everything else is a function of that
// value: tests need no second user, and a caller sees one state of the file.
#ifndef DFL_TLS_KEY_FILE_H_
#define DFL_TLS_KEY_FILE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/tls/certificate.h"

struct evp_pkey_st;

namespace dfl::tls {

// One state of a file, with its rights at that moment.
struct PemFile {
  std::string path;
  // errno of the call that failed; 0 when the file was read.
  int error = 0;
  std::string content;
  uint32_t mode = 0;   // permission bits
  uint32_t owner = 0;  // user id
  // Whether the file's group is that of this process.
  bool own_group = false;

  friend bool operator==(const PemFile&, const PemFile&) = default;
};

// Reads a file of at most 1 MiB; a larger one, or one that is no plain file,
// has EFBIG or EINVAL as its error. Never fails otherwise.
PemFile ReadPemFile(const std::string& path);

// OK when the file was read.
// Errors: NOT_FOUND when it is missing, PERMISSION_DENIED when this user may
// not read it, FAILED_PRECONDITION otherwise. The message is "PATH: ..." and
// ends with `cure` where the file is missing.
absl::Status CheckRead(const PemFile& file, absl::string_view cure);

// OK when the file belongs to `reader`, the user id of this process, or to
// root, and neither its group nor others have any right to it. A file of root
// may be lent to a process that is not: then the process's own group may read
// it, as with a Secret of Kubernetes.
// Errors: PERMISSION_DENIED with the command that cures it.
absl::Status CheckRights(const PemFile& file, uint32_t reader);

// A value: copies share the key.
class PrivateKey {
 public:
  // A new key on P-256.
  static PrivateKey Generate();
  // Errors: INVALID_ARGUMENT "WHERE: ..." for an empty text, no PEM, a damaged
  // key, or one that is encrypted.
  static absl::StatusOr<PrivateKey> FromPem(absl::string_view pem,
                                            absl::string_view where);

  // PKCS #8, not encrypted.
  std::string ToPem() const;
  // True when `certificate` is for this key.
  bool Matches(const Certificate& certificate) const;
  evp_pkey_st* key() const { return key_.get(); }

 private:
  // Takes ownership of `key`.
  explicit PrivateKey(evp_pkey_st* key);

  std::shared_ptr<evp_pkey_st> key_;
};

// The key of `file`, for the certificate in `certificate_path`.
// Errors: as CheckRead, CheckRights and PrivateKey::FromPem;
// FAILED_PRECONDITION when it is another certificate's key. Each message names
// the file and the command that cures it.
absl::StatusOr<PrivateKey> LoadKey(const PemFile& file, uint32_t reader,
                                   const Certificate& certificate,
                                   absl::string_view certificate_path);

// Writes `pem` to `path`, for its owner alone, and replaces what is there in
// one step.
// Errors: as dfl::FileError.
absl::Status WritePrivate(const std::string& path, absl::string_view pem);
// The same with the rights of a plain file, for what is no secret.
absl::Status WritePublic(const std::string& path, absl::string_view pem);

}  // namespace dfl::tls

#endif  // DFL_TLS_KEY_FILE_H_
