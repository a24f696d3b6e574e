// The files of a network's authority in the folder that `dflctl cert init`
// makes: ca.pem and ca.key.
#ifndef DFL_ENROL_AUTHORITY_FILES_H_
#define DFL_ENROL_AUTHORITY_FILES_H_

#include <string>

#include "absl/status/statusor.h"
#include "daemon/tls/authority.h"

namespace dfl::enrol {

struct AuthorityFiles {
  tls::Authority authority;
  std::string bundle_pem;  // all that ca.pem holds
  std::string key_pem;
};

// Of several authorities in ca.pem it is the one whose key is in ca.key.
// Errors: as tls::CheckRead and tls::ParseBundle; for ca.key as
// tls::CheckRights and PrivateKey::FromPem; FAILED_PRECONDITION when it is the
// key of nothing in ca.pem.
absl::StatusOr<AuthorityFiles> LoadAuthority(const std::string& folder);

}  // namespace dfl::enrol

#endif  // DFL_ENROL_AUTHORITY_FILES_H_
