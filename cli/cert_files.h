// Makes certificates and writes them into a network's folder. No function
// replaces a key.
#ifndef DFL_CLI_CERT_FILES_H_
#define DFL_CLI_CERT_FILES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/cert_folder.h"
#include "daemon/tls/authority.h"
#include "daemon/tls/certificate.h"
#include "daemon/tls/identity.h"

namespace dfl::cli {

// For people: what was written, and what it is.
struct WrittenFile {
  std::string path;
  std::string what;
};

// Makes the authority of `person`'s cluster, and a certificate for `person`.
// Errors: ALREADY_EXISTS when the folder has a network; as dfl::FileError.
absl::StatusOr<tls::Authority> MakeNetwork(const CertFolder& folder,
                                           const tls::Identity& person,
                                           const tls::Validity& validity,
                                           absl::Duration operator_lifetime,
                                           std::vector<WrittenFile>& files);

// Makes a key and a certificate, and writes them into the folder `out` with
// what their owner trusts. The network's folder keeps a copy of the
// certificate.
// Errors: ALREADY_EXISTS when there is a certificate for `identity`, or `out`
// has other files of these names; as tls::Authority::Issue and dfl::FileError.
absl::StatusOr<tls::Certificate> IssueCertificate(
    const CertFolder& folder, const std::string& out,
    const tls::Identity& identity, const tls::Authority& authority,
    const tls::Validity& validity, std::vector<WrittenFile>& files);

// Replaces the certificate in the file `path` by a new one for the same key and
// identity, and the copy in the network's folder with it.
// Errors: as ReadLeaf, CertFolder::LoadAuthority, tls::Authority::Renew and
// dfl::FileError.
absl::StatusOr<tls::Certificate> RenewCertificate(
    const CertFolder& folder, const std::string& path,
    const tls::Validity& validity, std::vector<WrittenFile>& files);

// That of the option --days, from now on.
// Errors: INVALID_ARGUMENT for less than 1 or more than 36500.
absl::StatusOr<tls::Validity> ValidityOf(int days);

// The first certificate of a file.
// Errors: as tls::CheckRead and tls::ParseCertificates.
absl::StatusOr<tls::Certificate> ReadLeaf(const std::string& path);

}  // namespace dfl::cli

#endif  // DFL_CLI_CERT_FILES_H_
