// dflctl cert init|issue|renew|list|show: a network's authority and what it
// issues. Needs no daemon. cert_rotation.cc has rotate and retire.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "cli/cert_files.h"
#include "cli/cert_folder.h"
#include "cli/cert_text.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "daemon/base/ids.h"
#include "daemon/base/status_macros.h"
#include "daemon/tls/authority.h"
#include "daemon/tls/certificate.h"
#include "daemon/tls/identity.h"
#include "daemon/tls/key_file.h"

namespace dfl::cli {
namespace {

using tls::Authority;
using tls::Certificate;
using tls::Identity;

constexpr int kAuthorityDays = 3650;
constexpr int kLeafDays = 365;

absl::Duration Days(int days) { return absl::Hours(24) * days; }

struct CertCommand {
  CertFolderChoice folder;
  std::string what;  // CLUSTER, NAME or FILE
  std::string role;
  std::string operator_name;
  std::string out;
  int days = kLeafDays;
};

std::string OperatorName(Context& context, const CertCommand& command) {
  if (!command.operator_name.empty()) return command.operator_name;
  const auto& environment = context.io().environment;
  const auto user = environment.find("USER");
  const bool usable =
      user != environment.end() && ValidateNodeName(user->second).ok();
  return usable ? user->second : "operator";
}

ExitCode Init(Context& context, const CertCommand& command) {
  const Identity person = {command.what, tls::Role::kOperator,
                           OperatorName(context, command)};
  const absl::StatusOr<tls::Validity> validity = ValidityOf(command.days);
  if (!validity.ok()) return context.Usage(validity.status());
  const absl::Status valid = tls::Validate(person);
  if (!valid.ok()) return context.Usage(valid);
  const absl::StatusOr<CertFolder> folder = CertFolder::ForNew(
      context.io().environment, command.folder.dir, command.what);
  if (!folder.ok()) return context.Fail(folder.status());
  std::vector<WrittenFile> files;
  const absl::StatusOr<Authority> authority =
      MakeNetwork(*folder, person, *validity, Days(kLeafDays), files);
  if (!authority.ok()) return context.Fail(authority.status());
  PrintWritten(context, folder->path(), authority->certificate(), files);
  context.Say(absl::StrCat(
      "network ", command.what, " has an authority, and ", person.name,
      " may change the network. Whoever has ca.key can admit anybody: keep it "
      "on this machine, and keep a copy of it in a safe place.\n"
      "next, for each box: `dflctl cert issue NAME",
      command.folder.dir.empty() ? "" : " --dir " + command.folder.dir,
      "`, where NAME is the box's `name` setting"));
  return kOk;
}

std::string AfterIssue(const Identity& identity, const std::string& out) {
  if (identity.role == tls::Role::kNode) {
    return absl::StrCat("next: copy these three files to ", identity.name,
                        ", for instance `scp ", out, "/*.pem ", identity.name,
                        ":/etc/dfld/tls/`. There key.pem must belong to the "
                        "user that dfld runs "
                        "as, with the rights 0600; then delete ",
                        out, "/key.pem here");
  }
  return absl::StrCat("next: give these three files to ", identity.name,
                      " over a safe way; they belong into ~/.config/dfl/",
                      identity.cluster, "/", tls::Name(identity.role), "/",
                      identity.name, ", and key.pem must have the rights 0600");
}

ExitCode Issue(Context& context, const CertCommand& command) {
  const absl::StatusOr<tls::Validity> validity = ValidityOf(command.days);
  if (!validity.ok()) return context.Usage(validity.status());
  const absl::StatusOr<tls::Role> role = tls::ParseRole(command.role);
  if (!role.ok()) return context.Usage(Annotate(role.status(), "--role"));
  if (*role == tls::Role::kIssuer) {
    return context.Usage(absl::InvalidArgumentError(
        "--role: `dflctl token serve` makes an issuer's certificate itself; "
        "allowed: node, operator, viewer, admin"));
  }
  const absl::Status valid = ValidateNodeName(command.what);
  if (!valid.ok()) return context.Usage(valid);
  const absl::StatusOr<CertFolder> folder =
      CertFolder::Find(context.io().environment, command.folder);
  if (!folder.ok()) return context.Fail(folder.status());
  const absl::StatusOr<Authority> authority = folder->LoadAuthority();
  if (!authority.ok()) return context.Fail(authority.status());
  const Identity identity = {authority->cluster(), *role, command.what};
  const std::string out =
      command.out.empty() ? folder->FolderOf(identity) : command.out;
  std::vector<WrittenFile> files;
  const absl::StatusOr<Certificate> certificate =
      IssueCertificate(*folder, out, identity, *authority, *validity, files);
  if (!certificate.ok()) return context.Fail(certificate.status());
  PrintWritten(context, folder->path(), *certificate, files);
  context.Say(AfterIssue(identity, out));
  return kOk;
}

bool IsFile(const std::string& what) {
  return absl::StrContains(what, '/') || absl::EndsWith(what, ".pem");
}

// The file of the one certificate that was issued to `name`.
absl::StatusOr<std::string> FileOfName(const CertFolder& folder,
                                       const CertCommand& command) {
  std::vector<std::string> found;
  for (const IssuedCertificate& issued : folder.Issued()) {
    if (!issued.certificate.ok() || !issued.certificate->identity().ok()) {
      continue;
    }
    const Identity& identity = *issued.certificate->identity();
    if (identity.name == command.what &&
        (command.role.empty() || tls::Name(identity.role) == command.role)) {
      found.push_back(issued.path);
    }
  }
  if (found.size() == 1) return found[0];
  if (found.empty()) {
    return absl::NotFoundError(absl::StrCat(
        "nothing was issued to ",
        command.role.empty() ? "" : command.role + " ", "\"", command.what,
        "\" from ", folder.path(),
        "; see `dflctl cert list`, or name the certificate's file"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("there are ", found.size(), " certificates of \"",
                   command.what, "\"; name one with --role"));
}

absl::StatusOr<CertFolder> FolderForRenewal(Context& context,
                                            const CertCommand& command) {
  CertFolderChoice choice = command.folder;
  if (IsFile(command.what) && choice.dir.empty() && choice.cluster.empty()) {
    DFL_ASSIGN_OR_RETURN(const Certificate leaf, ReadLeaf(command.what));
    if (leaf.identity().ok()) choice.cluster = leaf.identity()->cluster;
  }
  return CertFolder::Find(context.io().environment, choice);
}

ExitCode Renew(Context& context, const CertCommand& command) {
  const absl::StatusOr<tls::Validity> validity = ValidityOf(command.days);
  if (!validity.ok()) return context.Usage(validity.status());
  if (!command.role.empty()) {
    const absl::StatusOr<tls::Role> role = tls::ParseRole(command.role);
    if (!role.ok()) return context.Usage(Annotate(role.status(), "--role"));
  }
  const absl::StatusOr<CertFolder> folder = FolderForRenewal(context, command);
  if (!folder.ok()) return context.Fail(folder.status());
  const absl::StatusOr<std::string> path =
      IsFile(command.what) ? command.what : FileOfName(*folder, command);
  if (!path.ok()) return context.Fail(path.status());
  std::vector<WrittenFile> files;
  const absl::StatusOr<Certificate> renewed =
      RenewCertificate(*folder, *path, *validity, files);
  if (!renewed.ok()) return context.Fail(renewed.status());
  PrintWritten(context, folder->path(), *renewed, files);
  context.Say(absl::StrCat("next: replace cert.pem at ",
                           renewed->identity()->name,
                           "; its key and ca.pem stay as they are"));
  return kOk;
}

ExitCode List(Context& context, const CertCommand& command) {
  const absl::StatusOr<CertFolder> folder =
      CertFolder::Find(context.io().environment, command.folder);
  if (!folder.ok()) return context.Fail(folder.status());
  const absl::StatusOr<std::vector<Certificate>> bundle = folder->Bundle();
  if (!bundle.ok()) return context.Fail(bundle.status());
  Json json{{"folder", folder->path()}, {"certificates", Json::array()}};
  Table table({"IDENTITY", "STATE", ">DAYS", "ENDS", "FILE"});
  const auto add = [&](const Certificate& certificate, const std::string& state,
                       const std::string& path) {
    Json entry = CertificateJson(certificate, state);
    entry["file"] = path;
    json["certificates"].push_back(std::move(entry));
    table.Add({IdentityText(certificate), state,
               absl::StrCat(DaysLeft(certificate)),
               tls::TimeText(certificate.not_after()), path});
  };
  for (const Certificate& authority : *bundle) {
    add(authority, DateState(authority), folder->authority_certificate());
  }
  absl::Status damaged;
  for (const IssuedCertificate& issued : folder->Issued()) {
    if (issued.certificate.ok()) {
      add(*issued.certificate, BundleState(*issued.certificate, *bundle),
          issued.path);
    } else if (damaged.ok()) {
      damaged = issued.certificate.status();
    }
  }
  context.Print(json, [&] { return table.ToString(); });
  return damaged.ok() ? kOk : context.Fail(damaged);
}

ExitCode Show(Context& context, const CertCommand& command) {
  const tls::PemFile file = tls::ReadPemFile(command.what);
  const absl::Status read = tls::CheckRead(file, "name a certificate's file");
  if (!read.ok()) return context.Fail(read);
  const absl::StatusOr<std::vector<Certificate>> found =
      tls::ParseCertificates(file.content, file.path);
  if (!found.ok()) return context.Fail(found.status());
  Json json{{"file", file.path}, {"certificates", Json::array()}};
  std::string text;
  for (const Certificate& certificate : *found) {
    json["certificates"].push_back(
        CertificateJson(certificate, DateState(certificate)));
    if (!text.empty()) text += "\n";
    text += CertificateText(certificate);
  }
  context.Print(json, [&] { return text; });
  return kOk;
}

void AddFolder(CLI::App& command, CertCommand& parsed) {
  command.add_option("--dir", parsed.folder.dir,
                     "The network's folder. Default: ~/.config/dfl/CLUSTER");
  command.add_option("--cluster", parsed.folder.cluster,
                     "The network, where there are several in ~/.config/dfl");
}

using Run = ExitCode (*)(Context&, const CertCommand&);

// Adds a command that fills a CertCommand of its own.
std::pair<CLI::App*, std::shared_ptr<CertCommand>> AddVerb(
    CLI::App& noun, Chosen& chosen, const std::string& name,
    const std::string& description, const std::string& example, Run run) {
  auto parsed = std::make_shared<CertCommand>();
  CLI::App* command = AddCommand(noun, name, description, example);
  command->callback([&chosen, parsed, run] {
    chosen = [parsed, run](Context& context) { return run(context, *parsed); };
  });
  return {command, parsed};
}

void AddInit(CLI::App& noun, Chosen& chosen) {
  const auto [command, parsed] =
      AddVerb(noun, chosen, "init",
              "Make a network's authority and an operator's certificate",
              "plant-4", Init);
  parsed->days = kAuthorityDays;
  command->add_option("CLUSTER", parsed->what, "The network's name")
      ->required();
  command->add_option("--dir", parsed->folder.dir,
                      "Folder to make. Default: ~/.config/dfl/CLUSTER");
  command->add_option("--operator", parsed->operator_name,
                      "The operator's name. Default: $USER");
  command->add_option("--days", parsed->days, "How long the authority is valid")
      ->capture_default_str();
}

void AddIssue(CLI::App& noun, Chosen& chosen) {
  const auto [command, parsed] =
      AddVerb(noun, chosen, "issue",
              "Make a key and a certificate for a node or a person",
              "gateway-07 --out gateway-07-tls", Issue);
  parsed->role = "node";
  command->add_option("NAME", parsed->what, "Of the node or the person")
      ->required();
  command->add_option("--role", parsed->role, "node, operator, viewer or admin")
      ->capture_default_str();
  command->add_option("--out", parsed->out,
                      "Folder for ca.pem, cert.pem and key.pem. Default: "
                      "ROLE/NAME in the network's folder");
  command->add_option("--days", parsed->days, "How long it is valid")
      ->capture_default_str();
  AddFolder(*command, *parsed);
}

void AddRenew(CLI::App& noun, Chosen& chosen) {
  const auto [command, parsed] =
      AddVerb(noun, chosen, "renew",
              "Make a new certificate for the same key and identity",
              "gateway-07", Renew);
  command
      ->add_option("NAME|FILE", parsed->what,
                   "Whose certificate; or its file, with a / or .pem in it")
      ->required();
  command->add_option("--role", parsed->role, "Where NAME has several");
  command->add_option("--days", parsed->days, "How long it is valid")
      ->capture_default_str();
  AddFolder(*command, *parsed);
}

}  // namespace

void AddCert(CLI::App& app, Chosen& chosen) {
  CLI::App* noun = AddCommand(
      app, "cert", "A network's authority, and the certificates that it issues",
      "issue gateway-08");
  noun->require_subcommand(1);
  AddInit(*noun, chosen);
  AddIssue(*noun, chosen);
  AddRenew(*noun, chosen);
  AddCertRotation(*noun, chosen);
  const auto [list, listed] = AddVerb(
      *noun, chosen, "list",
      "The authority and what it issued, with days to expiry", "-o json", List);
  AddFolder(*list, *listed);
  const auto [show, shown] =
      AddVerb(*noun, chosen, "show", "What a certificate's file holds",
              "/etc/dfld/tls/cert.pem", Show);
  show->add_option("FILE", shown->what, "In PEM form")->required();
}

}  // namespace dfl::cli
