#include "daemon/exchange/grpc_transport.h"

#include <optional>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "daemon/base/check.h"
#include "daemon/base/status_macros.h"
#include "daemon/exchange/grpc_keeper.h"
#include "daemon/exchange/link_errors.h"
#include "daemon/exchange/proto_frames.h"

namespace dfl::exchange {
namespace {

using ports::LinkId;

// Nonces only have to differ between links that are made at the same time.
uint64_t FreshSeed(uint64_t incarnation) {
  std::random_device device;
  const uint64_t high = device();
  return DeriveSeed(incarnation ^ (high << 32 | device()), "link nonces");
}

}  // namespace

GrpcTransport::GrpcTransport(ports::Loop& loop, GrpcTransportOptions options)
    : loop_(loop),
      options_(std::move(options)),
      gate_(options_.security, options_.cluster),
      nonces_(FreshSeed(options_.self.incarnation)),
      lobby_(loop, options_.hello_timeout),
      // Two streams a link, and some for peers that have not said Hello yet.
      registry_(std::make_shared<CallRegistry>(2 * options_.max_links + 64)),
      upkeep_(loop, options_, gate_, registry_, Waker(),
              [this](LinkId id, const absl::Status& reason) {
                Forget(id, reason);
                handler_->OnLinkDown(id, reason);
              }) {
  KeepCallbackThreads();
  DFL_CHECK(options_.self.incarnation != 0);
  DFL_CHECK(ValidateNodeName(options_.self.node.name()).ok());
}

GrpcTransport::~GrpcTransport() { Shutdown(); }

absl::StatusOr<std::vector<std::string>> GrpcTransport::Listen(
    const std::vector<std::string>& addresses) {
  DFL_CHECK(handler_ != nullptr);
  DFL_CHECK(listener_ == nullptr);
  DFL_ASSIGN_OR_RETURN(
      listener_,
      PeerListener::Start(
          options_, addresses, registry_,
          [this](std::shared_ptr<Stream> stream, const std::string& remote) {
            PostSafely([this, stream = std::move(stream), remote] {
              lobby_.Enter(stream, remote);
            });
          },
          Waker()));
  return listener_->addresses();
}

void GrpcTransport::Shutdown() {
  if (shut_down_) return;
  shut_down_ = true;
  *alive_ = false;
  registry_->Shutdown();
  links_.clear();
  streams_.clear();
  lobby_.Close();
  upkeep_.Close();
  if (listener_ != nullptr) listener_->Shutdown();
  registry_->WaitUntilEmpty();
  listener_.reset();
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
  link.refusal = std::make_shared<DialRefusal>();
  absl::StatusOr<std::shared_ptr<grpc::Channel>> channel =
      gate_.Connect(address, ChannelArguments(options_), link.refusal);
  absl::Status failure = channel.status();
  if (failure.ok() &&
      static_cast<int64_t>(links_.size()) > options_.max_links) {
    failure = absl::ResourceExhaustedError(absl::StrCat(
        "there are ", links_.size() - 1, " links already; no more are made"));
  }
  if (!failure.ok()) {
    PostSafely([this, id, failure] { FailDial(id, failure); });
    return;
  }

  link.channel = *std::move(channel);
  link.shown = gate_.shown();
  const pb::Hello hello = gate_.MakeHello(options_.self, link.nonce);
  link.streams[0] = DialControl(registry_, link.channel, hello, Waker());
  link.streams[1] = DialBulk(registry_, link.channel, hello, Waker());
  for (const std::shared_ptr<Stream>& stream : link.streams) {
    if (stream == nullptr) {
      PostSafely([this, id] {
        FailDial(id, absl::ResourceExhaustedError("too many streams are open"));
      });
      return;
    }
    streams_[stream->id()] = {stream, id};
  }
}

void GrpcTransport::FailDial(LinkId id, const absl::Status& reason) {
  const auto found = links_.find(id);
  if (found == links_.end() || found->second.state != LinkState::kDialling) {
    return;
  }
  const std::string address = found->second.dialled;
  const absl::Status cause =
      gate_.secured() ? HandshakeError(reason, found->second.refusal->text())
                      : reason;
  Forget(id, reason);
  handler_->OnDialFailed(address, DialError(address, cause));
}

void GrpcTransport::OnDialledHello(LinkId id, const Greeting& greeting) {
  Link& link = links_.at(id);
  absl::StatusOr<ports::PeerIdentity> peer = gate_.Admit(greeting, absl::Now());
  absl::Status status = peer.status();
  if (status.ok() && greeting.hello.link_nonce() != link.nonce) {
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
  link.certificates = greeting.certificates;
  if (++link.hellos == 2) BringUp(id);
}

// Accepting.

void GrpcTransport::OnAcceptedHello(StreamId id, const Greeting& greeting) {
  const ports::PeerIdentity& self = options_.self;
  absl::StatusOr<ports::PeerIdentity> peer = gate_.Admit(greeting, absl::Now());
  absl::Status status = peer.status();
  if (status.ok() && peer->node == self.node) {
    status = absl::FailedPreconditionError(absl::StrCat(
        "it is ",
        SameProcess(*peer, self)
            ? ports::kThisNodeItself
            : "another daemon with the same node name; give each its own",
        " (\"", self.node.name(), "\")"));
  }
  if (status.ok() && upkeep_.Renew(*peer, greeting.hello.link_nonce(),
                                   greeting.certificates)) {
    // The dialler ends it when it has the answer.
    lobby_.Find(id)->SendHello(
        gate_.MakeHello(self, greeting.hello.link_nonce()));
    return;
  }
  if (status.ok()) status = handler_->Admit(*peer);
  if (status.ok() &&
      static_cast<int64_t>(links_.size()) >= options_.max_links) {
    status = absl::ResourceExhaustedError(
        absl::StrCat("node ", self.node.name(), " has ", links_.size(),
                     " links; no more are accepted"));
  }
  if (!status.ok()) {
    lobby_.Refuse(id, status);
    return;
  }
  std::optional<Lobby::Pair> pair =
      lobby_.Greet(id, *peer, greeting.hello.link_nonce());
  if (!pair.has_value()) return;
  const LinkId link_id = ++last_link_;
  Link& link = links_[link_id];
  link.nonce = pair->nonce;
  link.peer = std::move(pair->peer);
  // Both streams are of one connection.
  link.certificates = greeting.certificates;
  link.shown = gate_.shown();
  for (std::shared_ptr<Stream>& stream : pair->streams) {
    stream->SendHello(gate_.MakeHello(self, link.nonce));
    streams_[stream->id()] = {stream, link_id};
    link.streams[static_cast<int>(stream->kind())] = std::move(stream);
  }
  BringUp(link_id);
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
  upkeep_.Add(
      id, {link.peer, link.dialled, link.nonce, link.certificates, link.shown});
  // Copies: the handler may close the link at once.
  const ports::PeerIdentity peer = link.peer;
  const std::string dialled = link.dialled;
  handler_->OnLinkUp(id, peer, dialled);
}

void GrpcTransport::Forget(LinkId id, const absl::Status& reason) {
  const auto found = links_.find(id);
  const Link link = std::move(found->second);
  links_.erase(found);
  upkeep_.Remove(id);
  if (link.timer != 0) loop_.Cancel(link.timer);
  for (const std::shared_ptr<Stream>& stream : link.streams) {
    if (stream == nullptr) continue;
    streams_.erase(stream->id());
    stream->Stop(reason);
  }
}

void GrpcTransport::TakeDown(LinkId id, const absl::Status& cause) {
  const Link& link = links_.at(id);
  const absl::Status reason = LossReason(link.peer, link.dialled, cause);
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

std::shared_ptr<Stream> GrpcTransport::Find(StreamId id) const {
  const auto found = streams_.find(id);
  if (found != streams_.end()) return found->second.stream;
  const std::shared_ptr<Stream> guest = lobby_.Find(id);
  return guest != nullptr ? guest : upkeep_.Find(id);
}

void GrpcTransport::Drain(StreamId id) {
  const std::shared_ptr<Stream> stream = Find(id);
  if (stream == nullptr) return;
  Stream::Batch batch = stream->Take();
  for (Stream::Event& event : batch.events) {
    // The handler may have closed the link, or shut the transport down.
    if (shut_down_) return;
    const auto linked = streams_.find(id);
    if (linked != streams_.end()) {
      OnLinkEvent(linked->second.link, std::move(event));
    } else if (lobby_.Find(id) != nullptr) {
      OnLobbyEvent(id, event);
    } else if (upkeep_.Find(id) != nullptr) {
      upkeep_.OnEvent(id, event);
    } else {
      return;
    }
  }
  stream->Consumed(batch);
}

void GrpcTransport::OnLobbyEvent(StreamId id, const Stream::Event& event) {
  if (const auto* greeting = std::get_if<Greeting>(&event)) {
    OnAcceptedHello(id, *greeting);
  } else if (const auto* closed = std::get_if<Stream::Closed>(&event)) {
    lobby_.Refuse(id, closed->reason);
  }
}

void GrpcTransport::OnLinkEvent(LinkId id, Stream::Event event) {
  if (auto* frame = std::get_if<ports::Frame>(&event)) {
    handler_->OnFrame(id, std::move(*frame));
  } else if (std::holds_alternative<Stream::Writable>(event)) {
    handler_->OnWritable(id);
  } else if (const auto* greeting = std::get_if<Greeting>(&event)) {
    OnDialledHello(id, *greeting);
  } else {
    const absl::Status& reason = std::get<Stream::Closed>(event).reason;
    if (links_.at(id).state == LinkState::kDialling) {
      FailDial(id, reason);
    } else {
      TakeDown(id, reason);
    }
  }
}

}  // namespace dfl::exchange
