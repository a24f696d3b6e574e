#include "daemon/web/metrics.h"

#include <cmath>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "daemon/web/metrics_table.h"
#include "prometheus/text_serializer.h"

namespace dfl::web {
namespace {

const char* TypeName(prometheus::MetricType type) {
  switch (type) {
    case prometheus::MetricType::Counter:
      return "counter";
    case prometheus::MetricType::Histogram:
      return "histogram";
    default:
      return "gauge";
  }
}

}  // namespace

void Series::Set(double value, const Labels& labels) {
  if (!std::isfinite(value)) return;
  prometheus::ClientMetric& metric = family_.metric.emplace_back();
  for (const auto& [name, text] : labels) metric.label.push_back({name, text});
  metric.counter.value = value;
  metric.gauge.value = value;
}

void Series::Set(const TimeHistogram::Values& values) {
  prometheus::ClientMetric::Histogram& histogram =
      family_.metric.emplace_back().histogram;
  histogram.sample_count = values.count;
  histogram.sample_sum = values.sum;
  uint64_t cumulative = 0;
  for (size_t i = 0; i < values.buckets.size(); ++i) {
    cumulative += values.buckets[i];
    const double bound = i < TimeHistogram::kBounds.size()
                             ? TimeHistogram::kBounds[i]
                             : HUGE_VAL;
    histogram.bucket.push_back({cumulative, bound});
  }
}

std::string MetricsText(const Reading& reading) {
  std::vector<prometheus::MetricFamily> families;
  for (const MetricSection& section : MetricsTable()) {
    for (const Metric& metric : section.metrics) {
      prometheus::MetricFamily family;
      family.name = metric.name;
      family.help = metric.help;
      family.type = metric.type;
      Series series(family);
      metric.read(reading, series);
      if (!family.metric.empty()) families.push_back(std::move(family));
    }
  }
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, families);
  return std::move(out).str();
}

std::string MetricsPage() {
  std::string page =
      "# Metrics\n\n"
      "What `dfld` tells Prometheus at `/metrics`, and `dflctl metrics` on the "
      "local\nsocket. This page is made from the code: `DFL_UPDATE_SAMPLE=1` "
      "and `web_test`\nwrite it. [Monitoring](monitoring.md) says how to "
      "switch "
      "the address on, and\nwhich rules and dashboard come with it.\n\n"
      "Times are in seconds, sizes in bytes. Counters count from the start of "
      "the\nprocess. A number that is not known is left out, never 0: a node "
      "without test\nrows has no accuracy. No label names a peer, so the "
      "number "
      "of series does not\ngrow with the network.\n";
  for (const MetricSection& section : MetricsTable()) {
    absl::StrAppend(&page, "\n## ", section.title,
                    "\n\n| metric | type | labels | meaning |\n"
                    "| --- | --- | --- | --- |\n");
    for (const Metric& metric : section.metrics) {
      absl::StrAppend(&page, "| `", metric.name, "` | ", TypeName(metric.type),
                      " | ", metric.labels, " | ", metric.help, " |\n");
    }
  }
  return page;
}

}  // namespace dfl::web
