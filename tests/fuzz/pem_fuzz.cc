// A private key from a file, and a signing request as a new node sends it to an
// issuer. The first byte says which.
#include <string>

#include "absl/strings/ascii.h"
#include "daemon/base/check.h"
#include "daemon/tls/key_file.h"
#include "daemon/tls/signature.h"
#include "daemon/tls/signing_request.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/nobody_asked.h"
#include "tests/fuzz/pieces.h"

namespace dfl::fuzz {
namespace {

void CheckKey(absl::string_view pem) {
  const auto key = tls::PrivateKey::FromPem(pem, "here");
  if (!key.ok()) {
    DFL_CHECK(absl::IsInvalidArgument(key.status()));
    return;
  }
  const std::string written = key->ToPem();
  const auto again = tls::PrivateKey::FromPem(written, "here");
  DFL_CHECK(again.ok() && again->ToPem() == written);
  (void)tls::Sign(*key, "bytes");
}

void CheckRequest(absl::string_view pem) {
  const auto request = tls::ParseSigningRequest(pem);
  if (!request.ok()) {
    DFL_CHECK(absl::IsInvalidArgument(request.status()));
    return;
  }
  DFL_CHECK(request->key_sha256.size() == 64 && request->name.size() <= 256);
  for (const char c : request->name) {
    DFL_CHECK(absl::ascii_isprint(static_cast<unsigned char>(c)));
  }
}

}  // namespace

DFL_FUZZ_TARGET(pem)(absl::string_view bytes) {
  LetNobodyBeAsked();
  Pieces pieces(bytes);
  if (pieces.Byte() % 2 == 0) return CheckKey(pieces.Rest());
  CheckRequest(pieces.Rest());
}

}  // namespace dfl::fuzz
