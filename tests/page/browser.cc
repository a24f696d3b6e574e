#include "tests/page/browser.h"

#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"

namespace dfl::testing_support {
namespace {

using nlohmann::json;

std::string FindProgram(const std::string& name) {
  const char* path = std::getenv("PATH");
  for (const absl::string_view folder :
       absl::StrSplit(path == nullptr ? "" : path, ':')) {
    const std::string file = absl::StrCat(folder, "/", name);
    if (access(file.c_str(), X_OK) == 0) return file;
  }
  return "";
}

// The port that chromedriver has chosen, from what it prints; 0: none yet.
int PortIn(const std::string& printed) {
  constexpr char kBefore[] = "started successfully on port ";
  const size_t at = printed.find(kBefore);
  if (at == std::string::npos) return 0;
  const std::vector<std::string> rest =
      absl::StrSplit(printed.substr(at + sizeof(kBefore) - 1), '.');
  int port = 0;
  return rest.size() > 1 && absl::SimpleAtoi(rest[0], &port) ? port : 0;
}

}  // namespace

std::string Browser::Missing() {
  for (const auto& [program, package] :
       {std::pair("chromium", "chromium"),
        std::pair("chromedriver", "chromium-driver")}) {
    if (FindProgram(program).empty()) {
      return absl::StrCat("there is no ", program, ": install ", package,
                          " to run this test");
    }
  }
  return "";
}

Browser::Browser() {
  Process::Options options;
  options.command = {FindProgram("chromedriver"), "--port=0"};
  options.stdout_file = folder_.File("driver.out");
  options.stderr_file = folder_.File("driver.err");
  driver_ = std::make_unique<Process>(options);
  int port = 0;
  Eventually(absl::Seconds(30), [&] {
    port = PortIn(ReadFile(options.stdout_file));
    return port != 0 || !driver_->running();
  });
  if (port == 0) {
    fault_ = "chromedriver does not start: " + ReadFile(options.stderr_file);
    return;
  }
  client_ = std::make_unique<httplib::Client>("127.0.0.1", port);
  client_->set_read_timeout(120, 0);
  const json chrome = {
      {"args",
       {"--headless=new", "--no-sandbox", "--disable-gpu",
        "--disable-dev-shm-usage", "--no-first-run",
        "--disable-background-networking", "--disable-component-update",
        "--user-data-dir=" + folder_.File("profile")}},
      {"binary", FindProgram("chromium")}};
  const json wanted = {
      {"browserName", "chrome"},
      {"goog:chromeOptions", chrome},
      {"goog:loggingPrefs", {{"performance", "ALL"}, {"browser", "ALL"}}}};
  const json made =
      Call("/session", {{"capabilities", {{"alwaysMatch", wanted}}}});
  if (!made.is_object() || !made.contains("sessionId")) {
    fault_ = "chromium does not start: " + made.dump();
    return;
  }
  session_ = "/session/" + made["sessionId"].get<std::string>();
}

Browser::~Browser() {
  if (!session_.empty()) client_->Delete(session_.c_str());
}

json Browser::Call(const std::string& path, const json& body) {
  const httplib::Result result =
      client_->Post(path.c_str(), body.dump(), "application/json");
  if (!result) return json();
  const json answer = json::parse(result->body, nullptr, false);
  if (!answer.is_object() || !answer.contains("value")) return json();
  if (result->status != 200) {
    ADD_FAILURE() << path << ": " << answer["value"].value("message", "");
    return json();
  }
  return answer["value"];
}

void Browser::Open(const std::string& url) {
  Call(session_ + "/url", {{"url", url}});
}

json Browser::Run(const std::string& body) {
  return Call(session_ + "/execute/sync",
              {{"script", body}, {"args", json::array()}});
}

bool Browser::Becomes(const std::string& body, absl::Duration limit) {
  return Eventually(limit, [&] {
    const json value = Run(body);
    return value.is_boolean() && value.get<bool>();
  });
}

void Browser::Press(const std::string& key) {
  const json down = {{"type", "keyDown"}, {"value", key}};
  const json up = {{"type", "keyUp"}, {"value", key}};
  const json actions = json::array({down, up});
  const json keyboard = {
      {"type", "key"}, {"id", "keyboard"}, {"actions", actions}};
  Call(session_ + "/actions", {{"actions", json::array({keyboard})}});
}

void Browser::SetSize(int width, int height) {
  DevTools("Emulation.setDeviceMetricsOverride", {{"width", width},
                                                  {"height", height},
                                                  {"deviceScaleFactor", 1},
                                                  {"mobile", false}});
}

void Browser::SetDark(bool dark) {
  const json scheme = {{"name", "prefers-color-scheme"},
                       {"value", dark ? "dark" : "light"}};
  DevTools("Emulation.setEmulatedMedia", {{"features", json::array({scheme})}});
}

json Browser::DevTools(const std::string& command, const json& parameters) {
  return Call(session_ + "/goog/cdp/execute",
              {{"cmd", command}, {"params", parameters}});
}

json Browser::Log(const std::string& type) {
  return Call(session_ + "/se/log", {{"type", type}});
}

std::vector<json> Browser::Network() {
  std::vector<json> events;
  for (const json& line : Log("performance")) {
    const json entry = json::parse(line.value("message", ""), nullptr, false);
    if (!entry.is_object()) continue;
    const json& message = entry["message"];
    if (absl::StartsWith(message.value("method", ""), "Network.")) {
      events.push_back(message);
    }
  }
  return events;
}

std::vector<std::string> Browser::Errors() {
  std::vector<std::string> errors;
  for (const json& line : Log("browser")) {
    if (line.value("level", "") == "SEVERE") {
      errors.push_back(line.value("message", ""));
    }
  }
  return errors;
}

void Browser::Screenshot(const std::string& file) {
  json clip =
      Run("return {x: 0, y: 0, width: document.documentElement.scrollWidth, "
          "height: document.documentElement.scrollHeight, scale: 1}");
  const json shot =
      DevTools("Page.captureScreenshot",
               {{"captureBeyondViewport", true}, {"clip", std::move(clip)}});
  std::string png;
  if (shot.is_object() && absl::Base64Unescape(shot.value("data", ""), &png)) {
    WriteFile(file, png);
  }
}

}  // namespace dfl::testing_support
