// A network's authority, and people and nodes with its certificates.
#ifndef DFL_TESTS_UNIT_RECORDS_PEOPLE_H_
#define DFL_TESTS_UNIT_RECORDS_PEOPLE_H_

#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/sha256.h"
#include "daemon/records/record_content.h"
#include "daemon/records/sign_record.h"
#include "daemon/records/signed_record_codec.h"
#include "daemon/tls/authority.h"
#include "daemon/tls/credentials.h"
#include "daemon/tls/identity.h"
#include "daemon/tls/signature.h"
#include "dfl/record/v1/record.pb.h"
#include "gtest/gtest.h"
#include "tests/support/made_credentials.h"

namespace dfl::records {

namespace pb = ::dfl::record::v1;

inline tls::Credentials Issue(const tls::Authority& authority, tls::Role role,
                              const std::string& name = "ann",
                              absl::Duration lifetime = absl::Hours(24)) {
  return *tls::MakeCredentials(authority, {authority.cluster(), role, name}, {},
                               tls::Now(), lifetime);
}

// A body as SignRecord makes it, for tests that change it before it is signed.
inline pb::RecordBody BodyOf(RecordKind kind, const std::string& content,
                             const tls::Credentials& author) {
  pb::RecordBody body;
  body.set_cluster("plant-4");
  body.set_kind(static_cast<pb::RecordKind>(kind));
  body.set_counter(1);
  body.set_author(tls::ToUri(author.identity));
  body.set_unix_nanos(absl::ToUnixNanos(tls::Now()));
  body.set_content_sha256(absl::HexStringToBytes(Sha256Hex(content)));
  if (kind == RecordKind::kBan) body.set_subject("spiffe://plant-4/node/box-1");
  return body;
}

// Signs whatever it is given, as a thief of the key would.
inline pb::SignedRecord SignRaw(const std::string& body,
                                const std::string& content,
                                const tls::Credentials& author) {
  pb::SignedRecord record;
  record.set_body(body);
  record.set_signature(
      *tls::Sign(author.key, absl::StrCat(kSignedPrefix, body)));
  for (const tls::Certificate& certificate : author.chain) {
    record.add_certificates(tls::ToDer(certificate));
  }
  record.set_content(content);
  return record;
}

inline std::string BanContent(bool banned = true,
                              const std::string& reason = "stolen") {
  return ToContent(BanOrder{banned, reason});
}

}  // namespace dfl::records

#endif  // DFL_TESTS_UNIT_RECORDS_PEOPLE_H_
