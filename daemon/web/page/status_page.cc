#include "daemon/web/page/status_page.h"

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "daemon/page/history.h"
#include "daemon/page/page_html.h"
#include "daemon/web/page/gzip.h"
#include "daemon/web/page/network_json.h"
#include "daemon/web/page/status_json.h"

namespace dfl::web {
namespace {

// Between two points, and between two messages of a stream.
constexpr absl::Duration kEvery = absl::Seconds(1);

std::string Text(const Json& document) {
  return document.dump(-1, ' ', false, Json::error_handler_t::replace);
}

HttpResponse JsonAnswer(std::string text) {
  HttpResponse response;
  response.content_type = "application/json; charset=utf-8";
  response.body = std::move(text);
  return response;
}

HttpResponse Refused(int status, const std::string& why) {
  HttpResponse response = JsonAnswer(Text(Json{{"error", why}}));
  response.status = status;
  return response;
}

// A number of the query; `otherwise` where there is none. nullopt: it is none.
std::optional<int64_t> NumberIn(const HttpRequest& request,
                                const std::string& name, int64_t otherwise) {
  const auto found = request.query.find(name);
  if (found == request.query.end()) return otherwise;
  int64_t number = 0;
  if (!absl::SimpleAtoi(found->second, &number) || number < 0) {
    return std::nullopt;
  }
  return number;
}

HttpResponse PageAnswer(const HttpRequest& request) {
  static const std::string* const compressed =
      new std::string(Gzip(page::Html()));
  HttpResponse response;
  response.content_type = "text/html; charset=utf-8";
  response.headers["Vary"] = "Accept-Encoding";
  if (TakesGzip(request) && !compressed->empty()) {
    response.body = *compressed;
    response.headers["Content-Encoding"] = "gzip";
  } else {
    response.body = page::Html();
  }
  response.headers["Content-Security-Policy"] = page::SecurityPolicy();
  response.headers["Referrer-Policy"] = "no-referrer";
  return response;
}

Json AgesJson(const std::map<NodeId, Recorder::Age>& ages) {
  const auto tell = [](const std::optional<double>& seconds) {
    return seconds.has_value() ? Json(*seconds) : Json();
  };
  Json out = Json::object();
  for (const auto& [node, age] : ages) {
    out[node.name()] =
        Json{{"heard_s", tell(age.heard_s)}, {"model_s", tell(age.model_s)}};
  }
  return out;
}

}  // namespace

StatusPage::StatusPage(control::Backend& backend)
    : backend_(backend), started_(SteadyNow()), thread_([this] { Record(); }) {}

StatusPage::~StatusPage() {
  {
    const absl::MutexLock lock(&mutex_);
    ending_ = true;
    ended_.SignalAll();
  }
  thread_.join();
}

double StatusPage::Now() const {
  return absl::ToDoubleSeconds(SteadyNow() - started_);
}

void StatusPage::Record() {
  while (true) {
    const runtime::NodeStatus status = backend_.Status().node;
    const absl::MutexLock lock(&mutex_);
    recorder_.Take(status, Now());
    const absl::Time next = SteadyNow() + kEvery;
    while (!ending_ && SteadyNow() < next) {
      ended_.WaitFor(&mutex_, next - SteadyNow());
    }
    if (ending_) return;
  }
}

std::string StatusPage::LiveJson() const {
  const control::DaemonStatus status = backend_.Status();
  const control::PlanDocument plan = backend_.Plan();
  const double now = Now();
  std::map<NodeId, Recorder::Age> ages;
  {
    const absl::MutexLock lock(&mutex_);
    ages = recorder_.Ages(now);
  }
  Json out{{"schema", 1},
           {"at_s", now},
           {"status", StatusJson(status)},
           {"ages", AgesJson(ages)},
           {"plan_version", plan.version},
           {"events_end", EventsEnd(backend_.Events())}};
  out["point"] = Json::parse(page::ToJson({PointOf(status.node, now)}));
  return Text(out);
}

void StatusPage::Live(EventStream& out) const {
  while (out.Send("status", LiveJson()) && out.Wait(kEvery)) {
  }
}

void StatusPage::Register(HttpServer& server) {
  const auto serve = [&server](const char* path, auto answer) {
    server.Add({path, Group::kPage,
                [answer](const HttpRequest& request) {
                  HttpResponse response = answer(request);
                  Compress(request, response);
                  return response;
                },
                Method::kGet});
  };
  server.Add({"/", Group::kPage, PageAnswer, Method::kGet});
  serve("/page/history.json", [this](const HttpRequest& /*request*/) {
    std::vector<page::Point> points;
    {
      const absl::MutexLock lock(&mutex_);
      points = recorder_.History();
    }
    return JsonAnswer(absl::StrCat("{\"at_s\":", Now(),
                                   ",\"points\":", page::ToJson(points), "}"));
  });
  serve("/page/members.json", [this](const HttpRequest& /*request*/) {
    return JsonAnswer(Text(MembersJson(backend_.Members())));
  });
  serve("/page/graph.json", [this](const HttpRequest& /*request*/) {
    return JsonAnswer(Text(GraphJson(
        backend_.Plan(), backend_.Status().node.round, backend_.Members())));
  });
  serve("/page/plans.json", [this](const HttpRequest& /*request*/) {
    return JsonAnswer(Text(PlansJson(backend_.Plan(), backend_.ListRecords())));
  });
  serve("/page/plan.json", [this](const HttpRequest& request) {
    const std::optional<int64_t> version = NumberIn(request, "version", 0);
    if (!version.has_value()) return Refused(400, "version is no number");
    const absl::StatusOr<control::PlanDocument> plan =
        backend_.PastPlan(static_cast<uint64_t>(*version));
    if (!plan.ok()) {
      return Refused(404, std::string(plan.status().message()));
    }
    return JsonAnswer(Text(PlanJson(*plan)));
  });
  serve("/page/events.json", [this](const HttpRequest& request) {
    const std::optional<int64_t> from = NumberIn(request, "from", 0);
    if (!from.has_value()) return Refused(400, "from is no number");
    return JsonAnswer(Text(EventsJson(backend_.Events(), *from)));
  });
  server.AddStream({"/page/live", Group::kPage,
                    [this](const HttpRequest& /*request*/, EventStream& out) {
                      Live(out);
                    }});
}

}  // namespace dfl::web
