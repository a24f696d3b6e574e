// The small pieces: units, tables, documents.
#include "daemon/console/document.h"
#include "daemon/console/table.h"
#include "daemon/console/units.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace dfl::console {
namespace {

TEST(Units, BytesHaveThreeDigits) {
  EXPECT_EQ(HumanBytes(0), "0 B");
  EXPECT_EQ(HumanBytes(999), "999 B");
  EXPECT_EQ(HumanBytes(1000), "1.00 kB");
  EXPECT_EQ(HumanBytes(44'700'000), "44.7 MB");
  EXPECT_EQ(HumanBytes(999'499), "999 kB");
  EXPECT_EQ(HumanBytes(999'500), "1.00 MB");
  EXPECT_EQ(HumanBytes(INT64_MAX), "9.22 EB");
}

TEST(Units, TimesAndBars) {
  EXPECT_EQ(HumanSeconds(4.9), "4 s");
  EXPECT_EQ(HumanSeconds(200), "3 min 20 s");
  EXPECT_EQ(HumanSeconds(90061), "1 d 1 h");
  EXPECT_EQ(ProgressBar(0, 4), "[    ]   0%");
  EXPECT_EQ(ProgressBar(0.5, 4), "[==> ]  50%");
  EXPECT_EQ(ProgressBar(0.999, 4), "[===>]  99%");
  EXPECT_EQ(ProgressBar(1, 4), "[====] 100%");
  EXPECT_EQ(ProgressBar(7, 4), "[====] 100%");
}

TEST(Table, AlignsColumnsAndCountsCharacters) {
  Table table({"NAME", ">N"});
  table.Add({"é", "1"});
  table.Add({"long name", "200"});
  EXPECT_EQ(table.ToString(),
            "NAME         N\n"
            "é            1\n"
            "long name  200\n");
}

TEST(Document, YamlQuotesWhatItMust) {
  const Json json{{"plain", "ring"},
                  {"number_like", "10"},
                  {"word", "no"},
                  {"empty", ""},
                  {"none", nullptr},
                  {"list", Json::array({1, Json{{"a", 1}, {"b", "x y"}}})},
                  {"no_list", Json::array()},
                  {"block", "a: 1\n\nb: 2\n"}};
  EXPECT_EQ(ToYaml(json),
            "plain: ring\n"
            "number_like: \"10\"\n"
            "word: \"no\"\n"
            "empty: \"\"\n"
            "none: null\n"
            "list:\n"
            "  - 1\n"
            "  - a: 1\n"
            "    b: \"x y\"\n"
            "no_list: []\n"
            "block: |\n"
            "  a: 1\n"
            "\n"
            "  b: 2\n");
}

}  // namespace
}  // namespace dfl::console
