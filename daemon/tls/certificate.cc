#include "daemon/tls/certificate.h"

#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/base/check.h"
#include "daemon/base/sha256.h"
#include "daemon/base/status_macros.h"
#include "daemon/tls/openssl_types.h"

namespace dfl::tls {
namespace {

constexpr size_t kMaxCertificates = 64;
constexpr size_t kMaxNameText = 256;
// Refuses SHA-1 and keys below kMinSecurityBits.
constexpr int kAuthLevel = 2;

std::string NameText(const X509_NAME* name) {
  const BioPtr bio = WriteBio();
  X509_NAME_print_ex(bio.get(), name, 0, XN_FLAG_RFC2253);
  std::string text = Written(bio.get());
  if (text.size() > kMaxNameText) {
    text.resize(kMaxNameText);
    text += "...";
  }
  return text;
}

std::string SerialText(const X509* x509) {
  const BignumPtr number(
      ASN1_INTEGER_to_BN(X509_get0_serialNumber(x509), nullptr));
  char* digits = number == nullptr ? nullptr : BN_bn2hex(number.get());
  std::string text =
      digits == nullptr ? "" : absl::AsciiStrToLower(std::string(digits));
  OPENSSL_free(digits);
  return text;
}

KeyType KeyTypeOf(const EVP_PKEY* key) {
  if (key == nullptr) return {"unknown", 0};
  KeyType type;
  type.security_bits = EVP_PKEY_get_security_bits(key);
  char group[64] = {};
  switch (EVP_PKEY_get_base_id(key)) {
    case EVP_PKEY_RSA:
      type.name = absl::StrCat("RSA ", EVP_PKEY_get_bits(key));
      break;
    case EVP_PKEY_EC: {
      size_t length = 0;
      EVP_PKEY_get_group_name(key, group, sizeof(group), &length);
      const char* nist = EC_curve_nid2nist(OBJ_sn2nid(group));
      type.name = absl::StrCat("EC ", nist != nullptr ? nist : group);
      break;
    }
    case EVP_PKEY_ED25519:
      type.name = "Ed25519";
      break;
    default:
      type.name = EVP_PKEY_get0_type_name(key);
  }
  return type;
}

absl::StatusOr<std::string> UriOf(const X509* x509) {
  int critical = 0;
  const NamesPtr names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(x509, NID_subject_alt_name, &critical, nullptr)));
  if (names == nullptr && critical != -1) {
    ERR_clear_error();
    return absl::InvalidArgumentError(
        "its alternative names are damaged or there twice");
  }
  std::vector<std::string> uris;
  const int count = names == nullptr ? 0 : sk_GENERAL_NAME_num(names.get());
  for (int i = 0; i < count; ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_URI) continue;
    const ASN1_IA5STRING* uri = name->d.uniformResourceIdentifier;
    uris.emplace_back(reinterpret_cast<const char*>(ASN1_STRING_get0_data(uri)),
                      static_cast<size_t>(ASN1_STRING_length(uri)));
  }
  if (uris.empty()) {
    return absl::InvalidArgumentError(
        "it names no identity: it has no URI among its alternative names; one "
        "such as spiffe://CLUSTER/node/NAME is needed");
  }
  if (uris.size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "it has ", uris.size(),
        " URIs among its alternative names, and one alone names an identity"));
  }
  return std::move(uris[0]);
}

std::string Fingerprint(X509* x509) {
  unsigned char* der = nullptr;
  const int length = i2d_X509(x509, &der);
  DFL_CHECK(length > 0);
  std::string digest = Sha256Hex(absl::string_view(
      reinterpret_cast<const char*>(der), static_cast<size_t>(length)));
  OPENSSL_free(der);
  return digest;
}

StorePtr StoreOf(absl::Span<const Certificate> bundle, absl::Time now) {
  StorePtr store(X509_STORE_new());
  DFL_CHECK(store != nullptr);
  for (const Certificate& authority : bundle) {
    DFL_CHECK(X509_STORE_add_cert(store.get(), authority.x509()) == 1);
  }
  X509_VERIFY_PARAM* parameters = X509_STORE_get0_param(store.get());
  X509_VERIFY_PARAM_set_time(parameters, absl::ToTimeT(now));
  X509_VERIFY_PARAM_set_auth_level(parameters, kAuthLevel);
  return store;
}

ChainFault FaultOf(int error) {
  switch (error) {
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return ChainFault::kNotYetValid;
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return ChainFault::kExpired;
    case X509_V_ERR_EE_KEY_TOO_SMALL:
    case X509_V_ERR_CA_KEY_TOO_SMALL:
    case X509_V_ERR_CA_MD_TOO_WEAK:
      return ChainFault::kWeakKey;
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
    case X509_V_ERR_CERT_UNTRUSTED:
      return ChainFault::kUnknownAuthority;
    default:
      return ChainFault::kUnfit;
  }
}

std::string FaultText(ChainFault fault, const Certificate& found, int error,
                      absl::Span<const Certificate> bundle, absl::Time now) {
  const std::string who = absl::StrCat("the certificate of ", found.subject());
  switch (fault) {
    case ChainFault::kNotYetValid:
      return absl::StrCat(who, " is valid from ", TimeText(found.not_before()),
                          " on, and the clock says ", TimeText(now));
    case ChainFault::kExpired:
      return absl::StrCat(who, " expired at ", TimeText(found.not_after()),
                          ", and the clock says ", TimeText(now));
    case ChainFault::kUnknownAuthority:
      return absl::StrCat(
          who, " was issued by ", found.issuer(),
          ", and the authorities trusted here are ",
          absl::StrJoin(
              bundle, "; ", [](std::string* out, const Certificate& authority) {
                absl::StrAppend(out, authority.subject(), " (SHA-256 ",
                                authority.fingerprint().substr(0, 16), "...)");
              }));
    case ChainFault::kWeakKey:
      return absl::StrCat(
          who, " is too weak (", found.key().name, ", ",
          X509_verify_cert_error_string(error),
          "); at least EC P-256, Ed25519 or RSA 2048 with SHA-256 is needed");
    case ChainFault::kNone:
    case ChainFault::kUnfit:
      break;
  }
  return absl::StrCat(
      who, " cannot be used: ", X509_verify_cert_error_string(error));
}

// What VerifyChain asks of a leaf beyond what OpenSSL checks for a client.
ChainVerdict CheckLeaf(const Certificate& leaf) {
  if (leaf.is_authority()) {
    return {ChainFault::kUnfit,
            absl::StrCat("the certificate of ", leaf.subject(),
                         " is that of an authority, which signs certificates "
                         "and speaks for nobody")};
  }
  if (X509_check_purpose(leaf.x509(), X509_PURPOSE_SSL_SERVER, 0) != 1) {
    return {ChainFault::kUnfit,
            absl::StrCat("the certificate of ", leaf.subject(),
                         " may not be used by a server; its extended key usage "
                         "must be serverAuth and clientAuth")};
  }
  return {};
}

}  // namespace

Certificate::Certificate(x509_st* x509)
    : x509_(x509, X509_free),
      parsed_(std::make_shared<const Parsed>(Parse(x509))) {}

Certificate::Parsed Certificate::Parse(x509_st* x509) {
  const absl::StatusOr<std::string> uri = UriOf(x509);
  return Parsed{uri,
                uri.ok() ? ParseIdentity(*uri) : uri.status(),
                ToTime(X509_get0_notBefore(x509)),
                ToTime(X509_get0_notAfter(x509)),
                Fingerprint(x509),
                NameText(X509_get_subject_name(x509)),
                NameText(X509_get_issuer_name(x509)),
                SerialText(x509),
                KeyTypeOf(X509_get0_pubkey(x509)),
                X509_check_ca(x509) == 1};
}

std::string Certificate::ToPem() const {
  const BioPtr bio = WriteBio();
  DFL_CHECK(PEM_write_bio_X509(bio.get(), x509_.get()) == 1);
  return Written(bio.get());
}

std::string TimeText(absl::Time time) {
  return absl::StrCat(
      absl::FormatTime("%Y-%m-%d %H:%M:%S", time, absl::UTCTimeZone()), " UTC");
}

absl::StatusOr<std::vector<Certificate>> ParseCertificates(
    absl::string_view pem, absl::string_view where) {
  if (absl::StripAsciiWhitespace(pem).empty()) {
    return absl::InvalidArgumentError(absl::StrCat(where, ": is empty"));
  }
  std::vector<Certificate> found;
  const BioPtr bio = ReadBio(pem);
  ERR_clear_error();
  while (X509* x509 =
             PEM_read_bio_X509(bio.get(), nullptr, NoPassPhrase, nullptr)) {
    found.emplace_back(x509);
    if (found.size() > kMaxCertificates) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, ": has more than ", kMaxCertificates,
                       " certificates; remove those that are not needed"));
    }
  }
  const bool at_the_end =
      ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  const std::string reason = TakeOpenSslError();
  if (!at_the_end) {
    return absl::InvalidArgumentError(absl::StrCat(
        where, ": certificate ", found.size() + 1, " is damaged: ", reason));
  }
  if (found.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        where,
        ": has no certificate in PEM form (-----BEGIN CERTIFICATE-----)"));
  }
  return found;
}

absl::StatusOr<std::vector<Certificate>> ParseBundle(absl::string_view pem,
                                                     absl::string_view where) {
  DFL_ASSIGN_OR_RETURN(std::vector<Certificate> bundle,
                       ParseCertificates(pem, where));
  for (const Certificate& authority : bundle) {
    if (!authority.is_authority()) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, ": the certificate of ", authority.subject(),
                       " is no authority's; this file takes those that signed "
                       "the network's certificates, such as ca.pem"));
    }
    if (authority.key().security_bits < kMinSecurityBits) {
      return absl::InvalidArgumentError(absl::StrCat(
          where, ": the key of ", authority.subject(), " is too weak (",
          authority.key().name, "); at least EC P-256 or RSA 2048 is needed"));
    }
  }
  return bundle;
}

absl::string_view Name(ChainFault fault) {
  switch (fault) {
    case ChainFault::kNone:
      return "none";
    case ChainFault::kUnknownAuthority:
      return "unknown-authority";
    case ChainFault::kNotYetValid:
      return "not-yet-valid";
    case ChainFault::kExpired:
      return "expired";
    case ChainFault::kWeakKey:
      return "weak-key";
    case ChainFault::kUnfit:
      return "unfit";
  }
  return "none";
}

ChainVerdict VerifyChain(absl::Span<const Certificate> chain,
                         absl::Span<const Certificate> bundle, absl::Time now) {
  DFL_CHECK(!chain.empty());
  const ChainVerdict leaf = CheckLeaf(chain[0]);
  if (!leaf.ok()) return leaf;
  const StorePtr store = StoreOf(bundle, now);
  // The stack borrows the certificates.
  STACK_OF(X509)* between = sk_X509_new_null();
  for (const Certificate& certificate : chain.subspan(1)) {
    sk_X509_push(between, certificate.x509());
  }
  const StoreContextPtr context(X509_STORE_CTX_new());
  DFL_CHECK(context != nullptr &&
            X509_STORE_CTX_init(context.get(), store.get(), chain[0].x509(),
                                between) == 1);
  X509_STORE_CTX_set_purpose(context.get(), X509_PURPOSE_SSL_CLIENT);
  ChainVerdict verdict;
  if (X509_verify_cert(context.get()) != 1) {
    const int error = X509_STORE_CTX_get_error(context.get());
    X509* current = X509_STORE_CTX_get_current_cert(context.get());
    Certificate found = chain[0];
    if (current != nullptr && X509_up_ref(current) == 1) {
      found = Certificate(current);
    }
    verdict.fault = FaultOf(error);
    verdict.text = FaultText(verdict.fault, found, error, bundle, now);
  }
  sk_X509_free(between);
  ERR_clear_error();
  return verdict;
}

}  // namespace dfl::tls
