// The certificate and key of the person who calls dflctl: with them it speaks
// to daemons on the network, and signs orders.
//
// They are in a folder with the files ca.pem, cert.pem and key.pem. It is
// --identity, else $DFLCTL_IDENTITY, else the person's own one below
// ~/.config/dfl/CLUSTER/ROLE/NAME, where there is only one network with a
// person's key:
//   - an operator's or admin's, or a viewer's where there is neither;
//   - of several, the one that has the user's name, operators first.
#ifndef DFL_CLI_IDENTITY_H_
#define DFL_CLI_IDENTITY_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/person.h"
#include "daemon/tls/credentials.h"

namespace dfl::cli {

// `option` is the value of --identity, "" when it is not given.
// Errors: NOT_FOUND when the user has no identity; INVALID_ARGUMENT lists the
// folders when there are several; FAILED_PRECONDITION when the user has no
// home. Each names the command or option that helps.
absl::StatusOr<std::string> FindIdentityFolder(
    const std::map<std::string, std::string>& environment,
    const std::string& option);

// What the folder holds, checked at the time `now`.
// Errors: as client::LoadPerson.
inline absl::StatusOr<tls::Credentials> LoadIdentity(const std::string& folder,
                                                     absl::Time now) {
  return client::LoadPerson(folder, now);
}

}  // namespace dfl::cli

#endif  // DFL_CLI_IDENTITY_H_
