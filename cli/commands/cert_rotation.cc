// dflctl cert rotate|retire: another authority for a running network.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "cli/cert_files.h"
#include "cli/cert_folder.h"
#include "cli/cert_rotation.h"
#include "cli/cert_text.h"
#include "cli/commands.h"
#include "daemon/tls/certificate.h"

namespace dfl::cli {
namespace {

constexpr int kAuthorityDays = 3650;

struct RotationCommand {
  CertFolderChoice folder;
  std::string fingerprint;
  int days = kAuthorityDays;
  bool force = false;
};

ExitCode Rotate(Context& context, const RotationCommand& command) {
  const absl::StatusOr<tls::Validity> validity = ValidityOf(command.days);
  if (!validity.ok()) return context.Usage(validity.status());
  const absl::StatusOr<CertFolder> folder =
      CertFolder::Find(context.io().environment, command.folder);
  if (!folder.ok()) return context.Fail(folder.status());
  std::vector<WrittenFile> files;
  const absl::StatusOr<Rotated> rotated =
      RotateAuthority(*folder, *validity, files);
  if (!rotated.ok()) return context.Fail(rotated.status());
  PrintWritten(context, folder->path(), rotated->authority, files);
  context.Say(absl::StrCat(
      "the new authority signs from now on, and both are trusted. Join tokens "
      "that were not spent yet no longer work: make new ones.\n"
      "next: 1. copy ca.pem to every node and person; dfld takes it up at "
      "once.\n"
      "      2. then `dflctl cert renew NAME` for each, and copy its "
      "cert.pem.\n"
      "      3. then `dflctl cert retire ",
      rotated->former.fingerprint(), "`, and copy ca.pem once more"));
  return kOk;
}

ExitCode Retire(Context& context, const RotationCommand& command) {
  const absl::StatusOr<CertFolder> folder =
      CertFolder::Find(context.io().environment, command.folder);
  if (!folder.ok()) return context.Fail(folder.status());
  std::vector<WrittenFile> files;
  const absl::StatusOr<tls::Certificate> retired =
      RetireAuthority(*folder, command.fingerprint, command.force, files);
  if (!retired.ok()) return context.Fail(retired.status());
  PrintWritten(context, folder->path(), *retired, files);
  context.Say(absl::StrCat(
      retired->subject(),
      " is trusted no longer.\nnext: copy ca.pem to every node and person; "
      "until then they still trust it"));
  return kOk;
}

}  // namespace

void AddCertRotation(CLI::App& cert, Chosen& chosen) {
  auto parsed = std::make_shared<RotationCommand>();
  const auto add = [&](const std::string& name, const std::string& description,
                       const std::string& example, auto run) {
    CLI::App* command = AddCommand(cert, name, description, example);
    command->add_option("--dir", parsed->folder.dir,
                        "The network's folder. Default: ~/.config/dfl/CLUSTER");
    command->add_option(
        "--cluster", parsed->folder.cluster,
        "The network, where there are several in ~/.config/dfl");
    command->callback([&chosen, parsed, run] {
      chosen = [parsed, run](Context& context) {
        return run(context, *parsed);
      };
    });
    return command;
  };
  add("rotate", "Make another authority: both are trusted, the new one signs",
      "--cluster plant-4", Rotate)
      ->add_option("--days", parsed->days, "How long the authority is valid")
      ->capture_default_str();
  CLI::App* retire =
      add("retire", "Trust a former authority no longer", "3f6b0c9d", Retire);
  retire
      ->add_option("FINGERPRINT", parsed->fingerprint,
                   "Its SHA-256, as cert rotate and cert show print it")
      ->required();
  retire->add_flag("--force", parsed->force,
                   "Also when valid certificates were signed by it");
}

}  // namespace dfl::cli
