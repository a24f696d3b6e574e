#include "daemon/exchange/peer_gate.h"

#include <cstddef>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "daemon/base/status_macros.h"
#include "daemon/exchange/address.h"

namespace dfl::exchange {

const std::vector<tls::Role>& PeerRoles() {
  static const auto* const kRoles =
      new std::vector<tls::Role>{tls::Role::kNode};
  return *kRoles;
}

void DialRefusal::Set(const tls::PeerVerdict& verdict) {
  absl::MutexLock lock(&mutex_);
  text_ = verdict.text;
}

std::string DialRefusal::text() const {
  absl::MutexLock lock(&mutex_);
  return text_;
}

pb::Hello PeerGate::MakeHello(const ports::PeerIdentity& self,
                              uint64_t nonce) const {
  pb::Hello hello = exchange::MakeHello(self, nonce);
  if (!secured()) {
    hello.set_cluster(cluster_);
    return hello;
  }
  const std::shared_ptr<const tls::Credentials> own = security_->credentials();
  if (own != nullptr) hello.set_cluster(own->identity.cluster);
  return hello;
}

absl::StatusOr<std::shared_ptr<grpc::Channel>> PeerGate::Connect(
    const std::string& address, const grpc::ChannelArguments& arguments,
    std::shared_ptr<DialRefusal> refusal) const {
  DFL_ASSIGN_OR_RETURN(const HostPort parsed, ParseAddress(address));
  std::shared_ptr<grpc::ChannelCredentials> credentials =
      grpc::InsecureChannelCredentials();
  if (secured()) {
    DFL_ASSIGN_OR_RETURN(credentials,
                         security_->ChannelCredentials(
                             PeerRoles(), [refusal = std::move(refusal)](
                                              const tls::PeerVerdict& verdict) {
                               refusal->Set(verdict);
                             }));
  }
  // In a URI the zone of a link-local address begins with an escaped '%'.
  const std::string target = absl::StrCat(
      "dns:///", absl::StrReplaceAll(parsed.ToString(), {{"%", "%25"}}));
  return grpc::CreateCustomChannel(target, credentials, arguments);
}

absl::StatusOr<ports::PeerIdentity> PeerGate::Admit(const Greeting& greeting,
                                                    absl::Time now) const {
  const pb::Hello& hello = greeting.hello;
  DFL_ASSIGN_OR_RETURN(ports::PeerIdentity peer, CheckHello(hello));
  if (!secured()) {
    DFL_RETURN_IF_ERROR(CheckCluster(hello.cluster()));
    return peer;
  }
  tls::PeerVerdict verdict = Recheck(greeting.certificates, now);
  if (verdict.ok()) {
    verdict = tls::CheckClaim(verdict.identity, hello.cluster(), peer.node);
    if (!verdict.ok()) security_->CountRefusal(Name(verdict.fault));
  }
  if (!verdict.ok()) return absl::PermissionDeniedError(verdict.text);
  return peer;
}

absl::Status PeerGate::CheckCluster(const std::string& said) const {
  if (said == cluster_) return absl::OkStatus();
  constexpr size_t kMostShown = 255;
  const auto shown = [](const std::string& cluster) {
    return cluster.empty()
               ? std::string("no cluster")
               : absl::StrCat("cluster \"",
                              absl::CHexEscape(cluster.substr(0, kMostShown)),
                              "\"");
  };
  return absl::PermissionDeniedError(absl::StrCat(
      "the peer belongs to ", shown(said), ", this node to ", shown(cluster_),
      "; nodes of one network have the same `cluster`, or none"));
}

tls::PeerVerdict PeerGate::Recheck(const PeerCertificates& certificates,
                                   absl::Time now) const {
  if (!secured()) return {};
  return security_->Check({certificates.leaf, certificates.chain}, PeerRoles(),
                          now);
}

int64_t PeerGate::generation() const {
  return secured() ? security_->generation() : 0;
}

std::string PeerGate::shown() const {
  if (!secured()) return "";
  const std::shared_ptr<const tls::Credentials> own = security_->credentials();
  return own == nullptr ? "" : own->chain.front().fingerprint();
}

}  // namespace dfl::exchange
