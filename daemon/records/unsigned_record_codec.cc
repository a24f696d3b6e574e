#include "daemon/records/unsigned_record_codec.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "daemon/base/status_macros.h"
#include "daemon/records/record_form.h"
#include "dfl/record/v1/record.pb.h"

namespace dfl::records {
namespace {

namespace pb = ::dfl::record::v1;

bool IsPrintable(char c) {
  return absl::ascii_isprint(static_cast<unsigned char>(c));
}

absl::Status CheckUnsigned(const pb::SignedRecord& record) {
  if (record.signature().empty() && record.certificates().empty()) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      "the record is signed, and this node is insecure and cannot tell by "
      "whom; set `security: tls` and give it a certificate, or give the order "
      "to this network by itself");
}

absl::Status CheckAuthorName(const std::string& author) {
  absl::string_view name = author;
  if (absl::ConsumePrefix(&name, kUnsignedAuthor) && !name.empty() &&
      name.size() <= kMaxUnsignedName &&
      std::all_of(name.begin(), name.end(), IsPrintable)) {
    return absl::OkStatus();
  }
  return Malformed(absl::StrCat(
      "has the author ", Quoted(author), "; allowed: ", kUnsignedAuthor,
      "NAME with 1 to ", kMaxUnsignedName, " characters of printable ASCII"));
}

}  // namespace

absl::StatusOr<std::string> MakeUnsignedRecord(
    RecordKind kind, const std::string& subject, uint64_t counter,
    const std::string& content, const std::string& cluster,
    absl::string_view author, absl::Time now) {
  std::string name(author.substr(0, kMaxUnsignedName));
  for (char& c : name) {
    if (!IsPrintable(c)) c = '?';
  }
  if (name.empty()) name = "somebody";
  pb::SignedRecord record;
  record.set_body(BodyOf(cluster, kind, subject, counter,
                         absl::StrCat(kUnsignedAuthor, name), content, now)
                      .SerializeAsString());
  record.set_content(content);
  std::string bytes = record.SerializeAsString();
  DFL_RETURN_IF_ERROR(UnsignedRecordCodec(cluster).Open(bytes).status());
  return bytes;
}

UnsignedRecordCodec::UnsignedRecordCodec(std::string cluster)
    : cluster_(std::move(cluster)) {}

bool UnsignedRecordCodec::Knows(int32_t kind) const {
  return IsKnownKind(kind) && kind != static_cast<int32_t>(RecordKind::kBan);
}

absl::StatusOr<runtime::Record> UnsignedRecordCodec::Open(
    absl::string_view bytes) const {
  DFL_ASSIGN_OR_RETURN(const pb::SignedRecord envelope, ParseEnvelope(bytes));
  DFL_RETURN_IF_ERROR(CheckUnsigned(envelope));
  DFL_ASSIGN_OR_RETURN(const pb::RecordBody body,
                       ParseBody(envelope.body(), cluster_));
  if (!Knows(body.kind())) {
    return absl::FailedPreconditionError(
        "the record is a ban, and this network is insecure: whoever reaches a "
        "node is believed, so nobody can be shut out; set `security: tls`");
  }
  DFL_RETURN_IF_ERROR(CheckAuthorName(body.author()));
  runtime::Record record = RecordOf(envelope, body, bytes);
  DFL_RETURN_IF_ERROR(TakeContent(body, record));
  return record;
}

}  // namespace dfl::records
