// The status page as it is served, by a server on loopback.
#include "daemon/web/page/status_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "daemon/page/page_html.h"
#include "httplib.h"
#include "nlohmann/json.hpp"
#include "tests/support/json_schema.h"
#include "tests/unit/control/fake_backend.h"

namespace dfl::web {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class StatusPageTest : public testing::Test {
 protected:
  StatusPageTest() : page_(std::make_unique<StatusPage>(backend_)) {
    HttpServerOptions options;
    options.addresses = {"127.0.0.1:0"};
    auto bound = HttpServer::Bind(options);
    EXPECT_TRUE(bound.ok()) << bound.status();
    server_ = *std::move(bound);
    page_->Register(*server_);
    server_->Start();
    client_ = std::make_unique<httplib::Client>("http://" +
                                                server_->addresses().front());
  }
  ~StatusPageTest() override { server_->Stop(); }

  httplib::Response Get(const std::string& path) {
    const httplib::Result result = client_->Get(path.c_str());
    EXPECT_TRUE(result) << path;
    return result ? *result : httplib::Response();
  }
  nlohmann::json GetJson(const std::string& path) {
    const httplib::Response response = Get(path);
    EXPECT_EQ(response.status, 200) << path << response.body;
    EXPECT_THAT(response.get_header_value("Content-Type"),
                HasSubstr("application/json"));
    return nlohmann::json::parse(response.body, nullptr, false);
  }
  std::vector<std::string> Wrong(const std::string& schema,
                                 const nlohmann::json& document) {
    testing_support::JsonSchemas schemas(DFL_SCHEMA_FOLDER);
    return schemas.Check(schema, document);
  }

  // The data of the first `count` events of the stream; `between` is called
  // after each.
  std::vector<nlohmann::json> Live(size_t count,
                                   const std::function<void()>& between) {
    std::vector<nlohmann::json> events;
    std::string text;
    client_->Get("/page/live", [&](const char* data, size_t size) {
      text.append(data, size);
      size_t end = 0;
      while ((end = text.find("\n\n")) != std::string::npos) {
        const std::string event = text.substr(0, end);
        text.erase(0, end + 2);
        const size_t begin = event.find("data: ");
        if (begin == std::string::npos) continue;
        events.push_back(nlohmann::json::parse(event.substr(begin + 6)));
        between();
      }
      return events.size() < count;
    });
    return events;
  }

  control::FakeBackend backend_;
  std::unique_ptr<StatusPage> page_;
  std::unique_ptr<HttpServer> server_;
  std::unique_ptr<httplib::Client> client_;
};

TEST_F(StatusPageTest, ServesThePageWithItsPolicy) {
  const httplib::Response response = Get("/");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, page::Html());
  EXPECT_EQ(response.get_header_value("Content-Type"),
            "text/html; charset=utf-8");
  EXPECT_EQ(response.get_header_value("Content-Security-Policy"),
            page::SecurityPolicy());
  EXPECT_EQ(response.get_header_value("X-Content-Type-Options"), "nosniff");
}

TEST_F(StatusPageTest, EveryDocumentHasItsDocumentedForm) {
  control::PlanDocument plan;
  plan.version = 2;
  plan.yaml = "seed: 1\n";
  backend_.SetPastPlan(plan);
  for (const char* name : {"history", "members", "graph", "plans", "events"}) {
    EXPECT_THAT(Wrong(std::string("page-") + name,
                      GetJson(std::string("/page/") + name + ".json")),
                IsEmpty())
        << name;
  }
  EXPECT_THAT(Wrong("page-plan", GetJson("/page/plan.json?version=2")),
              IsEmpty());
}

TEST_F(StatusPageTest, TheStreamTellsTheStatusAndItsChanges) {
  const std::vector<nlohmann::json> events = Live(2, [&] {
    control::DaemonStatus changed = control::SampleStatus("box-1");
    changed.node.step = 1001;
    backend_.SetStatus(changed);
  });
  ASSERT_EQ(events.size(), 2u);
  EXPECT_THAT(Wrong("page-live", events[0]), IsEmpty());
  EXPECT_EQ(events[0]["status"]["node"], "box-1");
  EXPECT_EQ(events[0]["status"]["incarnation"], "fedcba9876543210");
  EXPECT_EQ(events[0]["status"]["step"], 1000);
  EXPECT_EQ(events[0]["status"]["knobs"]["kappa"],
            nlohmann::json::parse("[5,10]"));
  EXPECT_EQ(events[0]["status"]["evaluation"]["accuracy"], 0.75);
  EXPECT_EQ(events[1]["status"]["step"], 1001);
  EXPECT_EQ(events[1]["point"]["step"][0], 1001);
  EXPECT_GT(events[1]["at_s"], events[0]["at_s"]);
}

TEST_F(StatusPageTest, TheHistoryGrowsWithoutAViewer) {
  // The first moment is recorded at once.
  nlohmann::json history = GetJson("/page/history.json");
  while (history["points"]["t"].empty())
    history = GetJson("/page/history.json");
  EXPECT_EQ(history["points"]["step"][0], 1000);
}

TEST_F(StatusPageTest, EventsAreToldFromANumberOn) {
  backend_.Emit(ports::PlanAdopted{.version = 1, .step = 0});
  backend_.Emit(ports::PlanAdopted{.version = 2, .step = 10});
  EXPECT_EQ(GetJson("/page/events.json")["events"].size(), 2u);
  EXPECT_EQ(GetJson("/page/events.json?from=1")["events"].size(), 1u);
}

TEST_F(StatusPageTest, BadRequestsGetAnError) {
  EXPECT_EQ(Get("/page/plan.json?version=two").status, 400);
  EXPECT_EQ(Get("/page/plan.json?version=-1").status, 400);
  EXPECT_EQ(Get("/page/events.json?from=x").status, 400);
  const httplib::Response unknown = Get("/page/plan.json?version=77");
  EXPECT_EQ(unknown.status, 404);
  EXPECT_TRUE(nlohmann::json::accept(unknown.body));
}

TEST_F(StatusPageTest, NothingCanBeChanged) {
  for (const char* path : {"/", "/page/plan.json", "/page/events.json"}) {
    const httplib::Result result =
        client_->Post(path, "{}", "application/json");
    ASSERT_TRUE(result) << path;
    EXPECT_GE(result->status, 400) << path;
  }
  EXPECT_THAT(backend_.orders(), IsEmpty());
  EXPECT_THAT(backend_.records(), IsEmpty());
}

TEST_F(StatusPageTest, BytesThatAreNoUtf8AreReplaced) {
  control::DaemonStatus status = control::SampleStatus("box-1");
  status.node.last_error = "\xff\xfe";
  backend_.SetStatus(status);
  EXPECT_EQ(Live(1, [] {}).size(), 1u);
}

}  // namespace
}  // namespace dfl::web
