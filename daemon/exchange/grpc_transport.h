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
#include "daemon/exchange/grpc_options.h"
#include "daemon/exchange/link_upkeep.h"
#include "daemon/exchange/lobby.h"
#include "daemon/exchange/peer_gate.h"
#include "daemon/exchange/peer_listener.h"
#include "daemon/exchange/stream.h"
#include "daemon/ports/loop.h"
#include "daemon/ports/transport.h"
#include "grpcpp/grpcpp.h"

namespace dfl::exchange {

class GrpcTransport final : public ports::Transport {
 public:
  // `loop` must outlive it.
  GrpcTransport(ports::Loop& loop, GrpcTransportOptions options);
  ~GrpcTransport() override;  // Shutdown
  GrpcTransport(const GrpcTransport&) = delete;
  GrpcTransport& operator=(const GrpcTransport&) = delete;

  // Listens on every address and returns them with their ports, see
  // PeerListener::Start. Call once, on any thread, after SetHandler and before
  // the first Dial.
  absl::StatusOr<std::vector<std::string>> Listen(
      const std::vector<std::string>& addresses);

  // Ends the links of peers that are not admitted any more: their certificate
  // has expired, its authority was removed, or they are banned. Shows peers the
  // newest certificate of this node. See link_upkeep.h. Call at least once a
  // second in a secured network.
  void RecheckPeers(absl::Time now) { upkeep_.Recheck(now); }
  int64_t unrenewed_links() const { return upkeep_.unrenewed(); }

  // The address in all later Hellos. "": this node cannot be dialled.
  void SetAdvertised(const std::string& address) {
    options_.self.advertised = address;
  }

  // Ends all links and the listener within a second, even if peers are stuck.
  // The handler is not called any more. Call on the loop, or on any thread once
  // the loop has stopped. Idempotent.
  void Shutdown();

  void SetHandler(Handler* handler) override { handler_ = handler; }
  // A bad address fails with INVALID_ARGUMENT. After Shutdown nothing is told.
  void Dial(const std::string& address) override;
  void Close(ports::LinkId id, const absl::Status& reason) override;
  absl::Status Send(ports::LinkId id, ports::Frame frame) override;
  int64_t max_queued_bytes() const override {
    return options_.max_queued_bytes;
  }
  int64_t UnsentBytes(ports::LinkId id) const override {
    const auto found = links_.find(id);
    return found == links_.end() ? 0 : QueuedIn(found->second.budget);
  }

 private:
  enum class LinkState { kDialling, kUp };
  struct Link {
    LinkState state = LinkState::kDialling;
    std::string dialled;  // "" when the peer dialled
    uint64_t nonce = 0;
    ports::PeerIdentity peer;
    PeerCertificates certificates;         // that the peer showed
    std::string shown;                     // what we showed: its fingerprint
    std::shared_ptr<DialRefusal> refusal;  // when we dialled
    int hellos = 0;                        // kDialling: answers so far
    std::shared_ptr<Stream> streams[2];    // by StreamKind
    std::shared_ptr<SendBudget> budget;
    std::shared_ptr<grpc::Channel> channel;  // when we dialled
    ports::TimerId timer = 0;                // kDialling: of the dial
  };
  struct LinkedStream {
    std::shared_ptr<Stream> stream;
    ports::LinkId link = 0;
  };

  std::function<void(StreamId)> Waker();
  // Posts `f` to the loop, where it runs unless the transport is gone by then.
  // Any thread.
  void PostSafely(std::function<void()> f);
  std::function<void()> Guarded(std::function<void()> f);

  // The stream, of a link or in the lobby; null if it is gone.
  std::shared_ptr<Stream> Find(StreamId id) const;
  void Drain(StreamId id);
  void OnLinkEvent(ports::LinkId id, Stream::Event event);
  void OnLobbyEvent(StreamId id, const Stream::Event& event);
  void OnDialledHello(ports::LinkId id, const Greeting& greeting);
  void OnAcceptedHello(StreamId id, const Greeting& greeting);
  void BringUp(ports::LinkId id);
  void FailDial(ports::LinkId id, const absl::Status& reason);
  void TakeDown(ports::LinkId id, const absl::Status& cause);
  // Ends its streams and forgets it, without telling the handler.
  void Forget(ports::LinkId id, const absl::Status& reason);

  ports::Loop& loop_;
  GrpcTransportOptions options_;
  const PeerGate gate_;
  Handler* handler_ = nullptr;
  Rng nonces_;
  ports::LinkId last_link_ = 0;
  std::map<ports::LinkId, Link> links_;
  std::map<StreamId, LinkedStream> streams_;
  Lobby lobby_;
  bool shut_down_ = false;
  // Whether posted tasks may still use the transport. Read and written on the
  // loop.
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);

  const std::shared_ptr<CallRegistry> registry_;
  LinkUpkeep upkeep_;
  std::unique_ptr<PeerListener> listener_;
};

}  // namespace dfl::exchange

#endif  // DFL_EXCHANGE_GRPC_TRANSPORT_H_
