// What a signing request says of itself. tls::Authority::Sign signs one.
#ifndef DFL_TLS_SIGNING_REQUEST_H_
#define DFL_TLS_SIGNING_REQUEST_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace dfl::tls {

struct SigningRequest {
  // Its subject's one common name, "" when there is none or several. The
  // sender's claim: escaped, and cut after 256 characters.
  std::string name;
  // SHA-256 over the public key in DER form, 64 lower-case hexadecimal digits.
  std::string key_sha256;
};

// Reads a request in PEM form and checks that its sender has the key.
// Errors: INVALID_ARGUMENT when `pem` is no request or its signature is wrong.
absl::StatusOr<SigningRequest> ParseSigningRequest(absl::string_view pem);

}  // namespace dfl::tls

#endif  // DFL_TLS_SIGNING_REQUEST_H_
