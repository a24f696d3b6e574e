#include "client/person.h"

#include <unistd.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "daemon/base/status_macros.h"
#include "daemon/tls/certificate.h"
#include "daemon/tls/identity.h"
#include "daemon/tls/key_file.h"

namespace dfl {
namespace client {
namespace {

constexpr absl::string_view kGetOne =
    "make a network with `dflctl cert init CLUSTER`, or get a certificate of "
    "yours with `dflctl cert issue NAME --role operator` where the authority's "
    "key is";

}  // namespace

absl::StatusOr<tls::Credentials> LoadPerson(const std::string& folder,
                                            absl::Time now) {
  const tls::CredentialFiles files = tls::ReadCredentialFiles(
      {folder + "/ca.pem", folder + "/cert.pem", folder + "/key.pem"});
  DFL_RETURN_IF_ERROR(tls::CheckRead(
      files.certificate,
      absl::StrCat("name the folder of your ca.pem, cert.pem and key.pem with "
                   "--identity, or ",
                   kGetOne)));
  DFL_ASSIGN_OR_RETURN(const std::vector<tls::Certificate> chain,
                       tls::ParseCertificates(files.certificate.content,
                                              files.certificate.path));
  const absl::StatusOr<tls::Identity>& identity = chain[0].identity();
  if (!identity.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat(files.certificate.path, ": ", identity.status().message(),
                     "; ", kGetOne));
  }
  if (identity->role != tls::Role::kViewer &&
      identity->role != tls::Role::kOperator &&
      identity->role != tls::Role::kAdmin) {
    return absl::FailedPreconditionError(absl::StrCat(
        files.certificate.path, ": is of ", tls::ToUri(*identity),
        ", which is no person; name the folder of an operator, admin or viewer "
        "with --identity"));
  }
  return tls::CheckCredentials(files, *identity, now, geteuid());
}

}  // namespace client
}  // namespace dfl
