// The screen of `dflctl top`: what it shows, its keys, and the terminal that it
// leaves behind.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <sstream>

#include "absl/strings/str_cat.h"
#include "cli/top/full_screen.h"
#include "cli/top/top_view.h"

namespace dfl::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

MemberReport Report(const std::string& name, double loss, int64_t step) {
  MemberReport report;
  report.member.node = name;
  report.member.state = client::MemberState::kMember;
  client::DaemonStatus status;
  status.node.node = name;
  status.node.phase = client::Phase::kTraining;
  status.node.step = step;
  status.node.loss = loss;
  client::PeerStatus peer;
  peer.node = "other";
  peer.neighbour = peer.linked = peer.mixing = true;
  peer.phase = client::Phase::kTraining;
  peer.step = step - 3;
  status.node.peers = {peer};
  report.status = status;
  return report;
}

Survey Three() {
  Survey survey;
  survey.node = "a";
  survey.members = {Report("a", 0.5, 10), Report("b", 2, 30),
                    Report("c", 1, 20)};
  MemberReport dead;
  dead.member.node = "d";
  dead.member.state = client::MemberState::kDead;
  survey.members.push_back(dead);
  return survey;
}

std::vector<std::string> Names(const TopView& view) {
  std::vector<std::string> names;
  for (const TopRow& row : view.Rows()) names.push_back(row.node);
  return names;
}

TEST(TopView, SortsByWhatIsChosenAndPutsTheUnknownLast) {
  TopView view("box", "node", "");
  view.Take(Three());
  EXPECT_THAT(Names(view), ElementsAre("a", "b", "c", "d"));
  view.OnKey('r');
  EXPECT_THAT(Names(view), ElementsAre("d", "c", "b", "a"));
  TopView by_loss("box", "loss", "");
  by_loss.Take(Three());
  // The largest loss first, and a node without one last, either way.
  EXPECT_THAT(Names(by_loss), ElementsAre("b", "c", "a", "d"));
  by_loss.OnKey('r');
  EXPECT_THAT(Names(by_loss), ElementsAre("a", "c", "b", "d"));
}

TEST(TopView, KeysChooseColumnFilterAndEnd) {
  TopView view("box", "node", "");
  view.Take(Three());
  view.OnKey('s');
  EXPECT_THAT(view.Lines(200, 10)[1], HasSubstr("sorted by state"));
  view.OnKey('S');
  EXPECT_THAT(view.Lines(200, 10)[1], HasSubstr("sorted by node"));
  view.OnKey('/');
  // While the filter is typed no key is a command.
  for (const char key : {'d', 'e', 'a', 'q'}) EXPECT_TRUE(view.OnKey(key));
  view.OnKey(kKeyBackspace);
  EXPECT_THAT(Names(view), ElementsAre("d"));
  EXPECT_THAT(view.Lines(200, 10)[1], HasSubstr("filter: dea_"));
  view.OnKey(kKeyEnter);
  EXPECT_THAT(Names(view), ElementsAre("d"));
  view.OnKey(kKeyEscape);
  EXPECT_THAT(Names(view), SizeIs(4));
  EXPECT_FALSE(view.OnKey('q'));
}

TEST(TopView, FillsTheScreenAndShowsItsKeys) {
  TopView view("unix:/a", "node", "");
  EXPECT_THAT(view.Lines(80, 8)[0], HasSubstr("waiting for the first answer"));
  view.Take(Three());
  std::vector<std::string> lines = view.Lines(200, 8);
  ASSERT_THAT(lines, SizeIs(8));
  EXPECT_THAT(lines[0], HasSubstr("4 nodes: 1 dead, 3 member"));
  EXPECT_THAT(lines[2], StartsWith("NODE  STATE   PHASE"));
  EXPECT_THAT(lines[7], HasSubstr("q quit"));
  // A small screen shows fewer rows and scrolls; nothing is wrapped.
  lines = view.Lines(12, 6);
  ASSERT_THAT(lines, SizeIs(6));
  EXPECT_THAT(lines[3], StartsWith("a "));
  for (const std::string& line : lines) EXPECT_LE(line.size(), 12u);
  view.OnKey(kKeyDown);
  EXPECT_THAT(view.Lines(12, 6)[3], StartsWith("b "));
  for (int i = 0; i < 9; ++i) view.OnKey(kKeyDown);
  EXPECT_THAT(view.Lines(12, 6)[4], StartsWith("d "));
  EXPECT_THAT(view.Lines(12, 0), SizeIs(0));
  EXPECT_THAT(view.Lines(12, 2), SizeIs(2));
}

TEST(TopView, AFailureKeepsTheFormerPictureAndSaysSo) {
  TopView view("box", "node", "");
  view.Take(Three());
  view.Take(absl::UnavailableError("unix:/a: nobody"));
  EXPECT_THAT(view.Lines(80, 10)[1], HasSubstr("! unix:/a: nobody"));
  EXPECT_THAT(Names(view), SizeIs(4));
}

TEST(TopView, ARowIsAsFarBehindAsItsSlowestNeighbour) {
  const TopRow row = ToTopRow(Report("a", 1, 10));
  EXPECT_EQ(row.staleness, 3);
  EXPECT_EQ(row.mixing, 1);
  EXPECT_EQ(row.consensus_distance, std::nullopt);
}

class FullScreenTest : public ::testing::Test {
 protected:
  FullScreenTest() {
    winsize size{};
    size.ws_col = 40;
    size.ws_row = 9;
    EXPECT_EQ(openpty(&master_, &slave_, nullptr, nullptr, &size), 0);
  }
  ~FullScreenTest() override {
    close(master_);
    close(slave_);
  }
  tcflag_t Flags() const {
    termios now{};
    EXPECT_EQ(tcgetattr(slave_, &now), 0);
    return now.c_lflag & static_cast<tcflag_t>(ICANON | ECHO | ISIG);
  }
  void Type(const std::string& text) const {
    ASSERT_EQ(write(master_, text.data(), text.size()),
              static_cast<ssize_t>(text.size()));
  }

  int master_ = -1;
  int slave_ = -1;
  std::ostringstream out_;
};

TEST_F(FullScreenTest, TheTerminalIsAsBeforeAfterwards) {
  const tcflag_t before = Flags();
  {
    const FullScreen screen(slave_, out_, /*color=*/true);
    // Keys come at once and unseen, and Ctrl-C stays a signal.
    EXPECT_EQ(Flags(), static_cast<tcflag_t>(ISIG));
    EXPECT_THAT(out_.str(),
                AllOf(HasSubstr("\x1b[?1049h"), HasSubstr("\x1b[?25l")));
    out_.str("");
  }
  EXPECT_EQ(Flags(), before);
  EXPECT_EQ(out_.str(), "\x1b[?25h\x1b[?1049l");
}

TEST_F(FullScreenTest, KeysAreDecoded) {
  FullScreen screen(slave_, out_, /*color=*/false);
  Type("a\x1b[A\x1b[B\x1b[5~\x1b[6~\x7f\n\x1b[99;1Xz");
  const absl::Duration wait = absl::Seconds(10);
  for (const int key :
       {static_cast<int>('a'), static_cast<int>(kKeyUp),
        static_cast<int>(kKeyDown), static_cast<int>(kKeyPageUp),
        static_cast<int>(kKeyPageDown), static_cast<int>(kKeyBackspace),
        static_cast<int>(kKeyEnter), 0, static_cast<int>('z')}) {
    EXPECT_EQ(screen.ReadKey(wait), key);
  }
  Type("\x1b");
  EXPECT_EQ(screen.ReadKey(wait), kKeyEscape);
  EXPECT_EQ(screen.ReadKey(absl::Milliseconds(1)), std::nullopt);
}

TEST_F(FullScreenTest, TheSizeIsThatOfNow) {
  FullScreen screen(slave_, out_, /*color=*/false);
  EXPECT_EQ(screen.Size().width, 40);
  EXPECT_EQ(screen.Size().height, 9);
  winsize size{};
  size.ws_col = 100;
  size.ws_row = 50;
  ASSERT_EQ(ioctl(master_, TIOCSWINSZ, &size), 0);
  EXPECT_EQ(screen.Size().width, 100);
}

TEST_F(FullScreenTest, OnlyColourNeedsColour) {
  {
    FullScreen screen(slave_, out_, /*color=*/false);
    screen.Draw({"a", "b"}, 1);
  }
  EXPECT_THAT(out_.str(), Not(HasSubstr("\x1b[7m")));
  FullScreen screen(slave_, out_, /*color=*/true);
  screen.Draw({"a", "b"}, 1);
  EXPECT_THAT(out_.str(), HasSubstr("\x1b[7mb\x1b[0m"));
}

}  // namespace
}  // namespace dfl::cli
