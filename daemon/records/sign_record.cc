#include "daemon/records/sign_record.h"

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/records/record_form.h"
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
  pb::SignedRecord record;
  record.set_body(BodyOf(author.identity.cluster, kind, subject, counter,
                         tls::ToUri(author.identity), content, now)
                      .SerializeAsString());
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
