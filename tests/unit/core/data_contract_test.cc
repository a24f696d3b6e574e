// The fields of a data contract as texts and hashes.
#include "daemon/core/contract/data_contract.h"

#include <cmath>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace dfl::core {
namespace {

DataContract Sample() {
  DataContract contract;
  contract.classes = {"cat", "dog"};
  contract.features = {"age", "blood \"pressure\""};
  contract.shape = {2};
  contract.input.divide = 255;
  contract.loss = "cross-entropy";
  contract.model = std::string(64, 'a');
  return contract;
}

TEST(DataContract, FieldsAreReadable) {
  DataContract contract = Sample();
  EXPECT_EQ(FieldText(contract, ContractField::kTask), "classification");
  EXPECT_EQ(FieldText(contract, ContractField::kClasses), "[\"cat\", \"dog\"]");
  EXPECT_EQ(FieldText(contract, ContractField::kFeatures),
            "[\"age\", \"blood \\\"pressure\\\"\"]");
  EXPECT_EQ(FieldText(contract, ContractField::kShape), "[2]");
  EXPECT_EQ(FieldText(contract, ContractField::kInput),
            "{divide: 255, standardise: none}");
  contract.input = {1,
                    InputScaling::Per::kFeature,
                    InputScaling::Over::kGiven,
                    {0.5, 1},
                    {1, 0.1F}};
  EXPECT_EQ(FieldText(contract, ContractField::kInput),
            "{divide: 1, standardise: feature, over: given, mean: [0.5, 1], "
            "std: [1, 0.100000001]}");
}

// Each change is of one field, and found there and nowhere else.
TEST(DataContract, DifferencesAreFoundByField) {
  const std::vector<std::function<void(DataContract&)>> changes = {
      [](DataContract& c) { c.task = Task::kRegression; },
      [](DataContract& c) { c.classes = {"dog", "cat"}; },
      [](DataContract& c) { c.features = {"age"}; },
      [](DataContract& c) { c.shape = {1, 2}; },
      [](DataContract& c) { c.input.divide = 1; },
      [](DataContract& c) { c.loss = "hinge"; },
      [](DataContract& c) { c.model.back() = 'b'; }};
  ASSERT_EQ(changes.size(), kContractFields.size());
  const ContractDigest own = DigestOf(Sample());
  EXPECT_TRUE(Differences(own, DigestOf(Sample())).empty());
  for (size_t i = 0; i < changes.size(); ++i) {
    DataContract other = Sample();
    changes[i](other);
    EXPECT_EQ(Differences(own, DigestOf(other)),
              std::vector<ContractField>{kContractFields[i]});
  }
}

// Names that look like two are not two.
TEST(DataContract, TextsTellNamesApart) {
  DataContract one = Sample();
  one.classes = {"a\", \"b"};
  DataContract two = Sample();
  two.classes = {"a", "b"};
  EXPECT_NE(FieldText(one, ContractField::kClasses),
            FieldText(two, ContractField::kClasses));
}

TEST(DataContract, DividesByWhatFloat32CanHold) {
  for (const double good : {1.0, 255.0, 0.001, 1.2e-38, 3.4e38}) {
    EXPECT_TRUE(IsDivisor(good)) << good;
  }
  const double infinite = std::numeric_limits<double>::infinity();
  for (const double bad : {0.0, -0.0, -1.0, 1e-39, 1e-300, 3.5e38, 1e300,
                           infinite, -infinite, std::nan("")}) {
    EXPECT_FALSE(IsDivisor(bad)) << bad;
  }
  for (const double good : {0.0, -1.0, 1e-300, 3.4e38, -3.4e38}) {
    EXPECT_TRUE(FitsFloat(good)) << good;
  }
  for (const double bad : {3.5e38, -1e300, infinite, std::nan("")}) {
    EXPECT_FALSE(FitsFloat(bad)) << bad;
  }
}

TEST(DataContract, EveryFieldHasANameAndACure) {
  std::set<std::string> names;
  for (const ContractField field : kContractFields) {
    EXPECT_FALSE(FieldCure(field).empty());
    names.insert(std::string(FieldName(field)));
  }
  EXPECT_EQ(names.size(), kContractFields.size());
}

}  // namespace
}  // namespace dfl::core
