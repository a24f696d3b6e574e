// The metrics, one entry each: what it is called, what it means, where its
// value comes from. Room-internal.
#ifndef DFL_WEB_METRICS_TABLE_H_
#define DFL_WEB_METRICS_TABLE_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "daemon/web/meters.h"
#include "daemon/web/metrics.h"
#include "prometheus/metric_family.h"

namespace dfl::web {

// The values of one metric.
class Series {
 public:
  using Labels = std::vector<std::pair<std::string, std::string>>;

  explicit Series(prometheus::MetricFamily& family) : family_(family) {}

  // One that is not finite is left out.
  void Set(double value, const Labels& labels = {});
  void Set(const TimeHistogram::Values& values);

 private:
  prometheus::MetricFamily& family_;
};

struct Metric {
  std::string name;
  prometheus::MetricType type = prometheus::MetricType::Gauge;
  std::string help;    // a sentence, with the unit
  std::string labels;  // for people: "phase: idle, joining, ..."; "": none
  std::function<void(const Reading&, Series&)> read;
};

struct MetricSection {
  std::string title;
  std::vector<Metric> metrics;
};

const std::vector<MetricSection>& MetricsTable();

}  // namespace dfl::web

#endif  // DFL_WEB_METRICS_TABLE_H_
