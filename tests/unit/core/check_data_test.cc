// The checks of a plan's data section.
#include "daemon/core/plan/check_data.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dfl::core {
namespace {

using testing::HasSubstr;

ModelSpec Model(int64_t classes) {
  ModelSpec model;
  model.classes = classes;
  return model;
}

TEST(CheckData, AnEmptySectionIsFine) {
  EXPECT_TRUE(CheckData({}, Model(kClassesOfData)).ok());
  EXPECT_TRUE(CheckData({}, Model(0)).ok());
}

TEST(CheckData, TakesAWholeSection) {
  DataSection data;
  data.task = Task::kClassification;
  data.classes = {{"cat", "dog"}};
  data.features = {{"age", "bp"}};
  data.shape = {{2}};
  data.divide = 255;
  data.per = InputScaling::Per::kFeature;
  data.over = InputScaling::Over::kNetwork;
  data.mean = {0, 1};
  data.std = {1, 2};
  data.model = std::string(64, 'f');
  EXPECT_TRUE(CheckData(data, Model(2)).ok()) << CheckData(data, Model(2));
  EXPECT_TRUE(CheckData(data, Model(kClassesOfData)).ok());
}

TEST(CheckData, EachMistakeIsNamed) {
  struct Case {
    void (*edit)(DataSection&);
    int64_t classes;
    std::string says;
  };
  const std::vector<Case> cases = {
      {[](DataSection& d) { d.classes = {{"a", "b"}}; }, 3,
       "data.classes: 2 found, and model.classes is 3"},
      {[](DataSection& d) { d.classes = {{"a", "b"}}; }, 0,
       "data.classes: 2 given for a regression"},
      {[](DataSection& d) { d.classes = {{"a"}}; }, -1,
       "data.classes: 1 found"},
      {[](DataSection& d) { d.classes = {{"1", "1.0"}}; }, -1,
       "\"1.0\" found a second time"},
      {[](DataSection& d) { d.classes = {{"a", ""}}; }, -1, "empty name"},
      {[](DataSection& d) { d.task = Task::kClassification; }, 0,
       "data.task: classification, and model.classes is 0"},
      {[](DataSection& d) { d.task = Task::kRegression; }, 2,
       "data.task: regression, and model.classes is 2"},
      {[](DataSection& d) { d.features = {{"a", "a"}}; }, -1,
       "data.features: \"a\" found a second time"},
      {[](DataSection& d) {
         d.features = {{"a", "b"}};
         d.shape = {{3}};
       },
       -1, "data.features: 2 names"},
      {[](DataSection& d) { d.shape = {{0}}; }, -1, "data.shape: [0]"},
      {[](DataSection& d) { d.divide = 0; }, -1, "data.divide: 0"},
      {[](DataSection& d) { d.divide = 1e300; }, -1, "data.divide: 1e+300"},
      {[](DataSection& d) { d.divide = 1e-300; }, -1, "data.divide: 1e-300"},
      {[](DataSection& d) { d.over = InputScaling::Over::kNetwork; }, -1,
       "data.standardise: over given without per"},
      {[](DataSection& d) {
         d.per = InputScaling::Per::kAll;
         d.over = InputScaling::Over::kGiven;
       },
       -1, "over: given, but no numbers"},
      {[](DataSection& d) {
         d.per = InputScaling::Per::kAll;
         d.mean = {1};
         d.std = {1};
       },
       -1, "each node has its own"},
      {[](DataSection& d) {
         d.per = InputScaling::Per::kAll;
         d.over = InputScaling::Over::kGiven;
         d.mean = {1};
         d.std = {0};
       },
       -1, "std 0"},
      {[](DataSection& d) { d.mean = {1}; }, -1, "1 means and 0 stds"},
      {[](DataSection& d) { d.model = "xyz"; }, -1, "data.model: \"xyz\""},
  };
  for (const Case& c : cases) {
    DataSection data;
    c.edit(data);
    const absl::Status status = CheckData(data, Model(c.classes));
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.says));
  }
}

}  // namespace
}  // namespace dfl::core
