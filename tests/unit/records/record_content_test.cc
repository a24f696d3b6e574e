#include "daemon/records/record_content.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "dfl/record/v1/record.pb.h"
#include "gtest/gtest.h"

namespace dfl::records {
namespace {

namespace pb = ::dfl::record::v1;
using runtime::DesiredPhase;

int32_t Number(RecordKind kind) { return static_cast<int32_t>(kind); }

TEST(RecordContent, OrdersGoThereAndBack) {
  for (const DesiredPhase phase :
       {DesiredPhase::kTraining, DesiredPhase::kPaused,
        DesiredPhase::kStopped}) {
    const auto order =
        ParsePhaseOrder(ToContent(PhaseOrder{phase, {"a", "b"}, "run-1"}));
    ASSERT_TRUE(order.ok()) << order.status();
    EXPECT_EQ(order->phase, phase);
    EXPECT_EQ(order->nodes, (std::vector<std::string>{"a", "b"}));
    EXPECT_EQ(order->run_id, "run-1");
  }
  const auto ban = ParseBanOrder(ToContent(BanOrder{true, "stolen"}));
  ASSERT_TRUE(ban.ok()) << ban.status();
  EXPECT_TRUE(ban->banned);
  EXPECT_EQ(ban->reason, "stolen");
  // To let somebody in again for no reason is no bytes at all.
  EXPECT_FALSE(ParseBanOrder("")->banned);
}

TEST(RecordContent, OrdersToOneNodeGoThereAndBack) {
  const auto labelled = ParsePhaseOrder(ToContent(
      PhaseOrder{DesiredPhase::kPaused, {}, "run-1", {"site=north"}}));
  ASSERT_TRUE(labelled.ok()) << labelled.status();
  EXPECT_EQ(labelled->labels, (std::vector<std::string>{"site=north"}));
  const auto drain = ParseDrainOrder(ToContent(DrainOrder{true, "a new disk"}));
  ASSERT_TRUE(drain.ok()) << drain.status();
  EXPECT_TRUE(drain->draining);
  EXPECT_EQ(drain->reason, "a new disk");
  const LabelsOrder given{{{"site", "north"}, {"gpu", "yes"}}, false};
  const auto labels = ParseLabelsOrder(ToContent(given));
  ASSERT_TRUE(labels.ok()) << labels.status();
  EXPECT_EQ(labels->labels, given.labels);
  EXPECT_FALSE(labels->from_settings);
  EXPECT_TRUE(
      ParseLabelsOrder(ToContent(LabelsOrder{{}, true}))->from_settings);
}

void ExpectRefused(const absl::Status& status, const std::string& why) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << why;
  EXPECT_TRUE(absl::StrContains(status.message(), why)) << status;
}

TEST(RecordContent, WhatIsNoOrderIsRefused) {
  pb::PhaseOrder order;
  const auto phase = [&] {
    return ParsePhaseOrder(order.SerializeAsString()).status();
  };
  ExpectRefused(phase(), "phase is 0");
  order.set_phase(static_cast<pb::WantedPhase>(9));
  ExpectRefused(phase(), "phase is 9");
  order.set_phase(pb::WANTED_PHASE_PAUSED);
  ExpectRefused(phase(), "run \"\"");
  order.set_run_id("a\nb");
  ExpectRefused(phase(), "run \"a\\nb\"");
  order.set_run_id("run-1");
  EXPECT_TRUE(phase().ok());
  order.add_nodes("../x");
  EXPECT_FALSE(phase().ok());
  order.set_nodes(0, "x");
  for (size_t i = 0; i < kMaxOrderedNodes; ++i) order.add_nodes("x");
  ExpectRefused(phase(), "names 4097 nodes");
  ExpectRefused(ParsePhaseOrder("\xff").status(), "damaged");
  // Field 15.
  ExpectRefused(ParsePhaseOrder("\x08\x01\x1a\x01r\x78\x01").status(),
                "does not know");
  ExpectRefused(ParseBanOrder("\x78\x01").status(), "does not know");
  ExpectRefused(ParseBanOrder(std::string(1 << 20, 'x')).status(),
                "1048576 bytes");
  ExpectRefused(
      ParseBanOrder(ToContent(BanOrder{true, std::string(5000, 'x')})).status(),
      "5000 bytes");
}

TEST(RecordContent, WhatIsNoLabelIsRefused) {
  for (const char* text : {"north", "=", "site=", "=north", "a b=c", "a=b=c"}) {
    EXPECT_FALSE(ValidateLabel(text).ok()) << text;
    EXPECT_FALSE(
        ParsePhaseOrder(
            ToContent(PhaseOrder{DesiredPhase::kPaused, {}, "run-1", {text}}))
            .ok())
        << text;
  }
  EXPECT_TRUE(ValidateLabel("site=north").ok());
  pb::LabelsOrder order;
  const auto refused = [&](const std::string& why) {
    ExpectRefused(ParseLabelsOrder(order.SerializeAsString()).status(), why);
  };
  const auto add = [&](const char* key, const char* value) {
    pb::Label* label = order.add_labels();
    label->set_key(key);
    label->set_value(value);
  };
  add("b", "1");
  EXPECT_TRUE(ParseLabelsOrder(order.SerializeAsString()).ok());
  order.set_from_settings(true);
  refused("1 labels; allowed: at most 0");
  order.set_from_settings(false);
  add("a", "1");
  refused("has \"a\" behind");
  order.mutable_labels(1)->set_key("b");
  refused("has \"b\" behind");
  order.clear_labels();
  for (int i = 0; i < 17; ++i) {
    add(absl::StrCat("k", 10 + i).c_str(), "1");
  }
  refused("17 labels; allowed: at most 16");
  ExpectRefused(
      ParseDrainOrder(ToContent(DrainOrder{true, std::string(5000, 'x')}))
          .status(),
      "5000 bytes");
}

TEST(RecordContent, ASummaryIsOneLine) {
  const auto phase = [](std::vector<std::string> nodes) {
    return Summary(Number(RecordKind::kPhase),
                   ToContent(PhaseOrder{DesiredPhase::kPaused, std::move(nodes),
                                        "run-1"}));
  };
  EXPECT_EQ(phase({}), "paused: all");
  EXPECT_EQ(phase({"box-1", "box-2"}), "paused: box-1, box-2");
  EXPECT_EQ(phase({"1", "2", "3", "4", "5", "6", "7", "8", "9", "10"}),
            "paused: 1, 2, 3, 4, 5, 6, 7, 8 and 2 more");
  const auto ban = [](bool banned, const std::string& reason) {
    return Summary(Number(RecordKind::kBan),
                   ToContent(BanOrder{banned, reason}));
  };
  EXPECT_EQ(ban(true, "stolen"), "banned: stolen");
  EXPECT_EQ(ban(true, ""), "banned");
  EXPECT_EQ(ban(false, "found\nagain"), "let in again: found?again");
  EXPECT_EQ(ban(true, std::string(1000, 'x')).size(), 8U + 200U + 3U);
  EXPECT_EQ(Summary(Number(RecordKind::kPlan), "abc"), "3 bytes");
  EXPECT_EQ(Summary(Number(RecordKind::kPhase),
                    ToContent(PhaseOrder{
                        DesiredPhase::kPaused, {"a"}, "run-1", {"b=c"}})),
            "paused: a, b=c");
  EXPECT_EQ(Summary(Number(RecordKind::kDrain),
                    ToContent(DrainOrder{true, "new\ndisk"})),
            "drains: new?disk");
  EXPECT_EQ(
      Summary(Number(RecordKind::kDrain), ToContent(DrainOrder{false, ""})),
      "takes part again");
  const auto labels = [](const LabelsOrder& order) {
    return Summary(Number(RecordKind::kLabels), ToContent(order));
  };
  EXPECT_EQ(labels({{{"a", "1"}, {"b", "2"}}, false}), "a=1, b=2");
  EXPECT_EQ(labels({{}, false}), "none");
  EXPECT_EQ(labels({{}, true}), "those of its settings");
}

}  // namespace
}  // namespace dfl::records
