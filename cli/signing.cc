#include "cli/signing.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/console.h"
#include "daemon/base/status_macros.h"
#include "daemon/records/sign_record.h"
#include "daemon/tls/identity.h"

namespace dfl::cli {
namespace {

std::string Spoken(const client::Version& version) {
  return version.cluster.empty() ? "is insecure"
                                 : absl::StrCat("is in ", version.cluster);
}

// The network that all targets that answer are in, "" for insecure ones.
absl::StatusOr<std::string> NetworkOf(Context& context) {
  const auto versions = context.AskAll<client::Version>(
      [](client::ControlClient& daemon) { return daemon.Version(); });
  const Answer<client::Version>* first = nullptr;
  for (const auto& answer : versions) {
    if (!answer.result.ok()) continue;
    if (first == nullptr) {
      first = &answer;
    } else if (answer.result->cluster != first->result->cluster) {
      return absl::InvalidArgumentError(
          absl::StrCat(first->target, " ", Spoken(*first->result), ", and ",
                       answer.target, " ", Spoken(*answer.result),
                       "; name the targets of one network only"));
    }
  }
  if (first == nullptr) return versions.front().result.status();
  return first->result->cluster;
}

}  // namespace

Signer::Signer(tls::Credentials credentials,
               std::vector<client::RecordInfo> known)
    : credentials_(std::move(credentials)), known_(std::move(known)) {}

absl::StatusOr<std::optional<Signer>> Signer::ForTargets(Context& context) {
  DFL_ASSIGN_OR_RETURN(const std::string cluster, NetworkOf(context));
  if (cluster.empty()) return std::nullopt;
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
  std::vector<client::RecordInfo> known;
  for (const auto& answer : context.AskAll<std::vector<client::RecordInfo>>(
           [](client::ControlClient& daemon) {
             return daemon.ListRecords();
           })) {
    if (!answer.result.ok()) continue;
    known.insert(known.end(), answer.result->begin(), answer.result->end());
  }
  return Signer(*std::move(credentials), std::move(known));
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
  return records::SignRecord(kind, subject, counter, content, credentials_,
                             absl::Now());
}

absl::StatusOr<Signer> RequireSigner(Context& context,
                                     absl::string_view instead) {
  DFL_ASSIGN_OR_RETURN(std::optional<Signer> signer,
                       Signer::ForTargets(context));
  if (signer.has_value()) return *std::move(signer);
  return absl::FailedPreconditionError(absl::StrCat(
      "the targets are insecure, and pass on no orders; ", instead));
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
  context.Say(absl::StrCat("signed by ", tls::ToUri(signer.identity()),
                           "; the nodes pass it on to all others"));
  return context.Conclude(answers);
}

}  // namespace dfl::cli
