#include "daemon/web/health.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace dfl::web {
namespace {

bool AllWell(const std::vector<HealthCheck>& checks) {
  return std::all_of(checks.begin(), checks.end(),
                     [](const HealthCheck& c) { return c.fault.empty(); });
}

void Write(const std::vector<HealthCheck>& checks, bool verbose,
           std::string& text) {
  for (const HealthCheck& check : checks) {
    if (!check.fault.empty()) {
      absl::StrAppend(&text, "[-] ", check.name, ": ", check.fault, "\n");
    } else if (verbose) {
      absl::StrAppend(&text, "[+] ", check.name, ": ok\n");
    }
  }
}

HttpResponse Answer(bool well, const std::string& lines) {
  HttpResponse response;
  response.status = well ? 200 : 503;
  response.body = absl::StrCat(lines, well ? "ok\n" : "not ok\n");
  return response;
}

}  // namespace

bool Health::IsLive() const { return AllWell(live); }

bool Health::IsReady() const { return IsLive() && AllWell(ready); }

Health CheckHealth(const Sample* sample, absl::Time now, bool stopping) {
  Health health;
  HealthCheck loop = {"loop", ""};
  HealthCheck training = {"training", ""};
  if (sample != nullptr) {
    if (now - sample->at > kLoopPatience) {
      loop.fault = absl::StrCat("the node's loop has not moved for ",
                                absl::FormatDuration(absl::Trunc(
                                    now - sample->at, absl::Seconds(1))));
    }
    training.fault = sample->frozen;
  }
  health.live = {loop, training};
  HealthCheck start = {"start", ""};
  if (sample == nullptr) start.fault = "the daemon is starting";
  if (stopping) start.fault = "the daemon is going down";
  health.ready.push_back(start);
  HealthCheck part = {"taking part", ""};
  if (sample != nullptr) part.fault = absl::StrJoin(sample->not_ready, "; ");
  health.ready.push_back(part);
  return health;
}

HttpResponse AnswerLive(const Health& health, const HttpRequest& request) {
  std::string lines;
  Write(health.live, request.query.count("verbose") > 0, lines);
  return Answer(health.IsLive(), lines);
}

HttpResponse AnswerReady(const Health& health, const HttpRequest& request) {
  const bool verbose = request.query.count("verbose") > 0;
  std::string lines;
  Write(health.live, verbose, lines);
  Write(health.ready, verbose, lines);
  return Answer(health.IsReady(), lines);
}

}  // namespace dfl::web
