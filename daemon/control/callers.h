// Who is at the other end of a call: a process of this machine, a person who
// showed a certificate, or, where the node is insecure, anybody.
#ifndef DFL_CONTROL_CALLERS_H_
#define DFL_CONTROL_CALLERS_H_

#include <grpcpp/server_context.h>

#include <string>

#include "daemon/control/caller.h"
#include "daemon/control/unix_listener.h"
#include "daemon/control/unix_roles.h"
#include "daemon/net/bounded_acceptor.h"
#include "daemon/net/network_security.h"

namespace dfl::control {

// What gRPC tells of a call's connection, copied, so that it can be judged
// again after the call's context has gone.
struct Connection {
  std::string peer;   // "fd:17", "ipv4:10.0.0.7:5123"
  std::string leaf;   // certificates in PEM form; "" = none were presented
  std::string chain;  //
};
Connection ConnectionOf(const grpc::CallbackServerContext& context);

struct Identified {
  Caller caller;
  // Why the caller has no role; "" when it has one.
  std::string refusal;
};

// "uid 1000 (pid 4711)".
std::string UnixPeerText(const UnixPeer& peer);

// Thread-safe.
class Callers {
 public:
  // Each pointer may be null: there is no such listener, or the network is
  // spoken to in plain text and its callers are admins. They outlive this.
  Callers(const UnixListener* unix_listener, UnixRoles unix_roles,
          net::BoundedAcceptor* acceptor, net::NetworkSecurity* security);

  // Judges the connection as it is now: certificates expire, and people are
  // banned.
  Identified Identify(const Connection& connection) const;

 private:
  Identified OnUnixSocket(int fd) const;
  Identified OnNetwork(const Connection& connection) const;

  const UnixListener* const unix_listener_;
  const UnixRoles unix_roles_;
  net::BoundedAcceptor* const acceptor_;
  net::NetworkSecurity* const security_;
};

}  // namespace dfl::control

#endif  // DFL_CONTROL_CALLERS_H_
