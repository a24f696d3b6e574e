// Who may give orders, and everything that is no order.
#include "daemon/records/signed_record_codec.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "daemon/base/rng.h"
#include "daemon/ports/frames.h"
#include "google/protobuf/stubs/logging.h"
#include "tests/unit/records/people.h"

namespace dfl::records {
namespace {

using absl::StatusCode;
using tls::Role;

class SignedRecordCodecTest : public testing::Test {
 protected:
  SignedRecordCodecTest()
      : authority_(tls::MakeAuthority()),
        ann_(Issue(authority_, Role::kOperator)),
        codec_("plant-4", [this] { return now_; }) {
    codec_.SetBundle({authority_.certificate()});
  }

  std::string Sign(RecordKind kind, const std::string& content,
                   const tls::Credentials& author) {
    return SignRaw(BodyOf(kind, content, author).SerializeAsString(), content,
                   author)
        .SerializeAsString();
  }
  std::string Ban(const tls::Credentials& author) {
    return Sign(RecordKind::kBan, BanContent(), author);
  }
  // A ban whose body is changed before it is signed.
  template <typename Change>
  std::string ChangedBan(Change change) {
    pb::RecordBody body = BodyOf(RecordKind::kBan, BanContent(), ann_);
    change(&body);
    return SignRaw(body.SerializeAsString(), BanContent(), ann_)
        .SerializeAsString();
  }
  // A ban whose envelope is changed afterwards.
  template <typename Change>
  std::string Tampered(Change change) {
    pb::SignedRecord record;
    EXPECT_TRUE(record.ParseFromString(Ban(ann_)));
    change(&record);
    return record.SerializeAsString();
  }
  void ExpectRefused(const std::string& bytes, StatusCode code,
                     const std::string& why) {
    const auto record = codec_.Open(bytes);
    EXPECT_EQ(record.status().code(), code) << why;
    EXPECT_TRUE(absl::StrContains(record.status().message(), why))
        << record.status();
  }

  absl::Time now_ = tls::Now();
  const tls::Authority authority_;
  const tls::Credentials ann_;
  SignedRecordCodec codec_;
};

TEST_F(SignedRecordCodecTest, TakesThoseOfOperatorsAndAdmins) {
  for (const Role role : {Role::kOperator, Role::kAdmin}) {
    const tls::Credentials author = Issue(authority_, role, "bob");
    const auto bytes =
        SignRecord(RecordKind::kBan, "spiffe://plant-4/node/box-1", 7,
                   BanContent(), author, tls::Now());
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    const auto record = codec_.Open(*bytes);
    ASSERT_TRUE(record.ok()) << record.status();
    EXPECT_EQ(record->id.kind, 3);
    EXPECT_EQ(record->id.subject, "spiffe://plant-4/node/box-1");
    EXPECT_EQ(record->id.counter, 7U);
    EXPECT_EQ(record->id.hash.size(), 32U);
    EXPECT_EQ(record->author, tls::ToUri(author.identity));
    EXPECT_EQ(record->unix_nanos, absl::ToUnixNanos(tls::Now()));
    EXPECT_EQ(record->text, "banned: stolen");
    EXPECT_EQ(record->content(), BanContent());
    EXPECT_EQ(record->bytes, *bytes);
    EXPECT_EQ(record->Describe(),
              absl::StrCat("ban 7 on spiffe://plant-4/node/box-1 by ",
                           tls::ToUri(author.identity), ": banned: stolen"));
    EXPECT_TRUE(codec_.CheckAuthor(*record).ok());
    EXPECT_TRUE(codec_.Reopen(*bytes).ok());
  }
  const std::string yaml(8 << 20, 'y');
  const auto plan = SignRecord(RecordKind::kPlan, "", 1, yaml, ann_, now_);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(codec_.Open(*plan)->content(), yaml);
  const auto phase =
      SignRecord(RecordKind::kPhase, "", 1,
                 ToContent(PhaseOrder{
                     runtime::DesiredPhase::kPaused, {"b", "a", "b"}, "run-1"}),
                 ann_, now_);
  ASSERT_TRUE(phase.ok()) << phase.status();
  EXPECT_EQ(codec_.Open(*phase)->scope, (std::vector<std::string>{"a", "b"}));
}

TEST_F(SignedRecordCodecTest, RefusesAllOtherAuthors) {
  for (const Role role : {Role::kNode, Role::kViewer, Role::kIssuer}) {
    ExpectRefused(Ban(Issue(authority_, role)), StatusCode::kPermissionDenied,
                  absl::StrCat("the role ", tls::Name(role)));
    EXPECT_EQ(SignRecord(RecordKind::kBan, "spiffe://plant-4/node/box-1", 7,
                         BanContent(), Issue(authority_, role), now_)
                  .status()
                  .code(),
              StatusCode::kPermissionDenied);
  }
  // Of an authority that nobody trusts, though it has the same name.
  ExpectRefused(Ban(Issue(tls::MakeAuthority(), Role::kOperator)),
                StatusCode::kFailedPrecondition, "was issued by");
  // A certificate that its owner made.
  tls::Credentials self = Issue(authority_, Role::kOperator);
  self.chain = {authority_.certificate()};
  self.key = authority_.key();
  ExpectRefused(Ban(self), StatusCode::kInvalidArgument,
                "has a certificate of");
  // An authority gives no orders itself, nor does a leaf sign certificates.
  self = Issue(authority_, Role::kOperator);
  const auto node = Issue(authority_, Role::kNode);
  self.chain.push_back(node.chain[0]);
  ExpectRefused(Ban(self), StatusCode::kInvalidArgument,
                "did not sign the one before it");
}

TEST_F(SignedRecordCodecTest, RefusesAuthorsOutOfTheirTime) {
  const std::string bytes = Ban(ann_);
  const auto record = codec_.Open(bytes);
  ASSERT_TRUE(record.ok());
  now_ = tls::Now() + absl::Hours(25);
  ExpectRefused(bytes, StatusCode::kFailedPrecondition, "expired at");
  EXPECT_FALSE(codec_.CheckAuthor(*record).ok());
  EXPECT_TRUE(codec_.Reopen(bytes).ok());  // it was taken in time
  now_ = tls::Now() - absl::Hours(20);
  ExpectRefused(bytes, StatusCode::kFailedPrecondition, "is valid from");
  // Signed by a clock that is ahead.
  now_ = tls::Now();
  pb::RecordBody body = BodyOf(RecordKind::kBan, BanContent(), ann_);
  body.set_unix_nanos(absl::ToUnixNanos(now_ + absl::Hours(25)));
  ExpectRefused(
      SignRaw(body.SerializeAsString(), BanContent(), ann_).SerializeAsString(),
      StatusCode::kFailedPrecondition, "set the clock");
}

TEST_F(SignedRecordCodecTest, AuthoritiesAndBansCount) {
  const std::string bytes = Ban(ann_);
  const auto record = codec_.Open(bytes);
  ASSERT_TRUE(record.ok());
  codec_.SetBanned({{"plant-4", Role::kOperator, "bob"}, ann_.identity});
  ExpectRefused(bytes, StatusCode::kPermissionDenied, "who is banned");
  EXPECT_FALSE(codec_.CheckAuthor(*record).ok());
  EXPECT_TRUE(codec_.Reopen(bytes).ok());
  codec_.SetBanned({});
  EXPECT_TRUE(codec_.Open(bytes).ok());
  codec_.SetBundle({tls::MakeAuthority().certificate()});
  ExpectRefused(bytes, StatusCode::kFailedPrecondition, "was issued by");
  codec_.SetBundle({});
  ExpectRefused(bytes, StatusCode::kFailedPrecondition, "not vouched for");
  EXPECT_FALSE(codec_.CheckAuthor(*record).ok());
}

TEST_F(SignedRecordCodecTest, OnlyAnAdminBansAnAdmin) {
  const std::string admin = "spiffe://plant-4/admin/root";
  EXPECT_EQ(SignRecord(RecordKind::kBan, admin, 1, BanContent(), ann_, now_)
                .status()
                .code(),
            StatusCode::kPermissionDenied);
  EXPECT_TRUE(SignRecord(RecordKind::kBan, admin, 1, BanContent(),
                         Issue(authority_, Role::kAdmin), now_)
                  .ok());
}

TEST_F(SignedRecordCodecTest, RefusesRecordsOfOtherNetworks) {
  ExpectRefused(ChangedBan([](auto* b) { b->set_cluster("plant-5"); }),
                StatusCode::kFailedPrecondition, "for network \"plant-5\"");
  ExpectRefused(ChangedBan([](auto* b) { b->clear_cluster(); }),
                StatusCode::kFailedPrecondition, "for network \"\"");
  ExpectRefused(ChangedBan([](auto* b) {
                  b->set_subject("spiffe://plant-5/node/box-1");
                }),
                StatusCode::kFailedPrecondition, "bans spiffe://plant-5");
  // The authority of another network, which is trusted by mistake.
  const tls::Authority other = tls::MakeAuthority("plant-5");
  codec_.SetBundle({authority_.certificate(), other.certificate()});
  ExpectRefused(Ban(Issue(other, Role::kOperator)),
                StatusCode::kFailedPrecondition, "signed by spiffe://plant-5");
  const tls::Credentials eve = Issue(other, Role::kOperator);
  pb::RecordBody body = BodyOf(RecordKind::kBan, BanContent(), eve);
  body.set_author(tls::ToUri(ann_.identity));
  ExpectRefused(
      SignRaw(body.SerializeAsString(), BanContent(), eve).SerializeAsString(),
      StatusCode::kInvalidArgument, "as its author");
}

TEST_F(SignedRecordCodecTest, RefusesWrongBodies) {
  const auto refused = [&](auto change, const std::string& why) {
    ExpectRefused(ChangedBan(change), StatusCode::kInvalidArgument, why);
  };
  refused([](auto* b) { b->set_kind(pb::RECORD_KIND_UNSPECIFIED); },
          "of kind 0");
  refused([](auto* b) { b->set_kind(static_cast<pb::RecordKind>(6)); },
          "of kind 6");
  refused([](auto* b) { b->set_kind(pb::RECORD_KIND_PLAN); },
          "is a plan with subject");
  refused([](auto* b) { b->set_subject(""); }, "bans nobody");
  refused([](auto* b) { b->set_subject("box-1"); }, "bans nobody");
  refused([](auto* b) { b->set_counter(0); }, "no counter");
  refused([](auto* b) { b->set_author("spiffe://plant-4/operator/bob"); },
          "as its author");
  refused([](auto* b) { b->set_author(""); }, "as its author");
  refused([](auto* b) { b->clear_content_sha256(); }, "another content");
  refused([](auto* b) { b->set_content_sha256(std::string(32, 'x')); },
          "another content");
  refused(
      [](auto* b) {
        b->GetReflection()->MutableUnknownFields(b)->AddVarint(15, 1);
      },
      "a body with fields");
  ExpectRefused(SignRaw("nonsense", BanContent(), ann_).SerializeAsString(),
                StatusCode::kInvalidArgument, "a body that cannot be read");
  ExpectRefused(SignRaw("", BanContent(), ann_).SerializeAsString(),
                StatusCode::kInvalidArgument, "of kind 0");
  // What the kind does not take, though it is signed.
  ExpectRefused(Sign(RecordKind::kPlan, "", ann_), StatusCode::kInvalidArgument,
                "a plan of 0 bytes");
  ExpectRefused(Sign(RecordKind::kPlan, std::string((8 << 20) + 1, 'y'), ann_),
                StatusCode::kInvalidArgument, "a plan of 8388609 bytes");
  ExpectRefused(Sign(RecordKind::kPhase, "", ann_),
                StatusCode::kInvalidArgument, "phase is 0");
  ExpectRefused(Sign(RecordKind::kBan, "\xff", ann_),
                StatusCode::kInvalidArgument, "damaged");
}

TEST_F(SignedRecordCodecTest, RefusesWrongEnvelopes) {
  const auto refused = [&](auto change, const std::string& why) {
    ExpectRefused(Tampered(change), StatusCode::kInvalidArgument, why);
  };
  ASSERT_TRUE(codec_.Open(Tampered([](auto*) {})).ok());
  refused([](auto* r) { r->mutable_signature()->back() ^= 1; },
          "the signature of spiffe://plant-4/operator/ann");
  refused([](auto* r) { r->clear_signature(); }, "the signature of");
  refused([](auto* r) { r->set_content(BanContent(false)); },
          "another content");
  refused([](auto* r) { r->clear_content(); }, "another content");
  refused([](auto* r) { r->clear_certificates(); }, "0 certificates");
  refused(
      [](auto* r) {
        for (int i = 0; i < 8; ++i) r->add_certificates(r->certificates(0));
      },
      "9 certificates");
  refused([](auto* r) { r->set_certificates(0, std::string(8193, 'x')); },
          "a certificate of 8193 bytes");
  refused([](auto* r) { r->set_certificates(0, "nonsense"); },
          "certificate 1 of the record");
  refused([](auto* r) { r->mutable_certificates(0)->push_back('x'); },
          "something behind it");
  refused([](auto* r) { r->add_certificates(r->certificates(0)); },
          "did not sign the one before it");
  refused(
      [](auto* r) {
        r->GetReflection()->MutableUnknownFields(r)->AddVarint(15, 1);
      },
      "has fields");
  // Another person's certificate in front of this signature.
  const auto bob = Issue(authority_, Role::kOperator, "ann");
  refused([&](auto* r) { r->set_certificates(0, tls::ToDer(bob.chain[0])); },
          "the signature of");
  // The signature of the body without what records are signed with.
  refused([&](auto* r) { r->set_signature(*tls::Sign(ann_.key, r->body())); },
          "the signature of");
  const std::string good = Ban(ann_);
  ExpectRefused("", StatusCode::kInvalidArgument, "0 certificates");
  ExpectRefused("nonsense", StatusCode::kInvalidArgument, "damaged");
  ExpectRefused(std::string(ports::kMaxRecordBytes + 1, '\0'),
                StatusCode::kInvalidArgument, "8454145 bytes");
  // Another form of the same message: a field twice, and in another order.
  ExpectRefused(good + good, StatusCode::kInvalidArgument, "");
  pb::SignedRecord last;
  last.ParseFromString(good);
  const std::string body = last.body();
  last.clear_body();
  pb::SignedRecord first;
  first.set_body(body);
  ExpectRefused(last.SerializeAsString() + first.SerializeAsString(),
                StatusCode::kInvalidArgument, "not written as records are");
}

// No flipped bit, no missing end and no other change makes a record.
TEST_F(SignedRecordCodecTest, NoChangeIsAccepted) {
  const google::protobuf::LogSilencer quiet;
  tls::Credentials author = ann_;
  author.chain.push_back(authority_.certificate());
  const std::string good = Ban(author);
  ASSERT_TRUE(codec_.Open(good).ok());
  const ports::RecordId name = codec_.Open(good)->id;
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string bytes = good;
    bytes[bit / 8] ^= static_cast<char>(1 << (bit % 8));
    ASSERT_FALSE(codec_.Open(bytes).ok()) << "bit " << bit;
    // On our own disk nobody vouches for certificates again; what it says is
    // the same then.
    const auto reopened = codec_.Reopen(bytes);
    if (!reopened.ok()) continue;
    ASSERT_EQ(reopened->id, name) << "bit " << bit;
    ASSERT_EQ(reopened->content(), BanContent()) << "bit " << bit;
    ASSERT_FALSE(codec_.CheckAuthor(*reopened).ok()) << "bit " << bit;
  }
  for (size_t length = 0; length < good.size(); ++length) {
    ASSERT_FALSE(codec_.Open(good.substr(0, length)).ok()) << length;
  }
  Rng rng(20);
  for (int i = 0; i < 5'000; ++i) {
    std::string bytes = good;
    const uint64_t changes = 1 + rng.Below(4);
    for (uint64_t c = 0; c < changes; ++c) {
      const size_t at = rng.Below(bytes.size());
      switch (rng.Below(4)) {
        case 0:
          bytes[at] = static_cast<char>(rng.Below(256));
          break;
        case 1:
          bytes.insert(at, 1 + rng.Below(5), static_cast<char>(rng.Below(256)));
          break;
        case 2:
          bytes.erase(at, 1 + rng.Below(20));
          break;
        default:
          bytes.insert(at,
                       bytes.substr(rng.Below(bytes.size()), rng.Below(100)));
      }
    }
    if (bytes != good) {
      ASSERT_FALSE(codec_.Open(bytes).ok()) << "round " << i;
    }
  }
}

}  // namespace
}  // namespace dfl::records
