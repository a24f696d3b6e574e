// The two halves of a gRPC stream as reactors: DialledCall at the node that
// dialled, AcceptedCall at the one that listens. They convert messages, start
// nothing on their own, and delete themselves in OnDone.
#ifndef DFL_EXCHANGE_GRPC_CALLS_H_
#define DFL_EXCHANGE_GRPC_CALLS_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "daemon/exchange/proto_frames.h"
#include "daemon/exchange/stream.h"
#include "dfl/peer/v1/peer.grpc.pb.h"
#include "grpcpp/grpcpp.h"
#include "proto/grpc_status.h"

namespace dfl::exchange {

// All live calls, so that a shutdown can end them and wait until they are gone.
// Thread-safe.
class CallRegistry {
 public:
  // The most calls that one peer may make here: a link has two, and for a
  // moment there may be another link, a renewal and ones that are ending.
  static constexpr int64_t kMaxCallsOfPeer = 16;

  explicit CallRegistry(int64_t max_calls) : max_calls_(max_calls) {}

  StreamId NewId() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return ++last_id_;
  }
  // `peer` made the call; "": we made it, or the peer is not known.
  // Errors: UNAVAILABLE: shutting down; RESOURCE_EXHAUSTED: too many calls, or
  // too many of that peer. Then the call is not in it, and Remove does nothing.
  absl::Status Add(std::shared_ptr<Stream> stream, const std::string& peer = "")
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Remove(StreamId id) ABSL_LOCKS_EXCLUDED(mutex_);
  // Refuses new calls and ends the existing ones.
  void Shutdown() ABSL_LOCKS_EXCLUDED(mutex_);
  void WaitUntilEmpty() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct LiveCall {
    std::shared_ptr<Stream> stream;
    std::string peer;
  };

  bool Empty() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return calls_.empty();
  }

  const int64_t max_calls_;
  absl::Mutex mutex_;
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  StreamId last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<StreamId, LiveCall> calls_ ABSL_GUARDED_BY(mutex_);
  // Of each known peer that has any.
  std::map<std::string, int64_t> of_peer_ ABSL_GUARDED_BY(mutex_);
};

// The identity of a connection's peer as a URI; "" in plain text.
std::string PeerOf(const grpc::AuthContext& context);

namespace internal {

// What differs between Control{Request,Response} and Bulk{Request,Response}.
template <typename Message>
struct Wire;

template <typename Message>
struct ControlWire {
  static constexpr StreamKind kKind = StreamKind::kControl;
  static void Set(ports::Frame frame, Message* message) {
    ToProto(std::move(frame), message->mutable_frame());
  }
  static bool HasFrame(const Message& message) { return message.has_frame(); }
  static absl::StatusOr<ports::Frame> Get(Message* message) {
    return FromProto(message->mutable_frame());
  }
};

template <typename Message>
struct BulkWire {
  static constexpr StreamKind kKind = StreamKind::kBulk;
  static void Set(ports::Frame frame, Message* message) {
    ToProto(std::get<ports::Chunk>(std::move(frame)), message->mutable_chunk());
  }
  static bool HasFrame(const Message& message) { return message.has_chunk(); }
  static absl::StatusOr<ports::Frame> Get(Message* message) {
    return FromProto(message->mutable_chunk());
  }
};

template <>
struct Wire<pb::ControlRequest> : ControlWire<pb::ControlRequest> {};
template <>
struct Wire<pb::ControlResponse> : ControlWire<pb::ControlResponse> {};
template <>
struct Wire<pb::BulkRequest> : BulkWire<pb::BulkRequest> {};
template <>
struct Wire<pb::BulkResponse> : BulkWire<pb::BulkResponse> {};

template <typename Message>
void Fill(StreamMessage outgoing, Message* message) {
  if (auto* hello = std::get_if<pb::Hello>(&outgoing)) {
    *message->mutable_hello() = std::move(*hello);
  } else {
    Wire<Message>::Set(std::get<ports::Frame>(std::move(outgoing)), message);
  }
}

PeerCertificates CertificatesOf(const grpc::AuthContext& context);

// The first message must be a Hello, every other one a frame. `context` is a
// client's or a server's.
template <typename Message, typename Context>
absl::StatusOr<Stream::Event> Open(bool first, const Context& context,
                                   Message* message) {
  if (first) {
    if (!message->has_hello()) {
      return absl::InvalidArgumentError(
          "the first message of the stream is no hello");
    }
    return Stream::Event(Greeting{std::move(*message->mutable_hello()),
                                  CertificatesOf(*context.auth_context())});
  }
  if (!Wire<Message>::HasFrame(*message)) {
    return absl::InvalidArgumentError("a message without a frame");
  }
  absl::StatusOr<ports::Frame> frame = Wire<Message>::Get(message);
  if (!frame.ok()) return frame.status();
  return Stream::Event(*std::move(frame));
}

// What a small frame takes in the inbox beside its bytes.
constexpr int64_t kEventBytes = 256;

template <typename Message>
int64_t InboxBytes(const Message& message) {
  return static_cast<int64_t>(message.ByteSizeLong()) + kEventBytes;
}

}  // namespace internal

// A call on a channel of its own. Create with Start.
template <typename Out, typename In>
class DialledCall final : public grpc::ClientBidiReactor<Out, In>, public Call {
 public:
  using StartCall = std::function<void(grpc::ClientContext*,
                                       grpc::ClientBidiReactor<Out, In>*)>;

  // Starts the call and sends `hello`. Returns null if the registry refuses.
  static std::shared_ptr<Stream> Start(std::shared_ptr<CallRegistry> registry,
                                       pb::Hello hello, StartCall start,
                                       std::function<void(StreamId)> wake) {
    auto* call = new DialledCall(registry, std::move(wake));
    if (!registry->Add(call->stream_).ok()) {
      delete call;
      return nullptr;
    }
    std::shared_ptr<Stream> stream = call->stream_;
    start(&call->context_, call);
    // Ours until End: reads and writes start from outside reactions.
    call->AddHold();
    stream->SendHello(std::move(hello));
    stream->ReadHello();
    grpc::ClientBidiReactor<Out, In>* reactor = call;
    reactor->StartCall();
    return stream;
  }

  void Read() override { this->StartRead(&in_); }
  void Write(StreamMessage message) override {
    internal::Fill(std::move(message), &out_);
    this->StartWrite(&out_);
  }
  void End(const absl::Status&, Ending ending) override {
    if (ending != Ending::kDone) context_.TryCancel();
    this->RemoveHold();
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      stream_->ReadEnded(/*closed=*/false, absl::OkStatus());
      return;
    }
    const int64_t bytes = internal::InboxBytes(in_);
    absl::StatusOr<Stream::Event> event =
        internal::Open(!std::exchange(greeted_, true), context_, &in_);
    if (event.ok()) {
      stream_->ReadDone(*std::move(event), bytes);
    } else {
      stream_->ReadRefused(event.status());
    }
  }
  void OnWriteDone(bool ok) override { stream_->WriteDone(ok); }
  void OnDone(const grpc::Status& status) override {
    stream_->CallEnded(FromGrpc(status));
    const std::shared_ptr<CallRegistry> registry = std::move(registry_);
    const StreamId id = stream_->id();
    delete this;
    registry->Remove(id);
  }

 private:
  DialledCall(std::shared_ptr<CallRegistry> registry,
              std::function<void(StreamId)> wake)
      : registry_(std::move(registry)) {
    const StreamId id = registry_->NewId();
    stream_ =
        std::make_shared<Stream>(id, internal::Wire<Out>::kKind, this,
                                 [id, wake = std::move(wake)] { wake(id); });
  }

  std::shared_ptr<CallRegistry> registry_;
  std::shared_ptr<Stream> stream_;
  grpc::ClientContext context_;
  Out out_;
  In in_;
  bool greeted_ = false;  // the first message came
};

// A call that a peer made. Create with Start; gRPC's service returns it.
template <typename In, typename Out>
class AcceptedCall final : public grpc::ServerBidiReactor<In, Out>,
                           public Call {
 public:
  // `accepted` gets the stream before anything is read from it. It is not
  // called if the registry refuses.
  static grpc::ServerBidiReactor<In, Out>* Start(
      std::shared_ptr<CallRegistry> registry,
      grpc::CallbackServerContext* context,
      const std::function<void(std::shared_ptr<Stream>)>& accepted,
      std::function<void(StreamId)> wake) {
    auto* call = new AcceptedCall(registry, context, std::move(wake));
    const std::shared_ptr<Stream> stream = call->stream_;
    if (absl::Status added =
            registry->Add(stream, PeerOf(*context->auth_context()));
        !added.ok()) {
      stream->Stop(added);
      return call;
    }
    accepted(stream);
    stream->ReadHello();
    return call;
  }

  void Read() override { this->StartRead(&in_); }
  void Write(StreamMessage message) override {
    internal::Fill(std::move(message), &out_);
    this->StartWrite(&out_);
  }
  void End(const absl::Status& status, Ending ending) override {
    if (ending != Ending::kStatus) context_->TryCancel();
    this->Finish(ToGrpc(status));
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      stream_->ReadEnded(/*closed=*/true, absl::CancelledError("stream ended"));
      return;
    }
    const int64_t bytes = internal::InboxBytes(in_);
    absl::StatusOr<Stream::Event> event =
        internal::Open(!std::exchange(greeted_, true), *context_, &in_);
    if (event.ok()) {
      stream_->ReadDone(*std::move(event), bytes);
    } else {
      stream_->ReadRefused(event.status());
    }
  }
  void OnWriteDone(bool ok) override { stream_->WriteDone(ok); }
  void OnDone() override {
    const std::shared_ptr<CallRegistry> registry = std::move(registry_);
    const StreamId id = stream_->id();
    delete this;
    registry->Remove(id);
  }

 private:
  AcceptedCall(std::shared_ptr<CallRegistry> registry,
               grpc::CallbackServerContext* context,
               std::function<void(StreamId)> wake)
      : registry_(std::move(registry)), context_(context) {
    const StreamId id = registry_->NewId();
    stream_ =
        std::make_shared<Stream>(id, internal::Wire<In>::kKind, this,
                                 [id, wake = std::move(wake)] { wake(id); });
  }

  std::shared_ptr<CallRegistry> registry_;
  std::shared_ptr<Stream> stream_;
  grpc::CallbackServerContext* const context_;
  Out out_;
  In in_;
  bool greeted_ = false;  // the first message came
};

// Starts one half of a link on `channel`, which the call keeps. Null if the
// registry refuses.
std::shared_ptr<Stream> DialControl(
    const std::shared_ptr<CallRegistry>& registry,
    const std::shared_ptr<grpc::Channel>& channel, const pb::Hello& hello,
    std::function<void(StreamId)> wake);
std::shared_ptr<Stream> DialBulk(const std::shared_ptr<CallRegistry>& registry,
                                 const std::shared_ptr<grpc::Channel>& channel,
                                 const pb::Hello& hello,
                                 std::function<void(StreamId)> wake);

}  // namespace dfl::exchange

#endif  // DFL_EXCHANGE_GRPC_CALLS_H_
