#include "daemon/page/history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"

namespace dfl::page {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Point At(double at_s, double loss = 1, double step = 0) {
  Point point;
  point.at_s = at_s;
  point[Column::kLoss] = loss;
  point[Column::kStep] = step;
  return point;
}

std::vector<double> Times(const std::vector<Point>& points) {
  std::vector<double> times;
  for (const Point& point : points) times.push_back(point.at_s);
  return times;
}

// A daemon that is looked at once a second.
History After(int64_t seconds) {
  History history;
  for (int64_t second = 1; second <= seconds; ++second) {
    history.Add(At(static_cast<double>(second), 1 / static_cast<double>(second),
                   static_cast<double>(second)));
  }
  return history;
}

TEST(History, HasEveryMomentOfTheLastMinutes) {
  EXPECT_THAT(History().All(), IsEmpty());
  EXPECT_THAT(Times(After(3).All()), ElementsAre(1, 2, 3));
  EXPECT_THAT(After(200).All(), SizeIs(200));
}

TEST(History, GrowsCoarserWithAge) {
  const std::vector<Point> points = After(3600).All();
  EXPECT_EQ(points.back().at_s, 3600);
  // The last four minutes second by second, before that every ten.
  EXPECT_EQ(points[points.size() - 200].at_s, 3401);
  EXPECT_EQ(points[5].at_s - points[4].at_s, 120);
  EXPECT_LE(points.front().at_s, 120);
  for (size_t i = 1; i < points.size(); ++i) {
    ASSERT_GT(points[i].at_s, points[i - 1].at_s);
    ASSERT_LE(points[i].at_s - points[i - 1].at_s, 121);
  }
}

TEST(History, HoldsAWeekInTensOfKilobytes) {
  History history;
  constexpr double kWeek = 7 * 86400;
  for (double at_s = 1; at_s <= kWeek; at_s += 5) {
    Point point;
    point.at_s = at_s;
    for (double& value : point.values) value = std::sin(at_s) * 123.456789;
    point[Column::kBytesSent] = 12345.678 * at_s;
    history.Add(point);
  }
  const std::vector<Point> points = history.All();
  // Half an hour is what the oldest point stands for.
  EXPECT_LE(points.front().at_s, 1801);
  EXPECT_GE(points.back().at_s, kWeek - 5);
  EXPECT_LE(ToJson(points).size(), 100'000u);
}

TEST(History, AveragesWhatVariesAndKeepsTheLastOfTheRest) {
  History history;
  // Ten seconds that become one point, once 240 finer ones have pushed them
  // out.
  for (int second = 0; second < 10; ++second) {
    history.Add(At(second, second, 100 + second));
  }
  for (int second = 10; second < 300; ++second) history.Add(At(second));
  const Point oldest = history.All().front();
  EXPECT_EQ(oldest.at_s, 9);
  EXPECT_EQ(oldest[Column::kLoss], 4.5);
  EXPECT_EQ(oldest[Column::kStep], 109);
}

TEST(History, AMomentThatIsNotLaterIsLeftOut) {
  History history;
  history.Add(At(5));
  history.Add(At(5));
  history.Add(At(4));
  history.Add(At(std::nan("")));
  EXPECT_THAT(Times(history.All()), ElementsAre(5));
}

TEST(History, ToJsonHasAnArrayForEachColumnThatHasANumber) {
  Point first = At(1, 0.123456789, 10);
  Point second = At(2.04, std::nan(""), 1234567);
  second[Column::kLag] = -3;
  const std::string text = ToJson({first, second});
  EXPECT_EQ(text,
            "{\"t\":[1.0,2.0],\"step\":[10,1234567],\"loss\":[0.12346,null],"
            "\"lag\":[null,-3]}");
  EXPECT_TRUE(nlohmann::json::accept(text));
  EXPECT_EQ(ToJson({}), "{\"t\":[]}");
}

TEST(History, ColumnsHaveNames) {
  EXPECT_STREQ(NameOf(Column::kStep), "step");
  EXPECT_STREQ(NameOf(Column::kLag), "lag");
}

}  // namespace
}  // namespace dfl::page
