// What the transport can be told, and what gRPC is told of it.
#ifndef DFL_EXCHANGE_GRPC_OPTIONS_H_
#define DFL_EXCHANGE_GRPC_OPTIONS_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "daemon/net/network_security.h"
#include "daemon/ports/transport.h"
#include "grpcpp/grpcpp.h"

namespace dfl::exchange {

struct GrpcTransportOptions {
  // Who this node says it is. `advertised` may be set later, once the ports
  // are known. The incarnation must not be 0.
  ports::PeerIdentity self;
  // What a secured network asks of both ends; outlives the transport. Null:
  // everything is in plain text, and peers are whoever they say.
  net::NetworkSecurity* security = nullptr;
  // In plain text: the network that this node says it belongs to, and that its
  // peers must say, too; "": none. With security certificates say it.
  std::string cluster;
  // The bound for both streams of one link. It must hold at least one largest
  // Chunk (1 MiB + 64 bytes), or sending that is always refused.
  int64_t max_queued_bytes = 4 << 20;
  // The most links, including pending dials. More are refused.
  int64_t max_links = 256;
  absl::Duration dial_timeout = absl::Seconds(5);
  // The most connections at the listener that are not admitted yet.
  int64_t max_pending = 128;
  // How long a peer that dialled may take to shake hands, and then to say Hello
  // on both streams.
  absl::Duration hello_timeout = absl::Seconds(5);
  // A silent peer is pinged after keepalive_time and given up keepalive_timeout
  // later.
  absl::Duration keepalive_time = absl::Seconds(10);
  absl::Duration keepalive_timeout = absl::Seconds(20);
};

// For a channel that is one link and is never connected again.
grpc::ChannelArguments ChannelArguments(const GrpcTransportOptions& options);

// For a listener that strangers may connect to.
void SetServerArguments(const GrpcTransportOptions& options,
                        grpc::ServerBuilder& builder);

}  // namespace dfl::exchange

#endif  // DFL_EXCHANGE_GRPC_OPTIONS_H_
