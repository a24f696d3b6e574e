#include "daemon/net/network_security.h"

#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <set>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "daemon/base/atomic_file.h"
#include "daemon/base/status_macros.h"
#include "daemon/tls/key_file.h"

namespace dfl::net {
namespace {

namespace gx = grpc::experimental;

// gRPC looks at the file as often; it takes whole seconds.
constexpr int kWatchSeconds = 1;

constexpr absl::string_view kNotReady =
    "this node has no certificate that is valid yet; is its clock set?";

absl::Status MakeFolder(const std::string& folder) {
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return FileError(folder, "make this folder");
  }
  struct stat info{};
  if (lstat(folder.c_str(), &info) != 0) {
    return FileError(folder, "look at this folder");
  }
  if (!S_ISDIR(info.st_mode) || info.st_uid != geteuid() ||
      (info.st_mode & 077) != 0) {
    return absl::PermissionDeniedError(absl::StrCat(
        folder,
        ": this must be a folder of this user with rights for nobody else, as "
        "a key is kept in it; remove it, and it is made anew"));
  }
  return absl::OkStatus();
}

}  // namespace

class NetworkSecurity::State {
 public:
  void Use(std::shared_ptr<const tls::Credentials> credentials) {
    absl::MutexLock lock(&mutex_);
    credentials_ = std::move(credentials);
    ++generation_;
  }
  std::shared_ptr<const tls::Credentials> credentials() const {
    absl::MutexLock lock(&mutex_);
    return credentials_;
  }
  void SetBanned(absl::Span<const tls::Identity> banned) {
    std::set<std::string> uris;
    for (const tls::Identity& identity : banned) uris.insert(ToUri(identity));
    absl::MutexLock lock(&mutex_);
    banned_ = std::move(uris);
    ++generation_;
  }
  bool IsBanned(const tls::Identity& identity) const {
    absl::MutexLock lock(&mutex_);
    return banned_.count(ToUri(identity)) > 0;
  }
  int64_t generation() const {
    absl::MutexLock lock(&mutex_);
    return generation_;
  }
  void Count(absl::string_view reason) {
    absl::MutexLock lock(&mutex_);
    ++refusals_[std::string(reason)];
  }
  std::map<std::string, int64_t> refusals() const {
    absl::MutexLock lock(&mutex_);
    return refusals_;
  }

  tls::PeerVerdict Check(const tls::PresentedChain& presented,
                         absl::Span<const tls::Role> roles, absl::Time now) {
    const std::shared_ptr<const tls::Credentials> own = credentials();
    if (own == nullptr) {
      Count("not-ready");
      tls::PeerVerdict verdict;
      verdict.fault = tls::PeerFault::kUnknownAuthority;
      verdict.text = std::string(kNotReady);
      return verdict;
    }
    const tls::PeerVerdict verdict = tls::CheckPeer(
        presented,
        {own->bundle, own->identity.cluster, roles,
         [this](const tls::Identity& identity) { return IsBanned(identity); }},
        now);
    if (!verdict.ok()) Count(Name(verdict.fault));
    return verdict;
  }

 private:
  mutable absl::Mutex mutex_;
  std::shared_ptr<const tls::Credentials> credentials_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> banned_ ABSL_GUARDED_BY(mutex_);
  int64_t generation_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, int64_t> refusals_ ABSL_GUARDED_BY(mutex_);
};

// Asked by gRPC at the end of each handshake.
class NetworkSecurity::Verifier final : public gx::ExternalCertificateVerifier {
 public:
  Verifier(std::shared_ptr<State> state, std::vector<tls::Role> roles,
           std::function<void(const tls::PeerVerdict& verdict)> on_refused)
      : state_(std::move(state)),
        roles_(std::move(roles)),
        on_refused_(std::move(on_refused)) {}

  bool Verify(gx::TlsCustomVerificationCheckRequest* request,
              std::function<void(grpc::Status)> /*callback*/,
              grpc::Status* sync_status) override {
    const grpc::string_ref leaf = request->peer_cert();
    const grpc::string_ref chain = request->peer_cert_full_chain();
    const tls::PeerVerdict verdict = state_->Check(
        {{leaf.data(), leaf.size()}, {chain.data(), chain.size()}}, roles_,
        absl::Now());
    if (verdict.ok()) {
      *sync_status = grpc::Status::OK;
      return true;
    }
    *sync_status =
        grpc::Status(grpc::StatusCode::UNAUTHENTICATED, verdict.text);
    if (on_refused_ != nullptr) on_refused_(verdict);
    return true;
  }
  void Cancel(gx::TlsCustomVerificationCheckRequest*) override {}

 private:
  const std::shared_ptr<State> state_;
  const std::vector<tls::Role> roles_;
  const std::function<void(const tls::PeerVerdict& verdict)> on_refused_;
};

NetworkSecurity::NetworkSecurity(std::string folder)
    : identity_path_(absl::StrCat(folder, "/identity.pem")),
      state_(std::make_shared<State>()),
      handshake_log_([state = state_](absl::string_view reason) {
        state->Count(reason);
      }) {}

absl::StatusOr<std::unique_ptr<NetworkSecurity>> NetworkSecurity::Create(
    const std::string& folder) {
  DFL_RETURN_IF_ERROR(MakeFolder(folder));
  std::unique_ptr<NetworkSecurity> security(new NetworkSecurity(folder));
  // A former process may have left one.
  const std::string& path = security->identity_path_;
  if (unlink(path.c_str()) != 0 && errno != ENOENT) {
    return FileError(path, "remove this file of a former process");
  }
  return security;
}

NetworkSecurity::~NetworkSecurity() {
  unlink(identity_path_.c_str());
  state_->Use(nullptr);
}

absl::Status NetworkSecurity::Use(
    std::shared_ptr<const tls::Credentials> credentials) {
  // In one file, so that one rename replaces both.
  DFL_RETURN_IF_ERROR(tls::WritePrivate(
      identity_path_,
      absl::StrCat(credentials->key_pem, "\n", credentials->chain_pem)));
  state_->Use(std::move(credentials));
  return absl::OkStatus();
}

std::shared_ptr<const tls::Credentials> NetworkSecurity::credentials() const {
  return state_->credentials();
}

void NetworkSecurity::SetBanned(absl::Span<const tls::Identity> banned) {
  state_->SetBanned(banned);
}

bool NetworkSecurity::IsBanned(const tls::Identity& identity) const {
  return state_->IsBanned(identity);
}

int64_t NetworkSecurity::generation() const { return state_->generation(); }

tls::PeerVerdict NetworkSecurity::Check(const tls::PresentedChain& presented,
                                        absl::Span<const tls::Role> roles,
                                        absl::Time now) {
  return state_->Check(presented, roles, now);
}

void NetworkSecurity::CountRefusal(absl::string_view reason) {
  state_->Count(reason);
}

std::map<std::string, int64_t> NetworkSecurity::refusals() const {
  return state_->refusals();
}

std::shared_ptr<grpc::ServerCredentials> NetworkSecurity::ServerCredentials(
    std::vector<tls::Role> roles) {
  gx::TlsServerCredentialsOptions options(
      std::make_shared<gx::FileWatcherCertificateProvider>(
          identity_path_, identity_path_, kWatchSeconds));
  options.watch_identity_key_cert_pairs();
  options.set_cert_request_type(
      GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_BUT_DONT_VERIFY);
  options.set_certificate_verifier(
      gx::ExternalCertificateVerifier::Create<Verifier>(
          state_, std::move(roles), nullptr));
  options.set_check_call_host(false);
  return gx::TlsServerCredentials(options);
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>>
NetworkSecurity::ChannelCredentials(
    std::vector<tls::Role> roles,
    std::function<void(const tls::PeerVerdict& verdict)> on_refused) {
  const std::shared_ptr<const tls::Credentials> own = credentials();
  if (own == nullptr) return absl::UnavailableError(kNotReady);
  gx::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(
      std::make_shared<gx::StaticDataCertificateProvider>(
          std::vector<gx::IdentityKeyCertPair>{
              {own->key_pem, own->chain_pem}}));
  options.watch_identity_key_cert_pairs();
  options.set_verify_server_certs(false);
  options.set_check_call_host(false);
  options.set_certificate_verifier(
      gx::ExternalCertificateVerifier::Create<Verifier>(
          state_, std::move(roles), std::move(on_refused)));
  return gx::TlsCredentials(options);
}

}  // namespace dfl::net
