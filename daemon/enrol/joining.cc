#include "daemon/enrol/joining.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <netdb.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "daemon/base/atomic_file.h"
#include "daemon/base/host_port.h"
#include "daemon/base/status_macros.h"
#include "daemon/enrol/issuer_check.h"
#include "daemon/net/handshake_log.h"
#include "daemon/tls/authority.h"
#include "daemon/tls/certificate.h"
#include "daemon/tls/key_file.h"
#include "dfl/enrol/v1/enrol.grpc.pb.h"

namespace dfl::enrol {
namespace {

namespace gx = grpc::experimental;
using dfl::enrol::v1::EnrolRequest;
using dfl::enrol::v1::EnrolResponse;

constexpr int kMaxResponse = 256 << 10;

// What the handshake found.
class Verdict {
 public:
  void Set(absl::Status status) {
    absl::MutexLock lock(&mutex_);
    status_ = std::move(status);
  }
  absl::Status Get() const {
    absl::MutexLock lock(&mutex_);
    return status_;
  }

 private:
  mutable absl::Mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

class Verifier final : public gx::ExternalCertificateVerifier {
 public:
  Verifier(JoinToken token, std::function<absl::Time()> clock,
           std::shared_ptr<Verdict> verdict)
      : token_(std::move(token)),
        clock_(std::move(clock)),
        verdict_(std::move(verdict)) {}

  bool Verify(gx::TlsCustomVerificationCheckRequest* request,
              std::function<void(grpc::Status)>,
              grpc::Status* sync_status) override {
    const grpc::string_ref leaf = request->peer_cert();
    const grpc::string_ref chain = request->peer_cert_full_chain();
    const absl::Status status =
        CheckIssuer({{leaf.data(), leaf.size()}, {chain.data(), chain.size()}},
                    token_, clock_());
    verdict_->Set(status);
    if (!status.ok()) {
      *sync_status = grpc::Status(grpc::StatusCode::UNAUTHENTICATED,
                                  std::string(status.message()));
    }
    return true;
  }
  void Cancel(gx::TlsCustomVerificationCheckRequest*) override {}

 private:
  const JoinToken token_;
  const std::function<absl::Time()> clock_;
  const std::shared_ptr<Verdict> verdict_;
};

std::string Issuer(const JoinOptions& options) {
  return "the issuer at " + options.at;
}

// gRPC does not tell an unknown host from one that does not answer.
absl::Status CheckHost(const JoinOptions& options) {
  const absl::StatusOr<HostPort> address = ParseHostPort(options.at);
  if (!address.ok() || address->port == 0 || IsWildcard(address->host)) {
    return absl::InvalidArgumentError(
        absl::StrCat("address ", options.at, ": ",
                     address.ok() ? "can be listened on, and not be reached"
                                  : address.status().message(),
                     "; ", kHostPortForms));
  }
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(address->host.c_str(), nullptr, &hints, &found);
  if (error == 0) {
    freeaddrinfo(found);
    return absl::OkStatus();
  }
  return absl::UnavailableError(absl::StrCat(
      Issuer(options), ": there is no such host: ", gai_strerror(error),
      "; check its name, and that this machine is on the network"));
}

// Sends the secret to nobody but the token's issuer.
absl::StatusOr<EnrolResponse> Ask(const JoinOptions& options,
                                  const std::string& signing_request) {
  const auto verdict = std::make_shared<Verdict>();
  // The verdict tells more than gRPC's lines do.
  const net::HandshakeLog handshake_log([](absl::string_view) {});
  gx::TlsChannelCredentialsOptions credentials;
  // The verifier checks the chain: the authority is known by its SHA-256 alone,
  // so OpenSSL has nothing to check it with.
  credentials.set_verify_server_certs(false);
  credentials.set_check_call_host(false);
  credentials.set_certificate_verifier(
      gx::ExternalCertificateVerifier::Create<Verifier>(
          options.token, options.clock, verdict));
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetMaxReceiveMessageSize(kMaxResponse);
  const auto stub =
      dfl::enrol::v1::EnrolService::NewStub(grpc::CreateCustomChannel(
          "dns:///" + options.at, gx::TlsCredentials(credentials), arguments));
  EnrolRequest request;
  request.set_issuer(options.token.issuer);
  request.set_secret(options.token.secret);
  request.set_signing_request(signing_request);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       absl::ToChronoMilliseconds(options.timeout));
  EnrolResponse response;
  const grpc::Status status = stub->Enrol(&context, request, &response);
  if (status.ok()) return response;
  // gRPC says no more than that the connection failed.
  DFL_RETURN_IF_ERROR(Annotate(verdict->Get(), Issuer(options)));
  if (status.error_code() == grpc::StatusCode::UNAVAILABLE ||
      status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
    return absl::UnavailableError(absl::StrCat(
        Issuer(options), " does not answer: ", status.error_message(),
        "; see that `dflctl token serve` runs there, and that no firewall is "
        "between"));
  }
  if (status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED) {
    return absl::UnavailableError(
        absl::StrCat(Issuer(options), " is busy: ", status.error_message()));
  }
  return absl::Status(
      static_cast<absl::StatusCode>(status.error_code()),
      absl::StrCat(Issuer(options), ": ", status.error_message()));
}

absl::Status MakeFolderOf(const std::string& path) {
  const std::filesystem::path folder =
      std::filesystem::path(path).parent_path();
  std::error_code error;
  if (folder.empty() || std::filesystem::is_directory(folder, error)) {
    return absl::OkStatus();
  }
  DFL_RETURN_IF_ERROR(MakeFolderOf(folder.string()));
  if (mkdir(folder.c_str(), 0700) == 0) return absl::OkStatus();
  return FileError(folder.string(), "make the folder");
}

// Root would make files that the daemon's user cannot read, in a folder where
// that user can put links in its way.
absl::Status CheckOwner(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  struct stat about = {};
  if (stat(folder.empty() ? "." : folder.c_str(), &about) != 0 ||
      about.st_uid == geteuid() || geteuid() != 0) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      folder, ": belongs to user id ", about.st_uid,
      ", and this is root; run the same command as that user: `sudo -u '#",
      about.st_uid, "' dfld join ...`"));
}

// The key that is there, or a new one.
absl::StatusOr<tls::PrivateKey> KeyOf(const std::string& path, Joined& joined) {
  const tls::PemFile file = tls::ReadPemFile(path);
  if (file.error != ENOENT) {
    DFL_RETURN_IF_ERROR(tls::CheckRead(file, ""));
    DFL_RETURN_IF_ERROR(tls::CheckRights(file, geteuid()));
    return tls::PrivateKey::FromPem(file.content, path);
  }
  DFL_RETURN_IF_ERROR(MakeFolderOf(path));
  tls::PrivateKey key = tls::PrivateKey::Generate();
  DFL_RETURN_IF_ERROR(tls::WritePrivate(path, key.ToPem()));
  joined.written.push_back(path);
  return key;
}

// Before anything is sent or written.
absl::Status CheckFree(const JoinOptions& options) {
  const std::string& certificate = options.paths.certificate;
  for (const std::string& path :
       {certificate, options.paths.bundle, options.paths.key}) {
    DFL_RETURN_IF_ERROR(CheckOwner(path));
  }
  if (access(certificate.c_str(), F_OK) == 0) {
    return absl::AlreadyExistsError(absl::StrCat(
        certificate,
        ": is there already, and is not replaced; a node that has a "
        "certificate needs no join token. Remove it, with its key, to join "
        "anew"));
  }
  const tls::PemFile bundle = tls::ReadPemFile(options.paths.bundle);
  if (bundle.error == ENOENT) return absl::OkStatus();
  DFL_RETURN_IF_ERROR(tls::CheckRead(bundle, ""));
  DFL_ASSIGN_OR_RETURN(const std::vector<tls::Certificate> trusted,
                       tls::ParseBundle(bundle.content, bundle.path));
  for (const tls::Certificate& authority : trusted) {
    if (authority.fingerprint() == options.token.authority_sha256) {
      return absl::OkStatus();
    }
  }
  return absl::AlreadyExistsError(absl::StrCat(
      bundle.path,
      ": does not hold the authority that the join token names, so it is the "
      "bundle of another network; remove it, or give another --tls.folder"));
}

// What the issuer answered must be good for this node.
absl::Status WriteAnswer(const JoinOptions& options, const tls::PrivateKey& key,
                         const EnrolResponse& response, Joined& joined) {
  const tls::CredentialPaths& paths = options.paths;
  const auto file = [](const std::string& path, const std::string& content) {
    tls::PemFile made;
    made.path = path;
    made.content = content;
    made.mode = 0600;
    made.owner = geteuid();
    return made;
  };
  const tls::Identity expected = {options.token.cluster, tls::Role::kNode,
                                  options.token.node};
  const absl::StatusOr<tls::Credentials> checked =
      tls::CheckCredentials({file(paths.bundle, response.bundle()),
                             file(paths.certificate, response.certificate()),
                             file(paths.key, key.ToPem())},
                            expected, options.clock(), geteuid());
  if (!checked.ok()) {
    return absl::Status(
        checked.status().code(),
        absl::StrCat(Issuer(options), " gave what this node cannot use: ",
                     checked.status().message()));
  }
  DFL_RETURN_IF_ERROR(MakeFolderOf(paths.bundle));
  DFL_RETURN_IF_ERROR(MakeFolderOf(paths.certificate));
  DFL_RETURN_IF_ERROR(tls::WritePublic(paths.bundle, response.bundle()));
  // Last: with it the node has joined.
  DFL_RETURN_IF_ERROR(
      tls::WritePublic(paths.certificate, response.certificate()));
  joined.written.push_back(paths.bundle);
  joined.written.push_back(paths.certificate);
  joined.identity = expected;
  joined.not_after = checked->not_after();
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Joined> Join(const JoinOptions& options) {
  const JoinToken& token = options.token;
  if (!options.node.empty() && options.node != token.node) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the join token is for node ", token.node, ", and this node is ",
        options.node, "; set --name=", token.node,
        ", or make a token with `dflctl token create --node ", options.node,
        "`"));
  }
  DFL_RETURN_IF_ERROR(CheckFree(options));
  DFL_RETURN_IF_ERROR(CheckHost(options));
  Joined joined;
  DFL_ASSIGN_OR_RETURN(const tls::PrivateKey key,
                       KeyOf(options.paths.key, joined));
  DFL_ASSIGN_OR_RETURN(const std::string request,
                       tls::MakeRequest(key, token.node));
  DFL_ASSIGN_OR_RETURN(const EnrolResponse response, Ask(options, request));
  DFL_RETURN_IF_ERROR(WriteAnswer(options, key, response, joined));
  return joined;
}

}  // namespace dfl::enrol
