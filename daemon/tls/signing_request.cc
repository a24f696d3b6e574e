#include "daemon/tls/signing_request.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/sha256.h"
#include "daemon/tls/openssl_types.h"

namespace dfl::tls {
namespace {

constexpr size_t kMaxName = 256;

std::string CommonName(const X509_NAME* subject) {
  const int index = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (index < 0 ||
      X509_NAME_get_index_by_NID(subject, NID_commonName, index) >= 0) {
    return "";
  }
  unsigned char* text = nullptr;
  const int length = ASN1_STRING_to_UTF8(
      &text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, index)));
  if (length < 0) {
    ERR_clear_error();
    return "";
  }
  std::string name = absl::CHexEscape(absl::string_view(
      reinterpret_cast<const char*>(text), static_cast<size_t>(length)));
  OPENSSL_free(text);
  return name.substr(0, kMaxName);
}

}  // namespace

absl::StatusOr<SigningRequest> ParseSigningRequest(absl::string_view pem) {
  const BioPtr bio = ReadBio(pem);
  const RequestPtr parsed(
      PEM_read_bio_X509_REQ(bio.get(), nullptr, NoPassPhrase, nullptr));
  EVP_PKEY* key =
      parsed == nullptr ? nullptr : X509_REQ_get0_pubkey(parsed.get());
  unsigned char* der = nullptr;
  const int length = key == nullptr ? 0 : i2d_PUBKEY(key, &der);
  if (length <= 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "this is no signing request in PEM form (-----BEGIN CERTIFICATE "
        "REQUEST-----): ",
        TakeOpenSslError()));
  }
  SigningRequest request;
  request.key_sha256 = Sha256Hex(absl::string_view(
      reinterpret_cast<const char*>(der), static_cast<size_t>(length)));
  OPENSSL_free(der);
  if (X509_REQ_verify(parsed.get(), key) != 1) {
    ERR_clear_error();
    return absl::InvalidArgumentError(
        "the signing request's signature is wrong: its sender does not show "
        "that it has the key");
  }
  request.name = CommonName(X509_REQ_get_subject_name(parsed.get()));
  return request;
}

}  // namespace dfl::tls
