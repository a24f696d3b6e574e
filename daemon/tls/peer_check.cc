#include "daemon/tls/peer_check.h"

#include <algorithm>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace dfl::tls {
namespace {

// A peer sends this before anybody knows it.
constexpr size_t kMaxPresentedBytes = 64 << 10;
constexpr size_t kMaxPresented = 8;

PeerFault FaultOf(ChainFault fault) {
  switch (fault) {
    case ChainFault::kNone:
      return PeerFault::kNone;
    case ChainFault::kUnknownAuthority:
      return PeerFault::kUnknownAuthority;
    case ChainFault::kNotYetValid:
      return PeerFault::kNotYetValid;
    case ChainFault::kExpired:
      return PeerFault::kExpired;
    case ChainFault::kWeakKey:
      return PeerFault::kWeakKey;
    case ChainFault::kUnfit:
      return PeerFault::kUnfit;
  }
  return PeerFault::kUnfit;
}

PeerVerdict Refused(PeerFault fault, std::string text) {
  return {fault, std::move(text), {}};
}

absl::StatusOr<std::vector<Certificate>> Parse(
    const PresentedChain& presented) {
  const size_t bytes = presented.leaf.size() + presented.chain.size();
  if (bytes > kMaxPresentedBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the peer's certificates have ", bytes, " bytes; at most ",
                     kMaxPresentedBytes, " are read"));
  }
  absl::StatusOr<std::vector<Certificate>> chain =
      ParseCertificates(presented.leaf, "the peer's certificate");
  if (!chain.ok() || presented.chain.empty()) return chain;
  chain->erase(chain->begin() + 1, chain->end());
  absl::StatusOr<std::vector<Certificate>> rest =
      ParseCertificates(presented.chain, "the peer's chain");
  if (!rest.ok()) return rest;
  for (Certificate& certificate : *rest) {
    if (certificate.fingerprint() == chain->front().fingerprint()) continue;
    chain->push_back(std::move(certificate));
  }
  if (chain->size() > kMaxPresented) {
    return absl::InvalidArgumentError(
        absl::StrCat("the peer presents ", chain->size(),
                     " certificates; at most ", kMaxPresented, " are read"));
  }
  return chain;
}

PeerVerdict CheckPolicy(const Identity& identity, const PeerPolicy& policy) {
  PeerVerdict verdict;
  verdict.identity = identity;
  if (identity.cluster != policy.cluster) {
    verdict.fault = PeerFault::kWrongCluster;
    verdict.text = absl::StrCat(ToUri(identity), " belongs to cluster \"",
                                identity.cluster, "\", and this is \"",
                                policy.cluster, "\"");
  } else if (std::find(policy.roles.begin(), policy.roles.end(),
                       identity.role) == policy.roles.end()) {
    verdict.fault = PeerFault::kWrongRole;
    verdict.text = absl::StrCat(
        ToUri(identity), " has the role ", Name(identity.role),
        "; admitted here: ",
        absl::StrJoin(policy.roles, ", ", [](std::string* out, Role role) {
          absl::StrAppend(out, Name(role));
        }));
  } else if (policy.banned(identity)) {
    verdict.fault = PeerFault::kBanned;
    verdict.text = absl::StrCat(ToUri(identity),
                                " is banned; `dflctl peer "
                                "unban ",
                                identity.name, "` admits it again");
  }
  return verdict;
}

}  // namespace

absl::string_view Name(PeerFault fault) {
  switch (fault) {
    case PeerFault::kNone:
      return "none";
    case PeerFault::kNoCertificate:
      return "no-certificate";
    case PeerFault::kMalformed:
      return "malformed";
    case PeerFault::kUnknownAuthority:
      return Name(ChainFault::kUnknownAuthority);
    case PeerFault::kNotYetValid:
      return Name(ChainFault::kNotYetValid);
    case PeerFault::kExpired:
      return Name(ChainFault::kExpired);
    case PeerFault::kWeakKey:
      return Name(ChainFault::kWeakKey);
    case PeerFault::kUnfit:
      return Name(ChainFault::kUnfit);
    case PeerFault::kNoIdentity:
      return "no-identity";
    case PeerFault::kWrongCluster:
      return "wrong-cluster";
    case PeerFault::kWrongRole:
      return "wrong-role";
    case PeerFault::kBanned:
      return "banned";
    case PeerFault::kClaimsOtherCluster:
      return "claims-other-cluster";
    case PeerFault::kClaimsOtherName:
      return "claims-other-name";
  }
  return "none";
}

PeerVerdict CheckPeer(const PresentedChain& presented, const PeerPolicy& policy,
                      absl::Time now) {
  if (presented.leaf.empty()) {
    return Refused(PeerFault::kNoCertificate,
                   "the peer presents no certificate");
  }
  const absl::StatusOr<std::vector<Certificate>> chain = Parse(presented);
  if (!chain.ok()) {
    return Refused(PeerFault::kMalformed,
                   std::string(chain.status().message()));
  }
  const ChainVerdict verified = VerifyChain(*chain, policy.bundle, now);
  if (!verified.ok()) return Refused(FaultOf(verified.fault), verified.text);
  const Certificate& leaf = chain->front();
  if (!leaf.identity().ok()) {
    return Refused(PeerFault::kNoIdentity,
                   absl::StrCat("the certificate of ", leaf.subject(), ": ",
                                leaf.identity().status().message()));
  }
  return CheckPolicy(*leaf.identity(), policy);
}

PeerVerdict CheckClaim(const Identity& identity, absl::string_view cluster,
                       const NodeId& node) {
  PeerVerdict verdict;
  verdict.identity = identity;
  if (cluster != identity.cluster) {
    verdict.fault = PeerFault::kClaimsOtherCluster;
    verdict.text = absl::StrCat(
        "the peer says it belongs to cluster \"", absl::CHexEscape(cluster),
        "\", and its certificate is for ", ToUri(identity));
  } else if (identity.role != Role::kNode || node.name() != identity.name) {
    verdict.fault = PeerFault::kClaimsOtherName;
    verdict.text = absl::StrCat(
        "the peer says it is node \"", absl::CHexEscape(node.name()),
        "\", and its certificate is for ", ToUri(identity));
  }
  return verdict;
}

}  // namespace dfl::tls
