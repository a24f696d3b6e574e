#include "daemon/exchange/peer_listener.h"

#include <chrono>  // NOLINT(build/c++11): gRPC's deadlines
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/base/status_macros.h"
#include "daemon/exchange/address.h"

namespace dfl::exchange {

class PeerListener::Service final : public pb::PeerService::CallbackService {
 public:
  Service(std::shared_ptr<CallRegistry> registry, OnStream on_stream,
          std::function<void(StreamId)> wake)
      : registry_(std::move(registry)),
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
        [this, remote = context->peer()](std::shared_ptr<Stream> stream) {
          on_stream_(std::move(stream), remote);
        },
        wake_);
  }

  const std::shared_ptr<CallRegistry> registry_;
  const OnStream on_stream_;
  const std::function<void(StreamId)> wake_;
};

PeerListener::PeerListener(std::unique_ptr<Service> service)
    : service_(std::move(service)) {}

PeerListener::~PeerListener() = default;

absl::StatusOr<std::unique_ptr<PeerListener>> PeerListener::Start(
    const GrpcTransportOptions& options,
    const std::vector<std::string>& addresses,
    std::shared_ptr<CallRegistry> registry, OnStream on_stream,
    std::function<void(StreamId)> wake) {
  std::vector<HostPort> parsed;
  for (const std::string& address : addresses) {
    DFL_ASSIGN_OR_RETURN(parsed.emplace_back(), ParseAddress(address));
    DFL_RETURN_IF_ERROR(CheckBindable(parsed.back()));
  }
  std::unique_ptr<PeerListener> listener(
      new PeerListener(std::make_unique<Service>(
          std::move(registry), std::move(on_stream), std::move(wake))));
  grpc::ServerBuilder builder;
  SetServerArguments(options, builder);
  builder.RegisterService(listener->service_.get());
  std::vector<int> ports(parsed.size(), 0);
  for (size_t i = 0; i < parsed.size(); ++i) {
    builder.AddListeningPort(parsed[i].ToString(), options.server_credentials,
                             &ports[i]);
  }
  listener->server_ = builder.BuildAndStart();
  if (listener->server_ == nullptr) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", absl::StrJoin(addresses, ", "),
                     ": gRPC could not bind it; is the port in use?"));
  }
  for (size_t i = 0; i < parsed.size(); ++i) {
    parsed[i].port = ports[i];
    listener->addresses_.push_back(parsed[i].ToString());
  }
  return listener;
}

void PeerListener::Shutdown() {
  server_->Shutdown(std::chrono::system_clock::now() +
                    std::chrono::milliseconds(300));
}

}  // namespace dfl::exchange
