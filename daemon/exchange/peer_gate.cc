#include "daemon/exchange/peer_gate.h"

#include <utility>

#include "absl/strings/str_cat.h"
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
  if (!secured()) return hello;
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
  return grpc::CreateCustomChannel(absl::StrCat("dns:///", parsed.ToString()),
                                   credentials, arguments);
}

absl::StatusOr<ports::PeerIdentity> PeerGate::Admit(const Greeting& greeting,
                                                    absl::Time now) const {
  const pb::Hello& hello = greeting.hello;
  DFL_ASSIGN_OR_RETURN(ports::PeerIdentity peer, CheckHello(hello));
  if (!secured()) return peer;
  tls::PeerVerdict verdict = Recheck(greeting.certificates, now);
  if (verdict.ok()) {
    verdict = tls::CheckClaim(verdict.identity, hello.cluster(), peer.node);
    if (!verdict.ok()) security_->CountRefusal(Name(verdict.fault));
  }
  if (!verdict.ok()) return absl::PermissionDeniedError(verdict.text);
  return peer;
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
