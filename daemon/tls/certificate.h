// X.509 certificates, and whether a bundle of authorities vouches for them.
//
// A bundle holds the certificates of one or several authorities (CAs), so that
// two of them are trusted while one replaces the other. A chain is a leaf
// certificate, followed by those of the authorities between it and the bundle.
//
// Nothing here reads a clock or a file. All is thread-compatible.
#ifndef DFL_TLS_CERTIFICATE_H_
#define DFL_TLS_CERTIFICATE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "daemon/tls/identity.h"

struct x509_st;

namespace dfl::tls {

// Keys below the strength of RSA 2048 or EC P-224 are refused.
inline constexpr int kMinSecurityBits = 112;

struct KeyType {
  std::string name;  // "EC P-256", "RSA 2048", "Ed25519"
  int security_bits = 0;
};

// A value: copies share the parsed certificate, which never changes.
class Certificate {
 public:
  // Takes ownership of `x509`, which must not be null.
  explicit Certificate(x509_st* x509);

  // The one URI among its alternative names.
  // Errors: INVALID_ARGUMENT when there is none or more than one.
  const absl::StatusOr<std::string>& uri() const { return parsed_->uri; }
  // What uri() says.
  // Errors: INVALID_ARGUMENT as uri(), or when the URI is no identity.
  const absl::StatusOr<Identity>& identity() const { return parsed_->identity; }
  absl::Time not_before() const { return parsed_->not_before; }
  absl::Time not_after() const { return parsed_->not_after; }
  // SHA-256 over the certificate's DER form, 64 lower-case hexadecimal digits.
  const std::string& fingerprint() const { return parsed_->fingerprint; }
  // "CN=gateway-07,O=plant-4", as RFC 2253 writes it: control characters are
  // escaped. Both are cut after 256 characters, for they may be a stranger's.
  const std::string& subject() const { return parsed_->subject; }
  const std::string& issuer() const { return parsed_->issuer; }
  // Hexadecimal digits.
  const std::string& serial() const { return parsed_->serial; }
  const KeyType& key() const { return parsed_->key; }
  // True when it may sign certificates.
  bool is_authority() const { return parsed_->is_authority; }

  std::string ToPem() const;
  x509_st* x509() const { return x509_.get(); }

 private:
  struct Parsed {
    absl::StatusOr<std::string> uri;
    absl::StatusOr<Identity> identity;
    absl::Time not_before;
    absl::Time not_after;
    std::string fingerprint;
    std::string subject;
    std::string issuer;
    std::string serial;
    KeyType key;
    bool is_authority = false;
  };
  static Parsed Parse(x509_st* x509);

  std::shared_ptr<x509_st> x509_;
  std::shared_ptr<const Parsed> parsed_;
};

// "2026-03-01 12:00:00 UTC": how messages of this room write a time.
std::string TimeText(absl::Time time);

// All certificates of a PEM text in their order, at least one. Text between
// them, and blocks of another kind, are skipped.
// Errors: INVALID_ARGUMENT "WHERE: ..." for an empty text, one without a
// certificate, a damaged certificate, or more than 64.
absl::StatusOr<std::vector<Certificate>> ParseCertificates(
    absl::string_view pem, absl::string_view where);

// As ParseCertificates, for a bundle: each certificate must be that of an
// authority, with a key that is strong enough.
absl::StatusOr<std::vector<Certificate>> ParseBundle(absl::string_view pem,
                                                     absl::string_view where);

enum class ChainFault {
  kNone,
  kUnknownAuthority,  // no certificate of the bundle vouches for it
  kNotYetValid,       // `now` is before the start of one
  kExpired,           // `now` is after the end of one
  kWeakKey,           // a key or a signature's hash is too weak
  kUnfit,             // the leaf is not made for both ends of a connection
};

// "unknown-authority", "expired", ...: for counters.
absl::string_view Name(ChainFault fault);

struct ChainVerdict {
  ChainFault fault = ChainFault::kNone;
  // Names the certificate and both values: "the certificate of CN=gateway-07
  // expired at ...; it is ...". Empty when there is no fault.
  std::string text;

  bool ok() const { return fault == ChainFault::kNone; }
};

// Whether `bundle` vouches for chain[0] at `now`, as server and as client. The
// bundle's own dates count too.
// `chain` must not be empty.
ChainVerdict VerifyChain(absl::Span<const Certificate> chain,
                         absl::Span<const Certificate> bundle, absl::Time now);

}  // namespace dfl::tls

#endif  // DFL_TLS_CERTIFICATE_H_
