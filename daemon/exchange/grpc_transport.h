// ports::Transport over gRPC: a link is one Control and one Bulk stream of
// proto/dfl/peer/v1 on a connection of its own. See docs/protocol.md.
//
// Threads: loop only, unless a method says otherwise. gRPC's threads write
// queued frames, read and check incoming ones, and post to the loop.
#ifndef DFL_EXCHANGE_GRPC_TRANSPORT_H_
#define DFL_EXCHANGE_GRPC_TRANSPORT_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/base/rng.h"
#include "daemon/exchange/grpc_calls.h"
#include "daemon/exchange/stream.h"
#include "daemon/ports/loop.h"
#include "daemon/ports/transport.h"
#include "grpcpp/grpcpp.h"

namespace dfl::exchange {

struct GrpcTransportOptions {
  // Who this node says it is. `advertised` may be set later, once the ports
  // are known. The incarnation must not be 0.
  ports::PeerIdentity self;
  std::shared_ptr<grpc::ServerCredentials> server_credentials =
      grpc::InsecureServerCredentials();
  std::shared_ptr<grpc::ChannelCredentials> channel_credentials =
      grpc::InsecureChannelCredentials();
  // The bound for both streams of one link. It must hold at least one largest
  // Chunk (1 MiB + 64 bytes), or sending that is always refused.
  int64_t max_queued_bytes = 4 << 20;
  // The most links, including pending dials. More are refused.
  int64_t max_links = 256;
  absl::Duration dial_timeout = absl::Seconds(5);
  // How long a peer that dialled may take to say Hello on both streams.
  absl::Duration hello_timeout = absl::Seconds(5);
  // A silent peer is pinged after keepalive_time and given up keepalive_timeout
  // later.
  absl::Duration keepalive_time = absl::Seconds(10);
  absl::Duration keepalive_timeout = absl::Seconds(20);
};

class GrpcTransport final : public ports::Transport {
 public:
  // `loop` must outlive it.
  GrpcTransport(ports::Loop& loop, GrpcTransportOptions options);
  // Shutdown.
  ~GrpcTransport() override;
  GrpcTransport(const GrpcTransport&) = delete;
  GrpcTransport& operator=(const GrpcTransport&) = delete;

  // Listens on every address ("host:port", port 0: the system chooses) and
  // returns them with their ports. Call once, on any thread, after SetHandler
  // and before the first Dial. On an error nothing listens.
  // Errors: INVALID_ARGUMENT: not an address; ALREADY_EXISTS: in use;
  // PERMISSION_DENIED; UNAVAILABLE: not an address of this machine, or gRPC
  // could not bind it. The text names the address.
  absl::StatusOr<std::vector<std::string>> Listen(
      const std::vector<std::string>& addresses);

  // The address in all later Hellos. "": this node cannot be dialled.
  void SetAdvertised(const std::string& address) {
    options_.self.advertised = address;
  }

  // Ends all links and the listener within a second, even if peers are stuck.
  // The handler is not called any more. Call on the loop, or on any thread once
  // the loop has stopped. Idempotent.
  void Shutdown();

  void SetHandler(Handler* handler) override { handler_ = handler; }
  // A malformed address fails with INVALID_ARGUMENT. After Shutdown nothing is
  // reported.
  void Dial(const std::string& address) override;
  void Close(ports::LinkId id, const absl::Status& reason) override;
  absl::Status Send(ports::LinkId id, ports::Frame frame) override;
  int64_t max_queued_bytes() const override {
    return options_.max_queued_bytes;
  }

 private:
  class Service;

  enum class LinkState { kDialling, kUp };
  struct Link {
    LinkState state = LinkState::kDialling;
    std::string dialled;  // "" when the peer dialled
    uint64_t nonce = 0;
    ports::PeerIdentity peer;
    int hellos = 0;                      // kDialling: answers so far
    std::shared_ptr<Stream> streams[2];  // by StreamKind
    std::shared_ptr<SendBudget> budget;
    std::shared_ptr<grpc::Channel> channel;  // when we dialled
    ports::TimerId timer = 0;                // kDialling: of the dial
  };
  // A stream and its link.
  struct Entry {
    std::shared_ptr<Stream> stream;
    ports::LinkId link = 0;  // 0: accepted, and its link is not complete
    // While link is 0:
    std::string remote;  // the connection, as gRPC names it
    bool greeted = false;
    uint64_t nonce = 0;
    ports::PeerIdentity peer;
    ports::TimerId timer = 0;
  };

  std::function<void(StreamId)> Waker();
  // Posts `f` to the loop, where it runs unless the transport is gone by then.
  // Any thread.
  void PostSafely(std::function<void()> f);
  std::function<void()> Guarded(std::function<void()> f);

  void Accepted(std::shared_ptr<Stream> stream, const std::string& remote);
  void Drain(StreamId id);
  void OnEvent(StreamId id, Stream::Event event);
  void OnDialledHello(Entry& entry, const pb::Hello& hello);
  void OnAcceptedHello(Entry& entry, const pb::Hello& hello);
  void Refuse(StreamId id, const absl::Status& reason);
  void BringUp(ports::LinkId id);
  void FailDial(ports::LinkId id, const absl::Status& reason);
  void TakeDown(ports::LinkId id, const absl::Status& cause);
  // Ends its streams and forgets it, without telling the handler.
  void Forget(ports::LinkId id, const absl::Status& reason);
  absl::Status DialError(const std::string& address,
                         const absl::Status& cause) const;
  absl::Status LossReason(const Link& link, const absl::Status& cause) const;

  ports::Loop& loop_;
  GrpcTransportOptions options_;
  Handler* handler_ = nullptr;
  Rng nonces_;
  ports::LinkId last_link_ = 0;
  std::map<ports::LinkId, Link> links_;
  std::map<StreamId, Entry> streams_;
  bool shut_down_ = false;
  // Whether posted tasks may still use the transport. Read and written on the
  // loop.
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);

  const std::shared_ptr<CallRegistry> registry_;
  std::unique_ptr<Service> service_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace dfl::exchange

#endif  // DFL_EXCHANGE_GRPC_TRANSPORT_H_
