// What this process shows to others, and whom it trusts: the bundle of
// authorities, its own certificate chain and the key to it.
#ifndef DFL_TLS_CREDENTIALS_H_
#define DFL_TLS_CREDENTIALS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/tls/certificate.h"
#include "daemon/tls/identity.h"
#include "daemon/tls/key_file.h"

namespace dfl::tls {

struct CredentialPaths {
  std::string bundle;       // the authorities, "ca.pem"
  std::string certificate;  // the chain, leaf first, "cert.pem"
  std::string key;          // "key.pem"
};

// One state of the three files.
struct CredentialFiles {
  PemFile bundle;
  PemFile certificate;
  PemFile key;

  friend bool operator==(const CredentialFiles&,
                         const CredentialFiles&) = default;
};

CredentialFiles ReadCredentialFiles(const CredentialPaths& paths);

// Checked, and immutable from then on.
struct Credentials {
  Identity identity;
  std::vector<Certificate> bundle;
  std::vector<Certificate> chain;  // chain[0] is our own
  PrivateKey key;
  // The files' text, as a TLS library takes it.
  std::string bundle_pem;
  std::string chain_pem;
  std::string key_pem;

  // The first moment at which a certificate of the chain has expired.
  absl::Time not_after() const;
};

// The credentials of `expected` out of `files`, at the time `now`. `reader` is
// the user id of this process.
//
// Errors, by what the caller can do. Each message begins with the file, names
// what was found and what was expected, and ends with the command that cures
// it.
//   UNAVAILABLE          the certificate's start is after `now`. The clock may
//                        not be set yet: wait and try again.
//   NOT_FOUND            a file is missing.
//   PERMISSION_DENIED    a file cannot be read, or its rights or owner let
//                        others use the key.
//   INVALID_ARGUMENT     a file is empty, damaged, encrypted or no PEM.
//   FAILED_PRECONDITION  the certificate has expired, is of another authority,
//                        cluster, role or name, names no identity or several,
//                        is too weak, or is not for the key.
absl::StatusOr<Credentials> CheckCredentials(const CredentialFiles& files,
                                             const Identity& expected,
                                             absl::Time now, uint32_t reader);

}  // namespace dfl::tls

#endif  // DFL_TLS_CREDENTIALS_H_
