#include "daemon/data/csv.h"

#include "daemon/data/load.h"
#include "tests/support/cpu_seconds.h"
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
  ExpectWrong(Load(spec), {spec.paths[2], "line 1", "header differs",
                           "without 'x', with 'z'", "data.drop_columns"});
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

// The first line is a header or a row by what stands below it.
TEST(Csv, TellsHeadersFromRows) {
  const struct {
    std::string text;
    int64_t rows;
  } cases[] = {
      // Names above numbers, also in quotes, also beside a column of words.
      {"x,y\n1,0\n", 1},
      {"\"x\",\"y\"\n1,0\n2,1\n", 2},
      {"a,b,kind\n1,2,cat\n3,4,dog\n", 2},
      // A row, though a value is missing or a label is a word.
      {"1,2,cat\n3,4,dog\n5,6,cat\n", 3},
      {"?,2,0\n3,4,1\n", 2},
      {"NA,NA,0\n3,4,1\n", 2},
      {"nan,2,0\n3,4,1\n", 2},
      {"True,2,0\nFalse,4,1\n", 2},
      // Names that are numbers: pandas counts the columns, R quotes them.
      {"0,1,2,3\n5,6,7,1\n8,9,10,0\n", 2},
      {",0,1,2,y\n0,6,7,1,1\n1,9,10,0,0\n", 2},
      {"0,1,2,y\n5,6,7,1\n8,9,10,0\n", 2},
      {"\"1990\",\"2000\",\"2010\"\n5,6,7\n8,9,10\n", 2},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.text);
    DataSpec spec = SpecOf(c.text);
    spec.missing = Missing::kZero;
    const auto data = Load(spec);
    ASSERT_TRUE(data.ok()) << data.status();
    EXPECT_EQ(data->rows(), c.rows);
  }
}

TEST(Csv, RefusesAFirstLineThatMayBeEither) {
  for (const char* text :
       {"x,2,0\n3,4,1\n5,6,0\n", "1,x,0\n3,4,1\n", "x,?,NA\n1,2,0\n",
        "0,1,2\n5,6,1\n", "1,2,3,4\n5,6,7,1\n",
        "0,1,2,cat\n5,6,1,dog\n1,6,1,cow\n"}) {
    SCOPED_TRACE(text);
    DataSpec spec = SpecOf(text);
    ExpectWrong(Load(spec), {spec.paths[0], "line 1", "data.header: yes"});
    spec.header = Header::kYes;
    EXPECT_TRUE(Load(spec).ok()) << Load(spec).status();
  }
}

TEST(Csv, AnIndexIsAnIndexWhateverTheHeaderSays) {
  // Column -1 is the last one, and not the one called "-1".
  DataSpec spec = SpecOf("-1,x,y\n7,1,0\n8,2,1\n");
  spec.header = Header::kYes;
  auto data = Load(spec);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(data->floats(), ElementsAre(7, 1, 8, 2));
  EXPECT_THAT(data->columns().names, ElementsAre("-1", "x"));
  // "1" may be the second column or the third.
  spec = SpecOf(",0,1,2,y\n0,6,7,1,1\n1,9,10,0,0\n");
  spec.drop_columns = {"1"};
  ExpectWrong(Load(spec), {"data.drop_columns '1' is the name of column 2",
                           "index of another", "-3 or -4"});
  spec.drop_columns = {"-4"};
  data = Load(spec);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(data->floats(), ElementsAre(0, 7, 1, 1, 10, 0));
}

TEST(Csv, MatchesColumnsOfSeveralFilesByName) {
  DataSpec spec = SpecOf("a,b,y\n1,2,0\n");
  spec.paths.push_back(WriteFile("g", "y,b,a\n1,20,10\n"));
  const auto data = Load(spec);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(data->floats(), ElementsAre(1, 2, 10, 20));
  EXPECT_THAT(data->labels(), ElementsAre(0, 1));
  EXPECT_THAT(data->columns().names, ElementsAre("a", "b"));
  EXPECT_EQ(data->columns().label, "y");
  // And those of a set to another one read before.
  DataSpec test = SpecOf("b,y,a\n4,1,3\n");
  test.match.features = data->columns().names;
  test.match.label = data->columns().label;
  const auto second = Load(test);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_THAT(second->floats(), ElementsAre(3, 4));
}

// An index is a place in the file that was read first.
TEST(Csv, DropsColumnsOfLaterFilesByName) {
  DataSpec spec = SpecOf("id,a,b,y\n7,1,2,0\n");
  spec.paths.push_back(WriteFile("g", "b,y,id,a\n20,1,8,10\n"));
  spec.paths.push_back(WriteFile("h", "b,y,a\n200,1,100\n"));
  spec.drop_columns = {"0"};
  ExpectWrong(Load(spec), {spec.paths[2], "3 fields", "4, as in"});
  spec.paths.pop_back();
  const auto data = Load(spec);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(data->floats(), ElementsAre(1, 2, 10, 20));
  EXPECT_THAT(data->columns().dropped, ElementsAre("id"));
}

TEST(Csv, RefusesTwoColumnsOfOneName) {
  const DataSpec spec = SpecOf("a,a,y\n1,2,0\n3,4,1\n");
  ExpectWrong(Load(spec), {"columns 0 and 1", "same name, 'a'", "skip"});
}

TEST(Csv, ReadsMissingValuesAsTold) {
  const std::string text =
      "a,b,y\n1,,0\n3,NA,1\n?,4,0\nNaN,6,1\nnull,8,0\n5,0,\n";
  DataSpec spec = SpecOf(text);
  ExpectWrong(Load(spec),
              {spec.paths[0], "line 2, column 2 ('b')", "'' is missing",
               "data.missing: mean, zero or drop"});
  spec.missing = Missing::kMean;
  // A label has no mean.
  ExpectWrong(Load(spec), {"line 7, column 3 ('y')", "label '' is missing",
                           "data.missing: drop"});
  spec.missing = Missing::kDrop;
  auto data = Load(spec);
  ExpectWrong(data, {"every row has a missing value"});
  spec = SpecOf(text.substr(0, text.size() - 5));
  spec.missing = Missing::kMean;
  data = Load(spec);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(data->floats(), ElementsAre(1, 6, 3, 6, 2, 4, 2, 6, 2, 8));
  EXPECT_THAT(data->columns().missing, ElementsAre(3, 2));
  EXPECT_THAT(data->columns().fill, ElementsAre(2, 6));
  // A test set gets the means of the training set.
  DataSpec test = SpecOf("a,b,y\n?,1,0\n");
  test.missing = Missing::kMean;
  test.match.features = data->columns().names;
  test.match.fill = data->columns().fill;
  const auto second = Load(test);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_THAT(second->floats(), ElementsAre(2, 1));
  spec = SpecOf("a,b,y\n1,2,0\n3,NA,1\n4,5,NA\n6,7,1\n");
  spec.missing = Missing::kDrop;
  data = Load(spec);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(data->floats(), ElementsAre(1, 2, 6, 7));
  EXPECT_EQ(data->columns().dropped_rows, 2);
  EXPECT_THAT(data->labels(), ElementsAre(0, 1));
}

TEST(Csv, AFeatureThatIsAlwaysMissingHasNoMean) {
  DataSpec spec = SpecOf("a,b,y\n1,,0\n3,,1\n");
  spec.missing = Missing::kMean;
  ExpectWrong(Load(spec), {"feature 'b'", "no mean", "data.drop_columns"});
}

TEST(Csv, AStatedLabelIsNeverMissing) {
  DataSpec spec = SpecOf("1,NA\n2,US\n");
  ExpectWrong(Load(spec), {"label 'NA' is missing", "data.label_values"});
  spec.label_values = {"US", "NA"};
  const auto data = Load(spec);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(data->labels(), ElementsAre(1, 0));
}

TEST(Csv, TrueAndFalseAreOneAndZero) {
  const auto data = Load(SpecOf("a,b,y\nTrue,FALSE,true\n0.5,true,False\n"));
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(data->floats(), ElementsAre(1, 0, 0.5f, 1));
  EXPECT_THAT(data->class_names(), ElementsAre("0", "1"));
  EXPECT_THAT(data->labels(), ElementsAre(1, 0));
}

TEST(Csv, TellsOfColumnsThatCountRows) {
  auto data = Load(SpecOf(",x,y\n0,5,0\n1,3,1\n2,4,0\n"));
  ASSERT_TRUE(data.ok()) << data.status();
  ASSERT_EQ(data->columns().warnings.size(), 1U);
  EXPECT_THAT(data->columns().warnings[0],
              testing::AllOf(testing::HasSubstr("column 0 has no name"),
                             testing::HasSubstr("counts the rows"),
                             testing::HasSubstr("data.drop_columns: [\"0\"]")));
  // Where 0 is a name, too, the cure counts from the end.
  data = Load(SpecOf(",0,1,2,y\n0,6,7,1,1\n1,3,2,0,0\n2,9,1,0,0\n"));
  ASSERT_TRUE(data.ok()) << data.status();
  ASSERT_EQ(data->columns().warnings.size(), 1U);
  EXPECT_THAT(data->columns().warnings[0], testing::HasSubstr("[\"-5\"]"));
  // A column with a name must go on for longer.
  std::string text = "id,x,y\n";
  for (int i = 0; i < 30; ++i) {
    absl::StrAppend(&text, 100 + 3 * i, ",", i % 7, ",", i % 2, "\n");
  }
  data = Load(SpecOf(text));
  ASSERT_TRUE(data.ok()) << data.status();
  ASSERT_EQ(data->columns().warnings.size(), 1U);
  EXPECT_THAT(data->columns().warnings[0],
              testing::HasSubstr("column 0 ('id') rises from row to row"));
  data = Load(SpecOf("x,y\n1,0\n2,1\n3,0\n"));
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_TRUE(data->columns().warnings.empty());
}

// A table of `width` columns, each of which rises from row to row, and labels.
std::string RisingColumns(const std::string& header, int width) {
  std::string text = header;
  for (int row = 1; row <= 4; ++row) {
    for (int i = 0; i < width; ++i) absl::StrAppend(&text, row, ",");
    absl::StrAppend(&text, row % 2, "\n");
  }
  return text;
}

TEST(Csv, WarnsOfTheFirstOfManyColumns) {
  constexpr int kColumns = 40000;
  const std::string nameless(kColumns, ',');
  DataSpec spec = SpecOf(RisingColumns(nameless + "y\n", kColumns));
  spec.header = Header::kYes;
  auto data = Load(spec);
  ASSERT_TRUE(data.ok()) << data.status();
  const std::vector<std::string>& warnings = data->columns().warnings;
  ASSERT_EQ(warnings.size(), 6U);
  EXPECT_THAT(warnings[4], testing::HasSubstr("column 4 has no name"));
  EXPECT_THAT(warnings[5],
              testing::HasSubstr(": 39995 more columns rise from row to row"));
  spec = SpecOf(RisingColumns(nameless.substr(0, 6) + "y\n", 6));
  spec.header = Header::kYes;
  data = Load(spec);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(data->columns().warnings.back(),
              testing::HasSubstr(": 1 more column rises"));
}

TEST(Csv, ManyColumnsAreMatchedByNameQuickly) {
  constexpr int kColumns = 80000;
  std::string up;
  std::string down;
  for (int i = 0; i < kColumns; ++i) {
    absl::StrAppend(&up, "column-", 10000 + i, ",");
    absl::StrAppend(&down, "column-", 10000 + kColumns - 1 - i, ",");
  }
  DataSpec spec = SpecOf(RisingColumns(up + "y\n", kColumns));
  spec.paths.push_back(WriteFile("g", RisingColumns(down + "y\n", kColumns)));
  const double begin = CpuSeconds();
  const auto data = Load(spec);
  EXPECT_LT(CpuSeconds() - begin, 3);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->rows(), 8);
  // No name is told whole, however long it is.
  spec.paths[1] =
      WriteFile("g", RisingColumns(std::string(100000, 'x') + ",y\n", 1));
  EXPECT_LT(Load(spec).status().message().size(), 3000U);
}

TEST(Csv, TakesNamesFromTheSettings) {
  DataSpec spec = SpecOf("1,2,0\n3,4,1\n");
  spec.feature_names = {"age", "bp"};
  auto data = Load(spec);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(data->columns().names, ElementsAre("age", "bp"));
  spec.feature_names = {"age"};
  ExpectWrong(Load(spec), {"2 features", "data.feature_names lists, 1"});
  spec = SpecOf("a,b,y\n1,2,0\n");
  spec.feature_names = {"age", "bp"};
  ExpectWrong(Load(spec), {"names the features a, b", "data.feature_names"});
}

TEST(Csv, LabelsOfOneClassAreNoError) {
  const auto data = Load(SpecOf("1,b\n2,b\n"));
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(data->class_names(), ElementsAre("b"));
  EXPECT_THAT(data->answers().class_places,
              ElementsAre(testing::HasSubstr(": line 1, column 2")));
}

TEST(Csv, IntegersComeBeforeWords) {
  const auto data = Load(SpecOf("1,b\n2,10\n1,9\n0,a\n"));
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(data->class_names(), ElementsAre("9", "10", "a", "b"));
}

TEST(Csv, RefusesWrongContent) {
  const struct {
    std::string text;
    std::vector<std::string> parts;
  } cases[] = {
      {"1,2,0\n3,x,1\n", {"line 2, column 2", "'x' is not a number"}},
      {"a,b,y\n1,2,0\n3,red,1\n",
       {"line 3, column 2 ('b')", "'red' is not a number",
        "data.drop_columns: [\"1\"]"}},
      {"1;2;0\n3;1,5;1\n", {"line 2, column 2", "1.5 and not 1,5"}},
      {"1,2,0\n3,-inf,1\n", {"line 2, column 2", "'-inf' is not finite"}},
      {"1,2,0\n3,1e400,1\n", {"line 2, column 2", "'1e400' is not finite"}},
      {"1,2,0\n3,1e39,1\n", {"line 2, column 2", "too large for float32"}},
      {"1,2,0\n3,4,\n", {"line 2, column 3", "label '' is missing"}},
      {"1,2,0\n3,1\n", {"line 2", "2 fields", "3, as in the first line"}},
      {"1,2,0\n3,4,5,1\n", {"line 2", "4 fields", "3, as in the first line"}},
      {"1,2,0\n3,\"4,1\n", {"line 2, column 2", "does not close"}},
      {"1,2,0\n\"3\"4,4,1\n", {"line 2, column 1", "closing quote"}},
      {"", {"line 1", "no rows", "at least one"}},
      {"a,b\n", {"line 2", "no rows", "at least one"}},
      {"1\n2\n", {"line 1", "none left as a feature", "delimiter ','"}},
      {"1,0\n\n2,1\n", {"line 2", "a blank line"}},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.text);
    DataSpec spec = SpecOf(c.text);
    if (c.text.find(';') < 2) spec.delimiter = ';';
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

// Columns that seem to count, up to where no further number is.
TEST(Csv, TheLargestNumberHasNoNext) {
  for (const std::string first :
       {"9223372036854775807,1,0", "-9223372036854775808,1,0",
        "0,1,9223372036854775807"}) {
    const auto data = Load(SpecOf(first + "\n1,2,0\n3,4,1\n"));
    ASSERT_TRUE(data.ok()) << data.status();
    EXPECT_EQ(data->rows(), 3) << first;
  }
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
