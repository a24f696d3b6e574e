// What the rooms that speak gRPC rely on: that gRPC's TLS takes the
// certificates of daemon/tls, shows a verifier what the peer presented, and
// reloads files.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "daemon/tls/peer_check.h"
#include "dfl/control/v1/control.grpc.pb.h"
#include "tests/support/process.h"
#include "tests/unit/tls/made_certificates.h"

namespace dfl::tls {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
namespace gx = grpc::experimental;

// What a verifier was shown, and what it answered.
struct Seen {
  absl::Mutex mutex;
  std::vector<std::string> leaves ABSL_GUARDED_BY(mutex);
  std::vector<std::string> chains ABSL_GUARDED_BY(mutex);
  std::vector<PeerVerdict> verdicts ABSL_GUARDED_BY(mutex);

  PeerVerdict last() {
    absl::MutexLock lock(&mutex);
    return verdicts.empty() ? PeerVerdict() : verdicts.back();
  }
  size_t count() {
    absl::MutexLock lock(&mutex);
    return verdicts.size();
  }
};

class Verifier : public gx::ExternalCertificateVerifier {
 public:
  Verifier(Seen* seen, std::vector<Certificate> bundle)
      : seen_(seen), bundle_(std::move(bundle)) {}

  bool Verify(gx::TlsCustomVerificationCheckRequest* request,
              std::function<void(grpc::Status)>,
              grpc::Status* sync_status) override {
    const std::string leaf(request->peer_cert().data(),
                           request->peer_cert().size());
    const std::string chain(request->peer_cert_full_chain().data(),
                            request->peer_cert_full_chain().size());
    const Role roles[] = {Role::kNode};
    const PeerVerdict verdict = CheckPeer(
        {leaf, chain},
        {bundle_, "plant-4", roles, [](const Identity&) { return false; }},
        absl::Now());
    if (!verdict.ok()) {
      *sync_status =
          grpc::Status(grpc::StatusCode::UNAUTHENTICATED, verdict.text);
    }
    absl::MutexLock lock(&seen_->mutex);
    seen_->leaves.push_back(leaf);
    seen_->chains.push_back(chain);
    seen_->verdicts.push_back(verdict);
    return true;
  }
  void Cancel(gx::TlsCustomVerificationCheckRequest*) override {}

 private:
  Seen* const seen_;
  const std::vector<Certificate> bundle_;
};

// Answers with what the connection is known as.
class Service final : public ::dfl::control::v1::ControlService::Service {
 public:
  grpc::Status GetVersion(
      grpc::ServerContext* context,
      const ::dfl::control::v1::GetVersionRequest*,
      ::dfl::control::v1::GetVersionResponse* response) override {
    for (const grpc::string_ref& value :
         context->auth_context()->FindPropertyValues("peer_spiffe_id")) {
      response->set_node(std::string(value.data(), value.size()));
    }
    return grpc::Status::OK;
  }
};

class GrpcTls : public ::testing::Test {
 protected:
  GrpcTls() : authority_(MakeAuthority("plant-4", absl::Now())) {
    Store(authority_, authority_.certificate().ToPem());
    Start();
  }
  void TearDown() override {
    server_->Shutdown(std::chrono::system_clock::now());
  }

  // Key and certificate in one file, so that one rename replaces both.
  void Store(const Authority& issuer, const std::string& bundle) {
    const PrivateKey key = PrivateKey::Generate();
    ASSERT_TRUE(WritePublic(folder_.File("ca.pem"), bundle).ok());
    ASSERT_TRUE(WritePrivate(
                    folder_.File("identity.pem"),
                    key.ToPem() +
                        IssueTo(issuer, key, NodeIdentity("box-1"), absl::Now())
                            .ToPem())
                    .ok());
  }

  void Start() {
    auto provider = std::make_shared<gx::FileWatcherCertificateProvider>(
        folder_.File("identity.pem"), folder_.File("identity.pem"),
        folder_.File("ca.pem"), 1);
    gx::TlsServerCredentialsOptions options(provider);
    options.watch_root_certs();
    options.watch_identity_key_cert_pairs();
    options.set_cert_request_type(
        GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
    options.set_certificate_verifier(
        gx::ExternalCertificateVerifier::Create<Verifier>(
            &at_server_, std::vector<Certificate>{authority_.certificate(),
                                                  second_.certificate()}));
    options.set_check_call_host(false);
    grpc::ServerBuilder builder;
    builder.RegisterService(&service_);
    builder.AddListeningPort("127.0.0.1:0", gx::TlsServerCredentials(options),
                             &port_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
  }

  std::shared_ptr<grpc::Channel> Dial(const Certificate& leaf,
                                      const PrivateKey& key,
                                      const std::string& bundle) {
    auto provider = std::make_shared<gx::StaticDataCertificateProvider>(
        bundle,
        std::vector<gx::IdentityKeyCertPair>{{key.ToPem(), leaf.ToPem()}});
    gx::TlsChannelCredentialsOptions options;
    options.set_certificate_provider(provider);
    options.watch_root_certs();
    options.watch_identity_key_cert_pairs();
    options.set_verify_server_certs(true);
    options.set_check_call_host(false);
    options.set_certificate_verifier(
        gx::ExternalCertificateVerifier::Create<Verifier>(
            &at_client_, std::vector<Certificate>{authority_.certificate(),
                                                  second_.certificate()}));
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(absl::StrCat("127.0.0.1:", port_),
                                     gx::TlsCredentials(options), arguments);
  }
  // Box-2 with a certificate of `issuer`, trusting both authorities.
  std::shared_ptr<grpc::Channel> DialAs(const Identity& identity,
                                        const Authority& issuer) {
    const PrivateKey key = PrivateKey::Generate();
    return Dial(
        IssueTo(issuer, key, identity, absl::Now()), key,
        authority_.certificate().ToPem() + second_.certificate().ToPem());
  }

  // Somebody who speaks no TLS.
  bool PlaintextIsAnswered() {
    return Call(grpc::CreateChannel(absl::StrCat("127.0.0.1:", port_),
                                    grpc::InsecureChannelCredentials()))
        .ok();
  }

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

  testing_support::TemporaryFolder folder_;
  const Authority authority_;
  const Authority second_ = MakeAuthority("plant-4", absl::Now());
  Seen at_server_;
  Seen at_client_;
  Service service_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

TEST_F(GrpcTls, BothEndsAreShownWhoTheOtherIs) {
  std::string known_as;
  const grpc::Status status =
      Call(DialAs(NodeIdentity("box-2"), authority_), &known_as);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(known_as, "spiffe://plant-4/node/box-2");
  EXPECT_EQ(at_server_.last().identity, NodeIdentity("box-2"));
  EXPECT_EQ(at_client_.last().identity, NodeIdentity("box-1"));
  // OpenSSL leaves the leaf out of the chain that a server is shown.
  absl::MutexLock lock(&at_server_.mutex);
  EXPECT_THAT(at_server_.leaves.back(), HasSubstr("BEGIN CERTIFICATE"));
  EXPECT_THAT(at_server_.chains.back(),
              Not(HasSubstr(at_server_.leaves.back())));
}

TEST_F(GrpcTls, AVerifiersRefusalEndsTheHandshake) {
  const grpc::Status status =
      Call(DialAs({"plant-4", Role::kOperator, "alice"}, authority_));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(at_server_.last().fault, PeerFault::kWrongRole);
  // What is wrong is told to nobody: check one's own files first.
  EXPECT_THAT(status.error_message(), HasSubstr("Socket closed"));
}

TEST_F(GrpcTls, AStrangersCertificateReachesNoVerifier) {
  const grpc::Status status = Call(
      DialAs(NodeIdentity("box-2"), MakeAuthority("plant-4", absl::Now())));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(at_server_.count(), 0u);
  // What is wrong is told to nobody: check one's own files first.
  EXPECT_THAT(status.error_message(), HasSubstr("Socket closed"));
}

TEST_F(GrpcTls, PlaintextIsNotAnswered) { EXPECT_FALSE(PlaintextIsAnswered()); }

TEST_F(GrpcTls, FilesAreReloadedAndStreamsGoOn) {
  const auto old_channel = DialAs(NodeIdentity("box-2"), authority_);
  ASSERT_TRUE(Call(old_channel).ok());
  EXPECT_FALSE(Call(DialAs(NodeIdentity("box-3"), second_)).ok());
  // The authority is replaced, and with it the server's own certificate.
  Store(second_, second_.certificate().ToPem());
  EXPECT_TRUE(testing_support::Eventually(absl::Seconds(10), [&] {
    return Call(DialAs(NodeIdentity("box-3"), second_)).ok();
  }));
  // What was connected stays so, until somebody ends it.
  EXPECT_TRUE(Call(old_channel).ok());
  EXPECT_FALSE(Call(DialAs(NodeIdentity("box-2"), authority_)).ok());
}

TEST_F(GrpcTls, WrongFilesBreakNewHandshakes) {
  ASSERT_TRUE(WritePublic(folder_.File("identity.pem"), "wrong").ok());
  EXPECT_TRUE(testing_support::Eventually(absl::Seconds(10), [&] {
    return !Call(DialAs(NodeIdentity("box-2"), authority_)).ok();
  }));
  EXPECT_FALSE(PlaintextIsAnswered());
  Store(authority_, authority_.certificate().ToPem());
  EXPECT_TRUE(testing_support::Eventually(absl::Seconds(10), [&] {
    return Call(DialAs(NodeIdentity("box-2"), authority_)).ok();
  }));
}

TEST_F(GrpcTls, OldVersionsOfTlsAreRefused) {
  if (testing_support::RunCommand({"/bin/sh", "-c", "command -v openssl"})
          .exit_code != 0) {
    GTEST_SKIP() << "there is no `openssl` command (Debian: openssl)";
  }
  const PrivateKey key = PrivateKey::Generate();
  ASSERT_TRUE(WritePrivate(folder_.File("k.pem"), key.ToPem()).ok());
  ASSERT_TRUE(
      WritePublic(
          folder_.File("c.pem"),
          IssueTo(authority_, key, NodeIdentity("box-2"), absl::Now()).ToPem())
          .ok());
  const auto connect = [&](const std::string& flags) {
    return testing_support::RunCommand(
        {"/bin/sh", "-c",
         absl::StrCat("echo | openssl s_client -connect 127.0.0.1:", port_,
                      " -alpn h2 ", flags, " -cert ", folder_.File("c.pem"),
                      " -key ", folder_.File("k.pem"), " -CAfile ",
                      folder_.File("ca.pem"))});
  };
  EXPECT_NE(connect("-tls1_1 -cipher DEFAULT@SECLEVEL=0").exit_code, 0);
  const testing_support::Outcome old = connect("-tls1_2");
  EXPECT_EQ(old.exit_code, 0) << old.err;
  EXPECT_THAT(old.out, HasSubstr("New, TLSv1.2"));
  const testing_support::Outcome best = connect("");
  EXPECT_EQ(best.exit_code, 0) << best.err;
  EXPECT_THAT(best.out, HasSubstr("New, TLSv1.3"));
}

}  // namespace
}  // namespace dfl::tls
