// What a scrape costs at 64 members: the text, and the answer over HTTP on
// loopback. The bar is 5 ms.
#include <algorithm>
#include <chrono>  // NOLINT(build/c++11): a clock that nobody sets
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "daemon/base/host_port.h"
#include "daemon/web/http_server.h"
#include "daemon/web/metrics.h"
#include "httplib.h"
#include "tests/unit/web/sample_of.h"

namespace dfl::web {
namespace {

constexpr int kRounds = 7;
constexpr int kScrapes = 200;

// Milliseconds of one call, round by round.
void Report(const char* what, const std::function<size_t()>& call) {
  std::vector<double> rounds;
  size_t bytes = 0;
  for (int round = 0; round < kRounds; ++round) {
    const auto began = std::chrono::steady_clock::now();
    for (int i = 0; i < kScrapes; ++i) bytes = call();
    const std::chrono::duration<double, std::milli> took =
        std::chrono::steady_clock::now() - began;
    rounds.push_back(took.count() / kScrapes);
  }
  std::printf("%-28s %7zu bytes, ms:", what, bytes);
  for (const double ms : rounds) std::printf(" %.3f", ms);
  std::nth_element(rounds.begin(), rounds.begin() + kRounds / 2, rounds.end());
  std::printf("; median %.3f, bar 5\n", rounds[kRounds / 2]);
}

int Main() {
  const Sample sample = SampleOf(63);
  const Meters meters;
  const auto scrape = [&] {
    return MetricsText({&sample, meters, ReadResources("/tmp")});
  };
  size_t series = 0;
  for (const auto line : absl::StrSplit(scrape(), '\n', absl::SkipEmpty())) {
    series += line[0] == '#' ? 0 : 1;
  }
  std::printf("%zu series at 64 members, bar 300\n", series);
  Report("the text", [&] { return scrape().size(); });

  HttpServerOptions options;
  options.addresses = {"127.0.0.1:0"};
  auto server = HttpServer::Bind(options);
  if (!server.ok()) return 1;
  (*server)->Add({"/metrics", Group::kMetrics, [&](const HttpRequest&) {
                    HttpResponse response;
                    response.content_type = kMetricsType;
                    response.body = scrape();
                    return response;
                  }});
  (*server)->Start();
  httplib::Client client("127.0.0.1",
                         ParseHostPort((*server)->addresses()[0])->port);
  client.set_keep_alive(true);
  Report("over HTTP, kept alive", [&] {
    const auto answer = client.Get("/metrics");
    return answer ? answer->body.size() : 0;
  });
  return 0;
}

}  // namespace
}  // namespace dfl::web

int main() { return dfl::web::Main(); }
