#include "cli/cert_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/base/atomic_file.h"
#include "daemon/base/status_macros.h"
#include "daemon/enrol/authority_files.h"
#include "daemon/tls/key_file.h"

namespace dfl::cli {
namespace {

bool IsThere(const std::string& path) {
  return access(path.c_str(), F_OK) == 0;
}

constexpr absl::string_view kMakeOne =
    "make a network with `dflctl cert init CLUSTER`, or name its folder with "
    "--dir";

}  // namespace

std::vector<std::string> FoldersIn(const std::string& path) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(path, error), end;
       !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    if (entry->is_directory(ignored)) {
      names.push_back(entry->path().filename().string());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

absl::StatusOr<std::string> NetworksFolder(
    const CertFolder::Environment& environment, absl::string_view option) {
  const auto variable = [&](const std::string& name) {
    const auto found = environment.find(name);
    return found == environment.end() ? std::string() : found->second;
  };
  const std::string config = variable("XDG_CONFIG_HOME");
  if (!config.empty() && config[0] == '/') return config + "/dfl";
  const std::string home = variable("HOME");
  if (!home.empty()) return home + "/.config/dfl";
  return absl::FailedPreconditionError(
      absl::StrCat("neither XDG_CONFIG_HOME nor HOME is set; name the folder "
                   "with ",
                   option));
}

CertFolder::CertFolder(std::string path) : path_(std::move(path)) {}

absl::StatusOr<CertFolder> CertFolder::ForNew(const Environment& environment,
                                              const std::string& dir,
                                              const std::string& cluster) {
  if (!dir.empty()) return CertFolder(dir);
  DFL_ASSIGN_OR_RETURN(const std::string networks,
                       NetworksFolder(environment, "--dir"));
  return CertFolder(absl::StrCat(networks, "/", cluster));
}

absl::StatusOr<CertFolder> CertFolder::Find(const Environment& environment,
                                            const CertFolderChoice& choice) {
  if (!choice.dir.empty() || !choice.cluster.empty()) {
    DFL_ASSIGN_OR_RETURN(CertFolder folder,
                         ForNew(environment, choice.dir, choice.cluster));
    if (IsThere(folder.authority_certificate())) return folder;
    return absl::NotFoundError(absl::StrCat(
        folder.authority_certificate(), ": there is no such file; ", kMakeOne));
  }
  DFL_ASSIGN_OR_RETURN(const std::string networks,
                       NetworksFolder(environment, "--dir"));
  std::vector<std::string> found;
  for (const std::string& name : FoldersIn(networks)) {
    if (IsThere(absl::StrCat(networks, "/", name, "/ca.pem"))) {
      found.push_back(name);
    }
  }
  if (found.empty()) {
    return absl::NotFoundError(
        absl::StrCat("there is no network in ", networks, "; ", kMakeOne));
  }
  if (found.size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "there are ", found.size(), " networks in ", networks,
        ": name one with --cluster: ", absl::StrJoin(found, ", ")));
  }
  return CertFolder(absl::StrCat(networks, "/", found[0]));
}

std::string CertFolder::FolderOf(const tls::Identity& identity) const {
  return absl::StrCat(path_, "/", tls::Name(identity.role), "/", identity.name);
}

absl::StatusOr<std::vector<tls::Certificate>> CertFolder::Bundle() const {
  const tls::PemFile file = tls::ReadPemFile(authority_certificate());
  DFL_RETURN_IF_ERROR(tls::CheckRead(file, kMakeOne));
  return tls::ParseBundle(file.content, file.path);
}

absl::StatusOr<tls::Authority> CertFolder::LoadAuthority() const {
  DFL_ASSIGN_OR_RETURN(enrol::AuthorityFiles files,
                       enrol::LoadAuthority(path_));
  return std::move(files.authority);
}

std::vector<IssuedCertificate> CertFolder::Issued() const {
  std::vector<IssuedCertificate> issued;
  for (const tls::Role role : {tls::Role::kNode, tls::Role::kOperator,
                               tls::Role::kViewer, tls::Role::kAdmin}) {
    const std::string folder = absl::StrCat(path_, "/", tls::Name(role));
    for (const std::string& name : FoldersIn(folder)) {
      const tls::PemFile file =
          tls::ReadPemFile(absl::StrCat(folder, "/", name, "/cert.pem"));
      if (file.error == ENOENT) continue;
      const absl::Status read = tls::CheckRead(file, "");
      absl::StatusOr<std::vector<tls::Certificate>> chain =
          read.ok() ? tls::ParseCertificates(file.content, file.path) : read;
      if (chain.ok()) {
        issued.push_back({file.path, chain->front()});
      } else {
        issued.push_back({file.path, chain.status()});
      }
    }
  }
  return issued;
}

absl::Status MakePrivateFolder(const std::string& path) {
  const std::filesystem::path folder(path);
  std::error_code ignored;
  if (std::filesystem::is_directory(folder, ignored)) return absl::OkStatus();
  const std::filesystem::path parent = folder.parent_path();
  if (!parent.empty() && parent != folder) {
    DFL_RETURN_IF_ERROR(MakePrivateFolder(parent.string()));
  }
  // "a/b/" names the same folder as "a/b", which is there by now.
  if (folder.filename().empty()) return absl::OkStatus();
  if (mkdir(path.c_str(), 0700) != 0) return FileError(path, "make the folder");
  return absl::OkStatus();
}

}  // namespace dfl::cli
