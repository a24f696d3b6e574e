#include "daemon/control/control_server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/impl/server_builder_option.h>
#include <grpcpp/server_posix.h>
#include <unistd.h>

#include <chrono>  // NOLINT(build/c++11): gRPC's deadlines
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/control/callers.h"
#include "daemon/control/service.h"
#include "daemon/control/timers.h"
#include "daemon/control/unix_listener.h"
#include "daemon/control/unix_roles.h"
#include "daemon/net/bounded_acceptor.h"
#include "daemon/net/network_security.h"

namespace dfl::control {
namespace {

using grpc::experimental::ExternalConnectionAcceptor;

constexpr mode_t kGroupMode = 0660;
constexpr mode_t kEveryoneMode = 0666;
// The longest message is a signed plan: a record of 8 MiB + 64 KiB.
constexpr int kMaxMessageBytes = (8 << 20) + (128 << 10);
constexpr int kMaxStreamsPerConnection = 64;
// People are few.
constexpr int64_t kMaxPending = 64;
constexpr int64_t kMaxConnections = 256;

constexpr absl::Duration kHealthPeriod = absl::Seconds(1);

enum class Plane { kLocal, kNetwork };

// Has one server, not all of the process, tell its services and methods.
class WithReflection final : public grpc::ServerBuilderOption {
 public:
  void UpdateArguments(grpc::ChannelArguments* /*arguments*/) override {}
  void UpdatePlugins(std::vector<std::unique_ptr<grpc::ServerBuilderPlugin>>*
                         plugins) override {
    plugins->push_back(
        std::make_unique<grpc::reflection::ProtoServerReflectionPlugin>());
  }
};

class GrpcControlServer : public ControlServer {
 public:
  explicit GrpcControlServer(ControlServerOptions options)
      : options_(std::move(options)) {}

  ~GrpcControlServer() override {
    health_timers_.reset();
    if (service_ != nullptr) service_->Close();
    if (listener_ != nullptr) listener_->Stop();
    if (acceptor_ != nullptr) acceptor_->Stop();
    const auto limit = std::chrono::system_clock::now() +
                       absl::ToChronoNanoseconds(options_.shutdown_grace);
    if (server_ != nullptr) server_->Shutdown(limit);
    if (network_server_ != nullptr) network_server_->Shutdown(limit);
  }

  absl::Status Listen(Backend& backend) {
    DFL_ASSIGN_OR_RETURN(
        UnixRoles roles,
        UnixRoles::Resolve(options_.admins, options_.viewers,
                           {geteuid(), getegid(), getpid(), {}}));
    if (!options_.unix_socket.empty()) {
      const bool for_all =
          !options_.admins.empty() || !options_.viewers.empty();
      DFL_ASSIGN_OR_RETURN(
          listener_, UnixListener::Bind(options_.unix_socket,
                                        for_all ? kEveryoneMode : kGroupMode));
      addresses_.push_back(absl::StrCat("unix:", options_.unix_socket));
    }
    if (!options_.addresses.empty()) DFL_RETURN_IF_ERROR(BindNetwork());
    callers_.emplace(listener_.get(), roles, acceptor_.get(),
                     options_.security);
    service_ =
        std::make_unique<GatedService>(backend, timers_, *callers_, options_);
    server_ = StartServer(Plane::kLocal);
    if (acceptor_ != nullptr) network_server_ = StartServer(Plane::kNetwork);
    if (server_ == nullptr ||
        (acceptor_ != nullptr && network_server_ == nullptr)) {
      return absl::InternalError("the control service did not start");
    }
    if (options_.health) {
      health_timers_.emplace();
      WatchHealth();
    }
    if (listener_ != nullptr) {
      listener_->Start([this, roles](int fd) { OnUnixConnection(fd, roles); });
    }
    if (acceptor_ != nullptr) {
      acceptor_->Start([this](int fd) {
        ExternalConnectionAcceptor::NewConnectionParameters connection;
        connection.listener_fd = -1;
        connection.fd = fd;
        network_->HandleNewConnection(&connection);
      });
    }
    return absl::OkStatus();
  }

  const std::vector<std::string>& addresses() const override {
    return addresses_;
  }

 private:
  absl::Status BindNetwork() {
    net::AcceptorOptions acceptor;
    acceptor.tls = options_.security != nullptr;
    acceptor.max_pending = kMaxPending;
    acceptor.max_connections = kMaxConnections;
    if (options_.security != nullptr) {
      acceptor.on_refusal = [this](absl::string_view reason) {
        options_.security->CountRefusal(reason);
      };
    }
    absl::StatusOr<std::unique_ptr<net::BoundedAcceptor>> bound =
        net::BoundedAcceptor::Bind(options_.addresses, std::move(acceptor));
    if (!bound.ok()) return Annotate(bound.status(), "control.listen");
    acceptor_ = *std::move(bound);
    const std::vector<std::string>& places = acceptor_->addresses();
    addresses_.insert(addresses_.end(), places.begin(), places.end());
    return absl::OkStatus();
  }

  // A server for each plane: what the service's methods are is told on the
  // machine itself only.
  std::unique_ptr<grpc::Server> StartServer(Plane plane) {
    grpc::ServerBuilder builder;
    builder.RegisterService(service_->service());
    if (plane == Plane::kLocal) {
      builder.SetOption(std::make_unique<WithReflection>());
    }
    builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS,
                               kMaxStreamsPerConnection);
    if (plane == Plane::kNetwork) {
      network_ = builder.experimental().AddExternalConnectionAcceptor(
          grpc::ServerBuilder::experimental_type::ExternalConnectionType::
              FROM_FD,
          options_.security == nullptr
              ? grpc::InsecureServerCredentials()
              : options_.security->ServerCredentials({tls::Role::kViewer,
                                                      tls::Role::kOperator,
                                                      tls::Role::kAdmin}));
    }
    // gRPC has one switch for all servers of the process; the planes between
    // nodes have no health service.
    grpc::EnableDefaultHealthCheckService(options_.health != nullptr);
    std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
    grpc::EnableDefaultHealthCheckService(false);
    return server;
  }

  // Tells gRPC's health service what serves, and whoever watches it what
  // changes; for ever.
  void WatchHealth() {
    const std::map<std::string, bool> serving = options_.health();
    for (grpc::Server* server : {server_.get(), network_server_.get()}) {
      if (server == nullptr) continue;
      for (const auto& [name, serves] : serving) {
        server->GetHealthCheckService()->SetServingStatus(name, serves);
      }
    }
    health_timers_->After(kHealthPeriod, [this] { WatchHealth(); });
  }

  // A user without a role costs nothing but this.
  void OnUnixConnection(int fd, const UnixRoles& roles) {
    const std::optional<UnixPeer> peer = listener_->PeerOf(fd);
    if (peer.has_value() && roles.RoleOf(*peer) != Role::kNone) {
      grpc::AddInsecureChannelFromFd(server_.get(), fd);
      return;
    }
    close(fd);
    if (!options_.audit) return;
    const std::string who = peer.has_value() ? UnixPeerText(*peer) : "unknown";
    options_.audit(
        {{who, Role::kNone, true},
         "connect",
         absl::PermissionDeniedError("the user has no role on this node")});
  }

  const ControlServerOptions options_;
  Timers timers_;
  std::unique_ptr<UnixListener> listener_;
  std::unique_ptr<net::BoundedAcceptor> acceptor_;
  std::optional<Callers> callers_;
  std::unique_ptr<GatedService> service_;
  std::unique_ptr<ExternalConnectionAcceptor> network_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<grpc::Server> network_server_;  // null: no address
  std::vector<std::string> addresses_;
  std::optional<Timers> health_timers_;  // last: its tasks look at the servers
};

}  // namespace

absl::StatusOr<std::unique_ptr<ControlServer>> ControlServer::Start(
    ControlServerOptions options, Backend& backend) {
  auto server = std::make_unique<GrpcControlServer>(std::move(options));
  DFL_RETURN_IF_ERROR(server->Listen(backend));
  return server;
}

}  // namespace dfl::control
