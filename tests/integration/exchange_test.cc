// GrpcTransport on real sockets: the transport contract over IPv4 and IPv6,
// hostile and broken peers, bad networks, and a clean end.
#include <dirent.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "daemon/exchange/grpc_transport.h"
#include "dfl/peer/v1/peer.grpc.pb.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "tests/contract/transport_contract.h"
#include "tests/integration/grpc_nodes.h"
#include "tests/integration/tcp_proxy.h"

namespace dfl::ports::contract {

INSTANTIATE_TYPED_TEST_SUITE_P(GrpcIpv4, TransportContract,
                               exchange::GrpcNodes<false>);
INSTANTIATE_TYPED_TEST_SUITE_P(GrpcIpv6, TransportContract,
                               exchange::GrpcNodes<true>);

INSTANTIATE_TYPED_TEST_SUITE_P(GrpcTls, TransportContract,
                               exchange::GrpcTlsNodes);

}  // namespace dfl::ports::contract

namespace dfl::exchange {
namespace {

using ports::LinkId;
using ports::contract::AskNumber;
using ports::contract::ChunkAt;
using ports::contract::Describe;
using ports::contract::Recorder;

int PortOf(const std::string& address) { return ParseHostPort(address)->port; }

int OpenFiles() {
  int count = 0;
  DIR* directory = opendir("/proc/self/fd");
  while (readdir(directory) != nullptr) ++count;
  closedir(directory);
  return count;
}

// alpha dials `address`; both links.
std::pair<LinkId, LinkId> Connect(GrpcNode& alpha, GrpcNode& beta,
                                  const std::string& address) {
  size_t before = 0;
  beta.Run([&] { before = beta.recorder.order.size(); });
  size_t mine = 0;
  alpha.Run([&] {
    mine = alpha.recorder.order.size();
    alpha.transport->Dial(address);
  });
  EXPECT_TRUE(alpha.Wait([&] { return alpha.recorder.order.size() > mine; }));
  EXPECT_TRUE(beta.Wait([&] { return beta.recorder.order.size() > before; }));
  std::pair<LinkId, LinkId> links;
  alpha.Run([&] { links.first = alpha.recorder.last(); });
  beta.Run([&] { links.second = beta.recorder.last(); });
  return links;
}

bool WaitDown(GrpcNode& node, LinkId link, absl::Status* reason = nullptr) {
  return node.Wait([&] {
    const Recorder::Link& l = node.recorder.links.at(link);
    if (reason != nullptr) *reason = l.reason;
    return l.downs == 1;
  });
}

absl::Status DialFailure(GrpcNode& node, const std::string& address) {
  node.Run([&] { node.transport->Dial(address); });
  absl::Status status;
  EXPECT_TRUE(node.Wait([&] {
    if (node.recorder.failures.empty()) return false;
    status = node.recorder.failures.back().second;
    node.recorder.failures.clear();
    return true;
  }));
  return status;
}

// Listening.

TEST(Listen, GivesThePortsOfEveryAddress) {
  GrpcNode alpha(NodeOptions("alpha", 1), "127.0.0.1:0");
  GrpcNode beta(NodeOptions("beta", 1), "");
  std::vector<std::string> addresses = {"127.0.0.1:0", "localhost:0"};
  if (HaveIpv6()) addresses.push_back("[::1]:0");
  const auto bound = beta.transport->Listen(addresses);
  ASSERT_TRUE(bound.ok()) << bound.status();
  ASSERT_EQ(bound->size(), addresses.size());
  for (const std::string& address : *bound) {
    EXPECT_NE(PortOf(address), 0) << address;
    Connect(alpha, beta, address);
  }
}

TEST(Listen, AnAddressInUseIsNamedAndNeverShared) {
  GrpcNode alpha(NodeOptions("alpha", 1), "127.0.0.1:0");
  GrpcNode beta(NodeOptions("beta", 1), "");
  const auto bound = beta.transport->Listen({"127.0.0.1:0", alpha.address});
  EXPECT_EQ(bound.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_TRUE(absl::StrContains(bound.status().message(), alpha.address))
      << bound.status();
}

TEST(Listen, WhatIsNoAddressOrNotOursIsRefused) {
  GrpcNode beta(NodeOptions("beta", 1), "");
  EXPECT_EQ(beta.transport->Listen({"7400"}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(beta.transport->Listen({"192.0.2.77:0"}).status().code(),
            absl::StatusCode::kUnavailable);
}

// Dialling.

TEST(Dial, TakesNames) {
  GrpcNode alpha(NodeOptions("alpha", 1), "");
  GrpcNode beta(NodeOptions("beta", 1), "127.0.0.1:0");
  const LinkId a =
      Connect(alpha, beta, absl::StrCat("localhost:", PortOf(beta.address)))
          .first;
  alpha.Run([&] {
    EXPECT_EQ(alpha.recorder.links[a].peer.node.name(), "beta");
    EXPECT_EQ(alpha.recorder.links[a].peer.advertised, beta.address);
  });
}

TEST(Dial, WhatIsNoAddressFailsAtOnce) {
  GrpcNode alpha(NodeOptions("alpha", 1), "");
  for (const char* address : {"7400", "unix:/tmp/socket", "host:port"}) {
    EXPECT_EQ(DialFailure(alpha, address).code(),
              absl::StatusCode::kInvalidArgument);
  }
}

TEST(Dial, AnotherDaemonWithTheSameNameIsRefused) {
  GrpcNode alpha(NodeOptions("same", 1), "");
  GrpcNode beta(NodeOptions("same", 2), "127.0.0.1:0");
  const absl::Status status = DialFailure(alpha, beta.address);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(absl::StrContains(status.message(), "same node name")) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), beta.address)) << status;
}

TEST(Dial, AServerThatIsNoPeerListenerIsToldApart) {
  pb::PeerService::Service other;  // answers UNIMPLEMENTED, as others would
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &port);
  builder.RegisterService(&other);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  GrpcNode alpha(NodeOptions("alpha", 1), "");
  // Often: alpha's channel is the only one each time, see grpc_keeper.h.
  for (int i = 0; i < 200; ++i) {
    const absl::Status status =
        DialFailure(alpha, absl::StrCat("127.0.0.1:", port));
    ASSERT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    ASSERT_TRUE(absl::StrContains(status.message(), "no peer listener"))
        << status;
  }
}

TEST(Dial, APeerThatAcceptsAndSaysNothingEndsAtTheDialTimeout) {
  DeadAddress silent;
  ASSERT_EQ(listen(silent.fd(), 1), 0);  // the kernel accepts, nobody reads
  GrpcTransportOptions options = NodeOptions("alpha", 1);
  options.dial_timeout = absl::Milliseconds(300);
  GrpcNode alpha(options, "");
  const absl::Time start = absl::Now();
  const absl::Status status = DialFailure(alpha, silent.address());
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_LT(absl::Now() - start, absl::Seconds(3));
}

TEST(Dial, MoreLinksThanAllowedAreRefusedOnBothSides) {
  GrpcTransportOptions options = NodeOptions("alpha", 1);
  options.max_links = 2;
  GrpcNode alpha(options, "127.0.0.1:0");
  GrpcNode beta(NodeOptions("beta", 1), "127.0.0.1:0");
  Connect(alpha, beta, beta.address);
  Connect(beta, alpha, alpha.address);
  EXPECT_EQ(DialFailure(alpha, beta.address).code(),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(DialFailure(beta, alpha.address).code(),
            absl::StatusCode::kUnavailable);
}

// A peer that speaks gRPC and keeps to nothing else.
class HostilePeer {
 public:
  explicit HostilePeer(const std::string& address)
      : channel_(
            grpc::CreateChannel(address, grpc::InsecureChannelCredentials())),
        stub_(pb::PeerService::NewStub(channel_)),
        control_(stub_->Control(&control_context_)),
        bulk_(stub_->Bulk(&bulk_context_)) {}
  ~HostilePeer() {
    control_context_.TryCancel();
    bulk_context_.TryCancel();
    if (!control_finished_) ControlEnd().IgnoreError();
    if (!bulk_finished_) BulkEnd().IgnoreError();
  }

  static pb::Hello GoodHello() {
    ports::PeerIdentity self;
    self.node = NodeId("hostile");
    self.incarnation = 666;
    return MakeHello(self, 4711);
  }
  bool Control(const pb::Hello& hello) {
    pb::ControlRequest request;
    *request.mutable_hello() = hello;
    return control_->Write(request);
  }
  bool Bulk(const pb::Hello& hello) {
    pb::BulkRequest request;
    *request.mutable_hello() = hello;
    return bulk_->Write(request);
  }
  void Greet(const pb::Hello& hello = GoodHello()) {
    EXPECT_TRUE(Control(hello));
    EXPECT_TRUE(Bulk(hello));
  }
  bool Write(const pb::ControlRequest& request) {
    return control_->Write(request);
  }
  bool Write(const pb::BulkRequest& request) { return bulk_->Write(request); }

  // What the node ended the stream with.
  absl::Status ControlEnd() {
    pb::ControlResponse response;
    while (control_->Read(&response)) {
    }
    control_finished_ = true;
    return FromGrpc(control_->Finish());
  }
  absl::Status BulkEnd() {
    pb::BulkResponse response;
    while (bulk_->Read(&response)) {
    }
    bulk_finished_ = true;
    return FromGrpc(bulk_->Finish());
  }

 private:
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<pb::PeerService::Stub> stub_;
  grpc::ClientContext control_context_;
  grpc::ClientContext bulk_context_;
  std::unique_ptr<
      grpc::ClientReaderWriter<pb::ControlRequest, pb::ControlResponse>>
      control_;
  std::unique_ptr<grpc::ClientReaderWriter<pb::BulkRequest, pb::BulkResponse>>
      bulk_;
  bool control_finished_ = false;
  bool bulk_finished_ = false;
};

class HostileTest : public ::testing::Test {
 protected:
  static GrpcTransportOptions Options() {
    GrpcTransportOptions options = NodeOptions("victim", 1);
    options.hello_timeout = absl::Milliseconds(300);
    return options;
  }
  // It still works for an honest peer, and knows of `links` others.
  void ExpectHealthy() {
    GrpcNode honest(NodeOptions("honest", 1), "");
    Connect(honest, victim_, victim_.address);
  }
  LinkId WaitUp() {
    LinkId link = 0;
    EXPECT_TRUE(victim_.Wait([&] {
      link = victim_.recorder.last();
      return link != 0;
    }));
    return link;
  }

  GrpcNode victim_{Options(), "127.0.0.1:0"};
};

TEST_F(HostileTest, GarbageBytesOnThePortHarmNobody) {
  for (const std::string& bytes :
       {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(100'000, '\xff'),
        std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") +
            std::string(1000, '\x00')}) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(PortOf(victim_.address));
    ASSERT_EQ(
        connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    ExpectHealthy();
    close(fd);
  }
}

TEST_F(HostileTest, WhoNeverSaysHelloIsSentAway) {
  HostilePeer peer(victim_.address);
  EXPECT_EQ(peer.ControlEnd().code(), absl::StatusCode::kDeadlineExceeded);
  ExpectHealthy();
}

TEST_F(HostileTest, WhoSaysHelloOnOneStreamOnlyIsSentAway) {
  HostilePeer peer(victim_.address);
  EXPECT_TRUE(peer.Control(HostilePeer::GoodHello()));
  EXPECT_EQ(peer.ControlEnd().code(), absl::StatusCode::kDeadlineExceeded);
  victim_.Run([&] { EXPECT_TRUE(victim_.recorder.order.empty()); });
}

TEST_F(HostileTest, StreamsThatDoNotBelongTogetherMakeNoLink) {
  HostilePeer peer(victim_.address);
  pb::Hello hello = HostilePeer::GoodHello();
  EXPECT_TRUE(peer.Control(hello));
  hello.set_link_nonce(hello.link_nonce() + 1);
  EXPECT_TRUE(peer.Bulk(hello));
  EXPECT_EQ(peer.ControlEnd().code(), absl::StatusCode::kDeadlineExceeded);
  victim_.Run([&] { EXPECT_TRUE(victim_.recorder.order.empty()); });
}

TEST_F(HostileTest, AnotherProtocolVersionIsRefusedAndSaysWhich) {
  HostilePeer peer(victim_.address);
  pb::Hello hello = HostilePeer::GoodHello();
  hello.set_protocol_version(9);
  hello.set_oldest_protocol_version(8);
  peer.Greet(hello);
  const absl::Status status = peer.ControlEnd();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(absl::StrContains(status.message(), "8 to 9")) << status;
  EXPECT_EQ(peer.BulkEnd().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(HostileTest, ABadHelloIsRefused) {
  HostilePeer peer(victim_.address);
  pb::Hello hello = HostilePeer::GoodHello();
  hello.set_node("no such name!");
  peer.Greet(hello);
  EXPECT_EQ(peer.ControlEnd().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(HostileTest, AFrameBeforeTheHelloIsRefused) {
  HostilePeer peer(victim_.address);
  pb::ControlRequest request;
  request.mutable_frame()->mutable_ask()->set_ask(1);
  EXPECT_TRUE(peer.Write(request));
  EXPECT_EQ(peer.ControlEnd().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(HostileTest, AFrameThatBreaksABoundClosesTheLinkWithTheReason) {
  HostilePeer peer(victim_.address);
  peer.Greet();
  const LinkId link = WaitUp();
  pb::ControlRequest request;
  pb::Ask* ask = request.mutable_frame()->mutable_ask();
  ask->set_purpose(pb::ASK_PURPOSE_MIX);
  ask->set_ask(1);
  EXPECT_TRUE(peer.Write(request));
  ask->set_step(-1);
  EXPECT_TRUE(peer.Write(request));
  absl::Status reason;
  ASSERT_TRUE(WaitDown(victim_, link, &reason));
  EXPECT_EQ(reason.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(reason.message(), "hostile")) << reason;
  EXPECT_TRUE(absl::StrContains(reason.message(), "step is -1")) << reason;
  victim_.Run([&] {  // what was right before it arrived
    EXPECT_EQ(victim_.recorder.links[link].control.size(), 1u);
  });
  const absl::Status told = peer.ControlEnd();
  EXPECT_EQ(told.code(), absl::StatusCode::kInvalidArgument) << told;
  ExpectHealthy();
}

TEST_F(HostileTest, ASecondHelloClosesTheLink) {
  HostilePeer peer(victim_.address);
  peer.Greet();
  const LinkId link = WaitUp();
  EXPECT_TRUE(peer.Control(HostilePeer::GoodHello()));
  absl::Status reason;
  ASSERT_TRUE(WaitDown(victim_, link, &reason));
  EXPECT_EQ(reason.code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(HostileTest, ChunksOverTheBoundCloseTheLink) {
  // One byte too many, and more than gRPC is told to take.
  for (const int64_t size : {ports::kMaxChunkBytes + 1, int64_t{3} << 20}) {
    HostilePeer peer(victim_.address);
    peer.Greet();
    ASSERT_TRUE(victim_.Wait([&] { return victim_.recorder.up() == 1; }));
    const LinkId link = WaitUp();
    pb::BulkRequest request;
    request.mutable_chunk()->set_data(std::string(size, 'x'));
    peer.Write(request);
    ASSERT_TRUE(WaitDown(victim_, link));
    victim_.Run(
        [&] { EXPECT_TRUE(victim_.recorder.links[link].chunks.empty()); });
  }
}

TEST_F(HostileTest, ManySilentStreamsAreBounded) {
  // More streams than the node keeps; then honest ones work again.
  std::vector<std::unique_ptr<HostilePeer>> peers;
  for (int i = 0; i < 40; ++i) {
    peers.push_back(std::make_unique<HostilePeer>(victim_.address));
  }
  EXPECT_FALSE(peers.back()->ControlEnd().ok());
  peers.clear();
  ExpectHealthy();
}

// Bad networks.

GrpcTransportOptions FastKeepalive(const std::string& name) {
  GrpcTransportOptions options = NodeOptions(name, 1);
  options.keepalive_time = absl::Milliseconds(200);
  options.keepalive_timeout = absl::Milliseconds(300);
  return options;
}

TEST(BadNetwork, ASilentOneIsNoticedAtBothEndsEvenWhenIdle) {
  GrpcNode alpha(FastKeepalive("alpha"), "");
  GrpcNode beta(FastKeepalive("beta"), "127.0.0.1:0");
  TcpProxy proxy(PortOf(beta.address));
  const auto [a, b] = Connect(alpha, beta, proxy.address());
  // Idle, but alive: keepalive must not end it, nor pings count as abuse.
  const int64_t before = proxy.carried();
  EXPECT_TRUE(alpha.Wait([&] { return proxy.carried() >= before + 16; }))
      << "no pings";
  alpha.Run([&, link = a] { EXPECT_EQ(alpha.recorder.links[link].downs, 0); });
  proxy.Freeze();
  absl::Status reason;
  ASSERT_TRUE(WaitDown(alpha, a, &reason));
  EXPECT_EQ(reason.code(), absl::StatusCode::kUnavailable) << reason;
  EXPECT_TRUE(absl::StrContains(reason.message(), "beta")) << reason;
  ASSERT_TRUE(WaitDown(beta, b, &reason));
  EXPECT_EQ(reason.code(), absl::StatusCode::kUnavailable) << reason;
}

TEST(BadNetwork, AResetConnectionIsNoticedAtOnceAndMayBeDialledAgain) {
  GrpcNode alpha(NodeOptions("alpha", 1), "");
  GrpcNode beta(NodeOptions("beta", 1), "127.0.0.1:0");
  TcpProxy proxy(PortOf(beta.address));
  for (int i = 0; i < 3; ++i) {
    const auto [a, b] = Connect(alpha, beta, proxy.address());
    const absl::Time start = absl::Now();
    proxy.Reset();
    absl::Status reason;
    ASSERT_TRUE(WaitDown(alpha, a, &reason));
    EXPECT_EQ(reason.code(), absl::StatusCode::kUnavailable) << reason;
    ASSERT_TRUE(WaitDown(beta, b, &reason));
    EXPECT_EQ(reason.code(), absl::StatusCode::kUnavailable) << reason;
    EXPECT_LT(absl::Now() - start, absl::Seconds(2));
  }
}

// Load and end.

// Sends chunks 0..count-1 with asks in between as fast as the link takes them;
// on the node's loop.
class Pump final : public ports::Transport::Handler {
 public:
  Pump(GrpcTransportOptions options, const std::string& listen, int64_t count,
       int64_t chunk_bytes)
      : loop("pump"),
        count_(count),
        chunk_bytes_(chunk_bytes),
        transport(new GrpcTransport(loop, std::move(options))) {
    transport->SetHandler(this);
    if (!listen.empty()) address = transport->Listen({listen})->front();
  }
  ~Pump() override {
    loop.RunAndWait([this] { transport.reset(); });
    loop.Stop();
  }

  void OnLinkUp(LinkId link, const ports::PeerIdentity&,
                const std::string&) override {
    link_ = link;
    Continue();
  }
  void OnDialFailed(const std::string&, const absl::Status& status) override {
    ADD_FAILURE() << status;
  }
  void OnFrame(LinkId, ports::Frame frame) override {
    const bool chunk = std::holds_alternative<ports::Chunk>(frame);
    int64_t& next = chunk ? chunks : asks;
    if (Describe(frame) !=
        Describe(chunk ? ChunkAt(next, chunk_bytes_) : AskNumber(next))) {
      ADD_FAILURE() << "frame " << next << " came out of order";
    }
    ++next;
  }
  void OnWritable(LinkId) override {
    ++writable;
    Continue();
  }
  void OnLinkDown(LinkId, const absl::Status& reason) override {
    ++downs;
    down_reason = reason;
  }

  app::EventLoop loop;
  std::string address;
  int64_t chunks = 0;
  int64_t asks = 0;
  int writable = 0;
  int downs = 0;
  absl::Status down_reason;

 private:
  void Continue() {
    for (; sent_ < count_; ++sent_) {
      const absl::Status status =
          transport->Send(link_, ChunkAt(sent_, chunk_bytes_));
      if (absl::IsResourceExhausted(status) || absl::IsNotFound(status)) return;
      ASSERT_TRUE(status.ok()) << status;
      if (sent_ % 10 == 0) {
        ASSERT_TRUE(transport->Send(link_, AskNumber(sent_ / 10)).ok());
      }
    }
  }

  const int64_t count_;
  const int64_t chunk_bytes_;
  int64_t sent_ = 0;
  LinkId link_ = 0;

 public:
  std::unique_ptr<GrpcTransport> transport;
};

TEST(Load, ManyFramesBothWaysArriveInOrder) {
  constexpr int64_t kCount = 2000;
  GrpcTransportOptions options = NodeOptions("alpha", 1);
  options.max_queued_bytes = 1 << 20;
  Pump alpha(options, "", kCount, 20'000);
  options.self.node = NodeId("beta");
  Pump beta(options, "127.0.0.1:0", kCount, 20'000);
  alpha.loop.RunAndWait([&] { alpha.transport->Dial(beta.address); });
  for (Pump* pump : {&alpha, &beta}) {
    bool done = false;
    const absl::Time end = absl::Now() + absl::Seconds(60);
    while (!done && absl::Now() < end) {
      pump->loop.RunAndWait(
          [&] { done = pump->chunks == kCount && pump->asks == kCount / 10; });
      absl::SleepFor(absl::Milliseconds(2));
    }
    EXPECT_TRUE(done) << pump->chunks << " chunks, " << pump->asks << " asks";
    pump->loop.RunAndWait([&] {
      EXPECT_EQ(pump->downs, 0) << pump->down_reason;
      EXPECT_GT(pump->writable, 0);
    });
  }
}

TEST(Load, TwoHundredLinksLeaveNothingBehind) {
  GrpcNode alpha(NodeOptions("alpha", 1), "");
  GrpcNode beta(NodeOptions("beta", 1), "127.0.0.1:0");
  const auto open_and_close = [&](int times) {
    for (int i = 0; i < times; ++i) {
      const auto [a, b] = Connect(alpha, beta, beta.address);
      GrpcNode& closer = i % 2 == 0 ? alpha : beta;
      closer.Run([&, link = i % 2 == 0 ? a : b] {
        ASSERT_TRUE(closer.transport->Send(link, ChunkAt(i, 100'000)).ok());
        closer.transport->Close(link, absl::CancelledError("done"));
        closer.recorder.closed.insert(link);
      });
      ASSERT_TRUE(WaitDown(alpha, a));
      ASSERT_TRUE(WaitDown(beta, b));
    }
  };
  open_and_close(10);
  const int before = OpenFiles();
  open_and_close(200);
  // Sockets close shortly after their streams.
  EXPECT_TRUE(alpha.Wait([&] { return OpenFiles() <= before + 10; }))
      << OpenFiles() << " open files, " << before << " before";
}

TEST(Shutdown, WhileBusyAndWithAStuckPeerTakesLessThanASecond) {
  for (const bool stuck : {false, true}) {
    Pump beta(NodeOptions("beta", 1), "127.0.0.1:0", 1'000'000, 500'000);
    Pump alpha(NodeOptions("alpha", 1), "", 1'000'000, 500'000);
    absl::Notification resume;
    alpha.loop.RunAndWait([&] { alpha.transport->Dial(beta.address); });
    bool busy = false;
    while (!busy) {
      beta.loop.RunAndWait([&] { busy = beta.chunks > 5; });
    }
    if (stuck) alpha.loop.Post([&] { resume.WaitForNotification(); });
    absl::Time start;
    beta.loop.RunAndWait([&] {
      start = absl::Now();
      beta.transport->Shutdown();
      EXPECT_LT(absl::Now() - start, absl::Seconds(1)) << "stuck: " << stuck;
      beta.transport->Shutdown();
      EXPECT_EQ(beta.downs, 0);  // nothing is heard any more
    });
    if (stuck) resume.Notify();
    bool down = false;
    while (!down && absl::Now() < start + absl::Seconds(10)) {
      alpha.loop.RunAndWait([&] { down = alpha.downs == 1; });
    }
    EXPECT_TRUE(down);
    EXPECT_EQ(alpha.down_reason.code(), absl::StatusCode::kUnavailable)
        << alpha.down_reason;
  }
}

TEST(Shutdown, DuringADialIsClean) {
  DeadAddress silent;
  ASSERT_EQ(listen(silent.fd(), 1), 0);
  GrpcNode alpha(NodeOptions("alpha", 1), "127.0.0.1:0");
  GrpcNode beta(NodeOptions("beta", 1), "127.0.0.1:0");
  alpha.Run([&] {
    alpha.transport->Dial(beta.address);
    alpha.transport->Dial(silent.address());
    alpha.transport->Dial(alpha.address);
    alpha.transport->Shutdown();
  });
  alpha.Run([&] {
    EXPECT_TRUE(alpha.recorder.order.empty());
    EXPECT_TRUE(alpha.recorder.failures.empty());
  });
}

TEST(Shutdown, ThePortIsFreeAtOnce) {
  std::string address;
  {
    GrpcNode beta(NodeOptions("beta", 1), "127.0.0.1:0");
    GrpcNode alpha(NodeOptions("alpha", 1), "");
    Connect(alpha, beta, beta.address);
    address = beta.address;
    beta.Kill();
  }
  GrpcNode again(NodeOptions("beta", 2), address);
  EXPECT_EQ(again.address, address);
}

}  // namespace
}  // namespace dfl::exchange
