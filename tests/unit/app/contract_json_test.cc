#include "daemon/app/models/contract_json.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dfl::app {
namespace {

using core::DataContract;
using core::InputScaling;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

DataContract Sample() {
  DataContract contract;
  contract.classes = {"cat", "dog \"x\"", "Zürich"};
  contract.features = {"width", "height"};
  contract.shape = {2};
  contract.input = {255,
                    InputScaling::Per::kFeature,
                    InputScaling::Over::kGiven,
                    {0.1F, 1e-9F},
                    {0.3F, 7}};
  contract.loss = "cross-entropy";
  contract.model = std::string(64, 'a');
  return contract;
}

TEST(ContractJson, ComesBackAsItWas) {
  const std::string json = ContractJson(Sample());
  EXPECT_THAT(json, AllOf(HasSubstr(R"("task":"classification")"),
                          HasSubstr(R"("mean":[0.1,)")));
  EXPECT_EQ(json.find('\n'), std::string::npos);
  const auto read = ParseContractJson(json);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, Sample());
  DataContract plain;
  plain.task = core::Task::kRegression;
  EXPECT_EQ(*ParseContractJson(ContractJson(plain)), plain);
}

TEST(ContractJson, WhatIsNoContractIsRefused) {
  for (const char* text : {"", "[", "{\"classes\": 5}", "{\"shape\": [\"a\"]}",
                           "{\"input\": []}", "\xff"}) {
    EXPECT_EQ(ParseContractJson(text).status().code(),
              absl::StatusCode::kInvalidArgument)
        << text;
  }
  // Of another version.
  EXPECT_TRUE(ParseContractJson(R"({"task": "regression", "new": 1})").ok());
}

TEST(ContractJson, NumbersThatFloat32CannotHoldAreRefused) {
  struct Case {
    const char* input;
    const char* why;
  };
  for (const Case& c : {Case{R"("divide": 1e300)", "divide is 1e+300"},
                        Case{R"("divide": 1e-300)", "divide is 1e-300"},
                        Case{R"("divide": 0)", "divide is 0"},
                        Case{R"("divide": -2)", "divide is -2"},
                        Case{R"("mean": [0, 1e39], "std": [1, 1])", "mean has"},
                        Case{R"("mean": [0], "std": [-1e200])", "std has"}}) {
    const auto read =
        ParseContractJson(absl::StrCat(R"({"input": {)", c.input, "}}"));
    EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(read.status().message()), HasSubstr(c.why));
  }
  const auto read = ParseContractJson(
      R"({"input": {"divide": 0.5, "mean": [3e38], "std": [1e-40]}})");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->input.divide, 0.5);
}

TEST(ContractJson, DeepNestingIsRefusedBeforeItIsRead) {
  for (const std::string& text :
       {std::string(1 << 20, '['), R"({"classes": )" + std::string(100, '['),
        std::string(R"({"input": {"mean": [[1]]}})")}) {
    EXPECT_THAT(std::string(ParseContractJson(text).status().message()),
                HasSubstr("nested too deeply"));
  }
  // In texts there are no brackets.
  const auto read = ParseContractJson(
      R"({"classes": ["[[[[[", "\"[[[[["], "loss": "{{{{{\\"})");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->classes[1], "\"[[[[[");
}

TEST(ContractJson, AnErrorQuotesLittle) {
  for (const std::string& text :
       {"{\"task\": \"" + std::string(100000, 'x'),
        "{\"task\": \"\x1b[31m" + std::string(100000, '\xff')}) {
    const std::string why(ParseContractJson(text).status().message());
    EXPECT_LT(why.size(), 1000u);
    EXPECT_EQ(why.find('\x1b'), std::string::npos);
  }
}

TEST(CheckFileContract, EachFieldIsComparedWithBothSides) {
  const DataContract ours = Sample();
  EXPECT_THAT(*CheckFileContract(ours, ours, {}), IsEmpty());
  const auto refused = [&](auto change, const std::string& file,
                           const std::string& node, bool forced) {
    DataContract theirs = ours;
    change(theirs);
    const auto checked = CheckFileContract(theirs, ours, {false, forced});
    EXPECT_EQ(checked.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(checked.status().message()),
                AllOf(HasSubstr(file), HasSubstr(node)));
  };
  // Nobody can say that the first two differ in name alone.
  refused([](DataContract& c) { c.task = core::Task::kRegression; },
          "task regression", "classification", true);
  refused([](DataContract& c) { c.shape = {3}; }, "shape [3]", "[2]", true);
  refused([](DataContract& c) { c.input.divide = 1; }, "{divide: 1,",
          "{divide: 255,", false);
  refused([](DataContract& c) { c.input.mean[0] = 0.5F; }, "0.5", "0.1", false);
  // Another model is told apart by its tensors.
  DataContract other = ours;
  other.model = std::string(64, 'b');
  EXPECT_TRUE(CheckFileContract(other, ours, {}).ok());
}

TEST(CheckFileContract, NamesMayBeOthersIfSomebodySaysSo) {
  const DataContract ours = Sample();
  DataContract theirs = ours;
  theirs.classes = {"Katze", "Hund", "Zürich"};
  theirs.features = {"b", "h"};
  const auto refused = CheckFileContract(theirs, ours, {});
  EXPECT_THAT(std::string(refused.status().message()),
              AllOf(HasSubstr("\"Katze\""), HasSubstr("\"cat\""),
                    HasSubstr("--force")));
  const auto taken = CheckFileContract(theirs, ours, {false, true});
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_THAT(*taken, ElementsAre(HasSubstr("classes"), HasSubstr("features")));
}

TEST(ParseContractJson, NumbersThatNoContractHoldsAreRefused) {
  for (const std::string text :
       {R"({"shape": [1e300]})", R"({"shape": [2.5]})",
        R"({"shape": [18446744073709551615]})", R"({"shape": [-1]})",
        R"({"shape": ["three"]})", R"({"input": {"mean": [1e39]}})",
        R"({"input": {"std": [-1e39]}})"}) {
    EXPECT_EQ(ParseContractJson(text).status().code(),
              absl::StatusCode::kInvalidArgument)
        << text;
  }
}

TEST(CheckFileContract, APartMayHaveAnotherHead) {
  const DataContract ours = Sample();
  DataContract theirs = ours;
  theirs.classes = {"a", "b"};
  theirs.loss = "huber";
  EXPECT_FALSE(CheckFileContract(theirs, ours, {}).ok());
  const auto taken = CheckFileContract(theirs, ours, {true, false});
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_THAT(*taken, ElementsAre(HasSubstr("classes"), HasSubstr("loss")));
  // And a backbone may have seen larger pictures.
  theirs.shape = {9};
  EXPECT_TRUE(CheckFileContract(theirs, ours, {true, false}).ok());
  theirs.task = core::Task::kRegression;
  EXPECT_TRUE(CheckFileContract(theirs, ours, {true, false}).ok());
}

TEST(CheckFileContract, ScalingMayBeAnotherIfItIsNearOrSomebodySaysSo) {
  const DataContract ours = Sample();
  DataContract theirs = ours;
  theirs.input.mean[0] += 0.01F * theirs.input.std[0];
  const auto near = CheckFileContract(theirs, ours, {});
  ASSERT_TRUE(near.ok()) << near.status();
  EXPECT_THAT(*near, ElementsAre(HasSubstr("input")));
  theirs.input.mean[0] += theirs.input.std[0];
  const auto refused = CheckFileContract(theirs, ours, {});
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("--force"));
  const auto forced = CheckFileContract(theirs, ours, {false, true});
  ASSERT_TRUE(forced.ok()) << forced.status();
  EXPECT_THAT(*forced, ElementsAre(HasSubstr("input")));
}

TEST(CheckFileContract, NumbersThatEachNodeHasOfItsOwnAreNotCompared) {
  DataContract ours = Sample();
  ours.input.over = InputScaling::Over::kNode;
  DataContract theirs = ours;
  theirs.input.mean = {9, 9};
  ours.input.mean.clear();
  ours.input.std.clear();
  EXPECT_TRUE(CheckFileContract(theirs, ours, {}).ok());
}

}  // namespace
}  // namespace dfl::app
