// The status page in a browser, served by the daemon's own HTTP server over a
// scripted node: what a person sees, and what the browser asks for.
//
// DFL_SCREENSHOTS=FOLDER keeps a picture of each scene.
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/page/page_html.h"
#include "daemon/web/http_server.h"
#include "daemon/web/page/status_page.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/page/browser.h"
#include "tests/unit/control/fake_backend.h"

namespace dfl::testing_support {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// What the page may transfer until it shows everything.
constexpr int64_t kMostBytes = 200'000;
constexpr char kTab[] = "\uE004";
constexpr char kEnter[] = "\uE007";
constexpr char kLeft[] = "\uE012";

// A daemon whose node is scripted: backend, page and server of one life.
class Daemon {
 public:
  explicit Daemon(control::Backend& backend, const std::string& address)
      : page_(backend) {
    web::HttpServerOptions options;
    options.addresses = {address};
    auto bound = web::HttpServer::Bind(options);
    EXPECT_TRUE(bound.ok()) << bound.status();
    server_ = *std::move(bound);
    page_.Register(*server_);
    server_->Start();
  }
  ~Daemon() { server_->Stop(); }
  const std::string& address() const { return server_->addresses().front(); }

 private:
  web::StatusPage page_;
  std::unique_ptr<web::HttpServer> server_;
};

control::PlanDocument Plan(uint64_t version, const std::string& topology) {
  control::PlanDocument plan;
  plan.yaml = absl::StrCat("version: ", version,
                           "\nseed: 1\nparticipants: all\nmodel: {kind: "
                           "logistic}\nalgorithm: {name: d-psgd}\ntopology: "
                           "{kind: ",
                           topology, "}\n");
  plan.version = version;
  plan.version_in_force = version;
  plan.run_id = "00c0ffee00c0ffee";
  for (uint64_t kept = 1; kept <= version; ++kept) {
    plan.kept_versions.push_back(kept);
  }
  return plan;
}

control::MemberTable Members(int count) {
  control::MemberTable table;
  table.self = NodeId("box-01");
  for (int i = 1; i <= count; ++i) {
    control::MemberInfo member;
    member.node = NodeId(absl::StrCat("box-", i < 10 ? "0" : "", i));
    member.addresses = {"10.0.0.1:7600"};
    member.rows = 100;
    member.self = i == 1;
    table.members.push_back(std::move(member));
  }
  return table;
}

control::DaemonStatus Status() {
  control::DaemonStatus status = control::SampleStatus("box-01");
  status.node.pending_plan_version = 0;
  status.node.gauges["consensus_distance"] = 0.5;
  status.node.peers[0].node = NodeId("box-02");
  status.node.peers[0].mixing = true;
  status.node.peers[0].not_mixing = "";
  status.node.peers[0].disagrees.clear();
  status.node.peers[1].node = NodeId("box-03");
  return status;
}

// One browser for all tests: starting it is what takes long.
class PageBrowserTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (Browser::Missing().empty()) browser_ = new Browser();
  }
  static void TearDownTestSuite() {
    delete browser_;
    browser_ = nullptr;
  }
  void SetUp() override {
    if (browser_ == nullptr) GTEST_SKIP() << Browser::Missing();
    ASSERT_EQ(browser_->fault(), "");
    backend_.SetStatus(Status());
    backend_.SetMembers(Members(5));
    backend_.SetPlan(Plan(2, "ring"));
    backend_.SetPastPlan(Plan(1, "star"));
    backend_.SetPastPlan(Plan(2, "ring"));
    backend_.Emit(ports::PlanAdopted{.version = 2, .step = 40});
    daemon_ = std::make_unique<Daemon>(backend_, "127.0.0.1:0");
    browser_->SetDark(false);
    browser_->SetSize(1360, 900);
  }

  std::string Url() const {
    return absl::StrCat("http://", daemon_->address(), "/");
  }
  // Opens the page and waits until every part has its data.
  void Open() {
    browser_->Network();
    browser_->Errors();
    browser_->Open(Url());
    ASSERT_TRUE(browser_->Becomes(
        "return document.querySelectorAll('#graph .node').length > 0 && "
        "document.querySelectorAll('#members tbody tr').length > 0 && "
        "document.querySelector('.versions') !== null && "
        "document.querySelector('.events') !== null && "
        "document.querySelector('.plot canvas') !== null"))
        << Text("body");
  }
  std::string Text(const std::string& selector) {
    const json text = browser_->Run(absl::StrCat(
        "return document.querySelector('", selector, "')?.innerText || ''"));
    return text.is_string() ? text.get<std::string>() : "";
  }
  bool Shows(const std::string& selector, const std::string& text) {
    return browser_->Becomes(
        absl::StrCat("return (document.querySelector('", selector,
                     "')?.innerText || '').includes(", json(text).dump(), ")"));
  }
  void Picture(const std::string& name) {
    if (const char* folder = std::getenv("DFL_SCREENSHOTS")) {
      browser_->Screenshot(absl::StrCat(folder, "/", name, ".png"));
    }
  }

  static Browser* browser_;
  control::FakeBackend backend_;
  std::unique_ptr<Daemon> daemon_;
};

Browser* PageBrowserTest::browser_ = nullptr;

TEST_F(PageBrowserTest, ShowsWhatTheNodeDoes) {
  Open();
  EXPECT_EQ(Text("h1"), "box-01");
  EXPECT_THAT(Text("#phase"), HasSubstr("training"));
  EXPECT_THAT(Text("#tiles"), HasSubstr("1,000"));
  EXPECT_THAT(Text("#tiles"), HasSubstr("75.0 %"));
  EXPECT_THAT(Text("#tiles"), HasSubstr("36.5× less than dense (45 MB)"));
  EXPECT_THAT(Text("#neighbours-table"), HasSubstr("connection refused"));
  EXPECT_THAT(Text("#members"), HasSubstr("box-05"));
  EXPECT_THAT(Text("#event-list"), HasSubstr("plan version 2 in force"));
  EXPECT_THAT(browser_->Errors(), IsEmpty());
  Picture("light");
  const json paints = browser_->Run(
      "return performance.getEntriesByType('paint').map((p) => p.startTime)");
  // Told, not judged: other tests may keep the machine busy.
  RecordProperty("first_paint_ms", paints.dump());
}

TEST_F(PageBrowserTest, AsksNobodyElseAndTransfersLittle) {
  backend_.SetMembers(Members(64));
  Open();
  const std::string own = Url();
  std::set<std::string> elsewhere;
  // By request: all of one that has ended, else what came so far.
  std::map<std::string, int64_t> bytes_of;
  for (const json& event : browser_->Network()) {
    const json& told = event["params"];
    int64_t& bytes = bytes_of[told.value("requestId", "")];
    if (event["method"] == "Network.requestWillBeSent") {
      const std::string url = told["request"].value("url", "");
      if (!absl::StartsWith(url, own) && !absl::StartsWith(url, "data:")) {
        elsewhere.insert(url);
      }
    } else if (event["method"] == "Network.loadingFinished") {
      bytes = told.value("encodedDataLength", int64_t{0});
    } else if (event["method"] == "Network.dataReceived") {
      bytes += told.value("dataLength", int64_t{0});
    }
  }
  int64_t bytes = 0;
  for (const auto& [request, of_request] : bytes_of) bytes += of_request;
  EXPECT_THAT(elsewhere, IsEmpty());
  EXPECT_GE(bytes_of.size(), 7u);
  EXPECT_GT(bytes, 30'000);
  EXPECT_LE(bytes, kMostBytes);
  RecordProperty("transferred_bytes", static_cast<int>(bytes));
}

TEST_F(PageBrowserTest, FollowsTheNode) {
  Open();
  control::DaemonStatus status = Status();
  status.node.phase = ports::Phase::kDegraded;
  status.node.phase_reason = "the loss is not finite";
  status.node.step = 1234;
  backend_.SetStatus(status);
  EXPECT_TRUE(Shows("#phase", "degraded"));
  EXPECT_TRUE(Shows("#notices", "the loss is not finite"));
  EXPECT_TRUE(Shows("#tiles", "1,234"));
  ports::MemberChanged gone;
  gone.node = NodeId("box-05");
  gone.text = "is dead: did not answer";
  control::MemberTable members = Members(5);
  members.members[4].state = control::MemberState::kDead;
  backend_.SetMembers(members);
  backend_.Emit(gone);
  EXPECT_TRUE(Shows("#event-list", "is dead"));
  EXPECT_TRUE(Shows("#members", "dead"));
  Picture("degraded");
}

TEST_F(PageBrowserTest, SurvivesARestartOfTheDaemon) {
  Open();
  const std::string address = daemon_->address();
  ASSERT_TRUE(browser_->Becomes("return eras[0].points.t.length >= 2"));
  daemon_.reset();
  EXPECT_TRUE(Shows("#live", "no answer"));
  EXPECT_EQ(browser_->Run("return document.body.className"), "stale");
  control::DaemonStatus status = Status();
  status.node.incarnation = 7;
  status.node.step = 1500;
  backend_.SetStatus(status);
  daemon_ = std::make_unique<Daemon>(backend_, address);
  EXPECT_TRUE(Shows("#live", "live"));
  EXPECT_TRUE(Shows("#tiles", "1,500"));
  // What was drawn before is still there, and counters go on.
  ASSERT_TRUE(browser_->Becomes(
      "return eras.length === 2 && eras[1].points.t.length >= 2"));
  const json sent = browser_->Run(
      "return allPoints().bytes_sent.filter((value) => value !== null)");
  EXPECT_EQ(sent.front(), 1234567);
  EXPECT_EQ(sent.back(), 2 * 1234567);
}

TEST_F(PageBrowserTest, ShowsANodeWithoutAPlan) {
  control::DaemonStatus status;
  status.node.node = NodeId("box-01");
  status.version = "0.1.0";
  backend_.SetStatus(status);
  backend_.SetPlan({});
  backend_.SetMembers(Members(1));
  // One that has never known another status.
  daemon_ = std::make_unique<Daemon>(backend_, "127.0.0.1:0");
  browser_->Errors();
  browser_->Open(Url());
  EXPECT_TRUE(Shows("#notices", "There is no plan yet."));
  EXPECT_TRUE(Shows("#graph", "There is no graph to draw."));
  EXPECT_TRUE(Shows("#neighbours-table", "No peer is known yet."));
  EXPECT_TRUE(Shows("#progress", "begin with the first step"));
  EXPECT_THAT(browser_->Errors(), IsEmpty());
  Picture("no-data");
}

TEST_F(PageBrowserTest, ShowsManyMembersAndFindsOne) {
  control::MemberTable table = Members(150);
  backend_.SetMembers(table);
  Open();
  EXPECT_EQ(
      browser_->Run(
          "return document.querySelectorAll('#graph > svg .node').length"),
      150 + 0);
  EXPECT_EQ(browser_->Run(
                "return document.querySelectorAll('#members tbody tr').length"),
            100);
  browser_->Run(
      "const filter = document.querySelector('#members input');"
      "filter.value = 'box-77'; filter.dispatchEvent(new Event('input'))");
  EXPECT_THAT(Text("#members tbody"), HasSubstr("box-77"));
  EXPECT_EQ(browser_->Run(
                "return document.querySelectorAll('#members tbody tr').length"),
            1);
  Picture("many");
}

TEST_F(PageBrowserTest, ShowsWhatChangedInThePlan) {
  Open();
  EXPECT_TRUE(Shows(".doc", "- topology: {kind: star}"));
  EXPECT_THAT(Text(".doc"), HasSubstr("+ topology: {kind: ring}"));
  browser_->Run(
      "document.querySelector('#plan-tools [data-mode=whole]').click()");
  EXPECT_TRUE(browser_->Becomes(
      "return document.querySelector('.doc del') === null && "
      "document.querySelector('.doc').innerText.includes('kind: ring')"));
}

TEST_F(PageBrowserTest, TakesTextFromElsewhereForText) {
  control::DaemonStatus status = Status();
  const std::string hostile =
      "<img src=x onerror='document.title=\"taken\"'><script>1</script>";
  status.node.phase_reason = hostile;
  status.node.last_error = hostile;
  status.node.peers[0].not_mixing = hostile;
  status.node.peers[0].mixing = false;
  status.warnings = {hostile};
  backend_.SetStatus(status);
  ports::MemberChanged event;
  event.text = hostile;
  backend_.Emit(event);
  Open();
  EXPECT_TRUE(Shows("#notices", hostile));
  EXPECT_TRUE(Shows("#event-list", hostile));
  EXPECT_EQ(browser_->Run("return document.querySelectorAll('main img, main "
                          "script').length"),
            0);
}

TEST_F(PageBrowserTest, FitsAPhone) {
  browser_->SetSize(390, 800);
  Open();
  for (const bool dark : {false, true}) {
    browser_->SetDark(dark);
    EXPECT_EQ(browser_->Run("return document.documentElement.scrollWidth <= "
                            "innerWidth"),
              true);
  }
  Picture("phone");
}

// Every text against what lies behind it, by WCAG 2.1 (1.4.3): 4.5, large 3.
constexpr char kLowContrasts[] = R"(
const parse = (text) => (text.match(/[\d.]+/g) || [0, 0, 0, 0]).map(Number);
const light = ([r, g, b]) => {
  const part = (x) => (x /= 255) <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4;
  return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
};
const behind = (node) => {
  for (; node; node = node.parentElement) {
    const color = parse(getComputedStyle(node).backgroundColor);
    if (color.length === 3 || color[3] === 1) return color;
  }
  return [255, 255, 255];
};
const low = [];
for (const node of document.querySelectorAll('body *')) {
  const own = [...node.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim());
  if (!own || !node.checkVisibility() || node.closest('svg, script, noscript, .skip, :disabled')) continue;
  const style = getComputedStyle(node);
  const [a, b] = [light(parse(style.color)), light(behind(node))].sort((x, y) => y - x);
  const size = parseFloat(style.fontSize);
  const large = size >= 24 || (size >= 18.66 && parseInt(style.fontWeight) >= 700);
  const ratio = (a + 0.05) / (b + 0.05);
  if (ratio < (large ? 3 : 4.5)) low.push(ratio.toFixed(2) + ' ' + node.className + ': ' + node.textContent.slice(0, 40));
}
return low;
)";

TEST_F(PageBrowserTest, HasContrastInBothThemes) {
  control::DaemonStatus status = Status();
  status.node.phase = ports::Phase::kDegraded;
  status.node.checkpoint_error = "no space left";
  backend_.SetStatus(status);
  Open();
  for (const bool dark : {false, true}) {
    browser_->SetDark(dark);
    EXPECT_EQ(browser_->Run(kLowContrasts), json::array()) << dark;
    Picture(dark ? "dark" : "degraded-light");
  }
  // A theme that a person has chosen holds against the system's.
  browser_->Run("setTheme('light')");
  EXPECT_EQ(browser_->Run("return getComputedStyle(document.documentElement)"
                          ".colorScheme"),
            "light");
  browser_->Run("setTheme('auto')");
}

TEST_F(PageBrowserTest, EverythingThatCanBeUsedHasAName) {
  Open();
  const json tree =
      browser_->DevTools("Accessibility.getFullAXTree", json::object());
  const std::set<std::string> named = {
      "button", "combobox", "image", "link",  "progressbar", "region",
      "row",    "search",   "table", "group", "searchbox",   "img"};
  std::vector<std::string> nameless;
  std::set<std::string> roles;
  for (const json& node : tree["nodes"]) {
    if (node.value("ignored", false) || !node.contains("role")) continue;
    const std::string role = node["role"].value("value", "");
    roles.insert(role);
    const bool has_name =
        node.contains("name") && node["name"].value("value", "") != "";
    if (named.count(role) > 0 && !has_name && role != "row") {
      nameless.push_back(node.dump());
    }
  }
  EXPECT_THAT(nameless, IsEmpty());
  EXPECT_THAT(roles, Contains("main"));
  EXPECT_THAT(roles, Contains("searchbox"));
  EXPECT_THAT(roles, Contains("combobox"));
  EXPECT_EQ(browser_->Run("return document.documentElement.lang"), "en");
}

TEST_F(PageBrowserTest, CanBeUsedByKeyboard) {
  Open();
  // Tab comes to every control in turn, and each shows that it has the focus.
  std::set<std::string> reached;
  for (int i = 0; i < 80; ++i) {
    browser_->Press(kTab);
    const json at = browser_->Run(
        "const node = document.activeElement;"
        "if (node === document.body) return null;"
        "const style = getComputedStyle(node);"
        "return {name: node.getAttribute('aria-label') || node.textContent, "
        "seen: style.outlineStyle !== 'none' && "
        "parseFloat(style.outlineWidth) >= 1}");
    if (!at.is_object()) continue;
    const std::string name = at["name"].get<std::string>();
    EXPECT_TRUE(at["seen"].get<bool>()) << name;
    reached.insert(name);
  }
  for (const char* name : {"Skip to the figures", "Theme: system", "Steps",
                           "Log scale, Loss", "Table, Loss", "Members"}) {
    EXPECT_THAT(reached, Contains(name));
  }

  browser_->Run("document.querySelector('#chart-loss .plot').focus()");
  browser_->Press(kLeft);
  EXPECT_TRUE(Shows("#chart-loss .legend", "at "));
  browser_->Run(
      "document.querySelector('#chart-loss [aria-label^=Table]').focus()");
  browser_->Press(kEnter);
  EXPECT_TRUE(Shows("#chart-loss .data", "Time"));
  browser_->Run("document.querySelector('#graph svg').focus()");
  browser_->Press(kLeft);
  EXPECT_TRUE(Shows("#graph .detail", "neighbours: "));
}

TEST_F(PageBrowserTest, AFinishedRunIsAFileThatAsksNobody) {
  const json run = json::parse(R"({
    "schema": 1, "kind": "run",
    "run": {"title": "ring", "end": "finished", "why": "every node is done",
            "failed": false, "replay": "dflsim run s.yaml --seed 7",
            "algorithm": "d-psgd", "topology": "ring", "nodes": 3,
            "parameters": 100, "models_received": 50, "format": "dense float32",
            "spectral_gap": 0.5, "seed": "7", "digest": "00"},
    "points": {"t": [0, 1, 2], "step": [0, 10, 20],
               "loss_mean_model": [2.3, 1.1, 0.5], "mean_loss": [2.3, 1.0, 0.4],
               "consensus_error": [0, 0.1, 0.05], "bytes_sent": [0, 500, 1000]},
    "members": [{"node": "a", "hostile": false, "state": "member", "step": 20,
                 "round": 20, "plan_version": 1, "loss": 0.4},
                {"node": "b", "hostile": true, "state": "member", "step": 20},
                {"node": "c", "hostile": false, "state": "gone"}],
    "graph": {"kind": "ring", "round": 0, "directed": false, "varies": false,
              "members": ["a", "b", "c"], "edges": [[0, 1], [1, 2], [0, 2]],
              "note": ""},
    "plans": [{"version": 1, "t": 0, "yaml": "seed: 7\n"}],
    "events": [{"number": 0, "t": 2, "kind": "end", "text": "finished"}]})");
  TemporaryFolder folder;
  WriteFile(folder.File("page.html"), page::HtmlWith(run.dump()));
  browser_->Network();
  browser_->Errors();
  browser_->Open("file://" + folder.File("page.html"));
  EXPECT_TRUE(Shows("#tiles", "0.5"));
  EXPECT_EQ(Text("h1"), "ring");
  EXPECT_THAT(Text("#tiles"), HasSubstr("20.0× less than dense"));
  EXPECT_THAT(Text("#members"), HasSubstr("hostile"));
  EXPECT_THAT(Text(".doc"), HasSubstr("seed: 7"));
  EXPECT_TRUE(browser_->Becomes(
      "return document.querySelectorAll('.plot canvas').length >= 3"));
  EXPECT_THAT(browser_->Errors(), IsEmpty());
  for (const json& event : browser_->Network()) {
    if (event["method"] != "Network.requestWillBeSent") continue;
    const std::string url = event["params"]["request"].value("url", "");
    EXPECT_THAT(url, Not(HasSubstr("http")));
  }
  Picture("run");
}

}  // namespace
}  // namespace dfl::testing_support
