#include "daemon/exchange/peer_listener.h"
#include "daemon/net/no_reflection.h"

#include <chrono>  // NOLINT(build/c++11): gRPC's deadlines
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/base/status_macros.h"
#include "daemon/exchange/peer_gate.h"

namespace dfl::exchange {

class PeerListener::Service final : public pb::PeerService::CallbackService {
 public:
  Service(net::BoundedAcceptor* acceptor,
          std::shared_ptr<CallRegistry> registry, OnStream on_stream,
          std::function<void(StreamId)> wake)
      : acceptor_(acceptor),
        registry_(std::move(registry)),
        on_stream_(std::move(on_stream)),
        wake_(std::move(wake)) {}

  grpc::ServerBidiReactor<pb::ControlRequest, pb::ControlResponse>* Control(
      grpc::CallbackServerContext* context) override {
    return Accept<pb::ControlRequest, pb::ControlResponse>(context);
  }
  grpc::ServerBidiReactor<pb::BulkRequest, pb::BulkResponse>* Bulk(
      grpc::CallbackServerContext* context) override {
    return Accept<pb::BulkRequest, pb::BulkResponse>(context);
  }

 private:
  template <typename In, typename Out>
  grpc::ServerBidiReactor<In, Out>* Accept(
      grpc::CallbackServerContext* context) {
    return AcceptedCall<In, Out>::Start(
        registry_, context,
        [this, context](std::shared_ptr<Stream> stream) {
          // gRPC makes no stream of a connection before its handshake is over.
          const std::string remote = context->peer();
          acceptor_->Admitted(remote, PeerOf(*context->auth_context()));
          on_stream_(std::move(stream), remote);
        },
        wake_);
  }

  net::BoundedAcceptor* const acceptor_;
  const std::shared_ptr<CallRegistry> registry_;
  const OnStream on_stream_;
  const std::function<void(StreamId)> wake_;
};

PeerListener::PeerListener(std::unique_ptr<net::BoundedAcceptor> acceptor)
    : acceptor_(std::move(acceptor)) {}

PeerListener::~PeerListener() = default;

absl::StatusOr<std::unique_ptr<PeerListener>> PeerListener::Start(
    const GrpcTransportOptions& options,
    const std::vector<std::string>& addresses,
    std::shared_ptr<CallRegistry> registry, OnStream on_stream,
    std::function<void(StreamId)> wake) {
  net::NetworkSecurity* const security = options.security;
  net::AcceptorOptions limits;
  limits.tls = security != nullptr;
  limits.max_pending = options.max_pending;
  // A link may be replaced by another before it is gone.
  limits.max_connections = 2 * options.max_links + options.max_pending;
  limits.patience = options.hello_timeout;
  if (security != nullptr) {
    limits.on_refusal = [security](absl::string_view reason) {
      security->CountRefusal(reason);
    };
  }
  DFL_ASSIGN_OR_RETURN(
      std::unique_ptr<net::BoundedAcceptor> acceptor,
      net::BoundedAcceptor::Bind(addresses, std::move(limits)));
  std::unique_ptr<PeerListener> listener(new PeerListener(std::move(acceptor)));
  listener->service_ =
      std::make_unique<Service>(listener->acceptor_.get(), std::move(registry),
                                std::move(on_stream), std::move(wake));
  grpc::ServerBuilder builder;
  builder.SetOption(std::make_unique<net::NoReflection>());
  SetServerArguments(options, builder);
  builder.RegisterService(listener->service_.get());
  listener->entrance_ = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
      security == nullptr ? grpc::InsecureServerCredentials()
                          : security->ServerCredentials(PeerRoles()));
  listener->server_ = builder.BuildAndStart();
  if (listener->server_ == nullptr) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", absl::StrJoin(addresses, ", "),
                     ": gRPC could not start its server; its log says why"));
  }
  listener->acceptor_->Start([entrance = listener->entrance_.get()](int fd) {
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters
        connection;
    connection.fd = fd;
    entrance->HandleNewConnection(&connection);
  });
  return listener;
}

void PeerListener::Shutdown() {
  acceptor_->Stop();
  server_->Shutdown(std::chrono::system_clock::now() +
                    std::chrono::milliseconds(300));
}

}  // namespace dfl::exchange
