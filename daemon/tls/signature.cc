#include "daemon/tls/signature.h"

#include <openssl/err.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "daemon/base/check.h"
#include "daemon/tls/openssl_types.h"

namespace dfl::tls {
namespace {

using DigestPtr = std::unique_ptr<EVP_MD_CTX, Freed<EVP_MD_CTX_free>>;

const unsigned char* Bytes(absl::string_view bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

bool CanSign(const EVP_PKEY* key) {
  if (key == nullptr) return false;
  const int type = EVP_PKEY_get_base_id(key);
  return type == EVP_PKEY_EC || type == EVP_PKEY_ED25519;
}

// Ed25519 hashes by itself.
const EVP_MD* DigestOf(const EVP_PKEY* key) {
  return EVP_PKEY_get_base_id(key) == EVP_PKEY_ED25519 ? nullptr : EVP_sha256();
}

}  // namespace

absl::StatusOr<std::string> Sign(const PrivateKey& key,
                                 absl::string_view bytes) {
  if (!CanSign(key.key())) {
    return absl::FailedPreconditionError(
        absl::StrCat("a key of type ", EVP_PKEY_get0_type_name(key.key()),
                     " signs nothing here; one on P-256 or Ed25519 does"));
  }
  const DigestPtr digest(EVP_MD_CTX_new());
  DFL_CHECK(digest != nullptr);
  size_t length = 0;
  if (EVP_DigestSignInit(digest.get(), nullptr, DigestOf(key.key()), nullptr,
                         key.key()) != 1 ||
      EVP_DigestSign(digest.get(), nullptr, &length, Bytes(bytes),
                     bytes.size()) != 1) {
    return OpenSslError("prepare a signature");
  }
  std::string signature(length, '\0');
  if (EVP_DigestSign(digest.get(),
                     reinterpret_cast<unsigned char*>(signature.data()),
                     &length, Bytes(bytes), bytes.size()) != 1) {
    return OpenSslError("sign");
  }
  signature.resize(length);
  return signature;
}

bool Verify(const Certificate& certificate, absl::string_view bytes,
            absl::string_view signature) {
  EVP_PKEY* key = X509_get0_pubkey(certificate.x509());
  if (!CanSign(key)) return false;
  const DigestPtr digest(EVP_MD_CTX_new());
  DFL_CHECK(digest != nullptr);
  const bool good =
      EVP_DigestVerifyInit(digest.get(), nullptr, DigestOf(key), nullptr,
                           key) == 1 &&
      EVP_DigestVerify(digest.get(), Bytes(signature), signature.size(),
                       Bytes(bytes), bytes.size()) == 1;
  ERR_clear_error();
  return good;
}

std::string ToDer(const Certificate& certificate) {
  unsigned char* der = nullptr;
  const int length = i2d_X509(certificate.x509(), &der);
  DFL_CHECK(length > 0);
  std::string bytes(reinterpret_cast<const char*>(der),
                    static_cast<size_t>(length));
  OPENSSL_free(der);
  return bytes;
}

absl::StatusOr<Certificate> CertificateFromDer(absl::string_view der,
                                               absl::string_view where) {
  const unsigned char* at = Bytes(der);
  X509* x509 = d2i_X509(nullptr, &at, static_cast<long>(der.size()));
  if (x509 == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        where, ": is no certificate in DER form: ", TakeOpenSslError()));
  }
  Certificate certificate(x509);
  ERR_clear_error();
  if (ToDer(certificate) != der) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, ": is a certificate with something behind it"));
  }
  return certificate;
}

bool IsSignedBy(const Certificate& certificate, const Certificate& issuer) {
  EVP_PKEY* key = X509_get0_pubkey(issuer.x509());
  const bool is = key != nullptr && X509_verify(certificate.x509(), key) == 1;
  ERR_clear_error();
  return is;
}

}  // namespace dfl::tls
