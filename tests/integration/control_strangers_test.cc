// Ways into the control service, each over real sockets: none of them leads to
// the node behind it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "dfl/control/v1/control.grpc.pb.h"
#include "tests/unit/control/tls_server_fixture.h"

namespace dfl::control {
namespace {

namespace pb = dfl::control::v1;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kPlan[] =
    "version: 1\nrun: 00c0ffee00c0ffee\nseed: 7\n"
    "members: [box-1, box-2]\nmodel: {kind: cnn}\n";

const tls::Identity kAlice = {"plant-4", tls::Role::kOperator, "alice"};
const tls::Identity kEve = {"plant-4", tls::Role::kViewer, "eve"};

class ControlStrangers : public TlsServerTest {
 protected:
  // The daemon trusts two authorities, as it does while one is replaced; that
  // the second one is of another network must not help anybody.
  void SetUp() override {
    StartTls(tls::MakeCredentials(
        authority_, tls::NodeIdentity("box-1"),
        {authority_.certificate(), other_cluster_.certificate()}));
  }
  void TearDown() override {
    // Whoever came, nothing has reached the node.
    EXPECT_THAT(backend_.orders(), IsEmpty());
    EXPECT_THAT(backend_.records(), IsEmpty());
    EXPECT_EQ(backend_.plan().version, 0u);
    TlsServerTest::TearDown();
  }

  // A client that trusts anybody and shows `own`, or nothing.
  std::unique_ptr<pb::ControlService::Stub> Show(
      const std::shared_ptr<const tls::Credentials>& own) {
    grpc::SslCredentialsOptions options;
    options.pem_root_certs = authority_.certificate().ToPem();
    if (own != nullptr) {
      options.pem_private_key = own->key_pem;
      options.pem_cert_chain = own->chain_pem;
    }
    grpc::ChannelArguments arguments;
    arguments.SetSslTargetNameOverride("box-1");
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return pb::ControlService::NewStub(grpc::CreateCustomChannel(
        address(), grpc::SslCredentials(options), arguments));
  }

  static grpc::Status Ask(pb::ControlService::Stub& stub) {
    grpc::ClientContext context;
    SetDeadline(context);
    pb::GetStatusResponse response;
    const grpc::Status status =
        stub.GetStatus(&context, pb::GetStatusRequest(), &response);
    EXPECT_EQ(status.ok(), response.has_status());
    return status;
  }
  static grpc::Status Order(pb::ControlService::Stub& stub) {
    grpc::ClientContext context;
    SetDeadline(context);
    pb::TrainRequest request;
    request.set_action(pb::TRAIN_ACTION_PAUSE);
    pb::TrainResponse response;
    return stub.Train(&context, request, &response);
  }
  static void SetDeadline(grpc::ClientContext& context) {
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::seconds(10));
  }

  // The connection ends in the handshake, and is counted under `reason`.
  void ExpectEndsInHandshake(const std::shared_ptr<const tls::Credentials>& own,
                             const std::string& reason) {
    const auto stub = Show(own);
    EXPECT_EQ(Ask(*stub).error_code(), grpc::StatusCode::UNAVAILABLE);
    EXPECT_TRUE(Eventually([&] { return security_->refusals()[reason] > 0; }))
        << reason;
    EXPECT_THAT(audit(), IsEmpty());  // no call has come as far as the gate
    // A member still gets in.
    EXPECT_TRUE(Ask(*Show(tls::MakeCredentials(authority_, kAlice))).ok());
  }

  void Ban(const tls::Identity& identity) {
    const std::vector<tls::Identity> banned = {identity};
    security_->SetBanned(banned);
  }

  const tls::Authority stranger_ = tls::MakeAuthority("plant-4", absl::Now());
  const tls::Authority other_cluster_ =
      tls::MakeAuthority("plant-5", absl::Now());
};

TEST_F(ControlStrangers, NoCertificate) {
  ExpectEndsInHandshake(nullptr, "no-certificate");
}

TEST_F(ControlStrangers, OtherAuthority) {
  ExpectEndsInHandshake(tls::MakeCredentials(stranger_, kAlice),
                        "unknown-authority");
}

TEST_F(ControlStrangers, OtherCluster) {
  ExpectEndsInHandshake(
      tls::MakeCredentials(other_cluster_,
                           {"plant-5", tls::Role::kAdmin, "alice"}),
      "wrong-cluster");
}

TEST_F(ControlStrangers, Expired) {
  const tls::Authority old =
      tls::MakeAuthority("plant-4", absl::Now() - absl::Hours(48));
  ASSERT_TRUE(security_
                  ->Use(tls::MakeCredentials(
                      authority_, tls::NodeIdentity("box-1"),
                      {authority_.certificate(), old.certificate()}))
                  .ok());
  ExpectEndsInHandshake(
      tls::MakeCredentials(old, kAlice, {}, absl::Now() - absl::Hours(48),
                           absl::Hours(24)),
      "expired");
}

TEST_F(ControlStrangers, NotYetValid) {
  ExpectEndsInHandshake(tls::MakeCredentials(authority_, kAlice, {},
                                             absl::Now() + absl::Hours(1)),
                        "not-yet-valid");
}

TEST_F(ControlStrangers, ANodesCertificate) {
  ExpectEndsInHandshake(
      tls::MakeCredentials(authority_, tls::NodeIdentity("box-2")),
      "wrong-role");
  // Not even that of the daemon itself.
  ExpectEndsInHandshake(
      tls::MakeCredentials(authority_, tls::NodeIdentity("box-1")),
      "wrong-role");
}

TEST_F(ControlStrangers, PlainText) {
  const auto stub = pb::ControlService::NewStub(
      grpc::CreateChannel(address(), grpc::InsecureChannelCredentials()));
  EXPECT_FALSE(Order(*stub).ok());
  EXPECT_TRUE(
      Eventually([&] { return security_->refusals()["plaintext"] > 0; }));
}

TEST_F(ControlStrangers, ABannedOperatorOnANewAndOnALiveConnection) {
  const auto live = Show(tls::MakeCredentials(authority_, kAlice));
  ASSERT_TRUE(Ask(*live).ok());
  Ban(kAlice);
  const grpc::Status refused = Order(*live);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(refused.error_message(), HasSubstr("banned"));
  ASSERT_EQ(audit().size(), 1u);
  EXPECT_THAT(audit()[0].caller.name,
              HasSubstr("spiffe://plant-4/operator/alice at "));
  EXPECT_EQ(audit()[0].caller.role, Role::kNone);
  // With a new certificate, too: it is the person who is banned.
  const auto again = Show(tls::MakeCredentials(authority_, kAlice));
  EXPECT_EQ(Ask(*again).error_code(), grpc::StatusCode::UNAVAILABLE);
  Ban(kEve);
  EXPECT_TRUE(Ask(*live).ok());
}

TEST_F(ControlStrangers, ARemovedAuthorityEndsWhatItLetIn) {
  const auto live = Show(tls::MakeCredentials(authority_, kAlice));
  ASSERT_TRUE(Ask(*live).ok());
  ASSERT_TRUE(
      security_
          ->Use(tls::MakeCredentials(stranger_, tls::NodeIdentity("box-1")))
          .ok());
  EXPECT_EQ(Order(*live).error_code(), grpc::StatusCode::PERMISSION_DENIED);
}

TEST_F(ControlStrangers, AViewerChangesAPlan) {
  client::ClientOptions options;
  options.identity = [this]() -> absl::StatusOr<client::ClientIdentity> {
    const auto own = tls::MakeCredentials(authority_, kEve);
    return client::ClientIdentity{own->bundle_pem, own->chain_pem,
                                  own->key_pem};
  };
  const auto client = *client::ControlClient::Connect(address(), options);
  ASSERT_TRUE(client->Status().ok());
  ASSERT_TRUE(client->Plan().ok());
  client::ApplyPlanOptions apply;
  apply.yaml = kPlan;
  std::vector<absl::Status> ends = {client->ApplyPlan(apply).status()};
  apply.dry_run = true;
  ends.push_back(client->ApplyPlan(apply).status());
  apply = {};
  apply.record = "a record";
  ends.push_back(client->ApplyPlan(apply).status());
  ends.push_back(client->PutRecord("a record").status());
  ends.push_back(client->Train(client::TrainAction::kStop).status());
  ends.push_back(client->AddPeer("10.0.0.9:7600").status());
  ends.push_back(client->RemovePeer("10.0.0.9:7600"));
  ends.push_back(client
                     ->ExportModel(client::ModelFormat::kSafetensors,
                                   [](absl::string_view, int64_t) {
                                     return absl::OkStatus();
                                   })
                     .status());
  for (const absl::Status& end : ends) {
    EXPECT_EQ(end.code(), absl::StatusCode::kPermissionDenied) << end;
    EXPECT_THAT(std::string(end.message()), HasSubstr("is a viewer here"));
  }
  EXPECT_EQ(audit().size(), ends.size());
}

TEST_F(ControlStrangers, AnUnsignedPlanFromRootOnTheSocket) {
  client::ApplyPlanOptions apply;
  apply.yaml = kPlan;
  const absl::Status refused = client_->ApplyPlan(apply).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("not signed"));
  EXPECT_EQ(audit().back().caller.role, Role::kAdmin);
  EXPECT_TRUE(audit().back().caller.local);
}

}  // namespace
}  // namespace dfl::control
