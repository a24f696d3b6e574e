#include "cli/signing.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/console.h"
#include "daemon/base/status_macros.h"
#include "daemon/records/sign_record.h"
#include "daemon/records/unsigned_record_codec.h"
#include "daemon/tls/identity.h"

namespace dfl::cli {
namespace {

std::string Spoken(const client::Version& version) {
  if (!version.cluster.empty()) return absl::StrCat("is in ", version.cluster);
  if (version.insecure_cluster.empty()) return "is insecure";
  return absl::StrCat("is insecure, in ", version.insecure_cluster);
}

// The network that all targets that answer are in.
absl::StatusOr<client::Version> NetworkOf(Context& context) {
  const auto versions = context.AskAll<client::Version>(
      [](client::ControlClient& daemon) { return daemon.Version(); });
  const Answer<client::Version>* first = nullptr;
  for (const auto& answer : versions) {
    if (!answer.result.ok()) continue;
    if (first == nullptr) {
      first = &answer;
    } else if (Spoken(*answer.result) != Spoken(*first->result)) {
      return absl::InvalidArgumentError(
          absl::StrCat(first->target, " ", Spoken(*first->result), ", and ",
                       answer.target, " ", Spoken(*answer.result),
                       "; name the targets of one network only"));
    }
  }
  if (first == nullptr) return versions.front().result.status();
  return *first->result;
}

// The caller as one who may give orders in the secured network `cluster`.
absl::StatusOr<tls::Credentials> AuthorIn(Context& context,
                                          const std::string& cluster) {
  absl::StatusOr<tls::Credentials> credentials = context.Identity();
  if (!credentials.ok()) {
    return Annotate(credentials.status(),
                    absl::StrCat("orders for the nodes of ", cluster,
                                 " are signed with your key"));
  }
  const tls::Identity& identity = credentials->identity;
  if (identity.cluster != cluster) {
    return absl::PermissionDeniedError(absl::StrCat(
        "your certificate is ", tls::ToUri(identity), ", and the targets are ",
        "in ", cluster, "; name the folder of another one with --identity"));
  }
  if (identity.role != tls::Role::kOperator &&
      identity.role != tls::Role::kAdmin) {
    return absl::PermissionDeniedError(absl::StrCat(
        "your certificate is ", tls::ToUri(identity),
        ", and only operators and admins give orders; name the folder of one "
        "with --identity, or ask one"));
  }
  return credentials;
}

}  // namespace

Signer::Signer(std::optional<tls::Credentials> credentials, Unsigned instead,
               std::vector<client::RecordInfo> known)
    : credentials_(std::move(credentials)),
      instead_(std::move(instead)),
      known_(std::move(known)) {}

absl::StatusOr<Signer> Signer::ForTargets(Context& context) {
  DFL_ASSIGN_OR_RETURN(const client::Version version, NetworkOf(context));
  std::optional<tls::Credentials> credentials;
  Unsigned instead;
  if (version.cluster.empty()) {
    instead.cluster = version.insecure_cluster;
    const auto user = context.io().environment.find("USER");
    if (user != context.io().environment.end()) instead.author = user->second;
  } else {
    DFL_ASSIGN_OR_RETURN(credentials, AuthorIn(context, version.cluster));
  }
  std::vector<client::RecordInfo> known;
  for (const auto& answer : context.AskAll<std::vector<client::RecordInfo>>(
           [](client::ControlClient& daemon) {
             return daemon.ListRecords();
           })) {
    if (!answer.result.ok()) continue;
    known.insert(known.end(), answer.result->begin(), answer.result->end());
  }
  return Signer(std::move(credentials), std::move(instead), std::move(known));
}

std::string Signer::Says() const {
  return secured() ? absl::StrCat("signed by ", tls::ToUri(identity()))
                   : "not signed, for the network is insecure";
}

uint64_t Signer::Highest(records::RecordKind kind,
                         const std::string& subject) const {
  uint64_t highest = 0;
  const absl::string_view name = records::KindName(static_cast<int32_t>(kind));
  for (const client::RecordInfo& record : known_) {
    if (record.kind == name && record.subject == subject) {
      highest = std::max(highest, record.counter);
    }
  }
  return highest;
}

absl::StatusOr<std::string> Signer::Sign(records::RecordKind kind,
                                         const std::string& subject,
                                         uint64_t counter,
                                         const std::string& content) const {
  if (secured()) {
    return records::SignRecord(kind, subject, counter, content, *credentials_,
                               absl::Now());
  }
  return records::MakeUnsignedRecord(kind, subject, counter, content,
                                     instead_.cluster, instead_.author,
                                     absl::Now());
}

absl::StatusOr<Signer> RequireSigner(Context& context,
                                     absl::string_view instead) {
  DFL_ASSIGN_OR_RETURN(Signer signer, Signer::ForTargets(context));
  if (signer.secured()) return signer;
  return absl::FailedPreconditionError(absl::StrCat(
      "the targets are insecure, and take no such order; ", instead));
}

ExitCode SignAndPut(Context& context, const Signer& signer,
                    records::RecordKind kind, const std::string& subject,
                    const std::string& content,
                    const std::function<void(Json& entry)>& fill) {
  const uint64_t counter = signer.Highest(kind, subject) + 1;
  const absl::StatusOr<std::string> record =
      signer.Sign(kind, subject, counter, content);
  if (!record.ok()) return context.Fail(record.status());
  const auto answers = context.AskAll<client::PutRecordResult>(
      [&](client::ControlClient& daemon) { return daemon.PutRecord(*record); });
  const std::string said =
      records::Summary(static_cast<int32_t>(kind), content);
  context.Print(
      Context::TargetsJson<client::PutRecordResult>(
          answers,
          [&](const client::PutRecordResult& result, Json& entry) {
            entry["counter"] = counter;
            entry["unchanged"] = result.unchanged;
            fill(entry);
          }),
      [&] {
        Table table({"TARGET", "ORDER", "SAYS"});
        for (const auto& answer : answers) {
          if (!answer.result.ok()) continue;
          table.Add({answer.target,
                     absl::StrCat(records::KindName(static_cast<int32_t>(kind)),
                                  " ", counter),
                     said});
        }
        return table.empty() ? "" : table.ToString();
      });
  context.Say(
      absl::StrCat(signer.Says(), "; the nodes pass it on to all others"));
  return context.Conclude(answers);
}

}  // namespace dfl::cli
