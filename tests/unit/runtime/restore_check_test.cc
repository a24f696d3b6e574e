#include "daemon/runtime/checkpoints/restore_check.h"

#include <string>
#include <vector>

#include "daemon/core/contract/data_contract.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dfl::runtime {
namespace {

using testing::AllOf;
using testing::HasSubstr;

RestoreTarget Here() {
  RestoreTarget here;
  here.node = "box-7";
  here.run_id = "run-1";
  here.plan_version = 3;
  here.algorithm = "k-gt";
  here.contract.fill(17);
  here.parameters = 10;
  here.buffers = 2;
  return here;
}

CheckpointHead Good() {
  CheckpointHead head;
  head.node = "box-7";
  head.run_id = "run-1";
  head.plan_version = 3;
  head.algorithm = "k-gt";
  head.contract.fill(17);
  head.step = 100;
  return head;
}

absl::Status Check(const CheckpointHead& head,
                   const RestoreTarget& here = Here(),
                   bool other_version = false,
                   CheckpointLengths lengths = {10, 2}) {
  return CheckRestorable(head, lengths, here, other_version);
}

TEST(CheckRestorable, TakesOneOfThisNodeAndOfThePlanInForce) {
  EXPECT_TRUE(Check(Good()).ok()) << Check(Good());
}

TEST(CheckRestorable, NamesBothNodesAndHowToGetTheModelAlone) {
  CheckpointHead head = Good();
  head.node = "box-3";
  const absl::Status status = Check(head);
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("is of node box-3, and this node is box-7"),
                    HasSubstr("dflctl model import")));
}

TEST(CheckRestorable, NamesBothRunsAndTheirVersions) {
  CheckpointHead head = Good();
  head.run_id = "run-2";
  head.plan_version = 5;
  EXPECT_THAT(
      std::string(Check(head).message()),
      AllOf(HasSubstr("is of run run-2, version 5 of its plan, and run run-1, "
                      "version 3, is in force here"),
            HasSubstr("dflctl plan apply FILE")));
  RestoreTarget nothing;
  nothing.node = "box-7";
  EXPECT_THAT(std::string(Check(head, nothing).message()),
              AllOf(HasSubstr("is of run run-2, version 5 of its plan, and no "
                              "plan is in force here"),
                    HasSubstr("dflctl plan apply FILE")));
  // Whatever is wanted of versions.
  EXPECT_FALSE(Check(head, Here(), true).ok());
}

TEST(CheckRestorable, TakesAnotherVersionOnlyWhereThatIsWanted) {
  for (const uint64_t version : {2, 4}) {
    CheckpointHead head = Good();
    head.plan_version = version;
    const absl::Status status = Check(head);
    EXPECT_TRUE(absl::IsFailedPrecondition(status));
    EXPECT_THAT(
        std::string(status.message()),
        AllOf(HasSubstr(absl::StrCat("run-1, version ", version,
                                     " of its plan, and version 3 is in force "
                                     "here; with --force its model")),
              version < 3 ? testing::Not(HasSubstr("plan apply"))
                          : testing::Matcher<const std::string&>(
                                HasSubstr("bring version 4 into force"))));
    EXPECT_TRUE(Check(head, Here(), true).ok());
  }
  CheckpointHead head = Good();
  head.algorithm = "beer";
  EXPECT_THAT(std::string(Check(head).message()),
              HasSubstr("with algorithm beer, and here that version has k-gt"));
  EXPECT_TRUE(Check(head, Here(), true).ok());
}

TEST(CheckRestorable, NamesTheFieldsOfTheContractThatDiffer) {
  CheckpointHead head = Good();
  head.contract[static_cast<size_t>(core::ContractField::kClasses)] = 0xab;
  const absl::Status status = Check(head, Here(), true);
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("classes is 00000000000000ab there and "
                              "0000000000000011 here"),
                    HasSubstr("data.classes of the plan")));
}

TEST(CheckRestorable, RefusesOtherLengthsAndCountsOfNoHonestNode) {
  EXPECT_THAT(
      std::string(Check(Good(), Here(), false, {9, 2}).message()),
      HasSubstr("has 9 parameters and 2 buffer values, and the model here has "
                "10 and 2"));
  EXPECT_FALSE(Check(Good(), Here(), false, {10, 3}).ok());
  CheckpointHead head = Good();
  head.pace.rounds = kMostCounted + 1;
  EXPECT_TRUE(absl::IsInvalidArgument(Check(head)));
  head = Good();
  head.tracker_epoch = ports::kMaxTrackerEpoch;
  EXPECT_TRUE(absl::IsInvalidArgument(Check(head)));
}

}  // namespace
}  // namespace dfl::runtime
