// Ways into a secured network, each over real sockets: the stranger gets no
// link, it is counted by the right reason, and a member goes on exchanging.
#include <grpcpp/grpcpp.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "daemon/exchange/grpc_transport.h"
#include "dfl/peer/v1/peer.grpc.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/grpc_node.h"
#include "tests/integration/tcp_proxy.h"

namespace dfl::exchange {
namespace {

using ports::LinkId;
using ports::contract::AskNumber;
using ports::contract::Recorder;
using ::testing::HasSubstr;
using testing_support::Eventually;
using tls::MakeAuthority;
using tls::MakeCredentials;
using tls::NodeIdentity;
using tls::Role;
using CredentialsPtr = std::shared_ptr<const tls::Credentials>;

// A node and what it shows.
struct Box {
  Box(MadeNetwork& network, const std::string& name,
      CredentialsPtr credentials = nullptr)
      : security(network.Make(name, std::move(credentials))),
        node(Options(name, security.get()), "127.0.0.1:0") {}

  static GrpcTransportOptions Options(const std::string& name,
                                      net::NetworkSecurity* security) {
    GrpcTransportOptions options = NodeOptions(name, 1);
    options.security = security;
    return options;
  }
  void Recheck(absl::Time now = absl::Now()) {
    node.Run([&] { node.transport->RecheckPeers(now); });
  }

  const std::unique_ptr<net::NetworkSecurity> security;
  GrpcNode node;
};

// Somebody who can shake hands, perhaps, and says a Hello as he likes.
class Impostor {
 public:
  Impostor(const std::string& address,
           const std::shared_ptr<grpc::ChannelCredentials>& credentials)
      : stub_(pb::PeerService::NewStub(
            grpc::CreateChannel(address, credentials))),
        control_(stub_->Control(&control_context_)),
        bulk_(stub_->Bulk(&bulk_context_)) {}
  ~Impostor() {
    control_context_.TryCancel();
    bulk_context_.TryCancel();
  }

  // What the node ended the stream with.
  absl::Status Greet(const pb::Hello& hello) {
    pb::ControlRequest control;
    *control.mutable_hello() = hello;
    control_->Write(control);
    pb::BulkRequest bulk;
    *bulk.mutable_hello() = hello;
    bulk_->Write(bulk);
    pb::ControlResponse response;
    EXPECT_FALSE(control_->Read(&response)) << "it got an answer";
    return FromGrpc(control_->Finish());
  }

 private:
  std::unique_ptr<pb::PeerService::Stub> stub_;
  grpc::ClientContext control_context_;
  grpc::ClientContext bulk_context_;
  std::unique_ptr<
      grpc::ClientReaderWriter<pb::ControlRequest, pb::ControlResponse>>
      control_;
  std::unique_ptr<grpc::ClientReaderWriter<pb::BulkRequest, pb::BulkResponse>>
      bulk_;
};

class StrangersTest : public ::testing::Test {
 protected:
  StrangersTest() : victim_(network_, "victim"), honest_(network_, "honest") {
    honest_.node.Run(
        [&] { honest_.node.transport->Dial(victim_.node.address); });
    EXPECT_TRUE(
        honest_.node.Wait([&] { return honest_.node.recorder.up() == 1; }));
    EXPECT_TRUE(
        victim_.node.Wait([&] { return victim_.node.recorder.up() == 1; }));
    honest_.node.Run([&] { at_honest_ = honest_.node.recorder.last(); });
    victim_.node.Run([&] { at_victim_ = victim_.node.recorder.last(); });
  }

  CredentialsPtr Credentials(const std::string& name) const {
    return MakeCredentials(network_.authority, NodeIdentity(name));
  }
  std::vector<tls::Certificate> OurBundle() const {
    return {network_.authority.certificate()};
  }
  int64_t Refusals(const std::string& reason) {
    return victim_.security->refusals()[reason];
  }
  static absl::Status DialFailure(GrpcNode& node, const std::string& address) {
    node.Run([&] { node.transport->Dial(address); });
    absl::Status status;
    EXPECT_TRUE(node.Wait([&] {
      if (node.recorder.failures.empty()) return false;
      status = node.recorder.failures.back().second;
      return true;
    }));
    return status;
  }
  // A node called `name` that shows `credentials` gets nowhere.
  absl::Status ExpectRefused(const std::string& name,
                             const CredentialsPtr& credentials,
                             const std::string& reason) {
    const int64_t before = Refusals(reason);
    Box stranger(network_, name, credentials);
    const absl::Status status =
        DialFailure(stranger.node, victim_.node.address);
    ExpectCounted(reason, before);
    ExpectTheHonestGoOn();
    return status;
  }
  void ExpectCounted(const std::string& reason, int64_t before) {
    EXPECT_TRUE(Eventually(absl::Seconds(10), [&] {
      return Refusals(reason) > before;
    })) << reason;
  }
  // Nobody else has a link, and the one there is carries frames.
  void ExpectTheHonestGoOn() {
    size_t before = 0;
    victim_.node.Run([&] {
      EXPECT_EQ(victim_.node.recorder.order.size(), 1u);
      before = victim_.node.recorder.links[at_victim_].control.size();
    });
    honest_.node.Run([&] {
      EXPECT_TRUE(
          honest_.node.transport->Send(at_honest_, AskNumber(before)).ok());
    });
    EXPECT_TRUE(victim_.node.Wait([&] {
      return victim_.node.recorder.links[at_victim_].control.size() > before;
    }));
    victim_.Recheck();
    victim_.node.Run(
        [&] { EXPECT_EQ(victim_.node.recorder.links[at_victim_].downs, 0); });
  }
  std::shared_ptr<grpc::ChannelCredentials> ChannelOf(
      net::NetworkSecurity& security) {
    return *security.ChannelCredentials({Role::kNode}, nullptr);
  }
  pb::Hello HelloOf(const std::string& name, uint64_t nonce = 4711) {
    ports::PeerIdentity self;
    self.node = NodeId(name);
    self.incarnation = 1;
    return PeerGate(honest_.security.get()).MakeHello(self, nonce);
  }

  MadeNetwork network_;
  Box victim_;
  Box honest_;
  LinkId at_honest_ = 0;
  LinkId at_victim_ = 0;
};

TEST_F(StrangersTest, WithoutACertificate) {
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_verify_server_certs(false);
  options.set_check_call_host(false);
  options.set_certificate_verifier(
      std::make_shared<grpc::experimental::NoOpCertificateVerifier>());
  Impostor impostor(victim_.node.address,
                    grpc::experimental::TlsCredentials(options));
  EXPECT_EQ(impostor.Greet(HelloOf("honest")).code(),
            absl::StatusCode::kUnavailable);
  ExpectCounted("no-certificate", 0);
  ExpectTheHonestGoOn();
}

TEST_F(StrangersTest, OfAnotherAuthority) {
  const absl::Status status =
      ExpectRefused("box-2",
                    MakeCredentials(MakeAuthority("plant-4", absl::Now()),
                                    NodeIdentity("box-2"), OurBundle()),
                    "unknown-authority");
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("it does not accept this node's certificate"));
}

TEST_F(StrangersTest, WhoseCertificateHasExpired) {
  ExpectRefused(
      "box-2",
      MakeCredentials(network_.authority, NodeIdentity("box-2"), {},
                      absl::Now() - absl::Minutes(2), absl::Minutes(1)),
      "expired")
      .IgnoreError();
}

TEST_F(StrangersTest, WhoseCertificateIsNotValidYet) {
  ExpectRefused("box-2",
                MakeCredentials(network_.authority, NodeIdentity("box-2"), {},
                                absl::Now() + absl::Hours(1)),
                "not-yet-valid")
      .IgnoreError();
}

TEST_F(StrangersTest, AnOperatorIsNoNode) {
  ExpectRefused("alice",
                MakeCredentials(network_.authority,
                                {"plant-4", Role::kOperator, "alice"}),
                "wrong-role")
      .IgnoreError();
}

TEST_F(StrangersTest, WhoSaysAnotherName) {
  const absl::Status status =
      ExpectRefused("box-2", Credentials("box-9"), "claims-other-name");
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("box-9"));
}

TEST_F(StrangersTest, OfAnotherCluster) {
  // Vouched for by the other cluster's authority alone.
  const tls::Authority other = MakeAuthority("plant-5", absl::Now());
  const auto theirs =
      MakeCredentials(other, NodeIdentity("box-2", "plant-5"), OurBundle());
  ExpectRefused("box-2", theirs, "unknown-authority").IgnoreError();
  // One that we trust too.
  ASSERT_TRUE(victim_.security
                  ->Use(MakeCredentials(
                      network_.authority, NodeIdentity("victim"),
                      {network_.authority.certificate(), other.certificate()}))
                  .ok());
  ExpectRefused("box-2", theirs, "wrong-cluster").IgnoreError();
}

TEST_F(StrangersTest, WhoSaysAnotherCluster) {
  const auto security = network_.Make("box-2");
  Impostor impostor(victim_.node.address, ChannelOf(*security));
  pb::Hello hello = HelloOf("box-2");
  hello.set_cluster("plant-5");
  EXPECT_EQ(impostor.Greet(hello).code(), absl::StatusCode::kPermissionDenied);
  ExpectCounted("claims-other-cluster", 0);
  ExpectTheHonestGoOn();
}

TEST_F(StrangersTest, WhoReplaysAHello) {
  // Word for word what the honest one says, by the holder of another
  // certificate.
  const auto security = network_.Make("box-2");
  Impostor impostor(victim_.node.address, ChannelOf(*security));
  EXPECT_EQ(impostor.Greet(HelloOf("honest")).code(),
            absl::StatusCode::kPermissionDenied);
  ExpectCounted("claims-other-name", 0);
  ExpectTheHonestGoOn();
}

TEST_F(StrangersTest, WhoSpeaksAnOldProtocol) {
  const auto security = network_.Make("box-2");
  Impostor impostor(victim_.node.address, ChannelOf(*security));
  pb::Hello hello = HelloOf("box-2");
  hello.set_protocol_version(1);
  hello.set_oldest_protocol_version(1);
  EXPECT_EQ(impostor.Greet(hello).code(),
            absl::StatusCode::kFailedPrecondition);
  ExpectTheHonestGoOn();
}

TEST_F(StrangersTest, PlaintextToTls) {
  GrpcNode plain(NodeOptions("box-2", 1), "");
  const absl::Status status = DialFailure(plain, victim_.node.address);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  ExpectCounted("plaintext", 0);
  ExpectTheHonestGoOn();
}

TEST_F(StrangersTest, TlsToPlaintext) {
  GrpcNode plain(NodeOptions("box-2", 1), "127.0.0.1:0");
  const absl::Status status = DialFailure(victim_.node, plain.address);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("does not speak TLS"));
  plain.Run([&] { EXPECT_TRUE(plain.recorder.order.empty()); });
  ExpectTheHonestGoOn();
}

TEST_F(StrangersTest, ADialTellsWhomThisNodeDoesNotAdmit) {
  Box stranger(network_, "box-2",
               MakeCredentials(MakeAuthority("plant-4", absl::Now()),
                               NodeIdentity("box-2"), OurBundle()));
  const absl::Status status = DialFailure(victim_.node, stranger.node.address);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("this node does not admit the peer"));
  EXPECT_EQ(Refusals("unknown-authority"), 1);
  ExpectTheHonestGoOn();
}

TEST_F(StrangersTest, ABannedPeerThatConnects) {
  victim_.security->SetBanned({NodeIdentity("box-2")});
  ExpectRefused("box-2", Credentials("box-2"), "banned").IgnoreError();
}

// A second member with a link to the victim; who dialled is up to the test.
class LivePeerTest : public StrangersTest {
 protected:
  LivePeerTest() : box_(network_, "box-2") {}

  void Connect(Box& dialler, Box& listener) {
    dialler.node.Run(
        [&] { dialler.node.transport->Dial(listener.node.address); });
    ASSERT_TRUE(box_.node.Wait([&] { return box_.node.recorder.up() == 1; }));
    ASSERT_TRUE(
        victim_.node.Wait([&] { return victim_.node.recorder.up() == 2; }));
    victim_.node.Run([&] { link_ = victim_.node.recorder.last(); });
  }
  absl::Status WaitDown() {
    absl::Status reason;
    EXPECT_TRUE(victim_.node.Wait([&] {
      reason = victim_.node.recorder.links[link_].reason;
      return victim_.node.recorder.links[link_].downs == 1;
    }));
    EXPECT_TRUE(box_.node.Wait([&] { return box_.node.recorder.up() == 0; }));
    victim_.node.Run(
        [&] { EXPECT_EQ(victim_.node.recorder.links[at_victim_].downs, 0); });
    return reason;
  }

  Box box_;
  LinkId link_ = 0;
};

TEST_F(LivePeerTest, ThatIsBannedIsSentAway) {
  Connect(box_, victim_);
  victim_.Recheck();
  victim_.security->SetBanned({NodeIdentity("box-2")});
  victim_.Recheck();
  const absl::Status reason = WaitDown();
  EXPECT_EQ(reason.code(), absl::StatusCode::kPermissionDenied) << reason;
  EXPECT_THAT(std::string(reason.message()), HasSubstr("banned"));
  EXPECT_EQ(Refusals("banned"), 1);
}

TEST_F(LivePeerTest, ThatIsBannedIsSentAwayByWhoDialledIt) {
  Connect(victim_, box_);
  victim_.security->SetBanned({NodeIdentity("box-2")});
  victim_.Recheck();
  EXPECT_THAT(std::string(WaitDown().message()), HasSubstr("banned"));
}

TEST_F(LivePeerTest, WhoseCertificateExpiresIsSentAway) {
  Connect(box_, victim_);
  victim_.node.Run([&] {  // the honest one's ends later
    victim_.node.transport->Close(at_victim_, absl::CancelledError("test"));
  });
  victim_.Recheck(absl::Now() + absl::Hours(23));
  victim_.node.Run(
      [&] { EXPECT_EQ(victim_.node.recorder.links[link_].downs, 0); });
  victim_.Recheck(absl::Now() + absl::Hours(25));
  EXPECT_TRUE(victim_.node.Wait(
      [&] { return victim_.node.recorder.links[link_].downs == 1; }));
  EXPECT_GT(Refusals("expired"), 0);
}

TEST_F(LivePeerTest, WhoseAuthorityIsRemovedIsSentAway) {
  // The victim and the honest one have new certificates, box-2 has not.
  const tls::Authority second = MakeAuthority("plant-4", absl::Now());
  Connect(box_, victim_);
  const std::vector<tls::Certificate> both = {network_.authority.certificate(),
                                              second.certificate()};
  for (Box* box : {&victim_, &honest_}) {
    const std::string name = box == &victim_ ? "victim" : "honest";
    ASSERT_TRUE(
        box->security->Use(MakeCredentials(second, NodeIdentity(name), both))
            .ok());
  }
  honest_.Recheck();
  ASSERT_TRUE(honest_.node.Wait(
      [&] { return honest_.node.transport->unrenewed_links() == 0; }));
  ASSERT_TRUE(victim_.security
                  ->Use(MakeCredentials(second, NodeIdentity("victim"),
                                        {second.certificate()}))
                  .ok());
  victim_.Recheck();
  EXPECT_THAT(std::string(WaitDown().message()),
              HasSubstr("is not admitted any more"));
}

TEST_F(StrangersTest, AMemberThatOpensStreamsWithoutEndIsBounded) {
  // The holder of a good certificate says nothing on many streams.
  const auto security = network_.Make("box-2");
  const auto stub = pb::PeerService::NewStub(
      grpc::CreateChannel(victim_.node.address, ChannelOf(*security)));
  const auto other = pb::PeerService::NewStub(
      grpc::CreateChannel(victim_.node.address, ChannelOf(*security)));
  const auto third = pb::PeerService::NewStub(
      grpc::CreateChannel(victim_.node.address, ChannelOf(*security)));
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<
      grpc::ClientReaderWriter<pb::ControlRequest, pb::ControlResponse>>>
      streams;
  const auto open = [&](pb::PeerService::Stub& at) {
    contexts.push_back(std::make_unique<grpc::ClientContext>());
    streams.push_back(at.Control(contexts.back().get()));
  };
  for (int i = 0; i < 8; ++i) open(*stub);
  for (int i = 0; i < 8; ++i) open(*other);
  open(*third);
  pb::ControlResponse response;
  EXPECT_FALSE(streams.back()->Read(&response));
  const grpc::Status status = streams.back()->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("node/box-2 has 16 streams"));
  streams.pop_back();
  ExpectTheHonestGoOn();
  for (const auto& context : contexts) context->TryCancel();
  for (const auto& stream : streams) stream->Finish();
}

TEST_F(StrangersTest, BetweenOurOwnItIsTls13) {
  TcpProxy proxy(ParseHostPort(victim_.node.address)->port);
  Box box(network_, "box-2");
  box.node.Run([&] { box.node.transport->Dial(proxy.address()); });
  ASSERT_TRUE(box.node.Wait([&] { return box.node.recorder.up() == 1; }));
  // ServerHello, RFC 8446 4.1.3: a record of a handshake (22), its cipher suite
  // after version, random and session id. Those of TLS 1.3 begin with 0x13, and
  // no other version has them.
  const std::string answer = proxy.first_answer();
  constexpr size_t kSessionId = 5 + 4 + 2 + 32;
  ASSERT_GT(answer.size(), kSessionId);
  EXPECT_EQ(answer[0], 22);
  EXPECT_EQ(answer[5], 2);
  const size_t cipher =
      kSessionId + 1 + static_cast<unsigned char>(answer[kSessionId]);
  ASSERT_GT(answer.size(), cipher);
  EXPECT_EQ(answer[cipher], 0x13);
}

TEST(YoungNode, WithoutACertificateDialsNobodyAndSaysWhy) {
  MadeNetwork network;
  auto young = net::NetworkSecurity::Create(network.folder.File("young"));
  ASSERT_TRUE(young.ok());
  Box member(network, "box-1");
  GrpcNode node(Box::Options("young", young->get()), "127.0.0.1:0");
  node.Run([&] { node.transport->Dial(member.node.address); });
  ASSERT_TRUE(node.Wait([&] { return !node.recorder.failures.empty(); }));
  node.Run([&] {
    const absl::Status status = node.recorder.failures.back().second;
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string(status.message()), HasSubstr("clock"));
  });
  // Nor can it be dialled, until it has one.
  member.node.Run([&] { member.node.transport->Dial(node.address); });
  ASSERT_TRUE(
      member.node.Wait([&] { return !member.node.recorder.failures.empty(); }));
  ASSERT_TRUE(
      (*young)
          ->Use(MakeCredentials(network.authority, NodeIdentity("young")))
          .ok());
  node.Run([&] { node.transport->Dial(member.node.address); });
  EXPECT_TRUE(node.Wait([&] { return node.recorder.up() == 1; }));
}

}  // namespace
}  // namespace dfl::exchange
