// The server that peers dial. It hands every stream that they open to its
// owner and knows nothing of links.
#ifndef DFL_EXCHANGE_PEER_LISTENER_H_
#define DFL_EXCHANGE_PEER_LISTENER_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/exchange/grpc_calls.h"
#include "daemon/exchange/grpc_options.h"
#include "daemon/exchange/stream.h"
#include "daemon/net/bounded_acceptor.h"
#include "grpcpp/grpcpp.h"

namespace dfl::exchange {

// Thread-compatible, but for the callbacks, which gRPC's threads call until
// `registry` is empty after Shutdown.
class PeerListener {
 public:
  // `remote` is the connection, as gRPC names it. Two streams of one connection
  // have the same.
  using OnStream = std::function<void(std::shared_ptr<Stream> stream,
                                      const std::string& remote)>;

  // Listens on every address ("host:port", port 0: the system chooses). `wake`
  // is called when a stream has something to be taken. On an error nothing
  // listens.
  // Errors: INVALID_ARGUMENT: not an address; ALREADY_EXISTS: in use;
  // PERMISSION_DENIED; UNAVAILABLE: not an address of this machine. The text
  // names the address and what to do.
  static absl::StatusOr<std::unique_ptr<PeerListener>> Start(
      const GrpcTransportOptions& options,
      const std::vector<std::string>& addresses,
      std::shared_ptr<CallRegistry> registry, OnStream on_stream,
      std::function<void(StreamId)> wake);
  ~PeerListener();
  PeerListener(const PeerListener&) = delete;
  PeerListener& operator=(const PeerListener&) = delete;

  // Where it listens, with the ports that were chosen.
  const std::vector<std::string>& addresses() const {
    return acceptor_->addresses();
  }

  // Stops listening. Calls that do not end within 300 ms are cut off. The
  // owner waits until `registry` is empty before it destroys the listener.
  void Shutdown();

 private:
  class Service;

  explicit PeerListener(std::unique_ptr<net::BoundedAcceptor> acceptor);

  const std::unique_ptr<net::BoundedAcceptor> acceptor_;
  std::unique_ptr<Service> service_;
  // Takes connections that the acceptor hands on.
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> entrance_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace dfl::exchange

#endif  // DFL_EXCHANGE_PEER_LISTENER_H_
