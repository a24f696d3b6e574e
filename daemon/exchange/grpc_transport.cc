#include "daemon/exchange/grpc_transport.h"

#include <chrono>  // NOLINT(build/c++11): gRPC's deadlines
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/base/check.h"
#include "daemon/base/status_macros.h"
#include "daemon/exchange/address.h"
#include "daemon/exchange/grpc_keeper.h"
#include "daemon/exchange/proto_frames.h"

namespace dfl::exchange {
namespace {

using ports::LinkId;

// A largest chunk with its header; control frames are checked apart.
constexpr int kMaxMessageBytes = ports::kMaxChunkBytes + 1024;

int Millis(absl::Duration duration) {
  return static_cast<int>(absl::ToInt64Milliseconds(duration));
}

// Nonces only have to differ between links that are made at the same time.
uint64_t FreshSeed(uint64_t incarnation) {
  std::random_device device;
  const uint64_t high = device();
  return DeriveSeed(incarnation ^ (high << 32 | device()), "link nonces");
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

bool SameProcess(const ports::PeerIdentity& a, const ports::PeerIdentity& b) {
  return a.node == b.node && a.incarnation == b.incarnation;
}

}  // namespace

class GrpcTransport::Service final : public pb::PeerService::CallbackService {
 public:
  explicit Service(GrpcTransport& transport) : transport_(transport) {}

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
        transport_.registry_, context,
        [this, remote = context->peer()](std::shared_ptr<Stream> stream) {
          transport_.PostSafely(
              [&transport = transport_, stream = std::move(stream), remote] {
                transport.Accepted(stream, remote);
              });
        },
        transport_.Waker());
  }

  GrpcTransport& transport_;
};

GrpcTransport::GrpcTransport(ports::Loop& loop, GrpcTransportOptions options)
    : loop_(loop),
      options_(std::move(options)),
      nonces_(FreshSeed(options_.self.incarnation)),
      // Two streams a link, and some for peers that have not said Hello yet.
      registry_(std::make_shared<CallRegistry>(2 * options_.max_links + 64)) {
  KeepCallbackThreads();
  DFL_CHECK(options_.self.incarnation != 0);
  DFL_CHECK(ValidateNodeName(options_.self.node.name()).ok());
}

GrpcTransport::~GrpcTransport() { Shutdown(); }

absl::StatusOr<std::vector<std::string>> GrpcTransport::Listen(
    const std::vector<std::string>& addresses) {
  DFL_CHECK(handler_ != nullptr);
  DFL_CHECK(server_ == nullptr);
  std::vector<HostPort> parsed;
  for (const std::string& address : addresses) {
    DFL_ASSIGN_OR_RETURN(parsed.emplace_back(), ParseAddress(address));
    DFL_RETURN_IF_ERROR(CheckBindable(parsed.back()));
  }

  service_ = std::make_unique<Service>(*this);
  grpc::ServerBuilder builder;
  SetCommonArguments(options_, [&](const char* name, int value) {
    builder.AddChannelArgument(name, value);
  });
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  // Peers ping as often as we do.
  builder.AddChannelArgument(
      GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
      Millis(options_.keepalive_time) / 2);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  // Strangers: who connects must speak HTTP/2, and open a stream, in time.
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                             Millis(options_.hello_timeout));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS,
                             6 * Millis(options_.hello_timeout));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, 8);
  builder.RegisterService(service_.get());
  std::vector<int> ports(parsed.size(), 0);
  for (size_t i = 0; i < parsed.size(); ++i) {
    builder.AddListeningPort(parsed[i].ToString(), options_.server_credentials,
                             &ports[i]);
  }
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) {
    service_.reset();
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", absl::StrJoin(addresses, ", "),
                     ": gRPC could not bind it; is the port in use?"));
  }
  std::vector<std::string> bound;
  for (size_t i = 0; i < parsed.size(); ++i) {
    parsed[i].port = ports[i];
    bound.push_back(parsed[i].ToString());
  }
  return bound;
}

void GrpcTransport::Shutdown() {
  if (shut_down_) return;
  shut_down_ = true;
  *alive_ = false;
  registry_->Shutdown();
  links_.clear();
  streams_.clear();
  if (server_ != nullptr) {
    server_->Shutdown(std::chrono::system_clock::now() +
                      std::chrono::milliseconds(300));
  }
  registry_->WaitUntilEmpty();
  server_.reset();
  service_.reset();
}

std::function<void()> GrpcTransport::Guarded(std::function<void()> f) {
  return [alive = alive_, f = std::move(f)] {
    if (*alive) f();
  };
}

void GrpcTransport::PostSafely(std::function<void()> f) {
  loop_.Post(Guarded(std::move(f)));
}

std::function<void(StreamId)> GrpcTransport::Waker() {
  return [this](StreamId id) { PostSafely([this, id] { Drain(id); }); };
}

// Dialling.

void GrpcTransport::Dial(const std::string& address) {
  DFL_CHECK(handler_ != nullptr);
  if (shut_down_) return;
  const LinkId id = ++last_link_;
  Link& link = links_[id];
  link.dialled = address;
  do {
    link.nonce = nonces_.Next();
  } while (link.nonce == 0);
  link.timer = loop_.After(
      options_.dial_timeout, Guarded([this, id] {
        FailDial(id, absl::DeadlineExceededError(absl::StrCat(
                         "no answer within ",
                         absl::FormatDuration(options_.dial_timeout))));
      }));
  const absl::StatusOr<HostPort> parsed = ParseAddress(address);
  absl::Status failure = parsed.status();
  if (failure.ok() &&
      static_cast<int64_t>(links_.size()) > options_.max_links) {
    failure = absl::ResourceExhaustedError(absl::StrCat(
        "there are ", links_.size() - 1, " links already; no more are made"));
  }
  if (!failure.ok()) {
    PostSafely([this, id, failure] { FailDial(id, failure); });
    return;
  }

  link.channel = grpc::CreateCustomChannel(
      absl::StrCat("dns:///", parsed->ToString()), options_.channel_credentials,
      ChannelArguments(options_));
  const pb::Hello hello = MakeHello(options_.self, link.nonce);
  using ControlCall = DialledCall<pb::ControlRequest, pb::ControlResponse>;
  using BulkCall = DialledCall<pb::BulkRequest, pb::BulkResponse>;
  // The calls keep their channel; a stub is only needed to start them.
  pb::PeerService::Stub stub(link.channel);
  link.streams[0] = ControlCall::Start(
      registry_, hello,
      [&stub](auto* context, auto* reactor) {
        stub.async()->Control(context, reactor);
      },
      Waker());
  link.streams[1] = BulkCall::Start(
      registry_, hello,
      [&stub](auto* context, auto* reactor) {
        stub.async()->Bulk(context, reactor);
      },
      Waker());
  for (const std::shared_ptr<Stream>& stream : link.streams) {
    if (stream == nullptr) {
      PostSafely([this, id] {
        FailDial(id, absl::ResourceExhaustedError("too many streams are open"));
      });
      return;
    }
    Entry& entry = streams_[stream->id()];
    entry.stream = stream;
    entry.link = id;
  }
}

absl::Status GrpcTransport::DialError(const std::string& address,
                                      const absl::Status& cause) const {
  const std::string text =
      absl::StrCat("dialling ", address, ": ", cause.message());
  switch (cause.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
      return absl::Status(cause.code(), text);
    case absl::StatusCode::kUnimplemented:
      return absl::FailedPreconditionError(
          absl::StrCat("dialling ", address,
                       ": what listens there is no peer listener of dfld (",
                       cause.message(), ")"));
    default:
      return absl::UnavailableError(text);
  }
}

void GrpcTransport::FailDial(LinkId id, const absl::Status& reason) {
  const auto found = links_.find(id);
  if (found == links_.end() || found->second.state != LinkState::kDialling) {
    return;
  }
  const std::string address = found->second.dialled;
  Forget(id, reason);
  handler_->OnDialFailed(address, DialError(address, reason));
}

void GrpcTransport::OnDialledHello(Entry& entry, const pb::Hello& hello) {
  const LinkId id = entry.link;
  Link& link = links_.at(id);
  absl::StatusOr<ports::PeerIdentity> peer = CheckHello(hello);
  absl::Status status = peer.status();
  if (status.ok() && hello.link_nonce() != link.nonce) {
    status = absl::InvalidArgumentError("the answer is for another link");
  }
  if (status.ok() && link.hellos > 0 && !SameProcess(*peer, link.peer)) {
    status = absl::InvalidArgumentError(
        "its two streams come from different processes");
  }
  if (!status.ok()) {
    FailDial(id, status);
    return;
  }
  link.peer = *std::move(peer);
  if (++link.hellos == 2) BringUp(id);
}

// Accepting.

void GrpcTransport::Accepted(std::shared_ptr<Stream> stream,
                             const std::string& remote) {
  const StreamId id = stream->id();
  Entry& entry = streams_[id];
  entry.stream = std::move(stream);
  entry.remote = remote;
  entry.timer = loop_.After(
      options_.hello_timeout, Guarded([this, id] {
        Refuse(id, absl::DeadlineExceededError(absl::StrCat(
                       "no hello on both streams within ",
                       absl::FormatDuration(options_.hello_timeout))));
      }));
}

void GrpcTransport::Refuse(StreamId id, const absl::Status& reason) {
  const auto found = streams_.find(id);
  if (found == streams_.end()) return;
  const std::shared_ptr<Stream> stream = found->second.stream;
  if (found->second.timer != 0) loop_.Cancel(found->second.timer);
  streams_.erase(found);
  stream->Stop(reason);
}

void GrpcTransport::OnAcceptedHello(Entry& entry, const pb::Hello& hello) {
  const StreamId id = entry.stream->id();
  const ports::PeerIdentity& self = options_.self;
  absl::StatusOr<ports::PeerIdentity> peer = CheckHello(hello);
  absl::Status status = peer.status();
  if (status.ok() && peer->node == self.node) {
    status = absl::FailedPreconditionError(absl::StrCat(
        "it is ",
        SameProcess(*peer, self)
            ? "this node itself"
            : "another daemon with the same node name; give each its own",
        " (\"", self.node.name(), "\")"));
  }
  if (status.ok() &&
      static_cast<int64_t>(links_.size()) >= options_.max_links) {
    status = absl::ResourceExhaustedError(
        absl::StrCat("node ", self.node.name(), " has ", links_.size(),
                     " links; no more are accepted"));
  }
  if (!status.ok()) {
    Refuse(id, status);
    return;
  }
  entry.greeted = true;
  entry.nonce = hello.link_nonce();
  entry.peer = *std::move(peer);
  for (auto& [other_id, other] : streams_) {
    if (other.link != 0 || !other.greeted || other_id == id ||
        other.nonce != entry.nonce || other.remote != entry.remote ||
        !SameProcess(other.peer, entry.peer)) {
      continue;
    }
    if (other.stream->kind() == entry.stream->kind()) {
      Refuse(id, absl::InvalidArgumentError("the stream exists already"));
      return;
    }
    const LinkId link_id = ++last_link_;
    Link& link = links_[link_id];
    link.nonce = entry.nonce;
    link.peer = entry.peer;
    for (Entry* half : {&entry, &other}) {
      half->link = link_id;
      loop_.Cancel(half->timer);
      half->timer = 0;
      link.streams[static_cast<int>(half->stream->kind())] = half->stream;
      half->stream->SendHello(MakeHello(self, link.nonce));
    }
    BringUp(link_id);
    return;
  }
}

// Links.

void GrpcTransport::BringUp(LinkId id) {
  Link& link = links_.at(id);
  if (link.timer != 0) loop_.Cancel(link.timer);
  link.timer = 0;
  link.state = LinkState::kUp;
  link.budget = std::make_shared<SendBudget>(options_.max_queued_bytes);
  for (const std::shared_ptr<Stream>& stream : link.streams) {
    stream->OpenUp(link.budget);
  }
  // Copies: the handler may close the link at once.
  const ports::PeerIdentity peer = link.peer;
  const std::string dialled = link.dialled;
  handler_->OnLinkUp(id, peer, dialled);
}

void GrpcTransport::Forget(LinkId id, const absl::Status& reason) {
  const auto found = links_.find(id);
  const Link link = std::move(found->second);
  links_.erase(found);
  if (link.timer != 0) loop_.Cancel(link.timer);
  for (const std::shared_ptr<Stream>& stream : link.streams) {
    if (stream == nullptr) continue;
    streams_.erase(stream->id());
    stream->Stop(reason);
  }
}

absl::Status GrpcTransport::LossReason(const Link& link,
                                       const absl::Status& cause) const {
  const std::string who =
      link.dialled.empty()
          ? link.peer.node.name()
          : absl::StrCat(link.peer.node.name(), " (", link.dialled, ")");
  switch (cause.code()) {
    case absl::StatusCode::kInvalidArgument:
      return absl::InvalidArgumentError(
          absl::StrCat(who, " broke the protocol: ", cause.message()));
    case absl::StatusCode::kUnavailable:
      return absl::UnavailableError(
          absl::StrCat("connection to ", who, " lost: ", cause.message()));
    default:
      return absl::UnavailableError(
          absl::StrCat(who, " closed the link: ", cause.message()));
  }
}

void GrpcTransport::TakeDown(LinkId id, const absl::Status& cause) {
  const absl::Status reason = LossReason(links_.at(id), cause);
  Forget(id, reason);
  handler_->OnLinkDown(id, reason);
}

void GrpcTransport::Close(LinkId id, const absl::Status& reason) {
  const auto found = links_.find(id);
  if (found == links_.end() || found->second.state != LinkState::kUp) return;
  Forget(id, reason.ok() ? absl::CancelledError("closed") : reason);
  PostSafely([this, id, reason] { handler_->OnLinkDown(id, reason); });
}

absl::Status GrpcTransport::Send(LinkId id, ports::Frame frame) {
  const auto found = links_.find(id);
  if (found == links_.end() || found->second.state != LinkState::kUp) {
    return absl::NotFoundError(absl::StrCat("link ", id, " is not up"));
  }
  DFL_RETURN_IF_ERROR(ports::ValidateFrame(frame));
  Link& link = found->second;
  const StreamKind kind = std::holds_alternative<ports::Chunk>(frame)
                              ? StreamKind::kBulk
                              : StreamKind::kControl;
  const int64_t size = ports::EncodedSize(frame);
  if (!link.budget->Reserve(size, kind)) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the queue to ", link.peer.node.name(), " is full (",
        options_.max_queued_bytes, " bytes); wait until it is writable"));
  }
  link.streams[static_cast<int>(kind)]->SendFrame(std::move(frame), size);
  return absl::OkStatus();
}

// What the streams tell.

void GrpcTransport::Drain(StreamId id) {
  const auto found = streams_.find(id);
  if (found == streams_.end()) return;
  const std::shared_ptr<Stream> stream = found->second.stream;
  Stream::Batch batch = stream->Take();
  for (Stream::Event& event : batch.events) {
    // The handler may have closed the link, or shut the transport down.
    if (shut_down_ || streams_.count(id) == 0) return;
    OnEvent(id, std::move(event));
  }
  stream->Consumed(batch);
}

void GrpcTransport::OnEvent(StreamId id, Stream::Event event) {
  Entry& entry = streams_.at(id);
  const LinkId link = entry.link;
  if (auto* frame = std::get_if<ports::Frame>(&event)) {
    handler_->OnFrame(link, std::move(*frame));
  } else if (std::holds_alternative<Stream::Writable>(event)) {
    handler_->OnWritable(link);
  } else if (const auto* hello = std::get_if<pb::Hello>(&event)) {
    if (link == 0) {
      OnAcceptedHello(entry, *hello);
    } else {
      OnDialledHello(entry, *hello);
    }
  } else {
    const absl::Status& reason = std::get<Stream::Closed>(event).reason;
    if (link == 0) {
      Refuse(id, reason);
    } else if (links_.at(link).state == LinkState::kDialling) {
      FailDial(link, reason);
    } else {
      TakeDown(link, reason);
    }
  }
}

}  // namespace dfl::exchange
