#include "daemon/app/enrolling.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/tls/certificate.h"
#include "daemon/tls/identity.h"

namespace dfl::app {

bool Enrolling::Wanted(const config::NodeSettings& settings,
                       const tls::CredentialPaths& paths) {
  return !settings.join.token.empty() &&
         settings.security == config::Security::kTls &&
         access(paths.certificate.c_str(), F_OK) != 0;
}

absl::StatusOr<enrol::JoinToken> Enrolling::TokenOf(
    const config::NodeSettings& settings) {
  absl::StatusOr<enrol::JoinToken> token =
      enrol::ParseJoinToken(settings.join.token);
  if (!token.ok()) return Annotate(token.status(), "join.token");
  if (token->node != settings.name) {
    return absl::InvalidArgumentError(absl::StrCat(
        "join.token: is for node ", token->node, ", and this node's name is ",
        settings.name, "; set `name: ", token->node,
        "`, or make a token with `dflctl token create --node ", settings.name,
        "`"));
  }
  if (!settings.cluster.empty() && token->cluster != settings.cluster) {
    return absl::InvalidArgumentError(absl::StrCat(
        "join.token: is of network ", token->cluster, ", and the setting ",
        "cluster is ", settings.cluster, "; one of both is wrong"));
  }
  if (settings.join.at.empty()) {
    return absl::InvalidArgumentError(
        "join.at: is not set; set it to the host:port where `dflctl token "
        "serve` runs");
  }
  return token;
}

absl::StatusOr<std::unique_ptr<Enrolling>> Enrolling::Start(
    const config::NodeSettings& settings, const tls::CredentialPaths& paths,
    EnrolNote note, const Pace& pace) {
  enrol::JoinOptions options;
  DFL_ASSIGN_OR_RETURN(options.token, TokenOf(settings));
  options.at = settings.join.at;
  options.node = settings.name;
  options.paths = paths;
  options.timeout = pace.timeout;
  return std::unique_ptr<Enrolling>(
      new Enrolling(std::move(options), std::move(note), pace));
}

Enrolling::Enrolling(enrol::JoinOptions options, EnrolNote note,
                     const Pace& pace)
    : options_(std::move(options)), note_(std::move(note)), pace_(pace) {
  thread_ = std::thread([this] { Run(); });
}

Enrolling::~Enrolling() {
  {
    absl::MutexLock lock(&mutex_);
    ending_ = true;
    changed_.SignalAll();
  }
  thread_.join();
}

void Enrolling::Run() {
  absl::Duration wait = pace_.first;
  std::string told;
  while (true) {
    const absl::StatusOr<enrol::Joined> joined = enrol::Join(options_);
    if (joined.ok()) {
      note_(false, absl::StrCat("got the certificate of ",
                                tls::ToUri(joined->identity), ", valid until ",
                                tls::TimeText(joined->not_after)));
      return;
    }
    const std::string text(joined.status().message());
    if (!absl::IsUnavailable(joined.status())) {
      note_(true, absl::StrCat("cannot join: ", text,
                               ". This node trains alone; it asks again when "
                               "it is started anew"));
      return;
    }
    if (text != told) {
      note_(true, absl::StrCat("cannot join yet: ", text,
                               ". This node trains alone, and tries again"));
    }
    told = text;
    absl::MutexLock lock(&mutex_);
    const absl::Time until = SteadyNow() + wait;
    while (!ending_ && SteadyNow() < until) {
      changed_.WaitFor(&mutex_, until - SteadyNow());
    }
    if (ending_) return;
    wait = std::min(2 * wait, pace_.longest);
  }
}

absl::StatusOr<std::unique_ptr<enrol::Issuer>> StartIssuer(
    const config::NodeSettings& settings, EnrolNote note) {
  if (settings.enrol.listen.empty()) return nullptr;
  if (settings.enrol.folder.empty()) {
    return absl::InvalidArgumentError(
        "enrol.folder: is not set, and enrol.listen is; set it to the folder "
        "that `dflctl cert init` made");
  }
  enrol::IssuerOptions options;
  options.folder = settings.enrol.folder;
  options.listen = settings.enrol.listen;
  options.note = [note = std::move(note)](const enrol::IssuerNote& said) {
    note(!said.status.ok(), enrol::NoteText(said));
  };
  absl::StatusOr<std::unique_ptr<enrol::Issuer>> issuer =
      enrol::Issuer::Start(std::move(options));
  if (!issuer.ok()) return Annotate(issuer.status(), "enrol");
  return issuer;
}

}  // namespace dfl::app
