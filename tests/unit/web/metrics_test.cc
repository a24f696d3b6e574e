// What a scrape says, how much of it there is, and that the documentation lists
// just that.
#include "daemon/web/metrics.h"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "daemon/web/latest.h"
#include "daemon/web/metrics_table.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/web/promtool.h"
#include "tests/unit/web/sample_of.h"

namespace dfl::web {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Scrape(const Sample* sample, const Meters& meters = Meters()) {
  return MetricsText({sample, meters, Resources()});
}

// Lines with a value.
std::vector<std::string> SeriesOf(const std::string& text) {
  std::vector<std::string> series;
  for (const auto line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    if (!absl::StartsWith(line, "#")) series.emplace_back(line);
  }
  return series;
}

TEST(MetricsTest, SayWhatTheNodeIsAndDoes) {
  const Sample sample = SampleOf(3);
  const std::string text = Scrape(&sample);
  for (const char* line :
       {"dfl_phase{phase=\"training\"} 1\n",
        "dfl_phase{phase=\"idle\"} 0\n",
        "dfl_steps 100\n",
        "dfl_loss 0.25\n",
        "dfl_evaluation_accuracy 0.875\n",
        "dfl_bytes_total{direction=\"sent\",format=\"random int8\"} 1000\n",
        "dfl_bytes_total{direction=\"received\",format=\"dense fp32\"} 60\n",
        "dfl_dense_bytes_total 4000000\n",
        "dfl_refusals_total{reason=\"busy\"} 2\n",
        "dfl_consensus_distance 2.5\n",
        "dfl_neighbour_lag_steps 7\n",
        "dfl_invariant_drift 1e-12\n",
        "dfl_members{state=\"member\"} 4\n",
        "dfl_neighbours{state=\"mixing\"} 3\n",
        "dfl_plan_version 3\n",
        "dfl_contract_disagreements 0\n",
        "dfl_checkpoint_age_seconds 30\n",
        "dfl_certificate_seconds_left 7776000\n",
        "dfl_alone 0\n",
        "# TYPE dfl_bytes_total counter\n",
        "# TYPE dfl_wait_seconds histogram\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST(MetricsTest, WhatIsNotKnownIsLeftOut) {
  Sample sample = SampleOf(1);
  sample.daemon.node.loss.reset();
  sample.daemon.node.evaluated = false;
  sample.daemon.node.gauges.clear();
  sample.daemon.insecure = true;
  const std::string text = Scrape(&sample);
  for (const char* name :
       {"dfl_loss", "dfl_evaluation_accuracy", "dfl_consensus_distance",
        "dfl_certificate_seconds_left", "nan", "inf "}) {
    EXPECT_THAT(text, Not(HasSubstr(name)));
  }
}

TEST(MetricsTest, BeforeTheFirstSampleTheProcessIsTold) {
  const std::string text = Scrape(nullptr);
  EXPECT_THAT(text, HasSubstr("process_resident_memory_bytes"));
  EXPECT_THAT(text, Not(HasSubstr("dfl_steps ")));
}

TEST(MetricsTest, HistogramsCountEachTimeInItsBucket) {
  Meters meters;
  meters.wait.Observe(absl::Milliseconds(1));  // at a bound: in its bucket
  meters.wait.Observe(absl::Milliseconds(30));
  meters.wait.Observe(absl::Minutes(5));
  meters.wait.Observe(absl::Seconds(-1));  // counts as 0
  const std::string text = Scrape(nullptr, meters);
  EXPECT_THAT(text, HasSubstr("dfl_wait_seconds_bucket{le=\"0.001\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("dfl_wait_seconds_bucket{le=\"0.025\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("dfl_wait_seconds_bucket{le=\"0.05\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("dfl_wait_seconds_bucket{le=\"+Inf\"} 4\n"));
  EXPECT_THAT(text, HasSubstr("dfl_wait_seconds_count 4\n"));
  EXPECT_THAT(text, HasSubstr("dfl_wait_seconds_sum 300.031"));
}

TEST(MetricsTest, SixtyFourMembersHaveAtMost300Series) {
  const Sample few = SampleOf(3);
  const Sample many = SampleOf(63);
  const size_t series = SeriesOf(Scrape(&many)).size();
  EXPECT_LE(series, 300U);
  EXPECT_EQ(series, SeriesOf(Scrape(&few)).size()) << "some label names peers";
}

TEST(MetricsTest, NamesAreOnceAndSayTheirUnit) {
  std::set<std::string> names;
  for (const MetricSection& section : MetricsTable()) {
    for (const Metric& metric : section.metrics) {
      EXPECT_TRUE(names.insert(metric.name).second) << metric.name;
      EXPECT_TRUE(absl::StartsWith(metric.name, "dfl_") ||
                  absl::StartsWith(metric.name, "process_"))
          << metric.name;
      EXPECT_EQ(metric.type == prometheus::MetricType::Counter,
                absl::EndsWith(metric.name, "_total"))
          << metric.name;
      EXPECT_TRUE(absl::EndsWith(metric.help, ".")) << metric.name;
    }
  }
}

TEST(MetricsTest, PromtoolFindsNothing) {
  if (!HasPromtool()) GTEST_SKIP() << "there is no promtool";
  const Sample sample = SampleOf(63);
  const std::string file = testing::TempDir() + "/metrics.txt";
  std::ofstream(file) << Scrape(&sample);
  const Checked checked = RunPromtool("check metrics < " + file);
  EXPECT_EQ(checked.code, 0) << checked.out;
  EXPECT_EQ(checked.out, "");
}

TEST(MetricsTest, TheDocumentationListsThem) {
  const std::string path = DFL_DOCS_DIR "/metrics.md";
  const std::string page = MetricsPage();
  if (std::getenv("DFL_UPDATE_SAMPLE") != nullptr) {
    std::ofstream(path) << page;
  }
  std::ifstream file(path);
  const std::string written{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(written, page)
      << "run this test with DFL_UPDATE_SAMPLE=1 to write docs/metrics.md";
}

TEST(ResourcesTest, AreThoseOfThisProcess) {
  const Resources found = ReadResources(testing::TempDir());
  EXPECT_GT(found.resident_bytes, 1 << 20);
  EXPECT_GE(found.virtual_bytes, found.resident_bytes);
  EXPECT_GE(found.threads, 1);
  EXPECT_GE(found.open_files, 3);
  EXPECT_GT(found.max_open_files, found.open_files);
  EXPECT_GT(found.start_time, 1.5e9);
  EXPECT_GT(found.state_free_bytes, 0);
  EXPECT_EQ(ReadResources("/no/such/folder").state_free_bytes, -1);
}

TEST(LatestTest, HasTheNewest) {
  Latest<int> latest;
  EXPECT_EQ(latest.Get(), nullptr);
  latest.Offer(std::make_shared<int>(1));
  const auto kept = latest.Get();
  latest.Offer(std::make_shared<int>(2));
  EXPECT_EQ(*kept, 1);
  EXPECT_EQ(*latest.Get(), 2);
}

}  // namespace
}  // namespace dfl::web
