// Two real daemons, looked at over HTTP and over the control service while they
// train together: probes, metrics, the log's level, and a training that stands
// still.
#include <sys/socket.h>

#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/daemon_process.h"
#include "tests/support/frozen_thread.h"
#include "tests/support/raw_socket.h"

namespace dfl::testing_support {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr absl::Duration kPatience = absl::Seconds(60);

constexpr char kPlan[] =
    "run: eyes\n"
    "seed: 11\n"
    "version: 1\n"
    "members: [a, b]\n"
    "model: {kind: linear, classes: 0}\n"
    "batch_size: 20\n"
    "evaluation: {every_steps: 1}\n"
    "topology: {kind: complete}\n"
    "stop: {steps: 100000000}\n"
    "algorithm: {name: spod-gt}\n";

bool Eventually(const std::function<bool()>& condition) {
  const absl::Time limit = absl::Now() + kPatience;
  while (!condition()) {
    if (absl::Now() > limit) return false;
    absl::SleepFor(absl::Milliseconds(20));
  }
  return true;
}

class EyesTest : public ::testing::Test {
 protected:
  EyesTest() {
    WriteFile(folder_.File("scenario.yaml"),
              absl::StrCat(kPlan,
                           "network:\n  problem: {kind: linear, n: 16, "
                           "rows: 20}\n"));
  }
  ~EyesTest() override {
    if (!HasFailure()) return;
    for (const auto& node : nodes_) std::cerr << "---- log\n" << node->log();
  }

  void Start(const std::string& compute = "") {
    std::vector<std::string> addresses;
    for (const char* name : {"a", "b"}) {
      DaemonProcess::Options options;
      options.program = "analytic_dfld";
      options.environment = {{"DFL_SCENARIO", folder_.File("scenario.yaml")}};
      options.name = name;
      options.folder = folder_.path();
      options.train_csv = "unread.csv";
      options.peers = addresses;
      options.extra_yaml =
          absl::StrCat("web: {listen: [\"127.0.0.1:0\"]}\n", compute);
      nodes_.push_back(std::make_unique<DaemonProcess>(options));
      ASSERT_TRUE(nodes_.back()->Start()) << nodes_.back()->log();
      addresses.push_back(nodes_.back()->peer_address());
    }
  }
  void Train() {
    client::ApplyPlanOptions apply;
    apply.yaml = kPlan;
    for (const auto& node : nodes_) {
      const auto applied = node->client().ApplyPlan(apply);
      ASSERT_TRUE(applied.ok()) << applied.status();
    }
    for (const auto& node : nodes_) {
      ASSERT_TRUE(node->client().Train(client::TrainAction::kStart).ok());
    }
    for (const auto& node : nodes_) {
      ASSERT_TRUE(node->StatusBecomes(
          kPatience, [](const auto& status) { return status.step > 50; }));
    }
  }
  // Where the log says that pages are.
  std::string WebAddress(size_t node) const {
    const std::string log = nodes_[node]->log();
    const size_t at = log.find("pages at ");
    if (at == std::string::npos) return "127.0.0.1:1";
    return log.substr(at + 9, log.find_first_of(" \n\"", at + 9) - at - 9);
  }
  // "HTTP/1.1 200 OK\r\n..."
  std::string Get(const std::string& path) const {
    const RawSocket socket(WebAddress(0));
    if (!socket.Send(absl::StrCat("GET ", path,
                                  " HTTP/1.1\r\nHost: localhost\r\n"
                                  "Connection: close\r\n\r\n"))) {
      return "";
    }
    std::string answer;
    char buffer[8192];
    ssize_t got = 0;
    while ((got = recv(socket.fd(), buffer, sizeof(buffer), 0)) > 0) {
      answer.append(buffer, static_cast<size_t>(got));
    }
    return answer;
  }
  // Values of series by name and labels, as the daemon tells them.
  std::map<std::string, double> Scrape() const {
    std::map<std::string, double> values;
    for (const absl::string_view line : absl::StrSplit(Get("/metrics"), '\n')) {
      const size_t space = line.rfind(' ');
      double value = 0;
      if (space != absl::string_view::npos && !absl::StartsWith(line, "#") &&
          absl::SimpleAtod(line.substr(space + 1), &value)) {
        values[std::string(line.substr(0, space))] = value;
      }
    }
    return values;
  }

  TemporaryFolder folder_;
  std::vector<std::unique_ptr<DaemonProcess>> nodes_;
};

TEST_F(EyesTest, ProbesAndMetricsSayWhatTheNodeDoes) {
  Start();
  EXPECT_TRUE(Eventually(
      [this] { return absl::StartsWith(Get("/readyz"), "HTTP/1.1 200"); }));
  EXPECT_THAT(Get("/livez?verbose"), HasSubstr("[+] loop: ok"));
  EXPECT_EQ(Scrape().at("dfl_phase{phase=\"training\"}"), 0);
  Train();
  ASSERT_TRUE(Eventually([this] {
    const auto values = Scrape();
    return values.count("dfl_loss") > 0 &&
           values.at("dfl_step_seconds_count") > 20 &&
           values.at("dfl_exchange_seconds_count") > 5;
  }));
  const auto values = Scrape();
  EXPECT_EQ(values.at("dfl_phase{phase=\"training\"}"), 1);
  EXPECT_GT(values.at("dfl_steps"), 50);
  EXPECT_EQ(values.at("dfl_neighbours{state=\"mixing\"}"), 1);
  EXPECT_EQ(values.at("dfl_members{state=\"member\"}"), 2);
  EXPECT_EQ(values.at("dfl_plan_version"), 1);
  EXPECT_GT(values.at("dfl_frames_sent_total"), 50);
  EXPECT_GT(values.at("dfl_models_total{direction=\"sent\"}"), 5);
  EXPECT_GT(values.at("dfl_encode_seconds_count"), 5);
  EXPECT_GT(values.at("dfl_gradient_seconds_count"), 20);
  EXPECT_LT(values.at("dfl_invariant_drift"), 1e-3);
  double bytes = 0;
  for (const auto& [name, value] : values) {
    if (absl::StartsWith(name, "dfl_bytes_total{direction=\"sent\"")) {
      bytes += value;
    }
  }
  EXPECT_GT(bytes, 1000);
  // What a step is made of does not take longer than the step.
  EXPECT_LE(
      values.at("dfl_wait_seconds_sum") + values.at("dfl_gradient_seconds_sum"),
      values.at("dfl_step_seconds_sum") * 1.1 + 1);
  // The same by the control service.
  const auto text = nodes_[0]->client().Metrics();
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, HasSubstr("dfl_phase{phase=\"training\"} 1\n"));
}

TEST_F(EyesTest, ALevelOfTheLogHoldsForAWhile) {
  Start();
  Train();
  client::ControlClient& daemon = nodes_[0]->client();
  const auto lines = [&daemon](const std::string& event) {
    int count = 0;
    const auto list = daemon.Log({});
    if (!list.ok()) return -1;
    for (const client::LogLine& line : list->lines) {
      count += line.event == event ? 1 : 0;
    }
    return count;
  };
  EXPECT_EQ(lines("step"), 0);
  // An evaluation a step is one line in ten seconds, beside the first.
  EXPECT_LE(lines("evaluated"), 10);
  const auto set =
      daemon.SetLogLevel(client::LogLevel::kDebug, absl::Seconds(1));
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_TRUE(Eventually([&] { return lines("step") > 10; }));
  EXPECT_TRUE(Eventually([&] {
    const auto list = daemon.Log({});
    return list.ok() && list->level == client::LogLevel::kInfo;
  }));
  // Whoever changed it is on record.
  EXPECT_THAT(nodes_[0]->log(), HasSubstr("set the log's level to debug: ok"));
}

TEST_F(EyesTest, AFrozenTrainingIsNotLive) {
  Start("compute: {frozen_after: 1s}\n");
  Train();
  {
    const auto frozen =
        FrozenThread::Freeze(nodes_[0]->process().pid(), "dfld-train");
    if (frozen == nullptr) GTEST_SKIP() << "ptrace is not allowed here";
    ASSERT_TRUE(Eventually(
        [this] { return absl::StartsWith(Get("/livez"), "HTTP/1.1 503"); }));
    EXPECT_THAT(Get("/livez"), HasSubstr("[-] training: frozen"));
    EXPECT_EQ(Scrape().at("dfl_training_frozen"), 1);
    const auto told = nodes_[0]->client().Diagnose();
    ASSERT_TRUE(told.ok()) << told.status();
    EXPECT_EQ(told->findings[0].check, "training");
    EXPECT_EQ(told->findings[0].kind, client::Finding::Kind::kFault);
  }
  EXPECT_TRUE(Eventually(
      [this] { return absl::StartsWith(Get("/livez"), "HTTP/1.1 200"); }));
}

TEST_F(EyesTest, NothingIsServedWithoutAnAddress) {
  DaemonProcess::Options options;
  options.program = "analytic_dfld";
  options.environment = {{"DFL_SCENARIO", folder_.File("scenario.yaml")}};
  options.name = "a";
  options.folder = folder_.path();
  options.train_csv = "unread.csv";
  nodes_.push_back(std::make_unique<DaemonProcess>(options));
  ASSERT_TRUE(nodes_[0]->Start()) << nodes_[0]->log();
  EXPECT_EQ(nodes_[0]->log().find("pages at"), std::string::npos);
  EXPECT_TRUE(nodes_[0]->client().Metrics().ok());
}

}  // namespace
}  // namespace dfl::testing_support
