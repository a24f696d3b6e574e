// The folder in which an operator keeps a network's authority and what it has
// issued, by default ~/.config/dfl/CLUSTER:
//
//   ca.pem, ca.key          the authority; ca.pem may hold a second one
//   ROLE/NAME/cert.pem      each certificate that was issued
//   ROLE/NAME/ca.pem        with the key, unless they were written elsewhere:
//   ROLE/NAME/key.pem       such a folder is all that its owner needs
#ifndef DFL_CLI_CERT_FOLDER_H_
#define DFL_CLI_CERT_FOLDER_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/tls/authority.h"
#include "daemon/tls/certificate.h"
#include "daemon/tls/identity.h"

namespace dfl::cli {

// How a command names the folder: by --dir, else by --cluster.
struct CertFolderChoice {
  std::string dir;
  std::string cluster;
};

struct IssuedCertificate {
  std::string path;
  absl::StatusOr<tls::Certificate> certificate;
};

class CertFolder {
 public:
  using Environment = std::map<std::string, std::string>;

  // The folder of a network that is there. Without a choice it is the only one
  // of the user's networks.
  // Errors: NOT_FOUND when there is none; INVALID_ARGUMENT lists the networks
  // when there are several; FAILED_PRECONDITION when the user has no home.
  static absl::StatusOr<CertFolder> Find(const Environment& environment,
                                         const CertFolderChoice& choice);
  // Where the network `cluster` will be.
  // Errors: FAILED_PRECONDITION when the user has no home and `dir` is empty.
  static absl::StatusOr<CertFolder> ForNew(const Environment& environment,
                                           const std::string& dir,
                                           const std::string& cluster);

  const std::string& path() const { return path_; }
  std::string authority_certificate() const { return path_ + "/ca.pem"; }
  std::string authority_key() const { return path_ + "/ca.key"; }
  std::string FolderOf(const tls::Identity& identity) const;

  // All that ca.pem holds.
  // Errors: as tls::CheckRead and tls::ParseBundle.
  absl::StatusOr<std::vector<tls::Certificate>> Bundle() const;
  // Errors: as enrol::LoadAuthority.
  absl::StatusOr<tls::Authority> LoadAuthority() const;
  // By role and name.
  std::vector<IssuedCertificate> Issued() const;

 private:
  explicit CertFolder(std::string path);

  std::string path_;
};

// Where the user's networks are, ~/.config/dfl by the XDG rules. `option` is
// what names a folder instead, for the error.
// Errors: FAILED_PRECONDITION when the user has no home.
absl::StatusOr<std::string> NetworksFolder(
    const CertFolder::Environment& environment, absl::string_view option);

// Names of folders in `path`, sorted.
std::vector<std::string> FoldersIn(const std::string& path);

// Makes the folder and those above it, for their owner alone; one that is there
// keeps its rights.
// Errors: as dfl::FileError.
absl::Status MakePrivateFolder(const std::string& path);

}  // namespace dfl::cli

#endif  // DFL_CLI_CERT_FOLDER_H_
