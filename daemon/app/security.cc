#include "daemon/app/security.h"

#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "daemon/app/enrolling.h"
#include "daemon/base/status_macros.h"
#include "daemon/tls/certificate.h"
#include "daemon/tls/identity.h"

namespace dfl::app {
namespace {

using tls::CredentialsWatch;

// The network of the certificate in `file`; "" where it names none.
std::string ClusterOf(const tls::PemFile& file) {
  if (file.error != 0) return "";
  const auto chain = tls::ParseCertificates(file.content, file.path);
  if (!chain.ok() || !chain->front().identity().ok()) return "";
  return chain->front().identity()->cluster;
}

// Missing files of a node that needs none are no fault.
bool IsFault(const absl::Status& status, bool needed) {
  return !status.ok() && (needed || !absl::IsNotFound(status));
}

tls::Identity NodeOf(const std::string& cluster, const std::string& node) {
  return {cluster, tls::Role::kNode, node};
}

// What is an error at the start. A clock that is not set yet is none.
absl::Status ForStart(const absl::Status& status, bool needed) {
  if (!IsFault(status, needed) || absl::IsUnavailable(status)) {
    return absl::OkStatus();
  }
  if (!absl::IsNotFound(status)) {
    return absl::InvalidArgumentError(status.message());
  }
  return absl::InvalidArgumentError(absl::StrCat(
      status.message(),
      ". A node that listens or has peers needs it; set security: insecure if "
      "everyone who reaches this network may be trusted"));
}

}  // namespace

std::string EndWarnings::Look(absl::Duration left) {
  static constexpr int kDays[] = {30, 7, 1, 0};
  int passed = 0;
  for (const int days : kDays) {
    if (left <= absl::Hours(24 * days)) ++passed;
  }
  const bool news = passed > given_;
  given_ = passed;
  if (!news) return "";
  if (left <= absl::ZeroDuration()) return "has expired";
  return absl::StrCat("expires in ",
                      absl::FormatDuration(absl::Trunc(left, absl::Hours(1))));
}

absl::StatusOr<Security::Expected> Security::ExpectedBy(
    const config::NodeSettings& settings) {
  if (!Enrolling::Wanted(settings, settings.tls.Paths())) {
    return Expected{settings.cluster, settings.OnNetwork()};
  }
  DFL_ASSIGN_OR_RETURN(const enrol::JoinToken token,
                       Enrolling::TokenOf(settings));
  return Expected{token.cluster, false};
}

Security::Security(const config::NodeSettings& settings, Expected expected,
                   std::unique_ptr<net::NetworkSecurity> network,
                   ports::Loop& loop, ports::EventSink& events)
    : node_(settings.name),
      paths_(settings.tls.Paths()),
      needed_(expected.needed),
      network_(std::move(network)),
      loop_(loop),
      events_(events),
      cluster_(std::move(expected.cluster)),
      reader_(loop, "dfld-security") {}

absl::Status Security::CheckFiles(const config::NodeSettings& settings) {
  DFL_ASSIGN_OR_RETURN(const Expected expected, ExpectedBy(settings));
  const tls::CredentialFiles files =
      tls::ReadCredentialFiles(settings.tls.Paths());
  const std::string cluster = expected.cluster.empty()
                                  ? ClusterOf(files.certificate)
                                  : expected.cluster;
  const absl::Status status =
      tls::CheckCredentials(files, NodeOf(cluster, settings.name), absl::Now(),
                            getuid())
          .status();
  return ForStart(status, expected.needed);
}

absl::StatusOr<std::unique_ptr<Security>> Security::Open(
    const config::NodeSettings& settings, ports::Loop& loop,
    ports::EventSink& events) {
  DFL_ASSIGN_OR_RETURN(Expected expected, ExpectedBy(settings));
  const bool needed = expected.needed;
  DFL_ASSIGN_OR_RETURN(
      std::unique_ptr<net::NetworkSecurity> network,
      net::NetworkSecurity::Create(absl::StrCat(settings.state_dir, "/tls")));
  std::unique_ptr<Security> security(new Security(
      settings, std::move(expected), std::move(network), loop, events));
  const absl::Status used =
      security->Use(tls::ReadCredentialFiles(security->paths_), absl::Now());
  DFL_RETURN_IF_ERROR(ForStart(used, needed));
  return security;
}

absl::Status Security::Use(const tls::CredentialFiles& files, absl::Time now) {
  std::string cluster = this->cluster();
  if (cluster.empty()) cluster = ClusterOf(files.certificate);
  if (!watch_.has_value() && !cluster.empty()) {
    watch_.emplace(NodeOf(cluster, node_), getuid());
  }
  if (watch_.has_value()) {
    const CredentialsWatch::News news = watch_->Look(files, now);
    status_ = watch_->status();
    if (news == CredentialsWatch::News::kAdopted) {
      status_ = network_->Use(watch_->current());
    }
  } else {
    status_ =
        tls::CheckCredentials(files, NodeOf(cluster, node_), now, getuid())
            .status();
  }
  const absl::MutexLock lock(&mutex_);
  cluster_ = cluster;
  fault_ = IsFault(status_, needed_) ? std::string(status_.message()) : "";
  return status_;
}

void Security::Watch(std::function<void()> recheck) {
  recheck_ = std::move(recheck);
  if (IsFault(status_, needed_)) {
    Note(true, absl::StrCat(status_.message(),
                            "; until then this node trains alone"));
  }
  LookLater();
}

void Security::Stop() { *watching_ = false; }

void Security::LookLater() {
  loop_.After(kPeriod, [this, watching = watching_] {
    if (!*watching) return;
    auto files = std::make_shared<tls::CredentialFiles>();
    reader_.Run([this, files] { *files = tls::ReadCredentialFiles(paths_); },
                [this, watching, files] {
                  if (!*watching) return;
                  TakeIn(*files);
                  LookLater();
                });
  });
}

void Security::TakeIn(const tls::CredentialFiles& files) {
  const absl::Time now = absl::Now();
  const std::shared_ptr<const tls::Credentials> before = current();
  std::string former_fault;
  {
    const absl::MutexLock lock(&mutex_);
    former_fault = fault_;
  }
  const absl::Status used = Use(files, now);
  if (current() != before) {
    Note(!used.ok(), used.ok()
                         ? absl::StrCat("the certificate of ",
                                        tls::ToUri(current()->identity),
                                        " is in use, valid until ",
                                        tls::TimeText(current()->not_after()))
                         : std::string(used.message()));
  } else if (IsFault(used, needed_) && used.message() != former_fault &&
             !absl::IsUnavailable(used)) {
    Note(true, absl::StrCat(used.message(), before == nullptr
                                                ? ""
                                                : "; the former files stay in "
                                                  "use"));
  }
  if (current() != nullptr) {
    const std::string warning = warnings_.Look(current()->not_after() - now);
    if (!warning.empty()) {
      Note(true, absl::StrCat("this node's certificate ", warning,
                              "; renew it with `dflctl cert renew ",
                              current()->identity.name,
                              "` where the authority's key is, and copy "
                              "cert.pem to ",
                              paths_.certificate));
    }
  }
  TellRefusals(loop_.Now());
  recheck_();
}

void Security::TellRefusals(absl::Time now) {
  if (now - refusals_told_ < kRefusalPeriod) return;
  std::map<std::string, int64_t> refusals = network_->refusals();
  std::vector<std::string> news;
  for (const auto& [reason, count] : refusals) {
    const int64_t more = count - told_[reason];
    if (more > 0) news.push_back(absl::StrCat(more, " ", reason));
  }
  if (news.empty()) return;
  refusals_told_ = now;
  told_ = std::move(refusals);
  Note(true,
       absl::StrCat("connections were refused: ", absl::StrJoin(news, ", ")));
}

void Security::Note(bool warning, std::string text) {
  events_.Report(ports::SecurityNote{warning, std::move(text)});
}

std::string Security::cluster() const {
  const absl::MutexLock lock(&mutex_);
  return cluster_;
}

std::vector<tls::Certificate> Security::Bundle() const {
  const std::shared_ptr<const tls::Credentials> credentials =
      network_->credentials();
  return credentials == nullptr ? std::vector<tls::Certificate>()
                                : credentials->bundle;
}

void Security::Tell(control::DaemonStatus& status) const {
  status.refused = network_->refusals();
  const std::shared_ptr<const tls::Credentials> credentials =
      network_->credentials();
  if (credentials != nullptr) {
    status.certificate_days = absl::FDivDuration(
        credentials->not_after() - absl::Now(), absl::Hours(24));
    if (status.certificate_days < 30) {
      status.warnings.push_back(absl::StrCat(
          "this node's certificate ",
          status.certificate_days < 0 ? "expired on " : "expires on ",
          tls::TimeText(credentials->not_after()),
          "; renew it with `dflctl cert renew`"));
    }
  }
  const absl::MutexLock lock(&mutex_);
  status.cluster = cluster_;
  if (!fault_.empty()) status.warnings.push_back(fault_);
}

}  // namespace dfl::app
