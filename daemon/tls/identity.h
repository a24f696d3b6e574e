// Who a certificate speaks for. The identity is a SPIFFE id and stands in the
// certificate's one URI name: spiffe://CLUSTER/ROLE/NAME, for instance
// spiffe://plant-4/node/gateway-07.
#ifndef DFL_TLS_IDENTITY_H_
#define DFL_TLS_IDENTITY_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace dfl::tls {

// A node speaks to nodes. Three are people: a viewer reads, an operator also
// changes the network, an admin also administers who belongs to it. An issuer
// gives certificates to new nodes; it speaks to them alone, so that no other
// certificate of the network can take a new node's secret.
enum class Role { kNode, kOperator, kViewer, kAdmin, kIssuer };

// "node", "operator", "viewer", "admin", "issuer".
absl::string_view Name(Role role);

// Errors: INVALID_ARGUMENT lists the roles, with the nearest one.
absl::StatusOr<Role> ParseRole(absl::string_view name);

struct Identity {
  std::string cluster;
  Role role = Role::kNode;
  std::string name;

  friend bool operator==(const Identity&, const Identity&) = default;
};

// OK when `name` can be a cluster: a SPIFFE trust domain of 1 to 255
// characters, which are lower-case letters, digits, '-', '_' and '.', and which
// starts with a letter or digit.
// Errors: INVALID_ARGUMENT says what is wrong with which character.
absl::Status ValidateClusterName(absl::string_view name);

// OK when the cluster is valid and the name could be that of a node; people are
// named by the same rule.
// Errors: INVALID_ARGUMENT.
absl::Status Validate(const Identity& identity);

// "spiffe://CLUSTER/ROLE/NAME". The identity must be valid.
std::string ToUri(const Identity& identity);

// The inverse of ToUri. It accepts nothing that ToUri would not print: no port,
// user, query, fragment, percent escape, empty part or further part.
// Errors: INVALID_ARGUMENT quotes `uri` and says which part of it is wrong.
absl::StatusOr<Identity> ParseIdentity(absl::string_view uri);

}  // namespace dfl::tls

#endif  // DFL_TLS_IDENTITY_H_
