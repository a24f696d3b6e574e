#include "daemon/data/csv.h"

#include "daemon/data/load.h"
#include "tests/unit/data/test_files.h"

namespace dfl {
namespace data {
namespace {

using testing::ElementsAre;

DataSpec SpecOf(const std::string& text) {
  DataSpec spec;
  spec.format = Format::kCsv;
  spec.paths = {WriteFile("f", text)};
  return spec;
}

TEST(SplitCsvLine, HandlesQuotesAndSpaces) {
  std::string scratch;
  std::vector<absl::string_view> fields;
  EXPECT_EQ(SplitCsvLine("a, \"b,\"\"c\"\"\" ,, d e ", ',', &scratch, &fields),
            nullptr);
  EXPECT_THAT(fields, ElementsAre("a", "b,\"c\"", "", "d e"));
  EXPECT_EQ(SplitCsvLine("", ',', &scratch, &fields), nullptr);
  EXPECT_THAT(fields, ElementsAre(""));
  EXPECT_EQ(SplitCsvLine("1\t 2\t", '\t', &scratch, &fields), nullptr);
  EXPECT_THAT(fields, ElementsAre("1", "2", ""));
  EXPECT_NE(SplitCsvLine("1,\"2", ',', &scratch, &fields), nullptr);
  EXPECT_NE(SplitCsvLine("\"1\"2,3", ',', &scratch, &fields), nullptr);
}

TEST(Csv, ReadsTheLastColumnAsLabelWithoutHeader) {
  const auto data = Load(SpecOf("1,2,b\n3,4.5,a\n-1e-3,+6,b"));
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(data->shape(), ElementsAre(2));
  EXPECT_THAT(data->floats(), ElementsAre(1, 2, 3, 4.5f, -1e-3f, 6));
  EXPECT_THAT(data->labels(), ElementsAre(1, 0, 1));
  EXPECT_THAT(data->class_names(), ElementsAre("a", "b"));
}

TEST(Csv, FindsTheHeaderAndColumnsByName) {
  DataSpec spec =
      SpecOf("\xEF\xBB\xBF\"\",y,\"x 1\",x2\r\n7,1,2,3\r\n8,0,4,5\r\n\r\n");
  spec.label_column = "y";
  spec.drop_columns = {"0"};
  const auto data = Load(spec);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(data->floats(), ElementsAre(2, 3, 4, 5));
  EXPECT_THAT(data->labels(), ElementsAre(1, 0));
}

TEST(Csv, HeaderCanBeForcedRefusedOrSkipped) {
  DataSpec spec = SpecOf("1,2,0\n3,4,1\n5,6,0\n");
  spec.header = Header::kYes;
  auto data = Load(spec);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->rows(), 2);
  spec.header = Header::kNo;
  data = Load(spec);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->rows(), 3);
  spec = SpecOf("150,4,any,thing\n1,2,0\n3,4,1\n");
  spec.header = Header::kSkip;
  data = Load(spec);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->rows(), 2);
}

TEST(Csv, TakesDelimiterRegressionAndShape) {
  DataSpec spec = SpecOf("0.5;1;2;3;4\n-1;5;6;7;8\n");
  spec.delimiter = ';';
  spec.label_column = "0";
  spec.task = Task::kRegression;
  spec.shape = {1, 2, 2};
  const auto data = Load(spec);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(data->targets(), ElementsAre(0.5f, -1));
  EXPECT_THAT(data->shape(), ElementsAre(1, 2, 2));
  EXPECT_THAT(data->floats(), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
}

TEST(Csv, JoinsGzipAndPlainFiles) {
  DataSpec spec = SpecOf("x,y\n1,0\n");
  spec.paths.push_back(WriteFile("g", Gzip("x,y\n2,1\n")));
  const auto data = Load(spec);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(data->floats(), ElementsAre(1, 2));
  spec.paths.push_back(WriteFile("h", "z,y\n2,1\n"));
  ExpectWrong(Load(spec),
              {spec.paths[2], "line 1", "header differs", spec.paths[0]});
}

TEST(Csv, TestSetCanShareTheTrainingSetsNumbering) {
  const auto train = Load(SpecOf("1,c\n2,a\n3,b\n"));
  ASSERT_TRUE(train.ok()) << train.status();
  DataSpec spec = SpecOf("1,c\n2,c\n");
  spec.label_values = train->class_names();
  const auto test = Load(spec);
  ASSERT_TRUE(test.ok()) << test.status();
  EXPECT_THAT(test->labels(), ElementsAre(2, 2));
  EXPECT_EQ(test->classes(), 3);
}

TEST(Csv, RefusesWrongContent) {
  const struct {
    std::string text;
    std::vector<std::string> parts;
  } cases[] = {
      {"1,2,0\n3,x,1\n", {"line 2, column 2", "'x' is not a number"}},
      {"a,b,y\n1,2,0\n3,x,1\n",
       {"line 3, column 2 ('b')", "'x' is not a number", "finite"}},
      {"1,2,0\n3,nan,1\n", {"line 2, column 2", "'nan' is not finite"}},
      {"1,2,0\n3,-inf,1\n", {"line 2, column 2", "'-inf' is not finite"}},
      {"1,2,0\n3,1e400,1\n", {"line 2, column 2", "'1e400' is not finite"}},
      {"1,2,0\n3,1e39,1\n", {"line 2, column 2", "too large for float32"}},
      {"1,2,0\n3,,1\n", {"line 2, column 2", "'' is missing"}},
      {"1,2,0\n3,4,\n", {"line 2, column 3", "label is missing"}},
      {"1,2,0\n3,1\n", {"line 2", "2 fields", "3, as in the first line"}},
      {"1,2,0\n3,4,5,1\n", {"line 2", "4 fields", "3, as in the first line"}},
      {"1,2,0\n3,\"4,1\n", {"line 2, column 2", "does not close"}},
      {"1,2,0\n\"3\"4,4,1\n", {"line 2, column 1", "closing quote"}},
      {"", {"line 1", "no rows", "at least one"}},
      {"a,b\n", {"line 2", "no rows", "at least one"}},
      {"1\n2\n", {"line 1", "none left as a feature", "delimiter ','"}},
      {"1,0\n\n2,1\n", {"line 2", "a blank line"}},
      {"1,0\n2,0\n", {"line 1, column 2", "only 1 label (0)", "label_values"}},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.text);
    const DataSpec spec = SpecOf(c.text);
    ExpectWrong(Load(spec), c.parts);
    ExpectWrong(Load(spec), {spec.paths[0]});
  }
}

TEST(Csv, RefusesWhatTheSpecForbids) {
  DataSpec spec = SpecOf("a,b,y\n1,2,0\n3,4,1\n");
  spec.label_column = "label";
  ExpectWrong(Load(spec),
              {spec.paths[0], "line 1", "'label'", "-3 to 2", "'a' 'b' 'y'"});
  spec.label_column = "3";
  ExpectWrong(Load(spec), {spec.paths[0], "line 1", "'3'", "-3 to 2"});
  spec.label_column = "-1";
  spec.drop_columns = {"y"};
  ExpectWrong(Load(spec), {spec.paths[0], "'y'", "label and dropped"});
  spec.drop_columns = {};
  spec.label_values = {"0", "2"};
  ExpectWrong(Load(spec), {spec.paths[0], "line 3, column 3", "'1'", "0, 2"});
  spec.label_values = {};
  spec.max_bytes = 12;
  ExpectWrong(Load(spec), {spec.paths[0], "line 3", "max_bytes = 12"});
  spec.max_bytes = 16;
  EXPECT_TRUE(Load(spec).ok());
  spec.delimiter = '1';
  ExpectWrong(Load(spec), {"delimiter", "'1'", "tab"});
}

TEST(Csv, RefusesTooManyLabels) {
  std::string text;
  for (int i = 0; i <= 65536; ++i) absl::StrAppend(&text, "1,k", i, "\n");
  const DataSpec spec = SpecOf(text);
  ExpectWrong(Load(spec), {spec.paths[0], "line 65537, column 2", "'k65536'",
                           "at most 65536"});
}

TEST(Csv, RefusesEveryTruncationOfGzip) {
  // A single byte does not look like gzip yet; it is no row either.
  ExpectEveryTruncationRefused(
      "cut", Gzip("1,2,0\n3,4,1\n"),
      [](const std::string& path) {
        DataSpec spec;
        spec.format = Format::kCsv;
        spec.paths = {path};
        return Load(spec);
      },
      2);
}

TEST(Csv, ReadsLinesAcrossBuffers) {
  // Lines of 300 kB: longer than one read.
  std::string text;
  for (int row = 0; row < 3; ++row) {
    for (int j = 0; j < 100000; ++j) absl::StrAppend(&text, j % 10, ",");
    absl::StrAppend(&text, row, "\n");
  }
  const auto data = Load(SpecOf(text));
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->row_size(), 100000);
  EXPECT_EQ(data->rows(), 3);
  for (size_t i = 0; i < data->floats().size(); ++i) {
    ASSERT_EQ(data->floats()[i], static_cast<float>(i % 10)) << i;
  }
}

}  // namespace
}  // namespace data
}  // namespace dfl
