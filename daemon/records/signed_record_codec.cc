#include "daemon/records/signed_record_codec.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/records/record_content.h"
#include "daemon/records/record_form.h"
#include "daemon/tls/signature.h"
#include "dfl/record/v1/record.pb.h"

namespace dfl::records {
namespace {

namespace pb = ::dfl::record::v1;

// The envelope of a record that somebody signed.
absl::Status CheckSigned(const pb::SignedRecord& record) {
  if (!record.body().empty() && record.signature().empty() &&
      record.certificates().empty()) {
    return absl::PermissionDeniedError(
        "the record is not signed, and this network is secured: it takes "
        "orders from its operators and admins alone; give it with dflctl and a "
        "certificate of theirs");
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
  return absl::OkStatus();
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
  DFL_RETURN_IF_ERROR(CheckSigned(envelope));
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
  DFL_RETURN_IF_ERROR(TakeContent(body, record));
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
