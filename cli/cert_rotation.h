// Replaces a network's authority while the network runs:
//
//   rotate  a second authority; both are trusted, and the new one signs
//   ...     every node gets the new ca.pem, then a renewed certificate
//   retire  the former authority is trusted no longer
//
// Each also changes the copies of ca.pem that are in the network's folder.
#ifndef DFL_CLI_CERT_ROTATION_H_
#define DFL_CLI_CERT_ROTATION_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/cert_files.h"
#include "cli/cert_folder.h"
#include "daemon/tls/authority.h"
#include "daemon/tls/certificate.h"

namespace dfl::cli {

struct Rotated {
  tls::Certificate authority;  // the new one
  tls::Certificate former;     // the one that signed until now
};

// Makes the authority that signs from now on. The former one's key is
// overwritten: nothing signs with it again.
// Errors: as CertFolder::LoadAuthority, tls::Authority::Make and
// dfl::FileError; FAILED_PRECONDITION when two are trusted already.
absl::StatusOr<Rotated> RotateAuthority(const CertFolder& folder,
                                        const tls::Validity& validity,
                                        std::vector<WrittenFile>& files);

// Takes an authority out of ca.pem. `fingerprint` is its SHA-256, or the first
// eight digits of it or more.
// Errors: NOT_FOUND lists those that are there; FAILED_PRECONDITION when it is
// the one that signs; or, without `force`, when a certificate in the folder
// that is still valid was signed by it alone, with the names.
absl::StatusOr<tls::Certificate> RetireAuthority(
    const CertFolder& folder, const std::string& fingerprint, bool force,
    std::vector<WrittenFile>& files);

}  // namespace dfl::cli

#endif  // DFL_CLI_CERT_ROTATION_H_
