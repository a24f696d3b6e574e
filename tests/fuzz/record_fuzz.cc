// Records as they come from other nodes: signed and unsigned, as they are; and
// once more with the content's hash put right.
#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/time/time.h"
#include "daemon/base/check.h"
#include "daemon/base/sha256.h"
#include "daemon/ports/frames.h"
#include "daemon/records/record_content.h"
#include "daemon/records/signed_record_codec.h"
#include "daemon/records/unsigned_record_codec.h"
#include "dfl/record/v1/record.pb.h"
#include "tests/fuzz/fuzz_target.h"

namespace dfl::fuzz {
namespace {

namespace pb = ::dfl::record::v1;

constexpr char kCluster[] = "plant";

// It trusts nobody, but opens again what it once took.
const records::SignedRecordCodec& SignedJudge() {
  static const records::SignedRecordCodec& judge =
      *new records::SignedRecordCodec(
          kCluster, [] { return absl::FromUnixSeconds(1'800'000'000); });
  return judge;
}

// A record that is taken names itself as the frames about it must.
void CheckRecord(const runtime::RecordJudge& judge, absl::string_view bytes) {
  const auto record = judge.Reopen(bytes);
  const auto judged = judge.Open(bytes);
  DFL_CHECK(record.ok() || !judged.ok());
  if (!record.ok()) return;
  DFL_CHECK(record->bytes == bytes && judge.Knows(record->id.kind));
  DFL_CHECK(record->content_begin <= bytes.size());
  DFL_CHECK(ports::ValidateFrame(ports::RecordSummary{{record->id}}).ok());
  DFL_CHECK(std::is_sorted(record->scope.begin(), record->scope.end()));
  DFL_CHECK(records::KindName(record->id.kind) == record->kind_name);
  for (const char c : record->Describe()) {
    DFL_CHECK(!absl::ascii_iscntrl(static_cast<unsigned char>(c)));
  }
  (void)judge.CheckAuthor(*record);
}

// The record in `bytes` with what it takes to be one of an insecure network.
std::string Unsigned(absl::string_view bytes) {
  pb::SignedRecord record;
  pb::RecordBody body;
  if (!record.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) ||
      !body.ParseFromString(record.body())) {
    return "";
  }
  record.clear_signature();
  record.clear_certificates();
  record.DiscardUnknownFields();
  body.DiscardUnknownFields();
  body.clear_cluster();
  body.set_author("insecure:somebody");
  body.set_content_sha256(absl::HexStringToBytes(Sha256Hex(record.content())));
  record.set_body(body.SerializeAsString());
  return record.SerializeAsString();
}

}  // namespace

DFL_FUZZ_TARGET(record)(absl::string_view bytes) {
  static const auto& judge = *new records::UnsignedRecordCodec("");
  CheckRecord(judge, bytes);
  CheckRecord(judge, Unsigned(bytes));
  CheckRecord(SignedJudge(), bytes);
  DFL_CHECK(!SignedJudge().Open(bytes).ok());
}

}  // namespace dfl::fuzz
