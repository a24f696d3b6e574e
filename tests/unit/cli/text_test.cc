// The small pieces: units, tables, documents, diffs, the live view.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "cli/diff.h"
#include "cli/document.h"
#include "cli/live_view.h"
#include "cli/table.h"
#include "cli/units.h"

namespace dfl::cli {
namespace {

using ::testing::HasSubstr;

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

TEST(Diff, ShowsChangedLinesWithTheirNeighbours) {
  EXPECT_EQ(LineDiff("a\nb\n", "a\nb\n"), "");
  EXPECT_EQ(LineDiff("a\nb\nc\nd\ne\nf\n", "a\nb\nc\nd\nE\nf\n", false, 1),
            "  ...\n  d\n- e\n+ E\n  f\n");
  EXPECT_EQ(LineDiff("", "x\n"), "+ x\n");
  EXPECT_EQ(LineDiff("a\nx\nb\n", "a\nb\ny\n"), "  a\n- x\n  b\n+ y\n");
}

TEST(LiveView, DrawsOverItsFormerLinesAndLeavesTheCursorVisible) {
  std::ostringstream out;
  {
    LiveView view(out, {"unix:/a", "unix:/b"}, /*color=*/false);
    client::WatchUpdate update;
    update.status.node.node = "box-1";
    update.status.node.phase = client::Phase::kTraining;
    update.status.node.step = 50;
    update.status.node.stop_steps = 100;
    view.Take(0, update);
    view.Take(1, absl::UnavailableError("unix:/b: nobody"));
    view.Draw(200);
    EXPECT_THAT(out.str(), HasSubstr("[==========>         ]  50%"));
    EXPECT_THAT(out.str(), HasSubstr("unix:/b  unreachable"));
    EXPECT_THAT(out.str(), HasSubstr("! unix:/b: nobody"));
    out.str("");
    view.Draw(10);
    // Five lines up: title, two rows, a blank, the note.
    EXPECT_EQ(out.str().rfind("\x1b[5A\r\x1b[J", 0), 0u);
    EXPECT_THAT(out.str(), HasSubstr("\nbox-1    t\n"));
    out.str("");
  }
  EXPECT_EQ(out.str(), "\r\x1b[K\x1b[?25h");
}

}  // namespace
}  // namespace dfl::cli
