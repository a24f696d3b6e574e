#include "daemon/enrol/issuer.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "daemon/base/atomic_file.h"
#include "daemon/base/status_macros.h"
#include "daemon/enrol/authority_files.h"
#include "daemon/enrol/join_token.h"
#include "daemon/enrol/token_book.h"
#include "daemon/enrol/wrong_secrets.h"
#include "daemon/net/bounded_acceptor.h"
#include "daemon/net/handshake_log.h"
#include "daemon/net/no_reflection.h"
#include "daemon/threads/steady_cond_var.h"
#include "daemon/tls/authority.h"
#include "daemon/tls/certificate.h"
#include "daemon/tls/identity.h"
#include "daemon/tls/key_file.h"
#include "daemon/tls/signing_request.h"
#include "dfl/enrol/v1/enrol.grpc.pb.h"

namespace dfl::enrol {
namespace {

namespace gx = grpc::experimental;

constexpr int kMaxRequest = 16 << 10;
constexpr size_t kMemory = size_t{32} << 20;
constexpr int kThreads = 8;
constexpr int kStreamsPerConnection = 2;
constexpr int64_t kMaxConnections = 64;
// For all that a node wants of an issuer.
constexpr absl::Duration kPatience = absl::Seconds(20);
constexpr absl::Duration kServerLife = absl::Hours(24);

grpc::Status ToGrpc(const absl::Status& status) {
  return {static_cast<grpc::StatusCode>(status.code()),
          std::string(status.message())};
}

absl::Status MakeFolder(const std::string& path) {
  if (mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) {
    return absl::OkStatus();
  }
  return FileError(path, "make the folder");
}

// The authority in use, and what is made with it.
class Signer {
 public:
  Signer(std::string folder, std::string issuer, absl::Duration lifetime)
      : folder_(std::move(folder)),
        issuer_(std::move(issuer)),
        lifetime_(lifetime) {}

  std::string server_file() const { return folder_ + "/issuer/server.pem"; }

  // Loads the authority, and writes server_file() when it must be another.
  absl::Status Maintain(absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_) {
    DFL_ASSIGN_OR_RETURN(AuthorityFiles files, LoadAuthority(folder_));
    absl::MutexLock lock(&mutex_);
    const bool same =
        files_.has_value() && files_->authority.certificate().fingerprint() ==
                                  files.authority.certificate().fingerprint();
    if (!same || now < shown_since_ || now >= shown_since_ + kServerLife / 2) {
      DFL_RETURN_IF_ERROR(Show(files.authority, now));
      shown_since_ = now;
    }
    files_ = std::move(files);
    return absl::OkStatus();
  }

  // Fills `response` with a certificate of `node`, and keeps a copy.
  absl::Status Sign(const std::string& request, const std::string& node,
                    absl::Time now, dfl::enrol::v1::EnrolResponse& response)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    const tls::Authority& authority = files_->authority;
    DFL_ASSIGN_OR_RETURN(
        const tls::Certificate certificate,
        authority.Sign(request, {authority.cluster(), tls::Role::kNode, node},
                       {now, lifetime_}));
    const std::string copies = folder_ + "/node";
    DFL_RETURN_IF_ERROR(MakeFolder(copies));
    DFL_RETURN_IF_ERROR(MakeFolder(absl::StrCat(copies, "/", node)));
    DFL_RETURN_IF_ERROR(tls::WritePublic(
        absl::StrCat(copies, "/", node, "/cert.pem"), certificate.ToPem()));
    response.set_certificate(certificate.ToPem());
    response.set_bundle(files_->bundle_pem);
    return absl::OkStatus();
  }

 private:
  // A leaf of our own, and the authority for the other side to compare.
  absl::Status Show(const tls::Authority& authority, absl::Time now) const {
    const tls::PrivateKey key = tls::PrivateKey::Generate();
    DFL_ASSIGN_OR_RETURN(
        const tls::Certificate leaf,
        authority.Issue(key, {authority.cluster(), tls::Role::kIssuer, issuer_},
                        {now, kServerLife}));
    DFL_RETURN_IF_ERROR(MakeFolder(folder_ + "/issuer"));
    return tls::WritePrivate(server_file(),
                             absl::StrCat(key.ToPem(), leaf.ToPem(),
                                          authority.certificate().ToPem()));
  }

  const std::string folder_;
  const std::string issuer_;
  const absl::Duration lifetime_;
  absl::Mutex mutex_;
  std::optional<AuthorityFiles> files_ ABSL_GUARDED_BY(mutex_);
  absl::Time shown_since_ ABSL_GUARDED_BY(mutex_);
};

class Service final : public dfl::enrol::v1::EnrolService::Service {
 public:
  Service(const IssuerOptions& options, const TokenBook& book, Signer& signer)
      : options_(options), book_(book), signer_(signer) {}

  grpc::Status Enrol(grpc::ServerContext* context,
                     const dfl::enrol::v1::EnrolRequest* request,
                     dfl::enrol::v1::EnrolResponse* response) override {
    IssuerNote note;
    note.host = HostOfPeer(context->peer());
    note.status = Answer(*request, note.host, *response, note.node);
    if (!note.status.ok()) response->Clear();
    options_.note(note);
    return ToGrpc(note.status);
  }

 private:
  absl::Status Answer(const dfl::enrol::v1::EnrolRequest& request,
                      const std::string& host,
                      dfl::enrol::v1::EnrolResponse& response,
                      std::string& node) {
    const absl::Time now = options_.clock();
    if (!wrong_.MayAsk(host, options_.steady())) {
      return absl::ResourceExhaustedError(
          "too many wrong join tokens came from this address; try again in a "
          "minute");
    }
    DFL_ASSIGN_OR_RETURN(const tls::SigningRequest parsed,
                         tls::ParseSigningRequest(request.signing_request()));
    node = parsed.name;
    if (request.issuer() != book_.issuer()) {
      wrong_.Count(host, options_.steady());
      return absl::FailedPreconditionError(absl::StrCat(
          "another issuer made this join token, and that one alone redeems it; "
          "this is issuer ",
          book_.issuer(), ". Check --at, or make a token here"));
    }
    absl::Status redeemed =
        book_.Redeem(request.secret(), {parsed.name, parsed.key_sha256}, now,
                     [&](const std::string& token_node) {
                       return signer_.Sign(request.signing_request(),
                                           token_node, now, response);
                     });
    if (absl::IsNotFound(redeemed)) wrong_.Count(host, options_.steady());
    return redeemed;
  }

  const IssuerOptions& options_;
  const TokenBook& book_;
  Signer& signer_;
  WrongSecrets wrong_;
};

class GrpcIssuer final : public Issuer {
 public:
  GrpcIssuer(IssuerOptions options, TokenBook book)
      : options_(std::move(options)),
        book_(std::move(book)),
        signer_(options_.folder, book_.issuer(), options_.lifetime),
        service_(options_, book_, signer_) {}
  ~GrpcIssuer() override {
    if (upkeep_.joinable()) {
      {
        absl::MutexLock lock(&mutex_);
        ending_ = true;
        changed_.SignalAll();
      }
      upkeep_.join();
    }
    if (acceptor_ != nullptr) acceptor_->Stop();
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
  }

  absl::Status Serve() {
    net::AcceptorOptions bounds;
    bounds.max_pending = kMaxConnections;
    bounds.max_connections = kMaxConnections;
    bounds.patience = kPatience;
    DFL_ASSIGN_OR_RETURN(acceptor_, net::BoundedAcceptor::Bind(
                                        {options_.listen}, std::move(bounds)));
    DFL_RETURN_IF_ERROR(Maintain());
    gx::TlsServerCredentialsOptions credentials(
        std::make_shared<gx::FileWatcherCertificateProvider>(
            signer_.server_file(), signer_.server_file(), 1));
    credentials.watch_identity_key_cert_pairs();
    credentials.set_cert_request_type(GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
    credentials.set_check_call_host(false);
    grpc::ResourceQuota quota("enrol");
    quota.Resize(kMemory).SetMaxThreads(kThreads);
    grpc::ServerBuilder builder;
    builder.SetOption(std::make_unique<net::NoReflection>());
    builder.SetResourceQuota(quota);
    builder.SetMaxReceiveMessageSize(kMaxRequest);
    builder.SetSyncServerOption(grpc::ServerBuilder::NUM_CQS, 1);
    builder.SetSyncServerOption(grpc::ServerBuilder::MIN_POLLERS, 1);
    builder.SetSyncServerOption(grpc::ServerBuilder::MAX_POLLERS, 2);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS,
                               kStreamsPerConnection);
    builder.RegisterService(&service_);
    entrance_ = builder.experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
        gx::TlsServerCredentials(credentials));
    server_ = builder.BuildAndStart();
    if (server_ == nullptr) return absl::InternalError("gRPC cannot serve");
    acceptor_->Start([this](int fd) {
      gx::ExternalConnectionAcceptor::NewConnectionParameters connection;
      connection.fd = fd;
      entrance_->HandleNewConnection(&connection);
    });
    upkeep_ = std::thread([this] { KeepUp(); });
    return absl::OkStatus();
  }

  const std::string& address() const override {
    return acceptor_->addresses().front();
  }
  absl::Status Maintain() override {
    return signer_.Maintain(options_.clock());
  }

 private:
  void KeepUp() ABSL_LOCKS_EXCLUDED(mutex_) {
    std::string told;
    while (!Ending()) {
      const absl::Status status = Maintain();
      const std::string text(status.message());
      if (!status.ok() && text != told) options_.note({"", "", status});
      told = text;
    }
  }
  // Waits for the next look; true when there is none.
  bool Ending() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    const absl::Time until = SteadyNow() + options_.upkeep;
    while (!ending_ && SteadyNow() < until) {
      changed_.WaitFor(&mutex_, until - SteadyNow());
    }
    return ending_;
  }

  const IssuerOptions options_;
  const TokenBook book_;
  Signer signer_;
  Service service_;
  // Strangers' failed handshakes are no news here.
  const net::HandshakeLog handshake_log_{[](absl::string_view) {}};
  std::unique_ptr<net::BoundedAcceptor> acceptor_;
  std::unique_ptr<gx::ExternalConnectionAcceptor> entrance_;
  std::unique_ptr<grpc::Server> server_;
  absl::Mutex mutex_;
  SteadyCondVar changed_;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread upkeep_;
};

}  // namespace

std::string NoteText(const IssuerNote& note) {
  if (note.host.empty()) {
    return absl::StrCat("the issuer goes on with its former files: ",
                        note.status.message());
  }
  const std::string who = note.node.empty()
                              ? note.host
                              : absl::StrCat(note.node, " at ", note.host);
  if (note.status.ok()) return absl::StrCat("gave ", who, " its certificate");
  return absl::StrCat("refused ", who, ": ", note.status.message());
}

absl::StatusOr<std::unique_ptr<Issuer>> Issuer::Start(IssuerOptions options) {
  // Before the book makes files of its own.
  DFL_RETURN_IF_ERROR(LoadAuthority(options.folder).status());
  DFL_ASSIGN_OR_RETURN(TokenBook book, TokenBook::Open(options.folder));
  auto issuer =
      std::make_unique<GrpcIssuer>(std::move(options), std::move(book));
  DFL_RETURN_IF_ERROR(issuer->Serve());
  return issuer;
}

}  // namespace dfl::enrol
