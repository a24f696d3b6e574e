#include "daemon/tls/authority.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "daemon/base/check.h"
#include "daemon/base/ids.h"
#include "daemon/base/sha256.h"
#include "daemon/base/status_macros.h"
#include "daemon/tls/openssl_types.h"

namespace dfl::tls {
namespace {

constexpr int kSerialBits = 128;
constexpr long kVersion3 = 2;
// Of a part of a subject's name, by X.509.
constexpr size_t kMaxNamePart = 64;

absl::Status CheckLifetime(const Validity& validity) {
  if (validity.lifetime >= absl::Seconds(1)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a certificate must be valid for at least a second; found ",
                   absl::FormatDuration(validity.lifetime)));
}

bool SetSerial(X509* x509) {
  const BignumPtr number(BN_new());
  return number != nullptr &&
         BN_rand(number.get(), kSerialBits, BN_RAND_TOP_ANY,
                 BN_RAND_BOTTOM_ANY) == 1 &&
         BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(x509)) !=
             nullptr;
}

bool SetSubject(X509_NAME* name, absl::string_view common,
                absl::string_view organization) {
  const auto add = [&](const char* field, absl::string_view value) {
    value = value.substr(0, kMaxNamePart);
    return X509_NAME_add_entry_by_txt(
               name, field, MBSTRING_UTF8,
               reinterpret_cast<const unsigned char*>(value.data()),
               static_cast<int>(value.size()), -1, 0) == 1;
  };
  return add("O", organization) && add("CN", common);
}

bool AddExtension(X509* x509, X509* issuer, int kind,
                  const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, x509, nullptr, nullptr, 0);
  const ExtensionPtr extension(
      X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
  return extension != nullptr && X509_add_ext(x509, extension.get(), -1) == 1;
}

// What a leaf and an authority have in common: version, serial, dates, key.
X509Ptr Begin(EVP_PKEY* key, absl::Time start, absl::Time end) {
  X509Ptr x509(X509_new());
  const bool done =
      x509 != nullptr && X509_set_version(x509.get(), kVersion3) == 1 &&
      SetSerial(x509.get()) &&
      ASN1_TIME_set(X509_getm_notBefore(x509.get()), absl::ToTimeT(start)) !=
          nullptr &&
      ASN1_TIME_set(X509_getm_notAfter(x509.get()), absl::ToTimeT(end)) !=
          nullptr &&
      X509_set_pubkey(x509.get(), key) == 1;
  return done ? std::move(x509) : nullptr;
}

std::string LeafNames(const Identity& identity) {
  std::string names = absl::StrCat("URI:", ToUri(identity));
  if (identity.role == Role::kNode) {
    absl::StrAppend(&names, ",DNS:", identity.name);
  }
  return names;
}

std::string PublicKeyHash(const PrivateKey& key) {
  unsigned char* der = nullptr;
  const int length = i2d_PUBKEY(key.key(), &der);
  DFL_CHECK(length > 0);
  std::string digest = Sha256Hex(absl::string_view(
      reinterpret_cast<const char*>(der), static_cast<size_t>(length)));
  OPENSSL_free(der);
  return digest;
}

// The cluster in "spiffe://CLUSTER".
absl::StatusOr<std::string> ClusterOf(const Certificate& certificate) {
  DFL_ASSIGN_OR_RETURN(const std::string uri, certificate.uri());
  absl::string_view cluster = uri;
  if (!absl::ConsumePrefix(&cluster, "spiffe://")) {
    return absl::InvalidArgumentError("its URI does not begin with spiffe://");
  }
  DFL_RETURN_IF_ERROR(ValidateClusterName(cluster));
  return std::string(cluster);
}

}  // namespace

Authority::Authority(std::string cluster, Certificate certificate,
                     PrivateKey key)
    : cluster_(std::move(cluster)),
      certificate_(std::move(certificate)),
      key_(std::move(key)) {}

absl::StatusOr<Authority> Authority::Make(const std::string& cluster,
                                          const Validity& validity) {
  DFL_RETURN_IF_ERROR(ValidateClusterName(cluster));
  DFL_RETURN_IF_ERROR(CheckLifetime(validity));
  PrivateKey key = PrivateKey::Generate();
  X509Ptr x509 = Begin(key.key(), validity.now - kBackdated,
                       validity.now + validity.lifetime);
  // Two authorities of a cluster have different names, so that people can tell
  // them apart while one replaces the other.
  const std::string mark = PublicKeyHash(key).substr(0, 8);
  X509* raw = x509.get();
  if (raw == nullptr ||
      !SetSubject(X509_get_subject_name(raw), absl::StrCat("CA ", mark),
                  cluster) ||
      X509_set_issuer_name(raw, X509_get_subject_name(raw)) != 1 ||
      !AddExtension(raw, raw, NID_basic_constraints,
                    "critical,CA:TRUE,pathlen:0") ||
      !AddExtension(raw, raw, NID_key_usage, "critical,keyCertSign,cRLSign") ||
      !AddExtension(raw, raw, NID_subject_key_identifier, "hash") ||
      !AddExtension(raw, raw, NID_authority_key_identifier, "keyid:always") ||
      !AddExtension(raw, raw, NID_subject_alt_name,
                    absl::StrCat("URI:spiffe://", cluster)) ||
      X509_sign(raw, key.key(), EVP_sha256()) == 0) {
    return OpenSslError("make an authority");
  }
  return Authority(cluster, Certificate(x509.release()), std::move(key));
}

absl::StatusOr<Authority> Authority::FromParts(const Certificate& certificate,
                                               const PrivateKey& key) {
  const absl::StatusOr<std::string> cluster = ClusterOf(certificate);
  if (!cluster.ok() || !certificate.is_authority()) {
    return absl::FailedPreconditionError(
        absl::StrCat(certificate.subject(),
                     " is no authority that `dflctl cert init` made: ",
                     cluster.ok() ? "it may not sign certificates"
                                  : cluster.status().message()));
  }
  if (!key.Matches(certificate)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the key is not that of the authority ", certificate.subject(),
        " (SHA-256 ", certificate.fingerprint(), ")"));
  }
  return Authority(*cluster, certificate, key);
}

absl::StatusOr<Certificate> Authority::IssueFor(
    evp_pkey_st* key, const Identity& identity,
    const Validity& validity) const {
  DFL_RETURN_IF_ERROR(Validate(identity));
  DFL_RETURN_IF_ERROR(CheckLifetime(validity));
  if (identity.cluster != cluster_) {
    return absl::InvalidArgumentError(
        absl::StrCat(ToUri(identity), " is of cluster \"", identity.cluster,
                     "\", and this is the authority of \"", cluster_, "\""));
  }
  if (validity.now < certificate_.not_before() ||
      validity.now >= certificate_.not_after()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the authority ", certificate_.subject(),
                     " is valid from ", TimeText(certificate_.not_before()),
                     " to ", TimeText(certificate_.not_after()),
                     ", and the clock says ", TimeText(validity.now)));
  }
  if (EVP_PKEY_get_security_bits(key) < kMinSecurityBits) {
    return absl::FailedPreconditionError(
        absl::StrCat("the key of ", identity.name,
                     " is too weak; at least EC P-256 or RSA 2048 is needed"));
  }
  X509* issuer = certificate_.x509();
  X509Ptr x509 = Begin(
      key, validity.now - kBackdated,
      std::min(validity.now + validity.lifetime, certificate_.not_after()));
  X509* raw = x509.get();
  if (raw == nullptr ||
      !SetSubject(X509_get_subject_name(raw), identity.name, cluster_) ||
      X509_set_issuer_name(raw, X509_get_subject_name(issuer)) != 1 ||
      !AddExtension(raw, issuer, NID_basic_constraints, "critical,CA:FALSE") ||
      !AddExtension(raw, issuer, NID_key_usage, "critical,digitalSignature") ||
      !AddExtension(raw, issuer, NID_ext_key_usage, "serverAuth,clientAuth") ||
      !AddExtension(raw, issuer, NID_subject_key_identifier, "hash") ||
      !AddExtension(raw, issuer, NID_authority_key_identifier,
                    "keyid:always") ||
      !AddExtension(raw, issuer, NID_subject_alt_name, LeafNames(identity)) ||
      X509_sign(raw, key_.key(), EVP_sha256()) == 0) {
    return OpenSslError("make a certificate");
  }
  return Certificate(x509.release());
}

absl::StatusOr<Certificate> Authority::Issue(const PrivateKey& key,
                                             const Identity& identity,
                                             const Validity& validity) const {
  return IssueFor(key.key(), identity, validity);
}

absl::StatusOr<Certificate> Authority::Sign(absl::string_view request,
                                            const Identity& identity,
                                            const Validity& validity) const {
  const BioPtr bio = ReadBio(request);
  const RequestPtr parsed(
      PEM_read_bio_X509_REQ(bio.get(), nullptr, NoPassPhrase, nullptr));
  EVP_PKEY* key =
      parsed == nullptr ? nullptr : X509_REQ_get0_pubkey(parsed.get());
  if (key == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "this is no signing request in PEM form (-----BEGIN CERTIFICATE "
        "REQUEST-----): ",
        TakeOpenSslError()));
  }
  if (X509_REQ_verify(parsed.get(), key) != 1) {
    ERR_clear_error();
    return absl::InvalidArgumentError(
        "the signing request's signature is wrong: its sender does not show "
        "that it has the key");
  }
  return IssueFor(key, identity, validity);
}

absl::StatusOr<Certificate> Authority::Renew(
    const Certificate& certificate, const Validity& validity,
    absl::Span<const Certificate> former) const {
  if (!certificate.identity().ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the certificate of ", certificate.subject(), ": ",
                     certificate.identity().status().message()));
  }
  const bool ours =
      Signed(certificate_, certificate) ||
      std::any_of(former.begin(), former.end(), [&](const Certificate& other) {
        return Signed(other, certificate);
      });
  if (!ours) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the certificate of ", certificate.subject(), " was signed by ",
        certificate.issuer(), ", and this is ", certificate_.subject()));
  }
  return IssueFor(X509_get0_pubkey(certificate.x509()), *certificate.identity(),
                  validity);
}

bool Signed(const Certificate& authority, const Certificate& certificate) {
  EVP_PKEY* key = X509_get0_pubkey(authority.x509());
  const bool signed_by =
      key != nullptr && X509_verify(certificate.x509(), key) == 1;
  ERR_clear_error();
  return signed_by;
}

absl::StatusOr<std::string> MakeRequest(const PrivateKey& key,
                                        const std::string& name) {
  DFL_RETURN_IF_ERROR(ValidateNodeName(name));
  const RequestPtr request(X509_REQ_new());
  const BioPtr bio = WriteBio();
  if (request == nullptr ||
      X509_REQ_set_pubkey(request.get(), key.key()) != 1 ||
      X509_NAME_add_entry_by_txt(
          X509_REQ_get_subject_name(request.get()), "CN", MBSTRING_UTF8,
          reinterpret_cast<const unsigned char*>(name.data()),
          static_cast<int>(name.size()), -1, 0) != 1 ||
      X509_REQ_sign(request.get(), key.key(), EVP_sha256()) == 0 ||
      PEM_write_bio_X509_REQ(bio.get(), request.get()) != 1) {
    return OpenSslError("make a signing request");
  }
  return Written(bio.get());
}

}  // namespace dfl::tls
