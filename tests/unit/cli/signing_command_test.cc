// Orders to a secured network are records that the caller signs.
#include <gmock/gmock.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/exit_codes.h"
#include "daemon/config/plan_yaml.h"
#include "daemon/records/record_content.h"
#include "daemon/records/signed_record_codec.h"
#include "daemon/records/unsigned_record_codec.h"
#include "daemon/tls/certificate.h"
#include "daemon/tls/key_file.h"
#include "tests/unit/cli/fake_daemon.h"

namespace dfl::cli {
namespace {

using nlohmann::json;
using records::RecordKind;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class SigningCommand : public CliTest {
 protected:
  SigningCommand() {
    environment_["XDG_CONFIG_HOME"] = folder_.File("config");
    environment_["USER"] = "alice";
    EXPECT_EQ(Run({"cert", "init", "plant-4"}).code, 0);
    a_ = &StartDaemon("box-1");
    b_ = &StartDaemon("box-2");
    a_->SetCluster("plant-4");
    b_->SetCluster("plant-4");
    environment_["DFLCTL_TARGET"] =
        "unix:" + Socket("box-1") + ",unix:" + Socket("box-2");
  }
  Result Apply(std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"plan", "apply",
                                          WriteFile("plan.yaml", kPlan)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Run(arguments);
  }
  // The one record that both daemons were brought last, as every node of the
  // network opens it.
  runtime::Record Brought() {
    const std::vector<std::string> records = a_->records();
    EXPECT_EQ(records, b_->records());
    if (records.empty()) {
      ADD_FAILURE() << "no record was brought";
      return {};
    }
    records::SignedRecordCodec codec("plant-4", [] { return absl::Now(); });
    codec.SetBundle(*tls::ParseBundle(
        tls::ReadPemFile(folder_.File("config/dfl/plant-4/ca.pem")).content,
        "ca.pem"));
    const absl::StatusOr<runtime::Record> record = codec.Open(records.back());
    EXPECT_TRUE(record.ok()) << record.status();
    return record.ok() ? *record : runtime::Record();
  }
  static int32_t Number(RecordKind kind) { return static_cast<int32_t>(kind); }
  static control::RecordInfo Known(const std::string& kind,
                                   const std::string& subject,
                                   uint64_t counter) {
    control::RecordInfo info;
    info.kind = kind;
    info.subject = subject;
    info.counter = counter;
    info.author = "spiffe://plant-4/operator/alice";
    info.signed_at = absl::FromUnixSeconds(1'700'000'000);
    info.summary = "a summary";
    info.current = true;
    info.body_sha256 = std::string(64, 'a');
    return info;
  }
  // Nothing was brought to anybody.
  void ExpectNothingBrought() {
    EXPECT_THAT(a_->records(), IsEmpty());
    EXPECT_THAT(b_->records(), IsEmpty());
    EXPECT_EQ(a_->plan().version, 0u);
  }

  control::FakeBackend* a_ = nullptr;
  control::FakeBackend* b_ = nullptr;
};

TEST_F(SigningCommand, APlanIsSignedAsTheWholeDocument) {
  const Result applied = Apply();
  ASSERT_EQ(applied.code, 0) << applied.err;
  EXPECT_THAT(applied.err,
              HasSubstr("signed by spiffe://plant-4/operator/alice"));
  const runtime::Record record = Brought();
  EXPECT_EQ(record.id.kind, Number(RecordKind::kPlan));
  EXPECT_EQ(record.id.counter, 1u);
  EXPECT_EQ(record.author, "spiffe://plant-4/operator/alice");
  EXPECT_EQ(record.content(), a_->plan().yaml);
  const auto plan = config::ParsePlan(std::string(record.content()), "record");
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->version, 1u);
  EXPECT_NE(plan->run_id, "");
  EXPECT_NE(plan->seed, 0u);
}

TEST_F(SigningCommand, EveryChangeOfThePlanIsSigned) {
  ASSERT_EQ(Apply().code, 0);
  const std::vector<std::vector<std::string>> changes = {
      {"set", "batch_size=16"},
      {"topology", "set", "ring"},
      {"participation", "set", "nu=0.25"}};
  uint64_t counter = 1;
  for (const std::vector<std::string>& change : changes) {
    const Result changed = Run(change);
    ASSERT_EQ(changed.code, 0) << changed.err;
    EXPECT_EQ(Brought().id.counter, ++counter);
    EXPECT_EQ(Brought().content(), b_->plan().yaml);
  }
}

TEST_F(SigningCommand, AVersionThatARecordHasUsedIsNotUsedAgain) {
  b_->SetRecords({Known("plan", "", 5), Known("ban", "x", 9)});
  ASSERT_EQ(Apply().code, 0);
  EXPECT_EQ(Brought().id.counter, 6u);
  EXPECT_EQ(a_->plan().version, 6u);
}

TEST_F(SigningCommand, ADryRunNeedsNoKey) {
  environment_["XDG_CONFIG_HOME"] = folder_.File("nowhere");
  const Result dry = Apply({"--dry-run"});
  EXPECT_EQ(dry.code, 0) << dry.err;
  ExpectNothingBrought();
}

TEST_F(SigningCommand, WithoutAUsableKeyNothingIsBrought) {
  environment_["XDG_CONFIG_HOME"] = folder_.File("nowhere");
  const Result none = Apply();
  EXPECT_NE(none.code, 0);
  EXPECT_THAT(none.err, AllOf(HasSubstr("orders for the nodes of plant-4 are "
                                        "signed with your key"),
                              HasSubstr("--identity")));
  environment_["XDG_CONFIG_HOME"] = folder_.File("config");
  ASSERT_EQ(Run({"cert", "issue", "vera", "--role=viewer"}).code, 0);
  const Result viewer =
      Apply({"--identity", folder_.File("config/dfl/plant-4/viewer/vera")});
  EXPECT_EQ(viewer.code, kNotAllowed);
  EXPECT_THAT(viewer.err, HasSubstr("only operators and admins give orders"));
  ASSERT_EQ(Run({"cert", "init", "plant-5"}).code, 0);
  const Result other =
      Apply({"--identity", folder_.File("config/dfl/plant-5/operator/alice")});
  EXPECT_EQ(other.code, kNotAllowed);
  EXPECT_THAT(other.err, AllOf(HasSubstr("spiffe://plant-5/operator/alice"),
                               HasSubstr("the targets are in plant-4")));
  ExpectNothingBrought();
}

TEST_F(SigningCommand, TargetsMustBeOfOneNetwork) {
  b_->SetCluster("");
  const Result mixed = Apply();
  EXPECT_NE(mixed.code, 0);
  EXPECT_THAT(mixed.err,
              AllOf(HasSubstr("is in plant-4"), HasSubstr("is insecure"),
                    HasSubstr("one network only")));
  ExpectNothingBrought();
}

TEST_F(SigningCommand, OrdersToAnInsecureNetworkAreNotSigned) {
  a_->SetCluster("");
  b_->SetCluster("");
  const Result applied = Apply({"--start"});
  ASSERT_EQ(applied.code, 0) << applied.err;
  ASSERT_THAT(a_->records(), SizeIs(2));
  EXPECT_EQ(a_->records(), b_->records());
  const records::UnsignedRecordCodec codec("");
  const auto plan = codec.Open(a_->records()[0]);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->author, "insecure:alice");
  EXPECT_EQ(plan->id.counter, 1u);
  EXPECT_EQ(plan->content(), a_->plan().yaml);
  const auto phase = codec.Open(a_->records()[1]);
  ASSERT_TRUE(phase.ok()) << phase.status();
  const auto order = records::ParsePhaseOrder(phase->content());
  EXPECT_EQ(order->phase, runtime::DesiredPhase::kTraining);
  EXPECT_THAT(order->nodes, IsEmpty());
  EXPECT_EQ(order->run_id, config::ParsePlan(a_->plan().yaml, "plan")->run_id);
  ASSERT_EQ(Run({"train", "pause", "--label", "site=north"}).code, 0);
  const auto pause = codec.Open(a_->records().back());
  ASSERT_TRUE(pause.ok()) << pause.status();
  EXPECT_THAT(records::ParsePhaseOrder(pause->content())->labels,
              ElementsAre("site=north"));
}

TEST_F(SigningCommand, ADryRunStartsNothing) {
  ASSERT_EQ(Apply({"--start", "--dry-run"}).code, 0);
  ExpectNothingBrought();
}

TEST_F(SigningCommand, ANodeIsDrainedAndLabelled) {
  ASSERT_EQ(Run({"node", "drain", "box-3", "--reason", "a disk"}).code, 0);
  EXPECT_EQ(Brought().id.kind, Number(RecordKind::kDrain));
  EXPECT_EQ(Brought().id.subject, "box-3");
  const auto drain = records::ParseDrainOrder(Brought().content());
  ASSERT_TRUE(drain.ok()) << drain.status();
  EXPECT_TRUE(drain->draining);
  EXPECT_EQ(drain->reason, "a disk");
  ASSERT_EQ(Run({"node", "undrain", "box-3"}).code, 0);
  EXPECT_FALSE(records::ParseDrainOrder(Brought().content())->draining);

  // The node has site=north already.
  const Result labelled = Run({"node", "label", "box-3", "gpu=yes", "site-"});
  ASSERT_EQ(labelled.code, 0) << labelled.err;
  EXPECT_EQ(Brought().id.kind, Number(RecordKind::kLabels));
  EXPECT_EQ(records::ParseLabelsOrder(Brought().content())->labels,
            (std::map<std::string, std::string>{{"gpu", "yes"}}));
  ASSERT_EQ(Run({"node", "label", "box-3", "--reset"}).code, 0);
  EXPECT_TRUE(records::ParseLabelsOrder(Brought().content())->from_settings);
  EXPECT_EQ(Run({"node", "label", "box-3"}).code, kUsage);
  EXPECT_EQ(Run({"node", "label", "box-3", "gpu"}).code, kUsage);
  EXPECT_EQ(Run({"node", "label", "box-3", "rack-"}).code, kUsage);
  EXPECT_EQ(Run({"node", "drain", "a b"}).code, kUsage);
}

TEST_F(SigningCommand, TrainOfTheNetworkIsASignedOrder) {
  ASSERT_EQ(Apply().code, 0);
  const auto run_id = config::ParsePlan(a_->plan().yaml, "plan")->run_id;
  a_->SetRecords({Known("phase", "", 3)});
  const Result paused = Run({"train", "pause", "--network"});
  ASSERT_EQ(paused.code, 0) << paused.err;
  const runtime::Record all = Brought();
  EXPECT_EQ(all.id.kind, Number(RecordKind::kPhase));
  EXPECT_EQ(all.id.counter, 4u);
  const auto order = records::ParsePhaseOrder(all.content());
  ASSERT_TRUE(order.ok()) << order.status();
  EXPECT_EQ(order->phase, runtime::DesiredPhase::kPaused);
  EXPECT_THAT(order->nodes, IsEmpty());
  EXPECT_EQ(order->run_id, run_id);
  EXPECT_THAT(a_->orders(), IsEmpty());

  const Result some = Run(
      {"train", "resume", "--network", "--node", "box-3,box-9", "-o", "json"});
  ASSERT_EQ(some.code, 0) << some.err;
  EXPECT_THAT(some.err, HasSubstr("box-9 is no member of the plan"));
  const auto selection = records::ParsePhaseOrder(Brought().content());
  EXPECT_EQ(selection->phase, runtime::DesiredPhase::kTraining);
  EXPECT_THAT(selection->nodes, ElementsAre("box-3", "box-9"));
  const json printed = json::parse(some.out);
  ASSERT_EQ(printed["targets"].size(), 2u);
  EXPECT_EQ(printed["targets"][0]["counter"], 4);
  EXPECT_EQ(printed["targets"][0]["nodes"][0], "box-3");

  ASSERT_EQ(Run({"train", "stop", "--network"}).code, 0);
  EXPECT_EQ(records::ParsePhaseOrder(Brought().content())->phase,
            runtime::DesiredPhase::kStopped);
}

// It may be for one that is away; it may as well be a slip.
TEST_F(SigningCommand, AnOrderThatNobodyIsMeantByIsWarnedOf) {
  ASSERT_EQ(Apply().code, 0);
  const Result label = Run({"train", "pause", "--label", "site=east"});
  EXPECT_EQ(label.code, 0) << label.err;
  EXPECT_THAT(label.err, HasSubstr("no member that is known now has the label "
                                   "site=east"));
  const Result node = Run({"train", "pause", "--node", "box-3,box-33"});
  EXPECT_EQ(node.code, 0) << node.err;
  EXPECT_THAT(node.err,
              AllOf(HasSubstr("no member that is known now is called box-33"),
                    Not(HasSubstr("is called box-3\n"))));
  EXPECT_THAT(Run({"train", "pause", "--label", "site=south"}).err,
              Not(HasSubstr("no member that is known")));
}

TEST_F(SigningCommand, TrainWithoutNetworkIsForTheTargetsAlone) {
  ASSERT_EQ(Apply().code, 0);
  const size_t before = a_->records().size();
  EXPECT_EQ(Run({"train", "pause"}).code, 0);
  EXPECT_THAT(a_->orders(), SizeIs(1));
  EXPECT_EQ(a_->records().size(), before);
  // With a selection it is an order to the network.
  EXPECT_EQ(Run({"train", "pause", "--node", "box-1"}).code, 0);
  EXPECT_EQ(a_->records().size(), before + 1);
  EXPECT_EQ(Run({"train", "pause", "--node", "a b"}).code, kUsage);
  EXPECT_EQ(Run({"train", "pause", "--label", "north"}).code, kUsage);
}

TEST_F(SigningCommand, AnOrderToTrainNeedsAPlanAndABanASecuredNetwork) {
  EXPECT_THAT(Run({"train", "start", "--network"}).err,
              HasSubstr("`dflctl plan apply FILE`"));
  a_->SetCluster("");
  b_->SetCluster("");
  const Result ban = Run({"peer", "ban", "box-3"});
  EXPECT_EQ(ban.code, 1);
  EXPECT_THAT(ban.err, HasSubstr("set `security: tls`"));
  ExpectNothingBrought();
}

TEST_F(SigningCommand, ABanNamesWhoAndWhy) {
  a_->SetRecords({Known("ban", "spiffe://plant-4/node/box-3", 2),
                  Known("ban", "spiffe://plant-4/node/box-4", 7)});
  const Result banned = Run({"peer", "ban", "box-3", "--reason", "stolen"});
  ASSERT_EQ(banned.code, 0) << banned.err;
  EXPECT_THAT(banned.out, HasSubstr("ban 3"));
  const runtime::Record record = Brought();
  EXPECT_EQ(record.id.kind, Number(RecordKind::kBan));
  EXPECT_EQ(record.id.subject, "spiffe://plant-4/node/box-3");
  EXPECT_EQ(record.id.counter, 3u);
  const auto order = records::ParseBanOrder(record.content());
  ASSERT_TRUE(order.ok()) << order.status();
  EXPECT_TRUE(order->banned);
  EXPECT_EQ(order->reason, "stolen");

  ASSERT_EQ(Run({"peer", "unban", "operator/bob"}).code, 0);
  EXPECT_EQ(Brought().id.subject, "spiffe://plant-4/operator/bob");
  EXPECT_EQ(Brought().id.counter, 1u);
  EXPECT_FALSE(records::ParseBanOrder(Brought().content())->banned);
}

TEST_F(SigningCommand, ABanOfOneselfOrOfNobodyIsRefused) {
  const std::pair<std::string, std::string> cases[] = {
      {"operator/alice", "is you"},
      {"oprator/bob", "did you mean \"operator\""},
      {"a b", "character 2"},
      {"node/", "name"}};
  for (const auto& [who, said] : cases) {
    const Result result = Run({"peer", "ban", who});
    EXPECT_EQ(result.code, kUsage) << who;
    EXPECT_THAT(result.err, HasSubstr(said));
  }
  ExpectNothingBrought();
}

TEST_F(SigningCommand, OneDaemonThatRefusesIsTold) {
  b_->SetFailure(absl::FailedPreconditionError("the disk is full"));
  const Result result = Run({"peer", "ban", "box-3"});
  EXPECT_EQ(result.code, kPartlyDone);
  EXPECT_THAT(result.err, HasSubstr("the disk is full"));
}

TEST_F(SigningCommand, PeersAndRecordsShowWhatIsInForce) {
  const json peers = json::parse(Run({"peer", "list", "-o", "json"}).out);
  EXPECT_EQ(peers["targets"][0]["banned"][0], "spiffe://plant-4/node/box-9");
  EXPECT_THAT(Run({"peer", "list"}).out,
              HasSubstr("banned: spiffe://plant-4/node/box-9"));
  a_->SetRecords({Known("ban", "spiffe://plant-4/node/box-9", 2)});
  const Result table = Run({"record", "list"});
  EXPECT_EQ(table.code, 0) << table.err;
  EXPECT_THAT(table.out, AllOf(HasSubstr("in force"), HasSubstr("a summary"),
                               HasSubstr("2023-11-14T22:13:20+00:00")));
  const json list = json::parse(Run({"record", "list", "-o", "json"}).out);
  const json& record = list["targets"][0]["records"][0];
  EXPECT_EQ(record["kind"], "ban");
  EXPECT_EQ(record["counter"], 2);
  EXPECT_EQ(record["current"], true);
  EXPECT_EQ(record["author"], "spiffe://plant-4/operator/alice");
  EXPECT_THAT(list["targets"][1]["records"], IsEmpty());
}

}  // namespace
}  // namespace dfl::cli
