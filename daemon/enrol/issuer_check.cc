#include "daemon/enrol/issuer_check.h"

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "daemon/tls/certificate.h"
#include "daemon/tls/identity.h"

namespace dfl::enrol {
namespace {

using tls::Certificate;

constexpr size_t kMaxPem = size_t{64} << 10;

absl::Status Refused(absl::string_view what) {
  return absl::FailedPreconditionError(
      absl::StrCat(what, ". The token's secret was not sent"));
}

}  // namespace

absl::Status CheckIssuer(const tls::PresentedChain& presented,
                         const JoinToken& token, absl::Time now) {
  if (presented.leaf.empty()) return Refused("it shows no certificate");
  if (presented.leaf.size() + presented.chain.size() > kMaxPem) {
    return Refused("it shows more certificates than an issuer has");
  }
  const absl::StatusOr<std::vector<Certificate>> leaf =
      tls::ParseCertificates(presented.leaf, "its certificate");
  if (!leaf.ok()) return Refused(leaf.status().message());
  absl::StatusOr<std::vector<Certificate>> chain = std::vector<Certificate>();
  if (!presented.chain.empty()) {
    chain = tls::ParseCertificates(presented.chain, "its certificates");
    if (!chain.ok()) return Refused(chain.status().message());
  }
  std::vector<Certificate> pinned;
  for (const Certificate& certificate : *chain) {
    if (certificate.fingerprint() == token.authority_sha256) {
      pinned = {certificate};
    }
  }
  if (pinned.empty()) {
    return Refused(absl::StrCat(
        "it shows no authority with the SHA-256 that the join token names, ",
        token.authority_sha256,
        ": it is not the issuer of this network, somebody sits between, or the "
        "authority was replaced since. Check --at, or make a new token with "
        "`dflctl token create --node ",
        token.node, "`"));
  }
  const tls::ChainVerdict verdict =
      tls::VerifyChain({leaf->front()}, pinned, now);
  if (verdict.fault == tls::ChainFault::kNotYetValid) {
    return absl::UnavailableError(
        absl::StrCat(verdict.text,
                     ". Set this machine's clock. The token's secret was not "
                     "sent"));
  }
  if (!verdict.ok()) {
    return Refused(absl::StrCat(
        verdict.text,
        "; the join token's authority does not vouch for what answers"));
  }
  const absl::StatusOr<tls::Identity>& identity = leaf->front().identity();
  if (!identity.ok() ||
      *identity !=
          tls::Identity{token.cluster, tls::Role::kIssuer, token.issuer}) {
    return Refused(absl::StrCat(
        "it is ",
        identity.ok() ? tls::ToUri(*identity)
                      : std::string(identity.status().message()),
        ", and the join token was made by issuer ", token.issuer, " of ",
        token.cluster,
        ", which alone redeems it. Check --at, or make a token there"));
  }
  return absl::OkStatus();
}

}  // namespace dfl::enrol
