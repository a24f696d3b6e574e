#include "client/tls_channel.h"

#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <functional>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "daemon/base/status_macros.h"
#include "daemon/tls/certificate.h"
#include "daemon/tls/identity.h"
#include "daemon/tls/key_file.h"
#include "daemon/tls/peer_check.h"

namespace dfl {
namespace client {
namespace {

namespace gx = grpc::experimental;

class Verifier final : public gx::ExternalCertificateVerifier {
 public:
  Verifier(std::vector<tls::Certificate> bundle, std::string cluster,
           std::shared_ptr<Refusal> refusal)
      : bundle_(std::move(bundle)),
        cluster_(std::move(cluster)),
        refusal_(std::move(refusal)) {}

  bool Verify(gx::TlsCustomVerificationCheckRequest* request,
              std::function<void(grpc::Status)> /*callback*/,
              grpc::Status* sync_status) override {
    const grpc::string_ref leaf = request->peer_cert();
    const grpc::string_ref chain = request->peer_cert_full_chain();
    const tls::Role nodes[] = {tls::Role::kNode};
    const tls::PeerVerdict verdict = tls::CheckPeer(
        {{leaf.data(), leaf.size()}, {chain.data(), chain.size()}},
        {bundle_, cluster_, nodes, [](const tls::Identity&) { return false; }},
        absl::Now());
    if (!verdict.ok()) {
      *sync_status =
          grpc::Status(grpc::StatusCode::UNAUTHENTICATED, verdict.text);
    }
    refusal_->Set(verdict.text);
    return true;
  }
  void Cancel(gx::TlsCustomVerificationCheckRequest*) override {}

 private:
  const std::vector<tls::Certificate> bundle_;
  const std::string cluster_;
  const std::shared_ptr<Refusal> refusal_;
};

}  // namespace

absl::StatusOr<TlsIdentity> MakeTlsIdentity(const ClientIdentity& identity,
                                            std::shared_ptr<Refusal> refusal) {
  DFL_ASSIGN_OR_RETURN(
      std::vector<tls::Certificate> bundle,
      tls::ParseBundle(identity.bundle, "the identity's bundle"));
  DFL_ASSIGN_OR_RETURN(
      const std::vector<tls::Certificate> chain,
      tls::ParseCertificates(identity.chain, "the identity's certificate"));
  DFL_RETURN_IF_ERROR(
      tls::PrivateKey::FromPem(identity.key, "the identity's key").status());
  DFL_ASSIGN_OR_RETURN(const tls::Identity own, chain[0].identity());
  gx::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(
      std::make_shared<gx::StaticDataCertificateProvider>(
          std::vector<gx::IdentityKeyCertPair>{
              {identity.key, identity.chain}}));
  options.watch_identity_key_cert_pairs();
  // The verifier does all of it, and can tell why it refuses.
  options.set_verify_server_certs(false);
  options.set_check_call_host(false);
  options.set_certificate_verifier(
      gx::ExternalCertificateVerifier::Create<Verifier>(
          std::move(bundle), own.cluster, std::move(refusal)));
  return TlsIdentity{gx::TlsCredentials(options), tls::ToUri(own)};
}

}  // namespace client
}  // namespace dfl
