#include "daemon/control/callers.h"

#include <grpc/grpc_security_constants.h>

#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "daemon/tls/identity.h"
#include "daemon/tls/peer_check.h"

namespace dfl::control {
namespace {

// "10.0.0.7:5123", "[fd00::1]:5123".
std::string AddressText(absl::string_view peer) {
  if (!absl::ConsumePrefix(&peer, "ipv4:")) absl::ConsumePrefix(&peer, "ipv6:");
  return absl::StrReplaceAll(peer, {{"%5B", "["}, {"%5D", "]"}});
}

std::string FirstProperty(const grpc::AuthContext& context, const char* name) {
  for (const grpc::string_ref& value : context.FindPropertyValues(name)) {
    return std::string(value.data(), value.size());
  }
  return "";
}

Role RoleOf(tls::Role role) {
  switch (role) {
    case tls::Role::kViewer:
      return Role::kViewer;
    case tls::Role::kOperator:
      return Role::kOperator;
    case tls::Role::kAdmin:
      return Role::kAdmin;
    default:
      return Role::kNone;
  }
}

}  // namespace

Connection ConnectionOf(const grpc::CallbackServerContext& context) {
  Connection connection;
  connection.peer = context.peer();
  const std::shared_ptr<const grpc::AuthContext> auth = context.auth_context();
  if (auth != nullptr) {
    connection.leaf = FirstProperty(*auth, GRPC_X509_PEM_CERT_PROPERTY_NAME);
    connection.chain =
        FirstProperty(*auth, GRPC_X509_PEM_CERT_CHAIN_PROPERTY_NAME);
  }
  return connection;
}

std::string UnixPeerText(const UnixPeer& peer) {
  return absl::StrCat("uid ", peer.user, " (pid ", peer.process, ")");
}

Callers::Callers(const UnixListener* unix_listener, UnixRoles unix_roles,
                 net::BoundedAcceptor* acceptor, net::NetworkSecurity* security)
    : unix_listener_(unix_listener),
      unix_roles_(std::move(unix_roles)),
      acceptor_(acceptor),
      security_(security) {}

Identified Callers::Identify(const Connection& connection) const {
  absl::string_view rest = connection.peer;
  int fd = -1;
  if (!absl::ConsumePrefix(&rest, "fd:")) return OnNetwork(connection);
  if (absl::SimpleAtoi(rest, &fd)) return OnUnixSocket(fd);
  return {{connection.peer, Role::kNone, false}, "it is not known who calls"};
}

Identified Callers::OnUnixSocket(int fd) const {
  const std::optional<UnixPeer> peer =
      unix_listener_ == nullptr ? std::nullopt : unix_listener_->PeerOf(fd);
  if (!peer.has_value()) {
    return {{"unknown", Role::kNone, true}, "it is not known who calls"};
  }
  Identified found;
  found.caller = {UnixPeerText(*peer), unix_roles_.RoleOf(*peer), true};
  if (found.caller.role == Role::kNone) {
    found.refusal = absl::StrCat(
        "user ", peer->user,
        " has no role on this node: whoever configures it names the user in "
        "control.admins or control.viewers");
  }
  return found;
}

Identified Callers::OnNetwork(const Connection& connection) const {
  Identified found;
  found.caller.name = AddressText(connection.peer);
  if (security_ == nullptr) {
    found.caller.role = Role::kAdmin;
  } else {
    const tls::Role people[] = {tls::Role::kViewer, tls::Role::kOperator,
                                tls::Role::kAdmin};
    const tls::PeerVerdict verdict = security_->Check(
        {connection.leaf, connection.chain}, people, absl::Now());
    if (!verdict.identity.name.empty()) {
      found.caller.name =
          absl::StrCat(tls::ToUri(verdict.identity), " at ", found.caller.name);
    }
    if (!verdict.ok()) {
      found.refusal = verdict.text;
      return found;
    }
    found.caller.role = RoleOf(verdict.identity.role);
  }
  if (acceptor_ != nullptr) acceptor_->Admitted(connection.peer);
  return found;
}

}  // namespace dfl::control
