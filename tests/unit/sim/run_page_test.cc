#include "daemon/sim/run_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "daemon/sim/dflsim.h"
#include "tests/support/json_schema.h"
#include "tests/unit/sim/scenarios.h"

namespace dfl::sim {
namespace {

using console::Json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kEvents[] =
    "  hostile: {nodes: [n7], attack: sign-flip, factor: 1}\n"
    "  events:\n"
    "    - {at: 200ms, crash: n5, for: 300ms}\n"
    "    - {at: 400ms, change: {topology: {kind: complete}}, within: 50ms}\n"
    "    - {at: 600ms, crash: n6}\n";

class RunPageTest : public testing::Test {
 public:
  ~RunPageTest() override { std::filesystem::remove_all(folder_); }

 protected:
  RunPageTest() : folder_(testing::TempDir() + "/dflsim-page") {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }

  int Call(const std::vector<std::string>& arguments) {
    std::istringstream in;
    std::ostringstream out;
    std::ostringstream err;
    console::Io io{in, out, err};
    const int code = Dflsim(arguments, io, [] { return absl::UnixEpoch(); });
    out_ = out.str();
    err_ = err.str();
    return code;
  }
  // Plays the small scenario; its results are in folder_ + "/run".
  void Play() {
    const std::string file = folder_ + "/s.yaml";
    std::ofstream(file) << SmallScenario(kEvents);
    ASSERT_EQ(Call({"run", file, "--out", folder_ + "/run", "--no-plots"}), kOk)
        << err_;
  }
  std::string Read(const std::string& name) {
    std::ostringstream text;
    text << std::ifstream(folder_ + "/" + name).rdbuf();
    return text.str();
  }
  // What stands in the page.
  Json DocumentIn(const std::string& html) {
    const std::string begin = "id=\"document\">";
    const size_t from = html.find(begin) + begin.size();
    return Json::parse(html.substr(from, html.find("</script>", from) - from));
  }

  const std::string folder_;
  std::string out_;
  std::string err_;
};

TEST_F(RunPageTest, IsAFileWithTheWholeRun) {
  Play();
  ASSERT_EQ(Call({"page", folder_ + "/run"}), kOk) << err_;
  EXPECT_EQ(out_, folder_ + "/run/page.html\n");
  const std::string html = Read("run/page.html");
  EXPECT_THAT(html, HasSubstr("<!doctype html>"));

  const Json document = DocumentIn(html);
  testing_support::JsonSchemas schemas(DFL_SCHEMA_FOLDER);
  EXPECT_THAT(schemas.Check("page-run", document), IsEmpty());
  EXPECT_EQ(document["run"]["title"], "run");
  EXPECT_EQ(document["run"]["seed"], "3");
  EXPECT_EQ(document["run"]["end"], "finished");
  EXPECT_EQ(document["run"]["format"], "random fp32");
  EXPECT_GT(document["run"]["models_received"], 0);

  // As in metrics.csv, whose first line is the header.
  const std::string csv = Read("run/metrics.csv");
  EXPECT_EQ(document["points"]["t"].size(),
            static_cast<size_t>(std::count(csv.begin(), csv.end(), '\n')) - 1);
  EXPECT_EQ(document["points"]["step"][0], 0);
  EXPECT_FALSE(document["points"].contains("accuracy"));

  ASSERT_EQ(document["members"].size(), 8u);
  EXPECT_EQ(document["members"][5]["state"], "member");
  EXPECT_EQ(document["members"][6]["state"], "gone");
  EXPECT_EQ(document["members"][7]["hostile"], true);
  EXPECT_EQ(document["graph"]["kind"], "ring");
  EXPECT_EQ(document["graph"]["edges"].size(), 8u);

  ASSERT_EQ(document["plans"].size(), 2u);
  EXPECT_THAT(document["plans"][0]["yaml"].get<std::string>(),
              HasSubstr("ring"));
  EXPECT_EQ(document["plans"][1]["t"], 0.4);
  std::vector<std::string> texts;
  for (const Json& event : document["events"]) texts.push_back(event["text"]);
  EXPECT_THAT(texts,
              ::testing::IsSupersetOf({"n5 crashes", "n5 crashes: over",
                                       "n6 crashes", "the plan changes"}));
  EXPECT_THAT(texts.back(), HasSubstr("finished: "));
}

TEST_F(RunPageTest, GoesWhereItIsWanted) {
  Play();
  const std::string out = folder_ + "/mine.html";
  ASSERT_EQ(Call({"page", folder_ + "/run", "--out", out, "-o", "json"}), kOk);
  EXPECT_EQ(Json::parse(out_)["page"], out);
  EXPECT_EQ(Json::parse(out_)["bytes"], Read("mine.html").size());
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/run/page.html"));
}

TEST_F(RunPageTest, ManyRowsAreThinnedEvenly) {
  Play();
  RecordedRun run = *ReadRun(folder_ + "/run");
  const Scenario scenario = *ParseScenario(SmallScenario(kEvents), "s.yaml");
  const MetricsRow row = run.rows.back();
  run.rows.assign(5 * kMostPoints, row);
  for (size_t i = 0; i < run.rows.size(); ++i) {
    run.rows[i].step = static_cast<int64_t>(i);
  }
  const Json points = RunDocument(run, scenario)["points"];
  ASSERT_EQ(points["step"].size(), kMostPoints);
  EXPECT_EQ(points["step"][0], 0);
  EXPECT_EQ(points["step"].back(), 5 * kMostPoints - 1);
}

TEST_F(RunPageTest, AFolderWithoutARunFails) {
  EXPECT_EQ(Call({"page", folder_}), kFailed);
  EXPECT_THAT(err_, HasSubstr("summary.json"));
  Play();
  std::filesystem::remove(folder_ + "/run/scenario.yaml");
  EXPECT_EQ(Call({"page", folder_ + "/run"}), kFailed);
  EXPECT_THAT(err_, HasSubstr("scenario.yaml"));
}

}  // namespace
}  // namespace dfl::sim
