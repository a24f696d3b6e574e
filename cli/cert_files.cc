#include "cli/cert_files.h"

#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "cli/cert_text.h"
#include "daemon/base/status_macros.h"
#include "daemon/tls/key_file.h"

namespace dfl::cli {
namespace {

using tls::Authority;
using tls::Certificate;
using tls::Identity;
using tls::PrivateKey;

absl::Status RefuseToOverwrite(const std::string& path,
                               absl::string_view cure) {
  if (access(path.c_str(), F_OK) != 0) return absl::OkStatus();
  return absl::AlreadyExistsError(
      absl::StrCat(path, ": is there already and is not replaced; ", cure));
}

// The three files that the owner of a certificate needs.
absl::Status WriteSet(const std::string& folder, const std::string& bundle,
                      const Certificate& certificate, const PrivateKey& key,
                      std::vector<WrittenFile>& files) {
  const std::string who = IdentityText(certificate);
  DFL_RETURN_IF_ERROR(MakePrivateFolder(folder));
  DFL_RETURN_IF_ERROR(tls::WritePrivate(folder + "/key.pem", key.ToPem()));
  files.push_back({folder + "/key.pem", "private key of " + who + ": secret"});
  DFL_RETURN_IF_ERROR(
      tls::WritePublic(folder + "/cert.pem", certificate.ToPem()));
  files.push_back(
      {folder + "/cert.pem", absl::StrCat("certificate of ", who, ", ",
                                          DaysLeft(certificate) + 1, " days")});
  DFL_RETURN_IF_ERROR(tls::WritePublic(folder + "/ca.pem", bundle));
  files.push_back({folder + "/ca.pem", "whom it trusts"});
  return absl::OkStatus();
}

// Refuses before anything is written.
absl::Status CheckFree(const std::string& out, const std::string& record,
                       const std::string& bundle, const std::string& name) {
  const std::string cure =
      absl::StrCat("renew it with `dflctl cert renew ", name,
                   "`, or remove it to issue another one");
  DFL_RETURN_IF_ERROR(RefuseToOverwrite(record + "/cert.pem", cure));
  DFL_RETURN_IF_ERROR(RefuseToOverwrite(out + "/cert.pem", cure));
  DFL_RETURN_IF_ERROR(RefuseToOverwrite(out + "/key.pem", cure));
  const tls::PemFile there = tls::ReadPemFile(out + "/ca.pem");
  if (there.error == ENOENT || there.content == bundle) return absl::OkStatus();
  return RefuseToOverwrite(there.path,
                           "it is the bundle of another network, or was "
                           "changed; give another --out");
}

}  // namespace

absl::StatusOr<Authority> MakeNetwork(const CertFolder& folder,
                                      const Identity& person,
                                      const tls::Validity& validity,
                                      absl::Duration operator_lifetime,
                                      std::vector<WrittenFile>& files) {
  for (const std::string& path :
       {folder.authority_key(), folder.authority_certificate(),
        folder.FolderOf(person) + "/key.pem"}) {
    DFL_RETURN_IF_ERROR(RefuseToOverwrite(
        path, "give another CLUSTER, or another folder with --dir"));
  }
  DFL_ASSIGN_OR_RETURN(const Authority authority,
                       Authority::Make(person.cluster, validity));
  const PrivateKey key = PrivateKey::Generate();
  DFL_ASSIGN_OR_RETURN(
      const Certificate certificate,
      authority.Issue(key, person, {validity.now, operator_lifetime}));
  const std::string bundle = authority.certificate().ToPem();
  DFL_RETURN_IF_ERROR(MakePrivateFolder(folder.path()));
  DFL_RETURN_IF_ERROR(
      tls::WritePrivate(folder.authority_key(), authority.key().ToPem()));
  files.push_back({folder.authority_key(), "the authority's key: secret"});
  DFL_RETURN_IF_ERROR(tls::WritePublic(folder.authority_certificate(), bundle));
  files.push_back(
      {folder.authority_certificate(),
       absl::StrCat("the authority, ", DaysLeft(authority.certificate()) + 1,
                    " days")});
  DFL_RETURN_IF_ERROR(
      WriteSet(folder.FolderOf(person), bundle, certificate, key, files));
  return authority;
}

absl::StatusOr<Certificate> IssueCertificate(const CertFolder& folder,
                                             const std::string& out,
                                             const Identity& identity,
                                             const Authority& authority,
                                             const tls::Validity& validity,
                                             std::vector<WrittenFile>& files) {
  const std::string record = folder.FolderOf(identity);
  const tls::PemFile bundle = tls::ReadPemFile(folder.authority_certificate());
  DFL_RETURN_IF_ERROR(CheckFree(out, record, bundle.content, identity.name));
  const PrivateKey key = PrivateKey::Generate();
  DFL_ASSIGN_OR_RETURN(const Certificate certificate,
                       authority.Issue(key, identity, validity));
  DFL_RETURN_IF_ERROR(WriteSet(out, bundle.content, certificate, key, files));
  if (out != record) {
    DFL_RETURN_IF_ERROR(MakePrivateFolder(record));
    DFL_RETURN_IF_ERROR(
        tls::WritePublic(record + "/cert.pem", certificate.ToPem()));
    files.push_back({record + "/cert.pem", "a copy, for cert list and renew"});
  }
  return certificate;
}

absl::StatusOr<Certificate> ReadLeaf(const std::string& path) {
  const tls::PemFile file = tls::ReadPemFile(path);
  DFL_RETURN_IF_ERROR(tls::CheckRead(file, "name a certificate's file"));
  DFL_ASSIGN_OR_RETURN(const std::vector<Certificate> chain,
                       tls::ParseCertificates(file.content, path));
  return chain.front();
}

absl::StatusOr<Certificate> RenewCertificate(const CertFolder& folder,
                                             const std::string& path,
                                             const tls::Validity& validity,
                                             std::vector<WrittenFile>& files) {
  DFL_ASSIGN_OR_RETURN(const Certificate former, ReadLeaf(path));
  DFL_ASSIGN_OR_RETURN(const Authority authority, folder.LoadAuthority());
  DFL_ASSIGN_OR_RETURN(const std::vector<Certificate> trusted, folder.Bundle());
  DFL_ASSIGN_OR_RETURN(const Certificate renewed,
                       authority.Renew(former, validity, trusted));
  DFL_RETURN_IF_ERROR(tls::WritePublic(path, renewed.ToPem()));
  files.push_back({path, absl::StrCat("certificate of ", IdentityText(renewed),
                                      ", ", DaysLeft(renewed) + 1, " days")});
  const std::string record = folder.FolderOf(*renewed.identity());
  if (record + "/cert.pem" != path) {
    DFL_RETURN_IF_ERROR(MakePrivateFolder(record));
    DFL_RETURN_IF_ERROR(
        tls::WritePublic(record + "/cert.pem", renewed.ToPem()));
    files.push_back({record + "/cert.pem", "a copy, for cert list and renew"});
  }
  return renewed;
}

absl::StatusOr<tls::Validity> ValidityOf(int days) {
  constexpr int kMaxDays = 36500;
  if (days < 1 || days > kMaxDays) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--days: ", days, " is not allowed; allowed: 1 to ", kMaxDays));
  }
  return tls::Validity{absl::Now(), absl::Hours(24) * days};
}

}  // namespace dfl::cli
