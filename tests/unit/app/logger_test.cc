// What the log leaves out and what it never does, and what texts of others do
// to it.
#include "daemon/app/logger.h"

#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "daemon/app/event_hub.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dfl::app {
namespace {

using config::LogLevel;
using testing::Each;
using testing::EndsWith;
using testing::HasSubstr;
using testing::SizeIs;

class LoggerTest : public testing::Test {
 protected:
  void SetUp() override { testing::internal::CaptureStderr(); }
  void TearDown() override {
    if (capturing_) (void)Lines();
  }

  LogClocks Clocks() {
    return {[this] { return steady_; }, [this] { return wall_; }};
  }
  Logger Make(config::LogFormat format) {
    return Logger({LogLevel::kInfo, format}, "anna", Clocks());
  }
  // What was written.
  std::vector<std::string> Lines() {
    capturing_ = false;
    return absl::StrSplit(testing::internal::GetCapturedStderr(), '\n',
                          absl::SkipEmpty());
  }

  absl::Time steady_ = absl::FromUnixSeconds(1000);
  absl::Time wall_ = absl::FromUnixSeconds(1800000000);
  bool capturing_ = true;
};

TEST_F(LoggerTest, OfWhatComesOftenTheNumberIsTold) {
  Logger log = Make(config::LogFormat::kText);
  for (int i = 0; i < 50; ++i) log.Warning("rejected", absl::StrCat("no ", i));
  log.TellLeftOut();  // the time is not over
  steady_ += absl::Seconds(11);
  log.TellLeftOut();
  log.TellLeftOut();
  const std::vector<std::string> lines = Lines();
  ASSERT_THAT(lines, SizeIs(21));
  EXPECT_THAT(lines.back(), EndsWith("rejected: 30 more like this were left "
                                     "out, at last: no 49"));
}

TEST_F(LoggerTest, TheEndTellsWhatIsLeft) {
  {
    Logger log = Make(config::LogFormat::kText);
    for (int i = 0; i < 22; ++i) log.Info("link-up", absl::StrCat("no ", i));
  }
  EXPECT_THAT(Lines().back(),
              EndsWith("2 more like this were left out, at last: no 21"));
}

TEST_F(LoggerTest, OfEvaluationsOneLineIsWrittenInAPeriod) {
  Logger log = Make(config::LogFormat::kText);
  for (int i = 0; i < 300; ++i) {
    log.Info("evaluated", absl::StrCat("step ", i));
    log.TellLeftOut();
    steady_ += absl::Milliseconds(100);
  }
  const std::vector<std::string> lines = Lines();
  ASSERT_THAT(lines, SizeIs(3));  // 30 s
  EXPECT_THAT(lines[0], EndsWith("evaluated: step 0"));
  EXPECT_THAT(lines[1], EndsWith("step 100 (the last of 100)"));
}

TEST_F(LoggerTest, ALevelHoldsForAWhile) {
  Logger log = Make(config::LogFormat::kText);
  log.SetLevelFor(LogLevel::kDebug, absl::Minutes(10));
  log.Write(LogLevel::kDebug, "step", "seen");
  EXPECT_EQ(log.Levels().now, control::LogLevel::kDebug);
  EXPECT_EQ(log.Levels().left, absl::Minutes(10));
  steady_ += absl::Minutes(10);
  log.TellLeftOut();
  log.Write(LogLevel::kDebug, "step", "not seen");
  EXPECT_EQ(log.Levels().now, control::LogLevel::kInfo);
  EXPECT_THAT(Lines(), testing::ElementsAre(EndsWith("step: seen")));
}

TEST_F(LoggerTest, ALevelOfTheSettingsWaitsForTheOtherOnesEnd) {
  Logger log = Make(config::LogFormat::kText);
  log.SetLevelFor(LogLevel::kDebug, absl::Minutes(10));
  log.SetLevel(LogLevel::kError);  // a reload
  EXPECT_EQ(log.Levels().now, control::LogLevel::kDebug);
  log.ResetLevel();
  EXPECT_EQ(log.Levels().now, control::LogLevel::kError);
  log.Warning("x", "not seen");
  EXPECT_THAT(Lines(), SizeIs(0));
}

TEST_F(LoggerTest, TheJournalGetsPrioritiesAndNoTimes) {
  Logger log({LogLevel::kInfo, config::LogFormat::kText}, "anna", Clocks(),
             /*journal=*/true);
  log.Error("x", "bad");
  log.Warning("x", "odd");
  log.Info("x", "good");
  EXPECT_THAT(Lines(),
              testing::ElementsAre("<3>[anna] x: bad", "<4>[anna] x: odd",
                                   "<6>[anna] x: good"));
}

TEST(IsJournalTest, ComparesDeviceAndInode) {
  struct stat found {};
  ASSERT_EQ(fstat(STDERR_FILENO, &found), 0);
  const std::string here = absl::StrCat(found.st_dev, ":", found.st_ino);
  EXPECT_TRUE(IsJournal(STDERR_FILENO, here));
  EXPECT_FALSE(IsJournal(STDERR_FILENO, here + "0"));
  EXPECT_FALSE(IsJournal(STDERR_FILENO, ""));
}

TEST_F(LoggerTest, FieldsStandInJson) {
  Logger log = Make(config::LogFormat::kJson);
  EventHub hub(log, [this] { return wall_; });
  hub.Report(ports::LinkDown{NodeId("bert"), absl::UnavailableError("cut")});
  const std::vector<std::string> lines = Lines();
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_THAT(lines[0], HasSubstr(R"("event":"link-down","peer":"bert")"));
}

TEST_F(LoggerTest, TheTailKeepsWhatWasWritten) {
  Logger log = Make(config::LogFormat::kText);
  log.Info("x", "one\ntwo");
  log.Warning("x", "three");
  log.Write(LogLevel::kDebug, "x", "below the level");
  const control::LogPart all = log.tail().Read({0, 10, control::LogLevel::kDebug});
  ASSERT_THAT(all.lines, SizeIs(2));
  EXPECT_EQ(all.lines[0].text, "one\\ntwo");
  EXPECT_EQ(all.lines[1].id, 2);
  EXPECT_THAT(log.tail().Read({1, 10, control::LogLevel::kDebug}).lines,
              SizeIs(1));
  EXPECT_THAT(log.tail().Read({0, 10, control::LogLevel::kWarning}).lines,
              SizeIs(1));
  EXPECT_EQ(log.tail().Counts()[2], 1);
}

TEST(LogTailTest, SaysHowManyLinesAreForgotten) {
  LogTail tail;
  for (size_t i = 0; i < LogTail::kLines + 5; ++i) tail.Add({});
  EXPECT_EQ(tail.Read({0, 1, control::LogLevel::kDebug}).forgotten, 5);
  EXPECT_EQ(tail.Read({3, 1, control::LogLevel::kDebug}).forgotten, 2);
  const int64_t newest = LogTail::kLines + 5;
  EXPECT_EQ(tail.Read({0, 1, control::LogLevel::kDebug}).lines[0].id, newest);
}

TEST_F(LoggerTest, AChangeIsNeverLeftOut) {
  Logger log = Make(config::LogFormat::kText);
  EventHub hub(log, [this] { return wall_; });
  for (int i = 0; i < 50; ++i) {
    log.Keep(LogLevel::kInfo, "audit", "uid 0 (admin): train pause: ok");
    hub.Report(ports::PhaseChanged{ports::Phase::kTraining,
                                   ports::Phase::kPaused, "an order"});
    hub.Report(ports::PlanAdopted{3, 4});
    hub.Report(ports::RecordCame{true, NodeId(), "a plan"});
  }
  EXPECT_THAT(Lines(), SizeIs(200));
}

TEST_F(LoggerTest, AWallClockThatIsSetBackSilencesNothing) {
  Logger log = Make(config::LogFormat::kText);
  for (int i = 0; i < 20; ++i) log.Info("link-down", "gone");
  wall_ -= absl::Hours(1);
  steady_ += absl::Seconds(11);
  log.Info("link-down", "after");
  const std::vector<std::string> lines = Lines();
  ASSERT_THAT(lines, SizeIs(21));
  EXPECT_THAT(lines.back(), EndsWith("after"));
}

TEST_F(LoggerTest, NobodysTextForgesALine) {
  Logger log = Make(config::LogFormat::kText);
  EventHub hub(log, [this] { return wall_; });
  const std::string forged =
      "bye\n2026-01-01T00:00:00.000+00:00 info [anna] audit: root: ok\x1b[2J";
  hub.Report(ports::LinkDown{NodeId("bert"), absl::UnavailableError(forged)});
  hub.Report(ports::PeerUnreachable{"h:1", absl::UnavailableError(forged)});
  hub.Report(ports::MessageRejected{NodeId("bert"),
                                    ports::RefuseReason::kBadMessage, forged});
  hub.Report(ports::LearnerFailed{1, absl::InternalError(forged)});
  hub.Report(ports::SecurityNote{true, forged});
  hub.Report(ports::RecordCame{false, NodeId("bert"), forged});
  log.Keep(LogLevel::kInfo, "audit", forged);
  const std::vector<std::string> lines = Lines();
  EXPECT_THAT(lines, SizeIs(7));
  EXPECT_THAT(lines, Each(HasSubstr("bye\\n2026-01-01")));
  EXPECT_THAT(lines, Each(HasSubstr("\\x1b[2J")));
}

TEST_F(LoggerTest, WatchersAndJsonSayTheWallClock) {
  Logger log = Make(config::LogFormat::kJson);
  EventHub hub(log, [this] { return wall_; });
  std::vector<absl::Time> seen;
  const auto subscription = hub.Subscribe(
      [&seen](const control::TimedEvent& event) { seen.push_back(event.at); });
  hub.Report(ports::PlanAdopted{1, 0});
  wall_ += absl::Hours(1);
  hub.Report(ports::PlanAdopted{2, 0});
  EXPECT_EQ(seen[1] - seen[0], absl::Hours(1));
  EXPECT_THAT(Lines()[0], HasSubstr(R"("time":"2027-01-15T08:00:00+00:00")"));
}

}  // namespace
}  // namespace dfl::app
