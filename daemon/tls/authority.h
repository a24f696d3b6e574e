// The authority (CA) of a cluster: it makes certificates.
//
// An authority signs leaf certificates only, for its own cluster only. The
// certificate of an authority names the cluster as spiffe://CLUSTER; a leaf has
//   URI name        spiffe://CLUSTER/ROLE/NAME, the one identity;
//   DNS name        NAME, for nodes: clients that know DNS names alone can then
//                   be told to expect it;
//   key usage       digitalSignature, for serverAuth and clientAuth;
//   serial          128 random bits;
//   start           five minutes before `now`, for clocks that are a bit late;
//   end             at the latest that of the authority.
#ifndef DFL_TLS_AUTHORITY_H_
#define DFL_TLS_AUTHORITY_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "daemon/tls/certificate.h"
#include "daemon/tls/identity.h"
#include "daemon/tls/key_file.h"

namespace dfl::tls {

// From `now` - kBackdated to `now` + `lifetime`, which is at least a second.
struct Validity {
  absl::Time now;
  absl::Duration lifetime;
};
inline constexpr absl::Duration kBackdated = absl::Minutes(5);

class Authority {
 public:
  // A new one with a new key on P-256.
  // Errors: INVALID_ARGUMENT for a bad name of a cluster or a bad lifetime.
  static absl::StatusOr<Authority> Make(const std::string& cluster,
                                        const Validity& validity);
  // One that was stored.
  // Errors: FAILED_PRECONDITION when `certificate` names no cluster, is no
  // authority's, or when `key` is not its key.
  static absl::StatusOr<Authority> FromParts(const Certificate& certificate,
                                             const PrivateKey& key);

  const std::string& cluster() const { return cluster_; }
  const Certificate& certificate() const { return certificate_; }
  const PrivateKey& key() const { return key_; }

  // A certificate of `identity` for `key`.
  // Errors, of all three:
  //   INVALID_ARGUMENT     the identity is not valid or of another cluster, or
  //                        the lifetime is below a second.
  //   FAILED_PRECONDITION  the authority is not valid at `validity.now`, or the
  //                        key is too weak.
  absl::StatusOr<Certificate> Issue(const PrivateKey& key,
                                    const Identity& identity,
                                    const Validity& validity) const;
  // The same for the key of a signing request in PEM form, whose signature
  // proves that its sender has the key. Nothing else in the request counts: who
  // it is for is the signer's decision.
  // Errors: also INVALID_ARGUMENT when `request` is no request or its signature
  // is wrong.
  absl::StatusOr<Certificate> Sign(absl::string_view request,
                                   const Identity& identity,
                                   const Validity& validity) const;
  // A certificate of the same identity and key as `certificate`, which may have
  // expired, so that one file is all that must be replaced. `former` are
  // authorities that this one replaces.
  // Errors: also FAILED_PRECONDITION when `certificate` names no identity or
  // was signed neither by this authority nor by one of `former`.
  absl::StatusOr<Certificate> Renew(
      const Certificate& certificate, const Validity& validity,
      absl::Span<const Certificate> former = {}) const;

 private:
  Authority(std::string cluster, Certificate certificate, PrivateKey key);
  absl::StatusOr<Certificate> IssueFor(evp_pkey_st* key,
                                       const Identity& identity,
                                       const Validity& validity) const;

  std::string cluster_;
  Certificate certificate_;
  PrivateKey key_;
};

// Whether `authority` signed `certificate`, whatever their dates.
bool Signed(const Certificate& authority, const Certificate& certificate);

// A signing request in PEM form for `key`, with `name` as its subject.
// Errors: INVALID_ARGUMENT when `name` is no valid name.
absl::StatusOr<std::string> MakeRequest(const PrivateKey& key,
                                        const std::string& name);

}  // namespace dfl::tls

#endif  // DFL_TLS_AUTHORITY_H_
