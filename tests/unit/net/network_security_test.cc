// Over real sockets: what a gRPC server behind a BoundedAcceptor lets in.
#include "daemon/net/network_security.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <sys/stat.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "daemon/net/bounded_acceptor.h"
#include "dfl/control/v1/control.grpc.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/made_credentials.h"
#include "tests/support/process.h"

namespace dfl::net {
namespace {

using ::testing::HasSubstr;
using testing_support::Eventually;
using tls::Authority;
using tls::Certificate;
using tls::Credentials;
using tls::Identity;
using tls::MakeAuthority;
using tls::MakeCredentials;
using tls::NodeIdentity;
using tls::PeerFault;
using tls::PeerVerdict;
using tls::Role;
using CredentialsPtr = std::shared_ptr<const Credentials>;

const std::vector<Role>& Nodes() {
  static const auto* const kNodes = new std::vector<Role>{Role::kNode};
  return *kNodes;
}

std::unique_ptr<NetworkSecurity> Make(const std::string& folder) {
  absl::StatusOr<std::unique_ptr<NetworkSecurity>> made =
      NetworkSecurity::Create(folder);
  EXPECT_TRUE(made.ok()) << made.status();
  return *std::move(made);
}

// A server of one node, as the exchange has it.
class Server final : private ::dfl::control::v1::ControlService::Service {
 public:
  explicit Server(NetworkSecurity* security) {
    AcceptorOptions options;
    options.on_refusal = [security](absl::string_view reason) {
      security->CountRefusal(reason);
    };
    absl::StatusOr<std::unique_ptr<BoundedAcceptor>> bound =
        BoundedAcceptor::Bind({"127.0.0.1:0"}, options);
    EXPECT_TRUE(bound.ok()) << bound.status();
    acceptor_ = *std::move(bound);
    grpc::ServerBuilder builder;
    builder.RegisterService(this);
    connections_ = builder.experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
        security->ServerCredentials(Nodes()));
    server_ = builder.BuildAndStart();
    acceptor_->Start([this](int fd) {
      grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters
          connection;
      connection.fd = fd;
      connections_->HandleNewConnection(&connection);
    });
  }
  ~Server() override {
    acceptor_->Stop();
    server_->Shutdown(std::chrono::system_clock::now());
  }

  std::string address() const { return acceptor_->addresses().front(); }
  BoundedAcceptor& acceptor() { return *acceptor_; }

 private:
  grpc::Status GetVersion(
      grpc::ServerContext* context,
      const ::dfl::control::v1::GetVersionRequest*,
      ::dfl::control::v1::GetVersionResponse* response) override {
    acceptor_->Admitted(context->peer());
    for (const grpc::string_ref& value :
         context->auth_context()->FindPropertyValues("peer_spiffe_id")) {
      response->set_node(std::string(value.data(), value.size()));
    }
    return grpc::Status::OK;
  }

  std::unique_ptr<BoundedAcceptor> acceptor_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> connections_;
  std::unique_ptr<grpc::Server> server_;
};

grpc::Status Call(const std::shared_ptr<grpc::Channel>& channel,
                  std::string* known_as = nullptr) {
  const auto stub = ::dfl::control::v1::ControlService::NewStub(channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::seconds(10));
  ::dfl::control::v1::GetVersionResponse response;
  const grpc::Status status = stub->GetVersion(&context, {}, &response);
  if (known_as != nullptr) *known_as = response.node();
  return status;
}

std::shared_ptr<grpc::Channel> ChannelTo(
    const std::string& address,
    const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(absl::StrCat("dns:///", address),
                                   credentials, arguments);
}

class NetworkSecurityTest : public ::testing::Test {
 protected:
  NetworkSecurityTest()
      : authority_(MakeAuthority("plant-4", absl::Now())),
        own_(Make(folder_.File("own"))) {
    EXPECT_TRUE(own_->Use(CredentialsOf("box-1")).ok());
    server_ = std::make_unique<Server>(own_.get());
  }

  CredentialsPtr CredentialsOf(const std::string& name) {
    return MakeCredentials(authority_, NodeIdentity(name));
  }
  // Calls as somebody who shows `credentials`.
  grpc::Status CallAs(const CredentialsPtr& credentials,
                      PeerVerdict* refused = nullptr) {
    const auto peer = Make(folder_.File(absl::StrCat("peer-", ++peers_)));
    EXPECT_TRUE(peer->Use(credentials).ok());
    absl::Mutex mutex;
    const auto channel_credentials =
        peer->ChannelCredentials(Nodes(), [&](const PeerVerdict& verdict) {
          absl::MutexLock lock(&mutex);
          if (refused != nullptr) *refused = verdict;
        });
    EXPECT_TRUE(channel_credentials.ok()) << channel_credentials.status();
    const grpc::Status status =
        Call(ChannelTo(server_->address(), *channel_credentials));
    absl::MutexLock lock(&mutex);
    return status;
  }
  void ExpectRefused(const CredentialsPtr& credentials,
                     const std::string& reason) {
    const int64_t before = own_->refusals()[reason];
    EXPECT_FALSE(CallAs(credentials).ok()) << reason;
    EXPECT_TRUE(Eventually(absl::Seconds(10), [&] {
      return own_->refusals()[reason] > before;
    })) << reason;
  }

  testing_support::TemporaryFolder folder_;
  int peers_ = 0;
  const Authority authority_;
  const std::unique_ptr<NetworkSecurity> own_;
  std::unique_ptr<Server> server_;
};

TEST_F(NetworkSecurityTest, MembersAreLetInAndAdmitted) {
  const auto peer = Make(folder_.File("peer"));
  ASSERT_TRUE(peer->Use(CredentialsOf("box-2")).ok());
  const auto channel = ChannelTo(server_->address(),
                                 *peer->ChannelCredentials(Nodes(), nullptr));
  std::string known_as;
  const grpc::Status status = Call(channel, &known_as);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(known_as, "spiffe://plant-4/node/box-2");
  EXPECT_EQ(server_->acceptor().pending(), 0);
  EXPECT_EQ(server_->acceptor().connections(), 1);
  EXPECT_TRUE(own_->refusals().empty());
}

TEST_F(NetworkSecurityTest, AConnectionThatEndsIsForgotten) {
  EXPECT_TRUE(CallAs(CredentialsOf("box-2")).ok());
  EXPECT_TRUE(Eventually(absl::Seconds(10), [&] {
    return server_->acceptor().connections() == 0;
  }));
}

TEST_F(NetworkSecurityTest, EachStrangerIsRefusedByItsReason) {
  const std::vector<Certificate> ours = {authority_.certificate()};
  const Authority other = MakeAuthority("plant-4", absl::Now());
  ExpectRefused(MakeCredentials(other, NodeIdentity("box-2"), ours),
                "unknown-authority");
  ExpectRefused(
      MakeCredentials(authority_, NodeIdentity("box-2"), ours,
                      absl::Now() - absl::Seconds(60), absl::Seconds(30)),
      "expired");
  ExpectRefused(MakeCredentials(authority_, NodeIdentity("box-2"), ours,
                                absl::Now() + absl::Hours(1)),
                "not-yet-valid");
  ExpectRefused(MakeCredentials(authority_, {"plant-4", Role::kAdmin, "eve"}),
                "wrong-role");
  own_->SetBanned({NodeIdentity("box-2")});
  EXPECT_TRUE(own_->IsBanned(NodeIdentity("box-2")));
  ExpectRefused(CredentialsOf("box-2"), "banned");
  EXPECT_TRUE(CallAs(CredentialsOf("box-3")).ok());
}

TEST_F(NetworkSecurityTest, WhoShowsNoCertificateIsRefused) {
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_verify_server_certs(false);
  options.set_check_call_host(false);
  options.set_certificate_verifier(
      std::make_shared<grpc::experimental::NoOpCertificateVerifier>());
  EXPECT_FALSE(Call(ChannelTo(server_->address(),
                              grpc::experimental::TlsCredentials(options)))
                   .ok());
  EXPECT_TRUE(Eventually(absl::Seconds(10), [&] {
    return own_->refusals()["no-certificate"] > 0;
  }));
}

TEST_F(NetworkSecurityTest, PlaintextIsRefused) {
  EXPECT_FALSE(
      Call(ChannelTo(server_->address(), grpc::InsecureChannelCredentials()))
          .ok());
  EXPECT_GT(own_->refusals()[std::string(kPlaintext)], 0);
}

TEST_F(NetworkSecurityTest, ADialTellsWhyItRefused) {
  const Authority other = MakeAuthority("plant-4", absl::Now());
  PeerVerdict refused;
  EXPECT_FALSE(
      CallAs(MakeCredentials(other, NodeIdentity("box-2")), &refused).ok());
  EXPECT_EQ(refused.fault, PeerFault::kUnknownAuthority);
  EXPECT_FALSE(refused.text.empty());
}

TEST_F(NetworkSecurityTest, BeforeTheFirstUseNobodyIsLetInAndNobodyDialled) {
  const auto young = Make(folder_.File("young"));
  EXPECT_EQ(young->credentials(), nullptr);
  Server server(young.get());
  EXPECT_EQ(young->ChannelCredentials(Nodes(), nullptr).status().code(),
            absl::StatusCode::kUnavailable);
  const auto peer = Make(folder_.File("peer"));
  ASSERT_TRUE(peer->Use(CredentialsOf("box-2")).ok());
  const auto dial = [&] {
    return Call(ChannelTo(server.address(),
                          *peer->ChannelCredentials(Nodes(), nullptr)))
        .ok();
  };
  EXPECT_FALSE(dial());
  ASSERT_TRUE(young->Use(CredentialsOf("box-3")).ok());
  EXPECT_TRUE(Eventually(absl::Seconds(10), dial));
}

TEST_F(NetworkSecurityTest, NewCredentialsCountAtOnceAndOldConnectionsStay) {
  const auto peer = Make(folder_.File("peer"));
  ASSERT_TRUE(peer->Use(CredentialsOf("box-2")).ok());
  const auto live = ChannelTo(server_->address(),
                              *peer->ChannelCredentials(Nodes(), nullptr));
  ASSERT_TRUE(Call(live).ok());
  const int64_t before = own_->generation();
  const Authority second = MakeAuthority("plant-4", absl::Now());
  const auto both =
      std::vector<Certificate>{authority_.certificate(), second.certificate()};
  ExpectRefused(MakeCredentials(second, NodeIdentity("box-3"), both),
                "unknown-authority");
  ASSERT_TRUE(
      own_->Use(MakeCredentials(second, NodeIdentity("box-1"), both)).ok());
  EXPECT_GT(own_->generation(), before);
  EXPECT_TRUE(
      CallAs(MakeCredentials(second, NodeIdentity("box-3"), both)).ok());
  EXPECT_TRUE(Call(live).ok());
  // The new certificate is shown soon: who trusts the second alone finds it.
  EXPECT_TRUE(Eventually(absl::Seconds(10), [&] {
    return CallAs(MakeCredentials(second, NodeIdentity("box-3"))).ok();
  }));
}

TEST(Create, KeepsTheKeyToItself) {
  const testing_support::TemporaryFolder folder;
  const std::string path = folder.File("net");
  {
    const auto security = Make(path);
    const Authority authority = MakeAuthority("plant-4", absl::Now());
    ASSERT_TRUE(
        security->Use(MakeCredentials(authority, NodeIdentity("box-1"))).ok());
    struct stat info{};
    ASSERT_EQ(stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0700u);
    ASSERT_EQ(stat((path + "/identity.pem").c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600u);
  }
  struct stat info{};
  EXPECT_NE(stat((path + "/identity.pem").c_str(), &info), 0);
  ASSERT_EQ(chmod(path.c_str(), 0755), 0);
  EXPECT_EQ(NetworkSecurity::Create(path).status().code(),
            absl::StatusCode::kPermissionDenied);
}

}  // namespace
}  // namespace dfl::net
