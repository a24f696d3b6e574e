#include "daemon/records/unsigned_record_codec.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/runtime/gossip/record_book.h"
#include "tests/unit/records/people.h"

namespace dfl::records {
namespace {

using absl::StatusCode;

std::string Made(RecordKind kind, const std::string& subject,
                 const std::string& content,
                 const std::string& author = "ann@desk",
                 const std::string& cluster = "") {
  const auto record = MakeUnsignedRecord(kind, subject, 1, content, cluster,
                                         author, tls::Now());
  EXPECT_TRUE(record.ok()) << record.status();
  return record.ok() ? *record : "";
}

void ExpectRefused(const absl::Status& status, StatusCode code,
                   const std::string& why) {
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), why)) << status;
}

// The same record with another body or envelope.
template <typename Change>
std::string Changed(Change change) {
  pb::SignedRecord record;
  record.ParseFromString(Made(RecordKind::kPlan, "", "a plan"));
  pb::RecordBody body;
  body.ParseFromString(record.body());
  change(record, body);
  record.set_body(body.SerializeAsString());
  return record.SerializeAsString();
}

TEST(UnsignedRecordCodec, TakesOrdersOfWhoeverGivesThem) {
  const UnsignedRecordCodec codec("");
  const std::string bytes = Made(RecordKind::kPlan, "", "a plan");
  const auto plan = codec.Open(bytes);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->author, "insecure:ann@desk");
  EXPECT_EQ(plan->content(), "a plan");
  EXPECT_EQ(plan->id.counter, 1U);
  EXPECT_EQ(plan->kind_name, "plan");
  EXPECT_TRUE(codec.CheckAuthor(*plan).ok());
  EXPECT_TRUE(codec.Reopen(bytes).ok());
  const auto drain = codec.Open(
      Made(RecordKind::kDrain, "box-1", ToContent(DrainOrder{true, "a disk"})));
  ASSERT_TRUE(drain.ok()) << drain.status();
  EXPECT_EQ(drain->id.subject, "box-1");
  EXPECT_EQ(drain->text, "drains: a disk");
  const auto phase = codec.Open(
      Made(RecordKind::kPhase, "",
           ToContent(PhaseOrder{
               runtime::DesiredPhase::kPaused, {"b", "a"}, "run-1", {"a=b"}})));
  ASSERT_TRUE(phase.ok()) << phase.status();
  EXPECT_EQ(phase->scope, (std::vector<std::string>{"a", "a=b", "b"}));
}

TEST(UnsignedRecordCodec, AnAuthorIsOneLine) {
  const UnsignedRecordCodec codec("");
  const auto author = [&](const std::string& name) {
    return codec.Open(Made(RecordKind::kPlan, "", "a plan", name))->author;
  };
  EXPECT_EQ(author("a\nb"), "insecure:a?b");
  EXPECT_EQ(author(""), "insecure:somebody");
  EXPECT_EQ(author(std::string(500, 'x')),
            "insecure:" + std::string(kMaxUnsignedName, 'x'));
  for (const std::string& bad :
       {std::string(), std::string("insecure:"), std::string("ann"),
        std::string("insecure:a\nb"), "insecure:" + std::string(129, 'x'),
        std::string("spiffe://plant-4/operator/ann")}) {
    ExpectRefused(
        codec.Open(Changed([&](auto&, auto& body) { body.set_author(bad); }))
            .status(),
        StatusCode::kInvalidArgument, "allowed: insecure:NAME");
  }
}

TEST(UnsignedRecordCodec, RefusesWhatIsSigned) {
  const UnsignedRecordCodec codec("plant-4");
  const tls::Authority authority = tls::MakeAuthority();
  const auto signed_record =
      SignRecord(RecordKind::kPlan, "", 1, "a plan",
                 Issue(authority, tls::Role::kOperator), tls::Now());
  ASSERT_TRUE(signed_record.ok()) << signed_record.status();
  ExpectRefused(codec.Open(*signed_record).status(),
                StatusCode::kFailedPrecondition, "set `security: tls`");
  const UnsignedRecordCodec none("");
  for (const auto& bytes :
       {Changed([](auto& record, auto&) { record.set_signature("x"); }),
        Changed([](auto& record, auto&) { record.add_certificates("x"); })}) {
    ExpectRefused(none.Open(bytes).status(), StatusCode::kFailedPrecondition,
                  "the record is signed");
  }
}

TEST(UnsignedRecordCodec, ASecuredNetworkTakesNone) {
  const tls::Authority authority = tls::MakeAuthority();
  SignedRecordCodec secured("plant-4", [] { return tls::Now(); });
  secured.SetBundle({authority.certificate()});
  const std::string record =
      Made(RecordKind::kPlan, "", "a plan", "ann", "plant-4");
  ExpectRefused(secured.Open(record).status(), StatusCode::kPermissionDenied,
                "the record is not signed");
  ExpectRefused(secured.Reopen(record).status(), StatusCode::kPermissionDenied,
                "the record is not signed");
}

TEST(UnsignedRecordCodec, NobodyIsShutOut) {
  EXPECT_FALSE(
      UnsignedRecordCodec("").Knows(static_cast<int32_t>(RecordKind::kBan)));
  ExpectRefused(
      MakeUnsignedRecord(RecordKind::kBan, "spiffe://plant-4/node/box-1", 1,
                         BanContent(), "plant-4", "ann", tls::Now())
          .status(),
      StatusCode::kFailedPrecondition, "nobody can be shut out");
}

TEST(UnsignedRecordCodec, RefusesOtherNetworksAndDamage) {
  const UnsignedRecordCodec codec("");
  ExpectRefused(
      codec.Open(Made(RecordKind::kPlan, "", "a plan", "ann", "plant-4"))
          .status(),
      StatusCode::kFailedPrecondition, "for network \"plant-4\"");
  ExpectRefused(codec.Open("nonsense").status(), StatusCode::kInvalidArgument,
                "damaged");
  ExpectRefused(codec.Open("").status(), StatusCode::kInvalidArgument, "kind");
  ExpectRefused(codec
                    .Open(Changed([](auto& record, auto&) {
                      record.set_content("another plan");
                    }))
                    .status(),
                StatusCode::kInvalidArgument, "another content");
  ExpectRefused(
      codec.Open(Changed([](auto&, auto& body) { body.set_counter(0); }))
          .status(),
      StatusCode::kInvalidArgument, "no counter");
  ExpectRefused(
      codec.Open(Changed([](auto&, auto& body) { body.set_subject("x"); }))
          .status(),
      StatusCode::kInvalidArgument, "it must have none");
  ExpectRefused(MakeUnsignedRecord(RecordKind::kDrain, "a b", 1, "", "", "ann",
                                   tls::Now())
                    .status(),
                StatusCode::kInvalidArgument, "is for no node");
}

}  // namespace
}  // namespace dfl::records
