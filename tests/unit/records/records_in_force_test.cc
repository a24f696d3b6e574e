#include "daemon/records/records_in_force.h"

#include <optional>
#include <string>
#include <vector>

#include "tests/unit/records/people.h"

namespace dfl::records {
namespace {

using runtime::DesiredPhase;
using tls::Role;

class RecordsInForce : public testing::Test {
 protected:
  RecordsInForce()
      : authority_(tls::MakeAuthority()),
        ann_(Issue(authority_, Role::kOperator)),
        codec_("plant-4", [] { return tls::Now(); }),
        book_(codec_, nullptr) {
    codec_.SetBundle({authority_.certificate()});
  }

  void Take(RecordKind kind, const std::string& subject, uint64_t counter,
            const std::string& content) {
    const auto bytes =
        SignRecord(kind, subject, counter, content, ann_, tls::Now());
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    auto record = codec_.Open(*bytes);
    ASSERT_TRUE(record.ok()) << record.status();
    ASSERT_TRUE(book_.Offer(*std::move(record)).ok());
  }
  void Want(uint64_t counter, DesiredPhase phase,
            std::vector<std::string> nodes) {
    Take(RecordKind::kPhase, "", counter,
         ToContent(PhaseOrder{phase, std::move(nodes), "run-1"}));
  }

  const tls::Authority authority_;
  const tls::Credentials ann_;
  SignedRecordCodec codec_;
  runtime::RecordBook book_;
};

TEST_F(RecordsInForce, TellWhoIsBanned) {
  EXPECT_TRUE(BannedBy(book_).empty());
  const std::string box = "spiffe://plant-4/node/box-1";
  const std::string bob = "spiffe://plant-4/viewer/bob";
  Take(RecordKind::kBan, box, 1, BanContent());
  Take(RecordKind::kBan, bob, 1, BanContent());
  ASSERT_EQ(BannedBy(book_).size(), 2U);
  EXPECT_EQ(tls::ToUri(BannedBy(book_)[0]), box);
  EXPECT_EQ(tls::ToUri(BannedBy(book_)[1]), bob);
  Take(RecordKind::kBan, box, 2, BanContent(false));
  ASSERT_EQ(BannedBy(book_).size(), 1U);
  EXPECT_EQ(tls::ToUri(BannedBy(book_)[0]), bob);
}

TEST_F(RecordsInForce, TellWhatEachNodeShallDo) {
  EXPECT_FALSE(PhaseWantedOf(book_, "a", {}).has_value());
  Want(4, DesiredPhase::kTraining, {"a", "b"});
  EXPECT_FALSE(PhaseWantedOf(book_, "c", {}).has_value());
  Want(3, DesiredPhase::kStopped, {});
  Want(5, DesiredPhase::kPaused, {"b"});
  EXPECT_EQ(PhaseWantedOf(book_, "a", {})->phase, DesiredPhase::kTraining);
  EXPECT_EQ(PhaseWantedOf(book_, "a", {})->counter, 4U);
  EXPECT_EQ(PhaseWantedOf(book_, "a", {})->run_id, "run-1");
  EXPECT_EQ(PhaseWantedOf(book_, "b", {})->phase, DesiredPhase::kPaused);
  EXPECT_EQ(PhaseWantedOf(book_, "c", {})->phase, DesiredPhase::kStopped);
  Want(6, DesiredPhase::kTraining, {});
  EXPECT_EQ(PhaseWantedOf(book_, "b", {})->counter, 6U);
}

TEST_F(RecordsInForce, LabelsSelectAsNamesDo) {
  Want(1, DesiredPhase::kTraining, {});
  Take(RecordKind::kPhase, "", 2,
       ToContent(PhaseOrder{
           DesiredPhase::kPaused, {"a"}, "run-1", {"site=north", "gpu=yes"}}));
  const auto phase = [&](const std::string& node, const Labels& labels) {
    return PhaseWantedOf(book_, node, labels)->phase;
  };
  EXPECT_EQ(phase("a", {}), DesiredPhase::kPaused);
  EXPECT_EQ(phase("b", {}), DesiredPhase::kTraining);
  EXPECT_EQ(phase("b", {{"site", "north"}}), DesiredPhase::kPaused);
  EXPECT_EQ(phase("b", {{"site", "south"}, {"gpu", "yes"}}),
            DesiredPhase::kPaused);
  EXPECT_EQ(phase("b", {{"site", "south"}}), DesiredPhase::kTraining);
  EXPECT_EQ(phase("b", {{"north", "site"}}), DesiredPhase::kTraining);
  // Another order to the same ones takes its place, and the first stays.
  Take(RecordKind::kPhase, "", 3,
       ToContent(PhaseOrder{
           DesiredPhase::kStopped, {"a"}, "run-1", {"gpu=yes", "site=north"}}));
  EXPECT_EQ(phase("b", {{"gpu", "yes"}}), DesiredPhase::kStopped);
  EXPECT_EQ(phase("c", {}), DesiredPhase::kTraining);
  EXPECT_EQ(book_.current().size(), 2U);
}

TEST_F(RecordsInForce, TellWhoDrainsAndWhichLabelsItHas) {
  EXPECT_EQ(DrainWantedOf(book_, "a"), std::nullopt);
  EXPECT_FALSE(LabelsOf(book_, "a").has_value());
  Take(RecordKind::kDrain, "a", 1, ToContent(DrainOrder{true, "a new disk"}));
  Take(RecordKind::kLabels, "a", 1,
       ToContent(LabelsOrder{{{"site", "north"}}, false}));
  EXPECT_EQ(DrainWantedOf(book_, "a"), "a new disk");
  EXPECT_EQ(DrainWantedOf(book_, "b"), std::nullopt);
  EXPECT_EQ(*LabelsOf(book_, "a"), (Labels{{"site", "north"}}));
  EXPECT_FALSE(LabelsOf(book_, "b").has_value());
  Take(RecordKind::kDrain, "a", 2, ToContent(DrainOrder{false, ""}));
  Take(RecordKind::kLabels, "a", 2, ToContent(LabelsOrder{{}, false}));
  EXPECT_EQ(DrainWantedOf(book_, "a"), std::nullopt);
  EXPECT_EQ(*LabelsOf(book_, "a"), Labels());
  Take(RecordKind::kLabels, "a", 3, ToContent(LabelsOrder{{}, true}));
  EXPECT_FALSE(LabelsOf(book_, "a").has_value());
}

TEST_F(RecordsInForce, TellTheNewestPlan) {
  EXPECT_EQ(NewestPlan(book_), nullptr);
  Take(RecordKind::kPlan, "", 1, "first");
  Take(RecordKind::kPlan, "", 2, "second");
  ASSERT_NE(NewestPlan(book_), nullptr);
  EXPECT_EQ(NewestPlan(book_)->content(), "second");
}

}  // namespace
}  // namespace dfl::records
