#include "daemon/tls/credentials.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "daemon/base/status_macros.h"

namespace dfl::tls {
namespace {

// The command that makes or renews the certificate of `identity`.
std::string Command(absl::string_view verb, const Identity& identity) {
  std::string command = absl::StrCat("`dflctl cert ", verb, " ", identity.name);
  if (!identity.cluster.empty()) {
    absl::StrAppend(&command, " --cluster ", identity.cluster);
  }
  if (identity.role != Role::kNode) {
    absl::StrAppend(&command, " --role ", Name(identity.role));
  }
  return command + "`";
}

absl::StatusOr<std::vector<Certificate>> LoadBundle(const PemFile& file,
                                                    const Identity& expected) {
  // The network may be unknown until there is a certificate.
  const std::string cluster =
      expected.cluster.empty() ? "CLUSTER" : expected.cluster;
  const std::string cure = absl::StrCat("copy ca.pem of cluster ", cluster,
                                        ", which `dflctl cert init ", cluster,
                                        "` made, to this place");
  DFL_RETURN_IF_ERROR(CheckRead(file, cure));
  absl::StatusOr<std::vector<Certificate>> bundle =
      ParseBundle(file.content, file.path);
  if (bundle.ok()) return bundle;
  return absl::Status(bundle.status().code(),
                      absl::StrCat(bundle.status().message(), "; ", cure));
}

absl::StatusOr<std::vector<Certificate>> LoadChain(const PemFile& file,
                                                   const Identity& expected) {
  const std::string cure =
      absl::StrCat("make it with ", Command("issue", expected),
                   " where the authority's key is, and copy cert.pem here");
  DFL_RETURN_IF_ERROR(CheckRead(file, cure));
  absl::StatusOr<std::vector<Certificate>> chain =
      ParseCertificates(file.content, file.path);
  if (chain.ok()) return chain;
  return absl::Status(chain.status().code(),
                      absl::StrCat(chain.status().message(), "; ", cure));
}

absl::Status Mismatch(const PemFile& file, absl::string_view what,
                      absl::string_view found, absl::string_view wanted,
                      const Identity& expected) {
  return absl::FailedPreconditionError(
      absl::StrCat(file.path, ": is for ", what, " \"", found, "\", and \"",
                   wanted, "\" is expected here; get the right one with ",
                   Command("issue", expected)));
}

absl::Status CheckIdentity(const PemFile& file, const Certificate& leaf,
                           const Identity& expected) {
  if (!leaf.identity().ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat(file.path, ": the certificate of ", leaf.subject(), ": ",
                     leaf.identity().status().message(), "; expected is ",
                     ToUri(expected), ": ", Command("issue", expected)));
  }
  const Identity& found = *leaf.identity();
  if (found.cluster != expected.cluster) {
    return Mismatch(file, "cluster", found.cluster, expected.cluster, expected);
  }
  if (found.role != expected.role) {
    return Mismatch(file, "role", Name(found.role), Name(expected.role),
                    expected);
  }
  if (found.name != expected.name) {
    return Mismatch(file, Name(expected.role), found.name, expected.name,
                    expected);
  }
  return absl::OkStatus();
}

absl::Status CheckChain(const CredentialFiles& files,
                        const std::vector<Certificate>& chain,
                        const std::vector<Certificate>& bundle,
                        const Identity& expected, absl::Time now) {
  const ChainVerdict verdict = VerifyChain(chain, bundle, now);
  const std::string text =
      absl::StrCat(files.certificate.path, ": ", verdict.text);
  switch (verdict.fault) {
    case ChainFault::kNone:
      return absl::OkStatus();
    case ChainFault::kNotYetValid:
      return absl::UnavailableError(absl::StrCat(
          text,
          "; set this machine's clock: `timedatectl set-ntp true`, or "
          "`date -s TIME`"));
    case ChainFault::kExpired:
      return absl::FailedPreconditionError(absl::StrCat(
          text, "; renew it with ", Command("renew", expected),
          " where the authority's key is, and copy cert.pem here; if the clock "
          "is wrong: `timedatectl set-ntp true`"));
    case ChainFault::kUnknownAuthority:
      return absl::FailedPreconditionError(absl::StrCat(
          text, " (", files.bundle.path,
          "); copy ca.pem and cert.pem of one network, see `dflctl cert show "
          "FILE`, or get a certificate with ",
          Command("issue", expected)));
    case ChainFault::kWeakKey:
    case ChainFault::kUnfit:
      break;
  }
  return absl::FailedPreconditionError(absl::StrCat(
      text, "; get another one with ", Command("issue", expected)));
}

}  // namespace

CredentialFiles ReadCredentialFiles(const CredentialPaths& paths) {
  return {ReadPemFile(paths.bundle), ReadPemFile(paths.certificate),
          ReadPemFile(paths.key)};
}

absl::Time Credentials::not_after() const {
  absl::Time first = absl::InfiniteFuture();
  for (const Certificate& certificate : chain) {
    first = std::min(first, certificate.not_after());
  }
  return first;
}

absl::StatusOr<Credentials> CheckCredentials(const CredentialFiles& files,
                                             const Identity& expected,
                                             absl::Time now, uint32_t reader) {
  DFL_ASSIGN_OR_RETURN(std::vector<Certificate> bundle,
                       LoadBundle(files.bundle, expected));
  DFL_ASSIGN_OR_RETURN(std::vector<Certificate> chain,
                       LoadChain(files.certificate, expected));
  // Who it is comes first: its other faults may be those of a wrong file.
  DFL_RETURN_IF_ERROR(CheckIdentity(files.certificate, chain[0], expected));
  DFL_ASSIGN_OR_RETURN(PrivateKey key, LoadKey(files.key, reader, chain[0],
                                               files.certificate.path));
  DFL_RETURN_IF_ERROR(CheckChain(files, chain, bundle, expected, now));
  return Credentials{
      expected,         std::move(bundle),    std::move(chain),
      std::move(key),   files.bundle.content, files.certificate.content,
      files.key.content};
}

}  // namespace dfl::tls
