#include "daemon/tls/identity.h"

#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "daemon/base/ids.h"
#include "daemon/base/names.h"
#include "daemon/base/status_macros.h"

namespace dfl::tls {
namespace {

constexpr absl::string_view kScheme = "spiffe://";
constexpr size_t kMaxClusterName = 255;
// The longest cluster, role and name stay below SPIFFE's 2048.
constexpr size_t kMaxUri = 2048;

constexpr Role kRoles[] = {Role::kNode, Role::kOperator, Role::kViewer,
                           Role::kAdmin, Role::kIssuer};

absl::Status BadUri(absl::string_view uri, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("\"", absl::CHexEscape(uri), "\": ", what));
}

}  // namespace

absl::string_view Name(Role role) {
  switch (role) {
    case Role::kNode:
      return "node";
    case Role::kOperator:
      return "operator";
    case Role::kViewer:
      return "viewer";
    case Role::kAdmin:
      return "admin";
    case Role::kIssuer:
      return "issuer";
  }
  return "node";
}

absl::StatusOr<Role> ParseRole(absl::string_view name) {
  std::vector<std::string> known;
  for (const Role role : kRoles) {
    if (Name(role) == name) return role;
    known.emplace_back(Name(role));
  }
  return UnknownNameError("role", absl::CHexEscape(name), known);
}

absl::Status ValidateClusterName(absl::string_view name) {
  if (name.empty()) {
    return absl::InvalidArgumentError("a cluster's name must not be empty");
  }
  if (name.size() > kMaxClusterName) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cluster \"", absl::CHexEscape(name.substr(0, 20)), "...\" has ",
        name.size(), " characters; at most ", kMaxClusterName, " are allowed"));
  }
  for (size_t i = 0; i < name.size(); ++i) {
    const auto c = static_cast<unsigned char>(name[i]);
    const bool ok = absl::ascii_islower(c) || absl::ascii_isdigit(c) ||
                    (i > 0 && (c == '-' || c == '_' || c == '.'));
    if (!ok) {
      return absl::InvalidArgumentError(absl::StrCat(
          "cluster \"", absl::CHexEscape(name), "\": character ", i + 1,
          " is not allowed; use lower-case letters, digits, '-', '_' and '.', "
          "starting with a letter or digit"));
    }
  }
  return absl::OkStatus();
}

absl::Status Validate(const Identity& identity) {
  DFL_RETURN_IF_ERROR(ValidateClusterName(identity.cluster));
  return ValidateNodeName(identity.name);
}

std::string ToUri(const Identity& identity) {
  return absl::StrCat(kScheme, identity.cluster, "/", Name(identity.role), "/",
                      identity.name);
}

absl::StatusOr<Identity> ParseIdentity(absl::string_view uri) {
  if (uri.size() > kMaxUri) {
    return BadUri(
        absl::StrCat(uri.substr(0, 40), "..."),
        absl::StrCat("has ", uri.size(),
                     " characters; an identity has at most ", kMaxUri));
  }
  absl::string_view rest = uri;
  if (!absl::ConsumePrefix(&rest, kScheme)) {
    return BadUri(uri, absl::StrCat("an identity begins with ", kScheme));
  }
  const std::vector<absl::string_view> parts = absl::StrSplit(rest, '/');
  if (parts.size() != 3) {
    return BadUri(uri,
                  "an identity has three parts, spiffe://CLUSTER/ROLE/NAME");
  }
  const absl::Status cluster = ValidateClusterName(parts[0]);
  if (!cluster.ok()) return BadUri(uri, cluster.message());
  const absl::StatusOr<Role> role = ParseRole(parts[1]);
  if (!role.ok()) return BadUri(uri, role.status().message());
  // The name may hold bytes that no terminal should see. Escaping moves no
  // character that comes before the first wrong one.
  const absl::Status name = ValidateNodeName(absl::CHexEscape(parts[2]));
  if (!name.ok()) return BadUri(uri, name.message());
  return Identity{std::string(parts[0]), *role, std::string(parts[2])};
}

}  // namespace dfl::tls
