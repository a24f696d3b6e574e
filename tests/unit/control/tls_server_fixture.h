// A control server on a unix socket and, by mutual TLS, on loopback.
#ifndef DFL_TESTS_UNIT_CONTROL_TLS_SERVER_FIXTURE_H_
#define DFL_TESTS_UNIT_CONTROL_TLS_SERVER_FIXTURE_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "daemon/net/network_security.h"
#include "tests/support/made_credentials.h"
#include "tests/unit/control/control_server_fixture.h"

namespace dfl::control {

class TlsServerTest : public ControlServerTest {
 protected:
  // Shows `credentials`.
  void StartTls(std::shared_ptr<const tls::Credentials> credentials) {
    auto security = net::NetworkSecurity::Create(folder_.File("tls"));
    ASSERT_TRUE(security.ok()) << security.status();
    security_ = *std::move(security);
    ASSERT_TRUE(security_->Use(std::move(credentials)).ok());
    options_.security = security_.get();
    options_.signed_orders = true;
    options_.addresses = {"127.0.0.1:0"};
    Start();
  }
  void TearDown() override { server_.reset(); }

  std::string address() const { return server_->addresses()[1]; }

  // A client of another make than ours.
  std::shared_ptr<grpc::Channel> DialAs(const tls::Identity& identity) {
    const auto own = tls::MakeCredentials(authority_, identity);
    grpc::ChannelArguments arguments;
    arguments.SetSslTargetNameOverride("box-1");
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(
        address(),
        grpc::SslCredentials({own->bundle_pem, own->key_pem, own->chain_pem}),
        arguments);
  }
  std::shared_ptr<grpc::Channel> DialAs(tls::Role role) {
    return DialAs({"plant-4", role, "alice"});
  }

  const tls::Authority authority_ = tls::MakeAuthority("plant-4", absl::Now());
  std::unique_ptr<net::NetworkSecurity> security_;
};

}  // namespace dfl::control

#endif  // DFL_TESTS_UNIT_CONTROL_TLS_SERVER_FIXTURE_H_
