#include "daemon/records/record_form.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/ids.h"
#include "daemon/base/sha256.h"
#include "daemon/base/status_macros.h"
#include "daemon/ports/frames.h"
#include "daemon/tls/identity.h"

namespace dfl::records {
namespace {

namespace pb = ::dfl::record::v1;

constexpr size_t kMaxQuoted = 300;

std::string Sha256(absl::string_view bytes) {
  return absl::HexStringToBytes(Sha256Hex(bytes));
}

template <typename Message>
bool HasUnknownFields(const Message& message) {
  return !message.GetReflection()->GetUnknownFields(message).empty();
}

absl::Status CheckBanned(const std::string& subject,
                         const std::string& cluster) {
  const absl::StatusOr<tls::Identity> identity = tls::ParseIdentity(subject);
  if (!identity.ok()) {
    return Malformed(
        absl::StrCat("bans nobody: ", identity.status().message()));
  }
  if (identity->cluster == cluster) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "the record bans ", subject, ", and this is network \"", cluster, "\""));
}

absl::Status CheckSubject(const pb::RecordBody& body,
                          const std::string& cluster) {
  switch (static_cast<RecordKind>(body.kind())) {
    case RecordKind::kBan:
      return CheckBanned(body.subject(), cluster);
    case RecordKind::kDrain:
    case RecordKind::kLabels: {
      const absl::Status valid = ValidateNodeName(body.subject());
      if (valid.ok()) return valid;
      return Malformed(absl::StrCat("is for no node: ", valid.message()));
    }
    case RecordKind::kPlan:
    case RecordKind::kPhase:
      break;
  }
  if (body.subject().empty()) return absl::OkStatus();
  return Malformed(absl::StrCat("is a ", KindName(body.kind()),
                                " with subject ", Quoted(body.subject()),
                                "; it must have none"));
}

// What the content is, and the names and labels that it is about.
absl::StatusOr<std::vector<std::string>> ParseContent(
    int32_t kind, absl::string_view content) {
  switch (static_cast<RecordKind>(kind)) {
    case RecordKind::kPlan:
      if (content.empty() ||
          static_cast<int64_t>(content.size()) > kMaxPlanBytes) {
        return Malformed(absl::StrCat("has a plan of ", content.size(),
                                      " bytes; allowed: 1 to ", kMaxPlanBytes));
      }
      return std::vector<std::string>();
    case RecordKind::kPhase: {
      DFL_ASSIGN_OR_RETURN(PhaseOrder order, ParsePhaseOrder(content));
      std::vector<std::string> scope = std::move(order.nodes);
      scope.insert(scope.end(), order.labels.begin(), order.labels.end());
      std::sort(scope.begin(), scope.end());
      scope.erase(std::unique(scope.begin(), scope.end()), scope.end());
      return scope;
    }
    case RecordKind::kBan:
      DFL_RETURN_IF_ERROR(ParseBanOrder(content).status());
      return std::vector<std::string>();
    case RecordKind::kDrain:
      DFL_RETURN_IF_ERROR(ParseDrainOrder(content).status());
      return std::vector<std::string>();
    case RecordKind::kLabels:
      DFL_RETURN_IF_ERROR(ParseLabelsOrder(content).status());
      return std::vector<std::string>();
  }
  return Malformed("is of an unknown kind");
}

}  // namespace

absl::Status Malformed(absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("the record ", why));
}

std::string Quoted(absl::string_view text) {
  return absl::StrCat("\"", absl::CHexEscape(text.substr(0, kMaxQuoted)), "\"");
}

absl::StatusOr<pb::SignedRecord> ParseEnvelope(absl::string_view bytes) {
  if (static_cast<int64_t>(bytes.size()) > ports::kMaxRecordBytes) {
    return Malformed(absl::StrCat("has ", bytes.size(), " bytes; at most ",
                                  ports::kMaxRecordBytes, " are allowed"));
  }
  pb::SignedRecord record;
  if (!record.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return Malformed("cannot be read: its bytes are damaged");
  }
  if (HasUnknownFields(record)) {
    return Malformed(
        "has fields that this node does not know; upgrade this node");
  }
  if (record.SerializeAsString() != bytes) {
    return Malformed("is not written as records are");
  }
  return record;
}

absl::StatusOr<pb::RecordBody> ParseBody(const std::string& bytes,
                                         const std::string& cluster) {
  pb::RecordBody body;
  if (!body.ParseFromString(bytes)) {
    return Malformed("has a body that cannot be read");
  }
  if (HasUnknownFields(body)) {
    return Malformed(
        "has a body with fields that this node does not know; upgrade this "
        "node");
  }
  if (!IsKnownKind(body.kind())) {
    return Malformed(absl::StrCat("is of kind ", static_cast<int>(body.kind()),
                                  ", which this node does not know"));
  }
  if (body.cluster() != cluster) {
    return absl::FailedPreconditionError(
        absl::StrCat("the record is for network ", Quoted(body.cluster()),
                     ", and this is \"", cluster, "\""));
  }
  if (body.counter() < 1) return Malformed("has no counter");
  DFL_RETURN_IF_ERROR(CheckSubject(body, cluster));
  return body;
}

runtime::Record RecordOf(const pb::SignedRecord& envelope,
                         const pb::RecordBody& body, absl::string_view bytes) {
  runtime::Record record;
  record.id.kind = static_cast<int32_t>(body.kind());
  record.id.subject = body.subject();
  record.id.counter = body.counter();
  record.id.hash = Sha256(envelope.body());
  record.kind_name = std::string(KindName(record.id.kind));
  record.author = body.author();
  record.unix_nanos = body.unix_nanos();
  record.certificates.assign(envelope.certificates().begin(),
                             envelope.certificates().end());
  record.bytes = std::string(bytes);
  // The last field, as records are written.
  record.content_begin = bytes.size() - envelope.content().size();
  return record;
}

absl::Status TakeContent(const pb::RecordBody& body, runtime::Record& record) {
  if (body.content_sha256() != Sha256(record.content())) {
    return Malformed("has another content than the one that was signed");
  }
  DFL_ASSIGN_OR_RETURN(record.scope,
                       ParseContent(record.id.kind, record.content()));
  record.text = Summary(record.id.kind, record.content());
  return absl::OkStatus();
}

pb::RecordBody BodyOf(const std::string& cluster, RecordKind kind,
                      const std::string& subject, uint64_t counter,
                      const std::string& author, const std::string& content,
                      absl::Time now) {
  pb::RecordBody body;
  body.set_cluster(cluster);
  body.set_kind(static_cast<pb::RecordKind>(kind));
  body.set_subject(subject);
  body.set_counter(counter);
  body.set_author(author);
  body.set_unix_nanos(absl::ToUnixNanos(now));
  body.set_content_sha256(Sha256(content));
  return body;
}

}  // namespace dfl::records
