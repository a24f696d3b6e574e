#include "daemon/exchange/grpc_options.h"

#include "daemon/ports/frames.h"

namespace dfl::exchange {
namespace {

// A largest chunk with its header; control frames are checked apart.
constexpr int kMaxMessageBytes = ports::kMaxChunkBytes + 1024;

int Millis(absl::Duration duration) {
  return static_cast<int>(absl::ToInt64Milliseconds(duration));
}

template <typename Arguments>
void SetCommonArguments(const GrpcTransportOptions& options,
                        Arguments set_int) {
  set_int(GRPC_ARG_KEEPALIVE_TIME_MS, Millis(options.keepalive_time));
  set_int(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, Millis(options.keepalive_timeout));
  set_int(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  set_int(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  set_int(GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, kMaxMessageBytes);
  set_int(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, kMaxMessageBytes);
}

}  // namespace

grpc::ChannelArguments ChannelArguments(const GrpcTransportOptions& options) {
  grpc::ChannelArguments arguments;
  SetCommonArguments(options, [&](const char* name, int value) {
    arguments.SetInt(name, value);
  });
  // A connection for each link, and no second life for it: reconnecting is
  // runtime's business.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  // Also the time for each address of a name.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS,
                   Millis(options.dial_timeout) / 2);
  // Neighbours are dialled where they are, whatever the environment says.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  return arguments;
}

void SetServerArguments(const GrpcTransportOptions& options,
                        grpc::ServerBuilder& builder) {
  SetCommonArguments(options, [&](const char* name, int value) {
    builder.AddChannelArgument(name, value);
  });
  // Peers ping as often as we do.
  builder.AddChannelArgument(
      GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
      Millis(options.keepalive_time) / 2);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  // Strangers: who connects must speak HTTP/2, and open a stream, in time.
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                             Millis(options.hello_timeout));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS,
                             6 * Millis(options.hello_timeout));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, 8);
}

}  // namespace dfl::exchange
