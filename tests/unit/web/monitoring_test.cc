// The alert rules and the dashboard that come with dfld: Prometheus takes them,
// they fire when they should, and they name metrics that there are.
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "daemon/web/metrics_table.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/unit/web/promtool.h"

namespace dfl::web {
namespace {

std::string Read(const std::string& name) {
  std::ifstream file(std::string(DFL_MONITORING_DIR "/") + name);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Words that begin with dfl_ and look like metrics.
std::set<std::string> MetricsIn(const std::string& text) {
  std::set<std::string> names;
  for (size_t at = text.find("dfl_"); at != std::string::npos;
       at = text.find("dfl_", at + 1)) {
    size_t end = at;
    while (end < text.size() &&
           (absl::ascii_isalnum(static_cast<unsigned char>(text[end])) ||
            text[end] == '_')) {
      ++end;
    }
    names.insert(text.substr(at, end - at));
  }
  return names;
}

void ExpectKnown(const std::string& text) {
  std::set<std::string> known;
  for (const MetricSection& section : MetricsTable()) {
    for (const Metric& metric : section.metrics) {
      known.insert(metric.name);
      if (metric.type != prometheus::MetricType::Histogram) continue;
      for (const char* part : {"_bucket", "_sum", "_count"}) {
        known.insert(metric.name + part);
      }
    }
  }
  const std::set<std::string> used = MetricsIn(text);
  EXPECT_GT(used.size(), 5U);
  for (const std::string& name : used) {
    EXPECT_EQ(known.count(name), 1U) << name << " is no metric of dfld";
  }
}

TEST(MonitoringTest, RulesAndDashboardNameMetricsThatThereAre) {
  ExpectKnown(Read("alerts.yaml"));
  ExpectKnown(Read("dashboard.json"));
}

TEST(MonitoringTest, TheDashboardIsComplete) {
  const auto board = nlohmann::json::parse(Read("dashboard.json"));
  EXPECT_GT(board["panels"].size(), 10U);
  std::set<int> ids;
  for (const auto& panel : board["panels"]) {
    EXPECT_TRUE(ids.insert(panel["id"].get<int>()).second) << panel["title"];
    if (panel["type"] == "row") continue;
    EXPECT_FALSE(panel["targets"].empty()) << panel["title"];
    EXPECT_FALSE(panel["description"].get<std::string>().empty())
        << panel["title"];
  }
}

TEST(MonitoringTest, PromtoolTakesTheRules) {
  if (!HasPromtool()) GTEST_SKIP() << "there is no promtool";
  const Checked checked =
      RunPromtool("check rules " DFL_MONITORING_DIR "/alerts.yaml");
  EXPECT_EQ(checked.code, 0) << checked.out;
}

TEST(MonitoringTest, RulesFireWhenTheyShould) {
  if (!HasPromtool()) GTEST_SKIP() << "there is no promtool";
  const Checked checked =
      RunPromtool("test rules " DFL_MONITORING_DIR "/alerts_test.yaml");
  EXPECT_EQ(checked.code, 0) << checked.out;
}

}  // namespace
}  // namespace dfl::web
