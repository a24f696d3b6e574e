#include "cli/cert_rotation.h"

#include <unistd.h>

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "cli/cert_text.h"
#include "daemon/base/status_macros.h"
#include "daemon/tls/key_file.h"

namespace dfl::cli {
namespace {

using tls::Authority;
using tls::Certificate;

constexpr size_t kMinDigits = 8;

std::string BundlePem(const std::vector<Certificate>& bundle) {
  std::string pem;
  for (const Certificate& authority : bundle) pem += authority.ToPem();
  return pem;
}

absl::Status WriteBundle(const CertFolder& folder,
                         const std::vector<Certificate>& bundle,
                         std::vector<WrittenFile>& files) {
  const std::string pem = BundlePem(bundle);
  DFL_RETURN_IF_ERROR(tls::WritePublic(folder.authority_certificate(), pem));
  files.push_back({folder.authority_certificate(),
                   bundle.size() == 1
                       ? "the authority that is trusted"
                       : absl::StrCat("the ", bundle.size(),
                                      " authorities that are trusted")});
  return absl::OkStatus();
}

// Each ROLE/NAME/ca.pem that is there.
absl::Status WriteCopies(const CertFolder& folder,
                         const std::vector<Certificate>& bundle,
                         std::vector<WrittenFile>& files) {
  for (const IssuedCertificate& issued : folder.Issued()) {
    const std::string copy =
        absl::StrCat(absl::StripSuffix(issued.path, "cert.pem"), "ca.pem");
    if (access(copy.c_str(), F_OK) != 0) continue;
    DFL_RETURN_IF_ERROR(tls::WritePublic(copy, BundlePem(bundle)));
    files.push_back({copy, "a copy of it"});
  }
  return absl::OkStatus();
}

std::string Names(const std::vector<Certificate>& bundle) {
  return absl::StrJoin(bundle, ", ",
                       [](std::string* out, const Certificate& authority) {
                         absl::StrAppend(out, authority.fingerprint(), " (",
                                         authority.subject(), ")");
                       });
}

// Who would be shut out without `authority`.
std::vector<std::string> Dependents(const CertFolder& folder,
                                    const Certificate& authority) {
  std::vector<std::string> names;
  for (const IssuedCertificate& issued : folder.Issued()) {
    if (issued.certificate.ok() && DateState(*issued.certificate) == "valid" &&
        tls::Signed(authority, *issued.certificate)) {
      names.push_back(IdentityText(*issued.certificate));
    }
  }
  return names;
}

}  // namespace

absl::StatusOr<Rotated> RotateAuthority(const CertFolder& folder,
                                        const tls::Validity& validity,
                                        std::vector<WrittenFile>& files) {
  DFL_ASSIGN_OR_RETURN(const Authority former, folder.LoadAuthority());
  DFL_ASSIGN_OR_RETURN(std::vector<Certificate> bundle, folder.Bundle());
  if (bundle.size() > 1) {
    std::vector<Certificate> others;
    for (const Certificate& authority : bundle) {
      if (authority.fingerprint() != former.certificate().fingerprint()) {
        others.push_back(authority);
      }
    }
    return absl::FailedPreconditionError(absl::StrCat(
        folder.authority_certificate(),
        ": holds more than one authority already; end the former rotation "
        "first, with `dflctl cert retire` of ",
        Names(others)));
  }
  DFL_ASSIGN_OR_RETURN(const Authority authority,
                       Authority::Make(former.cluster(), validity));
  // In this order the key is that of a certificate in ca.pem at any time.
  bundle.insert(bundle.begin(), authority.certificate());
  DFL_RETURN_IF_ERROR(WriteBundle(folder, bundle, files));
  DFL_RETURN_IF_ERROR(
      tls::WritePrivate(folder.authority_key(), authority.key().ToPem()));
  files.push_back({folder.authority_key(), "the new authority's key: secret"});
  DFL_RETURN_IF_ERROR(WriteCopies(folder, bundle, files));
  return Rotated{authority.certificate(), former.certificate()};
}

absl::StatusOr<Certificate> RetireAuthority(const CertFolder& folder,
                                            const std::string& fingerprint,
                                            bool force,
                                            std::vector<WrittenFile>& files) {
  DFL_ASSIGN_OR_RETURN(const Authority current, folder.LoadAuthority());
  DFL_ASSIGN_OR_RETURN(const std::vector<Certificate> bundle, folder.Bundle());
  const std::string wanted = absl::AsciiStrToLower(fingerprint);
  std::vector<Certificate> kept;
  std::vector<Certificate> retired;
  for (const Certificate& authority : bundle) {
    const bool named = wanted.size() >= kMinDigits &&
                       absl::StartsWith(authority.fingerprint(), wanted);
    (named ? retired : kept).push_back(authority);
  }
  if (retired.size() != 1) {
    return absl::NotFoundError(absl::StrCat(
        "\"", fingerprint, "\" is the SHA-256 of ",
        retired.empty() ? "no authority" : "more than one authority", " in ",
        folder.authority_certificate(),
        "; give at least its first eight digits. There are: ", Names(bundle)));
  }
  if (retired[0].fingerprint() == current.certificate().fingerprint()) {
    return absl::FailedPreconditionError(absl::StrCat(
        retired[0].subject(),
        " is the authority that signs; make another one first, with `dflctl "
        "cert rotate`"));
  }
  const std::vector<std::string> dependents = Dependents(folder, retired[0]);
  if (!dependents.empty() && !force) {
    return absl::FailedPreconditionError(absl::StrCat(
        retired[0].subject(),
        " signed certificates that are in use, and these "
        "would be shut out: ",
        absl::StrJoin(dependents, ", "),
        "; renew each with `dflctl cert renew NAME` and replace its cert.pem, "
        "or give --force"));
  }
  // Copies first: a crash leaves ca.pem, which this command starts from.
  DFL_RETURN_IF_ERROR(WriteCopies(folder, kept, files));
  DFL_RETURN_IF_ERROR(WriteBundle(folder, kept, files));
  return retired[0];
}

}  // namespace dfl::cli
