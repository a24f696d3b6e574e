#include "daemon/records/signed_record_codec.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/sha256.h"
#include "daemon/base/status_macros.h"
#include "daemon/ports/frames.h"
#include "daemon/records/record_content.h"
#include "daemon/tls/signature.h"
#include "dfl/record/v1/record.pb.h"

namespace dfl::records {
namespace {

namespace pb = ::dfl::record::v1;

constexpr size_t kMaxQuoted = 300;

absl::Status Malformed(absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("the record ", why));
}

std::string Quoted(absl::string_view text) {
  return absl::StrCat("\"", absl::CHexEscape(text.substr(0, kMaxQuoted)), "\"");
}

std::string Sha256(absl::string_view bytes) {
  return absl::HexStringToBytes(Sha256Hex(bytes));
}

template <typename Message>
bool HasUnknownFields(const Message& message) {
  return !message.GetReflection()->GetUnknownFields(message).empty();
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
  if (record.certificates_size() < 1 ||
      record.certificates_size() > kMaxCertificates) {
    return Malformed(absl::StrCat("has ", record.certificates_size(),
                                  " certificates; allowed: 1 to ",
                                  kMaxCertificates));
  }
  for (const std::string& certificate : record.certificates()) {
    if (certificate.size() <= kMaxCertificateBytes) continue;
    return Malformed(absl::StrCat("has a certificate of ", certificate.size(),
                                  " bytes; at most ", kMaxCertificateBytes,
                                  " are allowed"));
  }
  return record;
}

absl::Status CheckSubject(const pb::RecordBody& body,
                          const std::string& cluster) {
  if (body.kind() != pb::RECORD_KIND_BAN) {
    if (body.subject().empty()) return absl::OkStatus();
    return Malformed(absl::StrCat("is a ", KindName(body.kind()),
                                  " with subject ", Quoted(body.subject()),
                                  "; it must have none"));
  }
  const absl::StatusOr<tls::Identity> subject =
      tls::ParseIdentity(body.subject());
  if (!subject.ok()) {
    return Malformed(absl::StrCat("bans nobody: ", subject.status().message()));
  }
  if (subject->cluster == cluster) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the record bans ", body.subject(),
                   ", and this is network \"", cluster, "\""));
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

absl::StatusOr<std::vector<tls::Certificate>> ParseChain(
    absl::Span<const std::string> certificates) {
  std::vector<tls::Certificate> chain;
  for (const std::string& der : certificates) {
    DFL_ASSIGN_OR_RETURN(tls::Certificate certificate,
                         tls::CertificateFromDer(
                             der, absl::StrCat("certificate ", chain.size() + 1,
                                               " of the record")));
    if (!chain.empty() && !tls::IsSignedBy(chain.back(), certificate)) {
      return Malformed(absl::StrCat("has a certificate of ",
                                    certificate.subject(),
                                    ", which did not sign the one before it"));
    }
    chain.push_back(std::move(certificate));
  }
  return chain;
}

absl::Status CheckAuthorIs(const std::string& author,
                           const tls::Certificate& leaf) {
  if (!leaf.identity().ok()) {
    return Malformed(absl::StrCat("has a certificate of ", leaf.subject(), ": ",
                                  leaf.identity().status().message()));
  }
  const std::string shown = tls::ToUri(*leaf.identity());
  if (author == shown) return absl::OkStatus();
  return Malformed(absl::StrCat("names ", Quoted(author),
                                " as its author, and its certificate is for ",
                                shown));
}

// The content, and the names that it is about.
absl::StatusOr<std::vector<std::string>> ParseContent(
    int32_t kind, const std::string& content) {
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
      std::vector<std::string> nodes = std::move(order.nodes);
      std::sort(nodes.begin(), nodes.end());
      nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
      return nodes;
    }
    case RecordKind::kBan: {
      const absl::StatusOr<BanOrder> order = ParseBanOrder(content);
      if (!order.ok()) return order.status();
      return std::vector<std::string>();
    }
  }
  return Malformed("is of an unknown kind");
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

// `role` may sign a record of this kind and subject.
absl::Status CheckRole(const runtime::Record& record,
                       const tls::Identity& author) {
  if (author.role != tls::Role::kOperator && author.role != tls::Role::kAdmin) {
    return absl::PermissionDeniedError(absl::StrCat(
        "the record is signed by ", tls::ToUri(author), ", and the role ",
        tls::Name(author.role), " gives no orders; operators and admins do"));
  }
  if (author.role == tls::Role::kAdmin ||
      record.id.kind != static_cast<int32_t>(RecordKind::kBan)) {
    return absl::OkStatus();
  }
  const absl::StatusOr<tls::Identity> subject =
      tls::ParseIdentity(record.id.subject);
  if (subject.ok() && subject->role != tls::Role::kAdmin) {
    return absl::OkStatus();
  }
  return absl::PermissionDeniedError(
      absl::StrCat("the record is signed by ", tls::ToUri(author),
                   ", and only an admin bans an admin"));
}

}  // namespace

SignedRecordCodec::SignedRecordCodec(std::string cluster,
                                     std::function<absl::Time()> clock)
    : cluster_(std::move(cluster)), clock_(std::move(clock)) {}

void SignedRecordCodec::SetBundle(std::vector<tls::Certificate> bundle) {
  const absl::MutexLock lock(&mutex_);
  bundle_ = std::move(bundle);
}

void SignedRecordCodec::SetBanned(std::vector<tls::Identity> banned) {
  const absl::MutexLock lock(&mutex_);
  banned_ = std::move(banned);
}

bool SignedRecordCodec::Knows(int32_t kind) const { return IsKnownKind(kind); }

absl::StatusOr<runtime::Record> SignedRecordCodec::Open(
    absl::string_view bytes) const {
  return Parse(bytes, /*judge=*/true);
}

absl::StatusOr<runtime::Record> SignedRecordCodec::Reopen(
    absl::string_view bytes) const {
  return Parse(bytes, /*judge=*/false);
}

absl::StatusOr<runtime::Record> SignedRecordCodec::Parse(
    absl::string_view bytes, bool judge) const {
  DFL_ASSIGN_OR_RETURN(const pb::SignedRecord envelope, ParseEnvelope(bytes));
  DFL_ASSIGN_OR_RETURN(const pb::RecordBody body,
                       ParseBody(envelope.body(), cluster_));
  runtime::Record record = RecordOf(envelope, body, bytes);
  DFL_ASSIGN_OR_RETURN(const std::vector<tls::Certificate> chain,
                       ParseChain(record.certificates));
  DFL_RETURN_IF_ERROR(CheckAuthorIs(record.author, chain.front()));
  if (judge) {
    DFL_RETURN_IF_ERROR(Judge(record, chain));
    const absl::Time now = clock_();
    const absl::Time signed_at = absl::FromUnixNanos(record.unix_nanos);
    if (signed_at > now + kMaxClockLead) {
      return absl::FailedPreconditionError(
          absl::StrCat("the record was signed at ", tls::TimeText(signed_at),
                       ", and the clock says ", tls::TimeText(now),
                       "; set the clock that is wrong"));
    }
  }
  if (!tls::Verify(chain.front(), absl::StrCat(kSignedPrefix, envelope.body()),
                   envelope.signature())) {
    return Malformed(
        absl::StrCat("does not have the signature of ", record.author));
  }
  if (body.content_sha256() != Sha256(envelope.content())) {
    return Malformed("has another content than the one that was signed");
  }
  DFL_ASSIGN_OR_RETURN(record.scope,
                       ParseContent(record.id.kind, envelope.content()));
  record.text = Summary(record.id.kind, record.content());
  return record;
}

absl::Status SignedRecordCodec::CheckAuthor(
    const runtime::Record& record) const {
  DFL_ASSIGN_OR_RETURN(const std::vector<tls::Certificate> chain,
                       ParseChain(record.certificates));
  if (chain.empty()) return Malformed("has no certificate");
  DFL_RETURN_IF_ERROR(CheckAuthorIs(record.author, chain.front()));
  return Judge(record, chain);
}

absl::Status SignedRecordCodec::Judge(
    const runtime::Record& record,
    absl::Span<const tls::Certificate> chain) const {
  const tls::Identity& author = *chain.front().identity();
  if (author.cluster != cluster_) {
    return absl::FailedPreconditionError(
        absl::StrCat("the record is signed by ", record.author,
                     ", and this is network \"", cluster_, "\""));
  }
  DFL_RETURN_IF_ERROR(CheckRole(record, author));
  const absl::MutexLock lock(&mutex_);
  const tls::ChainVerdict verdict = tls::VerifyChain(chain, bundle_, clock_());
  if (!verdict.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the record's author is not vouched for: ", verdict.text));
  }
  // VerifyChain takes a chain by its leaf and passes over what it does not
  // need; nothing that nobody vouches for travels with a record.
  const bool whole = std::any_of(
      bundle_.begin(), bundle_.end(), [&](const tls::Certificate& authority) {
        return tls::IsSignedBy(chain.back(), authority);
      });
  if (!whole) {
    return absl::FailedPreconditionError(
        absl::StrCat("the record's certificate of ", chain.back().subject(),
                     " is signed by no authority that is trusted here"));
  }
  if (std::find(banned_.begin(), banned_.end(), author) == banned_.end()) {
    return absl::OkStatus();
  }
  return absl::PermissionDeniedError(absl::StrCat(
      "the record is signed by ", record.author, ", who is banned"));
}

}  // namespace dfl::records
