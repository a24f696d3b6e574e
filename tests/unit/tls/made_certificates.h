// Certificates for tests, made when a test asks: good ones by an Authority, and
// odd ones that no Authority would sign.
#ifndef DFL_TESTS_UNIT_TLS_MADE_CERTIFICATES_H_
#define DFL_TESTS_UNIT_TLS_MADE_CERTIFICATES_H_

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <string>
#include <utility>

#include "absl/time/time.h"
#include "daemon/tls/authority.h"
#include "daemon/tls/certificate.h"
#include "daemon/tls/credentials.h"
#include "daemon/tls/identity.h"
#include "daemon/tls/key_file.h"
#include "daemon/tls/openssl_types.h"

namespace dfl::tls {

inline constexpr uint32_t kMe = 1000;

// Every test's present.
inline absl::Time Now() { return absl::FromUnixSeconds(1'800'000'000); }

inline Authority MakeAuthority(const std::string& cluster = "plant-4",
                               absl::Time now = Now(),
                               absl::Duration lifetime = absl::Hours(87600)) {
  absl::StatusOr<Authority> authority =
      Authority::Make(cluster, {now, lifetime});
  EXPECT_TRUE(authority.ok()) << authority.status();
  return *std::move(authority);
}

inline Identity NodeIdentity(const std::string& name = "box-1",
                             const std::string& cluster = "plant-4") {
  return {cluster, Role::kNode, name};
}

inline Certificate IssueTo(const Authority& authority, const PrivateKey& key,
                           const Identity& identity = NodeIdentity(),
                           absl::Time now = Now(),
                           absl::Duration lifetime = absl::Hours(24)) {
  const absl::StatusOr<Certificate> issued =
      authority.Issue(key, identity, {now, lifetime});
  EXPECT_TRUE(issued.ok()) << issued.status();
  return *issued;
}

// What an odd certificate says; the default is that of a good one.
struct Odd {
  std::string names = "URI:spiffe://plant-4/node/box-1";  // "": none
  std::string common_name = "odd";
  std::string usage = "serverAuth,clientAuth";  // "": none
  std::string constraints = "critical,CA:FALSE";
  const EVP_MD* digest = EVP_sha256();
  int days = 1;
};

inline Certificate MakeOdd(const Authority& authority, const PrivateKey& key,
                           const Odd& odd) {
  X509* x509 = X509_new();
  X509_set_version(x509, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(x509), 7);
  ASN1_TIME_set(X509_getm_notBefore(x509), absl::ToTimeT(Now()));
  ASN1_TIME_set(X509_getm_notAfter(x509),
                absl::ToTimeT(Now() + absl::Hours(24 * odd.days)));
  X509_set_pubkey(x509, key.key());
  X509* issuer = authority.certificate().x509();
  X509_set_issuer_name(x509, X509_get_subject_name(issuer));
  X509_NAME_add_entry_by_txt(
      X509_get_subject_name(x509), "CN", MBSTRING_ASC,
      reinterpret_cast<const unsigned char*>(odd.common_name.c_str()), -1, -1,
      0);
  const std::pair<int, std::string> extensions[] = {
      {NID_basic_constraints, odd.constraints},
      {NID_ext_key_usage, odd.usage},
      {NID_subject_alt_name, odd.names}};
  for (const auto& [kind, value] : extensions) {
    if (value.empty()) continue;
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer, x509, nullptr, nullptr, 0);
    const ExtensionPtr extension(
        X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
    EXPECT_NE(extension, nullptr) << value;
    X509_add_ext(x509, extension.get(), -1);
  }
  EXPECT_NE(X509_sign(x509, authority.key().key(), odd.digest), 0);
  return Certificate(x509);
}

inline PrivateKey RsaKey(unsigned bits) {
  const EvpKeyPtr key(EVP_RSA_gen(bits));
  const BioPtr bio = WriteBio();
  PEM_write_bio_PKCS8PrivateKey(bio.get(), key.get(), nullptr, nullptr, 0,
                                nullptr, nullptr);
  return *PrivateKey::FromPem(Written(bio.get()), "test");
}

inline std::string Encrypted(const PrivateKey& key) {
  const BioPtr bio = WriteBio();
  EXPECT_EQ(
      PEM_write_bio_PKCS8PrivateKey(bio.get(), key.key(), EVP_aes_256_cbc(),
                                    "secret", 6, nullptr, nullptr),
      1);
  return Written(bio.get());
}

inline PemFile FileOf(const std::string& path, const std::string& content,
                      uint32_t mode = 0644) {
  return {path, 0, content, mode, kMe};
}

inline CredentialFiles FilesOf(const Certificate& authority,
                               const Certificate& leaf, const PrivateKey& key) {
  return {FileOf("/tls/ca.pem", authority.ToPem()),
          FileOf("/tls/cert.pem", leaf.ToPem()),
          FileOf("/tls/key.pem", key.ToPem(), 0600)};
}

}  // namespace dfl::tls

#endif  // DFL_TESTS_UNIT_TLS_MADE_CERTIFICATES_H_
