#include "daemon/records/sign_record.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/sha256.h"
#include "daemon/base/status_macros.h"
#include "daemon/records/signed_record_codec.h"
#include "daemon/tls/identity.h"
#include "daemon/tls/signature.h"
#include "dfl/record/v1/record.pb.h"

namespace dfl::records {

namespace pb = ::dfl::record::v1;

absl::StatusOr<std::string> SignRecord(RecordKind kind,
                                       const std::string& subject,
                                       uint64_t counter,
                                       const std::string& content,
                                       const tls::Credentials& author,
                                       absl::Time now) {
  pb::RecordBody body;
  body.set_cluster(author.identity.cluster);
  body.set_kind(static_cast<pb::RecordKind>(kind));
  body.set_subject(subject);
  body.set_counter(counter);
  body.set_author(tls::ToUri(author.identity));
  body.set_unix_nanos(absl::ToUnixNanos(now));
  body.set_content_sha256(absl::HexStringToBytes(Sha256Hex(content)));
  pb::SignedRecord record;
  record.set_body(body.SerializeAsString());
  DFL_ASSIGN_OR_RETURN(
      *record.mutable_signature(),
      tls::Sign(author.key, absl::StrCat(kSignedPrefix, record.body())));
  for (const tls::Certificate& certificate : author.chain) {
    record.add_certificates(tls::ToDer(certificate));
  }
  record.set_content(content);
  std::string bytes = record.SerializeAsString();
  SignedRecordCodec codec(author.identity.cluster, [now] { return now; });
  codec.SetBundle(author.bundle);
  const absl::StatusOr<runtime::Record> opened = codec.Open(bytes);
  if (!opened.ok()) return opened.status();
  return bytes;
}

}  // namespace dfl::records
