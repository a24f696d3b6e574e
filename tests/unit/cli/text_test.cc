// The small pieces: diffs, the live view.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "cli/diff.h"
#include "cli/live_view.h"

namespace dfl::cli {
namespace {

using ::testing::HasSubstr;

TEST(Diff, ShowsChangedLinesWithTheirNeighbours) {
  EXPECT_EQ(LineDiff("a\nb\n", "a\nb\n"), "");
  EXPECT_EQ(LineDiff("a\nb\nc\nd\ne\nf\n", "a\nb\nc\nd\nE\nf\n", false, 1),
            "  ...\n  d\n- e\n+ E\n  f\n");
  EXPECT_EQ(LineDiff("", "x\n"), "+ x\n");
  EXPECT_EQ(LineDiff("a\nx\nb\n", "a\nb\ny\n"), "  a\n- x\n  b\n+ y\n");
}

TEST(Diff, ADocumentCannotSteerTheTerminal) {
  EXPECT_EQ(LineDiff("x\n", "x\x1b[31m\n"), "- x\n+ x?[31m\n");
  EXPECT_EQ(LineDiff("", "x\r\n", /*color=*/true), "\x1b[32m+ x?\x1b[0m\n");
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
