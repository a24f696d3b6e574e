#include "daemon/enrol/authority_files.h"

#include <unistd.h>

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/tls/certificate.h"
#include "daemon/tls/key_file.h"

namespace dfl::enrol {

absl::StatusOr<AuthorityFiles> LoadAuthority(const std::string& folder) {
  const tls::PemFile bundle = tls::ReadPemFile(folder + "/ca.pem");
  DFL_RETURN_IF_ERROR(tls::CheckRead(
      bundle,
      "make a network with `dflctl cert init CLUSTER`, or name its folder"));
  DFL_ASSIGN_OR_RETURN(const std::vector<tls::Certificate> certificates,
                       tls::ParseBundle(bundle.content, bundle.path));
  const tls::PemFile file = tls::ReadPemFile(folder + "/ca.key");
  DFL_RETURN_IF_ERROR(tls::CheckRead(
      file,
      "call this command where the authority's key is kept, or copy the key "
      "here"));
  DFL_RETURN_IF_ERROR(tls::CheckRights(file, geteuid()));
  DFL_ASSIGN_OR_RETURN(const tls::PrivateKey key,
                       tls::PrivateKey::FromPem(file.content, file.path));
  for (const tls::Certificate& certificate : certificates) {
    if (!key.Matches(certificate)) continue;
    DFL_ASSIGN_OR_RETURN(tls::Authority authority,
                         tls::Authority::FromParts(certificate, key));
    return AuthorityFiles{std::move(authority), bundle.content, file.content};
  }
  return absl::FailedPreconditionError(
      absl::StrCat(file.path, ": is the key of no authority in ", bundle.path,
                   "; put both files of one `dflctl cert init` here"));
}

}  // namespace dfl::enrol
