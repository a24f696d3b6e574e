#include "daemon/data/load.h"
#include "tests/unit/data/test_files.h"

namespace dfl {
namespace data {
namespace {

using testing::ElementsAre;

DataSpec SpecOf(const std::string& text) {
  DataSpec spec;
  spec.format = Format::kLibsvm;
  spec.paths = {WriteFile("f", text)};
  return spec;
}

TEST(Libsvm, ExpandsRowsAndSortsLabels) {
  const auto data = Load(SpecOf("+1 1:0.5 4:-2e1 \n-1\n1 2:3 # a comment\n"));
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(data->shape(), ElementsAre(4));
  EXPECT_THAT(data->floats(),
              ElementsAre(0.5f, 0, 0, -20, 0, 0, 0, 0, 0, 3, 0, 0));
  EXPECT_THAT(data->labels(), ElementsAre(1, 0, 1));
  EXPECT_THAT(data->class_names(), ElementsAre("-1", "1"));
}

TEST(Libsvm, TakesFeaturesFromTheSpecAndJoinsFiles) {
  DataSpec spec = SpecOf("7 1:1\r\n3 2:2\r\n");
  spec.paths.push_back(WriteFile("g", Gzip("12 3:4")));
  spec.features = 5;
  const auto data = Load(spec);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(data->shape(), ElementsAre(5));
  EXPECT_EQ(data->rows(), 3);
  EXPECT_THAT(data->labels(), ElementsAre(1, 0, 2));  // 3 < 7 < 12
  EXPECT_EQ(data->floats()[12], 4);
}

TEST(Libsvm, KeepsLabelsInRangeWhenClassesAreGiven) {
  DataSpec spec = SpecOf("2 1:1\n2 1:2\n0 1:3\n");
  spec.classes = 4;
  const auto data = Load(spec);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(data->labels(), ElementsAre(2, 2, 0));
  EXPECT_EQ(data->classes(), 4);
}

TEST(Libsvm, NumbersLabelsAsTold) {
  DataSpec spec = SpecOf("-1 1:1\n-1 1:2\n");
  spec.label_values = {"+1", "-1"};
  const auto data = Load(spec);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(data->labels(), ElementsAre(1, 1));
  EXPECT_EQ(data->classes(), 2);
}

TEST(Libsvm, ReadsRegressionTargets) {
  DataSpec spec = SpecOf("1.5 1:1\n-2 1:2\n");
  spec.task = Task::kRegression;
  const auto data = Load(spec);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_TRUE(data->is_regression());
  EXPECT_THAT(data->targets(), ElementsAre(1.5f, -2));
  EXPECT_EQ(data->classes(), 0);
}

TEST(Libsvm, RefusesWrongContent) {
  const struct {
    std::string text;
    std::vector<std::string> parts;
  } cases[] = {
      {"x 1:1\n1 1:1\n", {"line 1, column 1", "'x'", "a number"}},
      {"1 1:1\n0.5 1:1\n", {"line 2, column 1", "'0.5'", "regression"}},
      {"nan 1:1\n", {"line 1, column 1", "'nan'", "integer"}},
      {"1 1:1\n-1 1:1 2\n", {"line 2, column 8", "'2'", "index:value"}},
      {"1 a:1\n", {"line 1, column 3", "'a:1'", "index:value"}},
      {"1 0:1\n", {"line 1, column 3", "index 0", "1 to "}},
      {"1 2:1 2:1\n", {"line 1, column 7", "index 2", "3 to "}},
      {"1 3:1 2:1\n", {"line 1, column 7", "index 2", "4 to "}},
      {"1 1:x\n", {"line 1, column 5", "'x' is not a number", "finite"}},
      {"1 1:nan\n", {"line 1, column 5", "'nan' is not finite", "finite"}},
      {"1 1:-inf\n", {"line 1, column 5", "'-inf' is not finite", "finite"}},
      {"1 1:1e39\n", {"line 1, column 5", "'1e39' is too large", "finite"}},
      {"1 1:\n", {"line 1, column 5", "'' is missing", "finite"}},
      {"1 1:1\n\n-1 1:1\n", {"line 2", "a blank line", "at the end"}},
      {"", {"line 1", "no rows", "at least one"}},
      {"\n\n", {"line 1", "no rows", "at least one"}},
      {"1\n-1\n", {"no row has a feature", "index:value"}},
      {"1 1:1\n1 1:2\n",
       {"line 1, column 1", "only 1 label (1)", "label_values"}},
      {std::string("1 1:1\0\n", 7), {"line 1, column 6", "zero byte", "text"}},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.text);
    const DataSpec spec = SpecOf(c.text);
    ExpectWrong(Load(spec), c.parts);
    ExpectWrong(Load(spec), {spec.paths[0]});
  }
}

TEST(Libsvm, RefusesWhatTheSpecForbids) {
  DataSpec spec = SpecOf("1 1:1 6:1\n-1 1:1\n");
  spec.features = 5;
  ExpectWrong(Load(spec),
              {spec.paths[0], "line 1, column 7", "index 6", "2 to 5"});
  spec.features = 0;
  spec.label_values = {"-1", "2"};
  ExpectWrong(Load(spec), {spec.paths[0], "line 1, column 1", "'1'", "-1, 2"});
  spec = SpecOf("0 1:1\n1 1:1\n5 1:1\n");
  spec.classes = 2;
  ExpectWrong(Load(spec), {spec.paths[0], "line 3, column 1", "'5'", "0 to 1"});
  spec = SpecOf("-1 1:1\n-1 1:1\n");
  spec.classes = 2;
  ExpectWrong(Load(spec),
              {spec.paths[0], "only 1 label (-1)", "all 2 classes"});
}

TEST(Libsvm, RefusesDenseExpansionBeyondTheLimit) {
  const DataSpec spec = SpecOf("1 4000000000:1\n-1 1:1\n");
  ExpectWrong(Load(spec),
              {spec.paths[0], "line 1", "(2, 4000000000)", "max_bytes"});
}

}  // namespace
}  // namespace data
}  // namespace dfl
