// The daemon's metrics as Prometheus reads them, and the page of the
// documentation that lists them: both are made from one table
// (metrics_table.h).
#ifndef DFL_WEB_METRICS_H_
#define DFL_WEB_METRICS_H_

#include <string>

#include "daemon/web/meters.h"
#include "daemon/web/resources.h"
#include "daemon/web/sample.h"

namespace dfl::web {

// What a scrape looks at. `sample` may be null: then only what needs none is
// told.
struct Reading {
  const Sample* sample = nullptr;
  const Meters& meters;
  const Resources& resources;
};

// The text format 0.0.4. A number that is not known is left out, never 0.
inline constexpr char kMetricsType[] =
    "text/plain; version=0.0.4; charset=utf-8";
std::string MetricsText(const Reading& reading);

// docs/metrics.md.
std::string MetricsPage();

}  // namespace dfl::web

#endif  // DFL_WEB_METRICS_H_
