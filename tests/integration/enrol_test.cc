// A new node and an issuer over real sockets, and what must not work.
#include "daemon/enrol/joining.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "daemon/app/enrolling.h"
#include "daemon/config/node_settings.h"
#include "daemon/enrol/issuer.h"
#include "daemon/enrol/token_book.h"
#include "daemon/tls/authority.h"
#include "daemon/tls/credentials.h"
#include "daemon/tls/key_file.h"
#include "dfl/enrol/v1/enrol.grpc.pb.h"
#include "tests/support/daemon_process.h"
#include "tests/support/process.h"
#include "tests/unit/tls/made_certificates.h"

namespace dfl::enrol {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing_support::ReadFile;
using testing_support::TemporaryFolder;
using testing_support::WriteFile;
using tls::Authority;
using tls::Identity;
using tls::PrivateKey;
using tls::Role;
namespace gx = grpc::experimental;

// An authority's folder and the issuer that works on it.
class TestIssuer {
 public:
  explicit TestIssuer(const Authority& authority) : authority_(authority) {
    EXPECT_TRUE(tls::WritePublic(folder_.File("ca.pem"),
                                 authority.certificate().ToPem())
                    .ok());
    EXPECT_TRUE(
        tls::WritePrivate(folder_.File("ca.key"), authority.key().ToPem())
            .ok());
    Start();
  }
  void Start(const std::string& listen = "127.0.0.1:0") {
    IssuerOptions options;
    options.folder = folder_.path();
    options.listen = listen;
    options.upkeep = absl::InfiniteDuration();
    options.clock = [this] {
      absl::MutexLock lock(&mutex_);
      return absl::Now() + ahead_;
    };
    options.steady = [this] {
      absl::MutexLock lock(&mutex_);
      return SteadyNow() + ahead_;
    };
    options.note = [this](const IssuerNote& note) {
      absl::MutexLock lock(&mutex_);
      notes_.push_back(note);
    };
    absl::StatusOr<std::unique_ptr<Issuer>> issuer =
        Issuer::Start(std::move(options));
    ASSERT_TRUE(issuer.ok()) << issuer.status();
    issuer_ = *std::move(issuer);
  }
  void Stop() { issuer_ = nullptr; }
  void SetAhead(absl::Duration ahead) {
    absl::MutexLock lock(&mutex_);
    ahead_ = ahead;
  }
  JoinToken Create(const std::string& node,
                   absl::Duration ttl = absl::Hours(1)) {
    const absl::StatusOr<JoinToken> token =
        TokenBook::Open(folder_.path())
            ->Create("plant-4", node, authority_.certificate().fingerprint(),
                     ttl, absl::Now());
    EXPECT_TRUE(token.ok()) << token.status();
    return *token;
  }
  TokenState StateOf(const JoinToken& token) {
    const auto tokens = TokenBook::Open(folder_.path())->List(absl::Now());
    for (const TokenEntry& entry : *tokens) {
      if (entry.id == TokenId(token.secret)) return entry.state;
    }
    ADD_FAILURE() << "no such token";
    return TokenState::kOpen;
  }
  std::vector<IssuerNote> notes() {
    absl::MutexLock lock(&mutex_);
    return notes_;
  }
  Issuer& issuer() { return *issuer_; }
  const std::string& address() const { return issuer_->address(); }
  const TemporaryFolder& folder() const { return folder_; }

 private:
  const Authority authority_;
  const TemporaryFolder folder_;
  absl::Mutex mutex_;
  absl::Duration ahead_ ABSL_GUARDED_BY(mutex_);
  std::vector<IssuerNote> notes_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<Issuer> issuer_;
};

// Shows any chain, and records each call that gets through.
class HostileIssuer final : public dfl::enrol::v1::EnrolService::Service {
 public:
  HostileIssuer(const PrivateKey& key, const std::string& chain) {
    gx::TlsServerCredentialsOptions options(
        std::make_shared<gx::StaticDataCertificateProvider>(
            std::vector<gx::IdentityKeyCertPair>{{key.ToPem(), chain}}));
    options.watch_identity_key_cert_pairs();
    options.set_check_call_host(false);
    grpc::ServerBuilder builder;
    builder.RegisterService(this);
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", gx::TlsServerCredentials(options),
                             &port);
    server_ = builder.BuildAndStart();
    address_ = absl::StrCat("127.0.0.1:", port);
  }
  ~HostileIssuer() override {
    server_->Shutdown(std::chrono::system_clock::now());
  }
  grpc::Status Enrol(grpc::ServerContext*,
                     const dfl::enrol::v1::EnrolRequest* request,
                     dfl::enrol::v1::EnrolResponse*) override {
    absl::MutexLock lock(&mutex_);
    absl::StrAppend(&received_, request->SerializeAsString());
    return {grpc::StatusCode::INTERNAL, "thanks"};
  }
  const std::string& address() const { return address_; }
  std::string received() {
    absl::MutexLock lock(&mutex_);
    return received_;
  }

 private:
  absl::Mutex mutex_;
  std::string received_ ABSL_GUARDED_BY(mutex_);
  std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

class EnrolTest : public ::testing::Test {
 protected:
  tls::CredentialPaths Paths(const std::string& box) const {
    const std::string folder = folder_.File(box + "/tls");
    return {folder + "/ca.pem", folder + "/cert.pem", folder + "/key.pem"};
  }
  JoinOptions OptionsFor(const JoinToken& token, const std::string& at,
                         const std::string& box = "box-1") const {
    JoinOptions options;
    options.token = token;
    options.at = at;
    options.paths = Paths(box);
    return options;
  }
  absl::StatusOr<Joined> JoinAt(const JoinToken& token, const std::string& at,
                                const std::string& box = "box-1") {
    return Join(OptionsFor(token, at, box));
  }
  // That a join with `token` at `at` fails, what is said, and that nothing but
  // a key is left.
  std::string Refusal(const JoinToken& token, const std::string& at,
                      absl::StatusCode code, const std::string& box = "new") {
    const absl::Status status = JoinAt(token, at, box).status();
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_FALSE(std::filesystem::exists(Paths(box).certificate));
    EXPECT_FALSE(std::filesystem::exists(Paths(box).bundle));
    return std::string(status.message());
  }
  absl::Status Check(const std::string& box, const std::string& node) {
    return tls::CheckCredentials(tls::ReadCredentialFiles(Paths(box)),
                                 {"plant-4", Role::kNode, node}, absl::Now(),
                                 geteuid())
        .status();
  }
  // What a client of its own gets: it may say what it likes.
  grpc::Status RawCall(const std::string& at,
                       const dfl::enrol::v1::EnrolRequest& request,
                       dfl::enrol::v1::EnrolResponse* response) {
    gx::TlsChannelCredentialsOptions options;
    options.set_verify_server_certs(false);
    options.set_check_call_host(false);
    options.set_certificate_verifier(
        std::make_shared<gx::NoOpCertificateVerifier>());
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    const auto stub = dfl::enrol::v1::EnrolService::NewStub(
        grpc::CreateCustomChannel(at, gx::TlsCredentials(options), arguments));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::seconds(10));
    return stub->Enrol(&context, request, response);
  }

  const TemporaryFolder folder_;
  const Authority authority_ = tls::MakeAuthority("plant-4", absl::Now());
  TestIssuer issuer_{authority_};
};

TEST_F(EnrolTest, ANewNodeGetsItsCertificate) {
  const JoinToken token = issuer_.Create("box-1");
  const absl::StatusOr<Joined> joined = JoinAt(token, issuer_.address());
  ASSERT_TRUE(joined.ok()) << joined.status();
  EXPECT_EQ(joined->identity, (Identity{"plant-4", Role::kNode, "box-1"}));
  EXPECT_EQ(joined->written.size(), 3u);
  EXPECT_EQ(Check("box-1", "box-1"), absl::OkStatus());
  EXPECT_EQ(tls::ReadPemFile(Paths("box-1").key).mode, 0600u);
  EXPECT_EQ(issuer_.StateOf(token), TokenState::kSpent);
  // The issuer has a copy of the certificate, and nobody has the key.
  EXPECT_EQ(ReadFile(issuer_.folder().File("node/box-1/cert.pem")),
            ReadFile(Paths("box-1").certificate));
  ASSERT_EQ(issuer_.notes().size(), 1u);
  EXPECT_EQ(issuer_.notes()[0].node, "box-1");
  EXPECT_EQ(issuer_.notes()[0].host, "127.0.0.1");
  EXPECT_TRUE(issuer_.notes()[0].status.ok());
}

TEST_F(EnrolTest, ALostAnswerStrandsNobody) {
  const JoinToken token = issuer_.Create("box-1");
  ASSERT_TRUE(JoinAt(token, issuer_.address()).ok());
  // The box lost the answer, and kept its key.
  std::filesystem::remove(Paths("box-1").certificate);
  std::filesystem::remove(Paths("box-1").bundle);
  issuer_.Stop();
  issuer_.Start();
  ASSERT_TRUE(JoinAt(token, issuer_.address()).ok());
  EXPECT_EQ(Check("box-1", "box-1"), absl::OkStatus());
}

TEST_F(EnrolTest, ASpentTokenIsRefused) {
  const JoinToken token = issuer_.Create("box-1");
  ASSERT_TRUE(JoinAt(token, issuer_.address()).ok());
  EXPECT_THAT(Refusal(token, issuer_.address(),
                      absl::StatusCode::kFailedPrecondition, "thief"),
              HasSubstr("was spent at"));
}

TEST_F(EnrolTest, AnExpiredTokenIsRefusedByTheIssuersClock) {
  const JoinToken token = issuer_.Create("box-1", absl::Hours(1));
  issuer_.SetAhead(absl::Hours(2));
  EXPECT_THAT(
      Refusal(token, issuer_.address(), absl::StatusCode::kFailedPrecondition),
      HasSubstr("the join token expired at"));
  // What the node believes of the time does not matter.
  issuer_.SetAhead(absl::ZeroDuration());
  EXPECT_TRUE(JoinAt(token, issuer_.address(), "new").ok());
}

TEST_F(EnrolTest, ATokenForAnotherNodeIsRefused) {
  const JoinToken token = issuer_.Create("box-1");
  JoinOptions options = OptionsFor(token, issuer_.address());
  options.node = "box-2";
  EXPECT_THAT(std::string(Join(options).status().message()),
              HasSubstr("is for node box-1, and this node is box-2"));
  // A client that says it is another node gets no certificate of either.
  const PrivateKey key = PrivateKey::Generate();
  dfl::enrol::v1::EnrolRequest request;
  request.set_issuer(token.issuer);
  request.set_secret(token.secret);
  request.set_signing_request(*tls::MakeRequest(key, "box-2"));
  dfl::enrol::v1::EnrolResponse response;
  const grpc::Status status = RawCall(issuer_.address(), request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(status.error_message(), HasSubstr("is for node box-1"));
  EXPECT_THAT(response.certificate(), IsEmpty());
  EXPECT_EQ(issuer_.StateOf(token), TokenState::kOpen);
}

TEST_F(EnrolTest, OnlyTheIssuerThatMadeATokenRedeemsIt) {
  // Two issuers have the key of one authority.
  TestIssuer other(authority_);
  const JoinToken token = issuer_.Create("box-1");
  EXPECT_THAT(
      Refusal(token, other.address(), absl::StatusCode::kFailedPrecondition),
      HasSubstr(absl::StrCat("was made by issuer ", token.issuer)));
  EXPECT_THAT(other.notes(), IsEmpty());  // the secret was not sent
  // One that sends it all the same.
  dfl::enrol::v1::EnrolRequest request;
  request.set_secret(token.secret);
  request.set_signing_request(
      *tls::MakeRequest(PrivateKey::Generate(), "box-1"));
  dfl::enrol::v1::EnrolResponse response;
  request.set_issuer(token.issuer);
  EXPECT_EQ(RawCall(other.address(), request, &response).error_code(),
            grpc::StatusCode::FAILED_PRECONDITION);
  request.set_issuer(other.Create("box-1").issuer);
  EXPECT_EQ(RawCall(other.address(), request, &response).error_code(),
            grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(issuer_.StateOf(token), TokenState::kOpen);
  EXPECT_TRUE(JoinAt(token, issuer_.address(), "new").ok());
}

TEST_F(EnrolTest, TheSecretLeavesForNobodyButTheIssuer) {
  const JoinToken token = issuer_.Create("box-1");
  const Authority stranger = tls::MakeAuthority("plant-4", absl::Now());
  const std::string pinned = authority_.certificate().ToPem();
  const auto leaf = [](const Authority& by, const PrivateKey& key, Role role,
                       const std::string& name) {
    return tls::IssueTo(by, key, {"plant-4", role, name}, absl::Now()).ToPem();
  };
  const PrivateKey key = PrivateKey::Generate();
  const std::string own = leaf(stranger, key, Role::kIssuer, token.issuer);
  const std::pair<std::string, std::string> cases[] = {
      // Another network's issuer, with and without the pinned certificate.
      {own + stranger.certificate().ToPem(), "SHA-256"},
      {own + pinned, "does not vouch"},
      // A node of this network.
      {leaf(authority_, key, Role::kNode, "box-9") + pinned,
       "spiffe://plant-4/node/box-9"},
      {leaf(authority_, key, Role::kNode, token.issuer) + pinned, "it is"},
      // The issuer's own certificate, without its authority.
      {leaf(authority_, key, Role::kIssuer, token.issuer), "SHA-256"},
  };
  for (const auto& [chain, said] : cases) {
    HostileIssuer hostile(key, chain);
    const std::string text = Refusal(token, hostile.address(),
                                     absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(text, HasSubstr(said));
    EXPECT_THAT(text, HasSubstr("secret was not sent"));
    EXPECT_THAT(hostile.received(), IsEmpty());
  }
  // The same server is sent the secret once it shows what it should: the test
  // above sees what it means to see.
  HostileIssuer real(
      key, leaf(authority_, key, Role::kIssuer, token.issuer) + pinned);
  EXPECT_THAT(Refusal(token, real.address(), absl::StatusCode::kInternal),
              HasSubstr("thanks"));
  EXPECT_THAT(real.received(), HasSubstr(token.secret));
}

TEST_F(EnrolTest, NothingIsSaidInPlainText) {
  const JoinToken token = issuer_.Create("box-1");
  class Plain final : public dfl::enrol::v1::EnrolService::Service {};
  Plain service;
  grpc::ServerBuilder builder;
  builder.RegisterService(&service);
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &port);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  EXPECT_THAT(Refusal(token, absl::StrCat("127.0.0.1:", port),
                      absl::StatusCode::kUnavailable),
              HasSubstr("does not answer"));
  // Nor does the issuer answer to it.
  const auto stub = dfl::enrol::v1::EnrolService::NewStub(grpc::CreateChannel(
      issuer_.address(), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::seconds(10));
  dfl::enrol::v1::EnrolResponse response;
  EXPECT_FALSE(stub->Enrol(&context, {}, &response).ok());
  EXPECT_THAT(issuer_.notes(), IsEmpty());
}

TEST_F(EnrolTest, NobodyAndNoHostAreTold) {
  const JoinToken token = issuer_.Create("box-1");
  const std::string address = issuer_.address();
  issuer_.Stop();
  EXPECT_THAT(Refusal(token, address, absl::StatusCode::kUnavailable),
              HasSubstr("see that `dflctl token serve` runs there"));
  EXPECT_THAT(
      Refusal(token, "no-such-host.invalid:1", absl::StatusCode::kUnavailable),
      HasSubstr("there is no such host"));
  EXPECT_THAT(Refusal(token, "box", absl::StatusCode::kInvalidArgument),
              HasSubstr("it has no port"));
  EXPECT_THAT(Refusal(token, "0.0.0.0:1", absl::StatusCode::kInvalidArgument),
              HasSubstr("and not be reached"));
}

TEST_F(EnrolTest, AClockThatIsNotSetIsToldAndMended) {
  const JoinToken token = issuer_.Create("box-1");
  JoinOptions options = OptionsFor(token, issuer_.address());
  options.clock = [] { return absl::FromUnixSeconds(1000); };
  const absl::Status status = Join(options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("Set this machine's clock"));
  EXPECT_EQ(issuer_.StateOf(token), TokenState::kOpen);
  EXPECT_TRUE(JoinAt(token, issuer_.address()).ok());
}

TEST_F(EnrolTest, GarbageIsRefusedAndSpendsNothing) {
  const JoinToken token = issuer_.Create("box-1");
  dfl::enrol::v1::EnrolRequest request;
  dfl::enrol::v1::EnrolResponse response;
  EXPECT_EQ(RawCall(issuer_.address(), request, &response).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  request.set_issuer(token.issuer);
  request.set_secret(token.secret);
  request.set_signing_request("garbage");
  EXPECT_EQ(RawCall(issuer_.address(), request, &response).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  request.set_signing_request(std::string(100'000, 'x'));
  EXPECT_EQ(RawCall(issuer_.address(), request, &response).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
  // A key that is too weak.
  request.set_signing_request(*tls::MakeRequest(tls::RsaKey(1024), "box-1"));
  EXPECT_FALSE(RawCall(issuer_.address(), request, &response).ok());
  EXPECT_EQ(issuer_.StateOf(token), TokenState::kOpen);
  EXPECT_TRUE(JoinAt(token, issuer_.address()).ok());
}

TEST_F(EnrolTest, WrongSecretsAreLimited) {
  const JoinToken token = issuer_.Create("box-1");
  dfl::enrol::v1::EnrolRequest request;
  request.set_issuer(token.issuer);
  request.set_signing_request(
      *tls::MakeRequest(PrivateKey::Generate(), "box-1"));
  dfl::enrol::v1::EnrolResponse response;
  for (int i = 0; i < 10; ++i) {
    request.set_secret(std::string(32, static_cast<char>(i)));
    EXPECT_EQ(RawCall(issuer_.address(), request, &response).error_code(),
              grpc::StatusCode::NOT_FOUND);
  }
  request.set_secret(token.secret);
  EXPECT_EQ(RawCall(issuer_.address(), request, &response).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(Refusal(token, issuer_.address(), absl::StatusCode::kUnavailable),
              HasSubstr("is busy"));
  issuer_.SetAhead(absl::Minutes(1));
  EXPECT_TRUE(RawCall(issuer_.address(), request, &response).ok());
}

TEST_F(EnrolTest, WhatIsThereIsNotReplaced) {
  const JoinToken token = issuer_.Create("box-1");
  const tls::CredentialPaths paths = Paths("box-1");
  std::filesystem::create_directories(folder_.File("box-1/tls"));
  WriteFile(paths.certificate, "mine");
  EXPECT_EQ(JoinAt(token, issuer_.address()).status().code(),
            absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(ReadFile(paths.certificate), "mine");
  std::filesystem::remove(paths.certificate);
  WriteFile(paths.bundle, tls::MakeAuthority().certificate().ToPem());
  const absl::Status status = JoinAt(token, issuer_.address()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("is the bundle of another network"));
  EXPECT_EQ(issuer_.StateOf(token), TokenState::kOpen);
  // A key that others can read is no key.
  WriteFile(paths.bundle, authority_.certificate().ToPem());
  WriteFile(paths.key, PrivateKey::Generate().ToPem());
  ASSERT_EQ(chmod(paths.key.c_str(), 0644), 0);
  EXPECT_EQ(JoinAt(token, issuer_.address()).status().code(),
            absl::StatusCode::kPermissionDenied);
  ASSERT_EQ(chmod(paths.key.c_str(), 0600), 0);
  const std::string key = ReadFile(paths.key);
  EXPECT_TRUE(JoinAt(token, issuer_.address()).ok());
  EXPECT_EQ(ReadFile(paths.key), key);
}

TEST_F(EnrolTest, AReplacedAuthorityIsTakenUpWhileItServes) {
  const JoinToken before = issuer_.Create("box-1");
  const Authority second = tls::MakeAuthority("plant-4", absl::Now());
  const TemporaryFolder& folder = issuer_.folder();
  ASSERT_TRUE(tls::WritePublic(folder.File("ca.pem"),
                               second.certificate().ToPem() +
                                   authority_.certificate().ToPem())
                  .ok());
  ASSERT_TRUE(
      tls::WritePrivate(folder.File("ca.key"), second.key().ToPem()).ok());
  ASSERT_TRUE(issuer_.issuer().Maintain().ok());
  JoinToken after = issuer_.Create("box-2");
  after.authority_sha256 = second.certificate().fingerprint();
  EXPECT_TRUE(testing_support::Eventually(absl::Seconds(10), [&] {
    return JoinAt(after, issuer_.address(), "box-2").ok();
  }));
  EXPECT_EQ(Check("box-2", "box-2"), absl::OkStatus());
  EXPECT_EQ(tls::ParseCertificates(ReadFile(Paths("box-2").bundle), "")->size(),
            2u);
  EXPECT_THAT(
      Refusal(before, issuer_.address(), absl::StatusCode::kFailedPrecondition),
      HasSubstr("the authority was replaced since"));
}

TEST_F(EnrolTest, TheCertificateThatIsShownIsRenewed) {
  const std::string path = issuer_.folder().File("issuer/server.pem");
  const std::string before = ReadFile(path);
  ASSERT_TRUE(issuer_.issuer().Maintain().ok());
  EXPECT_EQ(ReadFile(path), before);
  issuer_.SetAhead(absl::Hours(13));
  ASSERT_TRUE(issuer_.issuer().Maintain().ok());
  EXPECT_NE(ReadFile(path), before);
  EXPECT_EQ(tls::ReadPemFile(path).mode, 0600u);
}

TEST_F(EnrolTest, AnIssuerNeedsAKeyAndAFreeAddress) {
  IssuerOptions options;
  options.folder = issuer_.folder().path();
  options.listen = issuer_.address();
  const absl::Status used = Issuer::Start(options).status();
  EXPECT_EQ(used.code(), absl::StatusCode::kAlreadyExists) << used;
  options.listen = "127.0.0.1:0";
  ASSERT_EQ(chmod(issuer_.folder().File("ca.key").c_str(), 0640), 0);
  EXPECT_EQ(Issuer::Start(options).status().code(),
            absl::StatusCode::kPermissionDenied);
  const TemporaryFolder empty;
  options.folder = empty.path();
  EXPECT_EQ(Issuer::Start(options).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_TRUE(std::filesystem::is_empty(empty.path()));
}

// Of the daemon: it asks while it trains alone.
class EnrollingTest : public EnrolTest {
 protected:
  std::unique_ptr<app::Enrolling> Start(const JoinToken& token,
                                        const std::string& at) {
    config::NodeSettings settings;
    settings.name = "box-1";
    settings.join.token = ToText(token);
    settings.join.at = at;
    EXPECT_TRUE(app::Enrolling::Wanted(settings, Paths("box-1")));
    auto enrolling = app::Enrolling::Start(
        settings, Paths("box-1"),
        [this](bool warning, const std::string& text) {
          absl::MutexLock lock(&mutex_);
          told_.push_back((warning ? "warning: " : "") + text);
        },
        {absl::Milliseconds(10), absl::Milliseconds(50), absl::Seconds(5)});
    EXPECT_TRUE(enrolling.ok()) << enrolling.status();
    return *std::move(enrolling);
  }
  bool Told(const std::string& part) {
    return testing_support::Eventually(absl::Seconds(20), [&] {
      absl::MutexLock lock(&mutex_);
      return absl::StrContains(absl::StrJoin(told_, "\n"), part);
    });
  }

  absl::Mutex mutex_;
  std::vector<std::string> told_ ABSL_GUARDED_BY(mutex_);
};

TEST_F(EnrollingTest, WaitsForTheIssuerAndThenGetsIt) {
  const JoinToken token = issuer_.Create("box-1");
  const std::string address = issuer_.address();
  issuer_.Stop();
  const auto enrolling = Start(token, address);
  EXPECT_TRUE(Told("warning: cannot join yet: the issuer at " + address +
                   " does not answer"));
  issuer_.Start(address);
  EXPECT_TRUE(Told("got the certificate of spiffe://plant-4/node/box-1"));
  EXPECT_EQ(Check("box-1", "box-1"), absl::OkStatus());
  // The same reason is told once.
  absl::MutexLock lock(&mutex_);
  EXPECT_EQ(told_.size(), 2u);
}

TEST_F(EnrollingTest, GivesUpWhenTheTokenIsRefused) {
  const JoinToken token = issuer_.Create("box-1");
  ASSERT_TRUE(JoinAt(token, issuer_.address(), "thief").ok());
  const auto enrolling = Start(token, issuer_.address());
  EXPECT_TRUE(Told("warning: cannot join: the issuer at"));
  EXPECT_TRUE(Told("was spent at"));
}

TEST_F(EnrollingTest, EndsWhileNobodyAnswers) {
  const JoinToken token = issuer_.Create("box-1");
  const std::string address = issuer_.address();
  issuer_.Stop();
  auto enrolling = Start(token, address);
  EXPECT_TRUE(Told("does not answer"));
  enrolling.reset();
  EXPECT_FALSE(std::filesystem::exists(Paths("box-1").certificate));
}

// dflctl and dfld as people call them.
class EnrolCommands : public ::testing::Test {
 protected:
  EnrolCommands() {
    Dflctl({"cert", "init", "plant-4", "--dir", folder_.File("net"),
            "--operator", "alice"});
  }
  testing_support::Outcome Dflctl(const std::vector<std::string>& arguments) {
    std::vector<std::string> command = {testing_support::Program("dflctl")};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return testing_support::RunCommand(command);
  }
  std::string Create(const std::string& node) {
    const testing_support::Outcome created = Dflctl(
        {"token", "create", "--node", node, "--dir", folder_.File("net")});
    EXPECT_EQ(created.exit_code, 0) << created.err;
    return std::string(absl::StripAsciiWhitespace(created.out));
  }
  // Starts `dflctl token serve` and waits until it says where.
  std::string Serve() {
    const std::string out = folder_.File("serve.out");
    server_ = std::make_unique<testing_support::Process>(
        testing_support::Process::Options{
            {testing_support::Program("dflctl"), "token", "serve", "--dir",
             folder_.File("net"), "--listen", "127.0.0.1:0"},
            {},
            out,
            folder_.File("serve.err")});
    std::string address;
    EXPECT_TRUE(testing_support::Eventually(absl::Seconds(20), [&] {
      const std::string text = ReadFile(out);
      absl::string_view rest = text;
      if (!absl::ConsumePrefix(&rest, "serving at ")) return false;
      if (!absl::ConsumeSuffix(&rest, "\n")) return false;
      address = std::string(rest);
      return true;
    })) << ReadFile(folder_.File("serve.err"));
    return address;
  }
  testing_support::Outcome Dfld(const std::vector<std::string>& arguments) {
    std::vector<std::string> command = {
        testing_support::Program("analytic_dfld"), "join"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return testing_support::RunCommand(command);
  }

  const TemporaryFolder folder_;
  std::unique_ptr<testing_support::Process> server_;
};

TEST_F(EnrolCommands, FromNothingToACertificate) {
  const std::string token = Create("box-1");
  const std::string at = Serve();
  const std::string folder = folder_.File("tls");
  const testing_support::Outcome joined =
      Dfld({token, "--at", at, "--name=box-1", "--tls.folder", folder});
  EXPECT_EQ(joined.exit_code, 0) << joined.err;
  EXPECT_THAT(joined.out, HasSubstr(folder + "/key.pem\n"));
  EXPECT_THAT(joined.err,
              HasSubstr("this node is spiffe://plant-4/node/box-1"));
  EXPECT_EQ(
      tls::CheckCredentials(
          tls::ReadCredentialFiles(
              {folder + "/ca.pem", folder + "/cert.pem", folder + "/key.pem"}),
          {"plant-4", Role::kNode, "box-1"}, absl::Now(), geteuid())
          .status(),
      absl::OkStatus());
  const testing_support::Outcome again =
      Dfld({token, "--at", at, "--tls.folder", folder_.File("second")});
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_THAT(again.err, HasSubstr("was spent at"));
  server_->Signal(SIGTERM);
  const auto ended = server_->Wait(absl::Seconds(10));
  ASSERT_TRUE(ended.has_value());
  EXPECT_EQ(ended->code, 0);
  const std::string said = ReadFile(folder_.File("serve.err"));
  EXPECT_THAT(said, HasSubstr("gave box-1 at 127.0.0.1 its certificate"));
  EXPECT_THAT(said, HasSubstr("refused box-1 at 127.0.0.1: the join token was "
                              "spent"));
  EXPECT_THAT(said, Not(HasSubstr(token.substr(0, 40))));
  EXPECT_THAT(Dflctl({"token", "list", "--dir", folder_.File("net")}).out,
              HasSubstr("spent"));
}

TEST_F(EnrolCommands, TheTokenMayComeFromStdinOrFromTheSettings) {
  const std::string at = Serve();
  WriteFile(folder_.File("token"), Create("box-1") + "\n");
  const testing_support::Outcome piped = testing_support::RunCommand(
      {"/bin/sh", "-c",
       absl::StrCat(testing_support::Program("analytic_dfld"),
                    " join - --at=", at, " --tls.folder=", folder_.File("one"),
                    " < ", folder_.File("token"))});
  EXPECT_EQ(piped.exit_code, 0) << piped.err;
  EXPECT_THAT(piped.err, HasSubstr("set `name: box-1`"));
  WriteFile(
      folder_.File("dfld.yaml"),
      absl::StrCat("name: box-2\njoin: {token: ", Create("box-2"), ", at: \"",
                   at, "\"}\ntls: {folder: ", folder_.File("two"), "}\n"));
  const testing_support::Outcome configured =
      Dfld({"--config", folder_.File("dfld.yaml")});
  EXPECT_EQ(configured.exit_code, 0) << configured.err;
  EXPECT_THAT(configured.err, HasSubstr("next: start dfld"));
}

TEST_F(EnrolCommands, MistakesHaveACureAndAnExitCode) {
  const std::string token = Create("box-1");
  const std::string folder = "--tls.folder=" + folder_.File("tls");
  const std::pair<std::vector<std::string>, std::pair<int, std::string>>
      cases[] = {
          {{"--help"}, {0, ""}},
          {{}, {2, "the join token is empty"}},
          {{"garbage", "--at=a:1"}, {2, "does not look like one"}},
          {{token, folder}, {2, "--at is missing"}},
          {{token, "--at=a:1", "--frob=1"}, {2, "unknown"}},
          {{token, "--at=a"}, {78, "join.at"}},
          {{token, "--at=127.0.0.1:1", folder}, {1, "`dflctl token serve`"}},
          {{token, "--at=127.0.0.1:1", folder, "--name=box-2"},
           {1, "is for node box-1, and this node is box-2"}}};
  for (const auto& [arguments, expected] : cases) {
    const testing_support::Outcome outcome = Dfld(arguments);
    EXPECT_EQ(outcome.exit_code, expected.first) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(expected.second));
    EXPECT_THAT(outcome.err, Not(HasSubstr(token.substr(10))));
  }
}

}  // namespace
}  // namespace dfl::enrol
