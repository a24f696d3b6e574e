// The client library against a daemon on the network, where anything is wrong
// with either of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/unit/control/tls_server_fixture.h"

namespace dfl::control {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class ClientTls : public TlsServerTest {
 protected:
  void StartAs(const tls::Identity& identity) {
    StartTls(tls::MakeCredentials(authority_, identity));
  }
  void StartPlain() {
    options_.addresses = {"127.0.0.1:0"};
    Start();
  }

  static client::ClientIdentity IdentityOf(
      const std::shared_ptr<const tls::Credentials>& own) {
    return {own->bundle_pem, own->chain_pem, own->key_pem};
  }
  client::ClientIdentity Alice() const {
    return IdentityOf(tls::MakeCredentials(
        authority_, {"plant-4", tls::Role::kOperator, "alice"}));
  }

  // How one call ends.
  absl::Status Call(
      std::function<absl::StatusOr<client::ClientIdentity>()> identity,
      bool insecure = false) {
    client::ClientOptions options;
    options.identity = std::move(identity);
    options.insecure = insecure;
    auto client = client::ControlClient::Connect(address(), options);
    EXPECT_TRUE(client.ok()) << client.status();
    const absl::Status status = (*client)->Version().status();
    if (!status.ok()) {
      EXPECT_THAT(std::string(status.message()), StartsWith(address()));
    }
    return status;
  }
  absl::Status CallAs(const client::ClientIdentity& identity) {
    return Call([&] { return identity; });
  }
  void ExpectUnauthenticated(const absl::Status& status,
                             const std::vector<std::string>& parts) {
    EXPECT_EQ(status.code(), absl::StatusCode::kUnauthenticated) << status;
    for (const std::string& part : parts) {
      EXPECT_THAT(std::string(status.message()), HasSubstr(part));
    }
  }

  const tls::Authority stranger_ = tls::MakeAuthority("plant-4", absl::Now());
};

TEST_F(ClientTls, AnOperatorIsKnownByTheCertificate) {
  StartAs(tls::NodeIdentity("box-1"));
  client::ClientOptions options;
  options.identity = [this] { return Alice(); };
  auto client = *client::ControlClient::Connect(address(), options);
  EXPECT_EQ(client->Version()->node, "box-1");
  ASSERT_TRUE(client->Train(client::TrainAction::kPause).ok());
  EXPECT_THAT(audit().back().caller.name,
              HasSubstr("spiffe://plant-4/operator/alice at 127.0.0.1:"));
  EXPECT_EQ(audit().back().caller.role, Role::kOperator);
  EXPECT_FALSE(audit().back().caller.local);
}

TEST_F(ClientTls, WithoutAnIdentityNothingIsSent) {
  StartAs(tls::NodeIdentity("box-1"));
  client::ClientOptions options;
  options.identity = [] {
    return absl::NotFoundError("there is no certificate of yours");
  };
  auto client = *client::ControlClient::Connect(address(), options);
  EXPECT_EQ(client->Version().status(),
            absl::NotFoundError("there is no certificate of yours"));
  options.identity = nullptr;
  client = *client::ControlClient::Connect(address(), options);
  EXPECT_EQ(client->Version().status().code(),
            absl::StatusCode::kUnauthenticated);
  // A clock that is not set is no daemon that is not there.
  options.identity = [] { return absl::UnavailableError("set the clock"); };
  client = *client::ControlClient::Connect(address(), options);
  EXPECT_EQ(client->Version().status(),
            absl::FailedPreconditionError("set the clock"));
}

TEST_F(ClientTls, ADaemonOfAnotherAuthorityIsRefused) {
  StartTls(tls::MakeCredentials(
      stranger_, tls::NodeIdentity("box-1"),
      {stranger_.certificate(), authority_.certificate()}));
  ExpectUnauthenticated(CallAs(Alice()),
                        {"the daemon there is refused", "ca.pem"});
}

TEST_F(ClientTls, ADaemonThatShowsAPersonsCertificateIsRefused) {
  StartAs({"plant-4", tls::Role::kOperator, "bob"});
  ExpectUnauthenticated(CallAs(Alice()), {"the daemon there is refused"});
}

TEST_F(ClientTls, ADaemonOfAnotherClusterIsRefused) {
  const tls::Authority other = tls::MakeAuthority("plant-5", absl::Now());
  StartTls(
      tls::MakeCredentials(other, tls::NodeIdentity("box-1", "plant-5"),
                           {other.certificate(), authority_.certificate()}));
  client::ClientIdentity alice = Alice();
  alice.bundle += other.certificate().ToPem();
  ExpectUnauthenticated(CallAs(alice),
                        {"the daemon there is refused", "plant-5"});
}

TEST_F(ClientTls, ADaemonThatDoesNotAcceptUsIsTold) {
  StartAs(tls::NodeIdentity("box-1"));
  ExpectUnauthenticated(
      CallAs(IdentityOf(tls::MakeCredentials(
          stranger_, {"plant-4", tls::Role::kOperator, "mallory"},
          {authority_.certificate()}))),
      {"spiffe://plant-4/operator/mallory", "in the TLS handshake", "banned",
       "audit.log"});
}

TEST_F(ClientTls, ADaemonInPlainTextIsNotSpokenTo) {
  StartPlain();
  ExpectUnauthenticated(CallAs(Alice()), {"speaks plain text", "--insecure"});
  EXPECT_TRUE(Call(nullptr, /*insecure=*/true).ok());
}

TEST_F(ClientTls, PlainTextToADaemonWithTlsIsTold) {
  StartAs(tls::NodeIdentity("box-1"));
  ExpectUnauthenticated(Call(nullptr, /*insecure=*/true),
                        {"`security: tls`", "without --insecure"});
}

TEST_F(ClientTls, NobodyThereIsUnavailable) {
  StartAs(tls::NodeIdentity("box-1"));
  const std::string gone = address();
  server_.reset();
  client::ClientOptions options;
  options.identity = [this] { return Alice(); };
  auto client = *client::ControlClient::Connect(gone, options);
  const absl::Status status = client->Version().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("nobody answers there"));
}

}  // namespace
}  // namespace dfl::control
