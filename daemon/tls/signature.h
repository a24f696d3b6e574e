// Signatures over bytes, and certificates in the form in which they travel with
// them. Keys on P-256 and the like sign by ECDSA with SHA-256 in DER form,
// Ed25519 keys by Ed25519; no other key signs.
#ifndef DFL_TLS_SIGNATURE_H_
#define DFL_TLS_SIGNATURE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/tls/certificate.h"
#include "daemon/tls/key_file.h"

namespace dfl::tls {

// Errors: FAILED_PRECONDITION for a key of another type.
absl::StatusOr<std::string> Sign(const PrivateKey& key,
                                 absl::string_view bytes);

// Whether `signature` is that of the key of `certificate` over `bytes`.
bool Verify(const Certificate& certificate, absl::string_view bytes,
            absl::string_view signature);

std::string ToDer(const Certificate& certificate);

// The inverse of ToDer. It accepts nothing that ToDer would not print.
// Errors: INVALID_ARGUMENT "WHERE: ..." for anything else.
absl::StatusOr<Certificate> CertificateFromDer(absl::string_view der,
                                               absl::string_view where);

// Whether the key of `issuer` signed `certificate`, whatever their names,
// dates and uses are; VerifyChain checks those.
bool IsSignedBy(const Certificate& certificate, const Certificate& issuer);

}  // namespace dfl::tls

#endif  // DFL_TLS_SIGNATURE_H_
