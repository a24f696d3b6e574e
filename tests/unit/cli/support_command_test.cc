// dflctl metrics, log, doctor and debug bundle.
#include <gmock/gmock.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "cli/exit_codes.h"
#include "tests/unit/cli/fake_daemon.h"
#include "tests/unit/cli/unpack.h"
#include "tests/unit/control/fake_observer.h"

namespace dfl::cli {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class SupportCommandTest : public CliTest {
 protected:
  SupportCommandTest() {
    backends_.push_back(std::make_unique<control::FakeBackend>("box-1"));
    control::ControlServerOptions options;
    options.unix_socket = Socket("box-1");
    options.observer = &observer_;
    servers_.push_back(
        *control::ControlServer::Start(options, *backends_.back()));
    environment_["DFLCTL_TARGET"] = "unix:" + Socket("box-1");
  }

  control::FakeObserver observer_;
};

TEST_F(SupportCommandTest, MetricsAreText) {
  EXPECT_EQ(Run({"metrics"}).out, observer_.metrics);
  EXPECT_EQ(Run({"metrics", "dfl_st"}).out,
            "# HELP dfl_steps Steps.\n# TYPE dfl_steps gauge\ndfl_steps 7\n");
  const Result result = Run({"metrics", "-o", "json"});
  EXPECT_EQ(json::parse(result.out)["targets"][0]["text"], observer_.metrics);
}

TEST_F(SupportCommandTest, LogShowsLines) {
  const Result all = Run({"log", "show"});
  EXPECT_EQ(all.code, kOk) << all.err;
  EXPECT_THAT(all.out, HasSubstr("info    link-up: bert at 192.0.2.7:7600\n"));
  EXPECT_THAT(Run({"log", "show", "--level", "warning"}).out,
              Not(HasSubstr("link-up")));
  const json document = json::parse(Run({"log", "show", "-o", "json"}).out);
  EXPECT_EQ(document["lines"][1]["fields"]["peer"], "bert");
  EXPECT_EQ(document["targets"][0]["forgotten"], 4);
}

TEST_F(SupportCommandTest, LogLevelIsSetForAWhile) {
  const Result set = Run({"log", "level", "debug", "--for", "2m"});
  EXPECT_EQ(set.code, kOk) << set.err;
  EXPECT_THAT(set.out, HasSubstr("debug for 2m, then info"));
  EXPECT_EQ(observer_.Levels().left, absl::Minutes(2));
  EXPECT_EQ(Run({"log", "level", "reset"}).code, kOk);
  EXPECT_EQ(observer_.Levels().left, absl::ZeroDuration());
  EXPECT_EQ(Run({"log", "level", "loud"}).code, kUsage);
  EXPECT_EQ(Run({"log", "level", "debug", "--for", "soon"}).code, kUsage);
  EXPECT_EQ(json::parse(Run({"log", "level", "error", "-o", "json"})
                            .out)["targets"][0]["level"],
            "error");
}

TEST_F(SupportCommandTest, DoctorNamesFaultsWithTheirRemedy) {
  observer_.findings.push_back({"OpenBLAS", control::Finding::Kind::kFault,
                                "the reference BLAS", "apt install it"});
  const Result result = Run({"doctor"});
  EXPECT_EQ(result.code, kFailed);
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("fault"), HasSubstr("the reference BLAS"),
                    HasSubstr("apt install it"), HasSubstr(" faults, "),
                    Not(HasSubstr("1000 MiB are free"))));
  EXPECT_THAT(Run({"doctor", "--show-all"}).out,
              HasSubstr("1000 MiB are free"));
  const json document = json::parse(Run({"doctor", "-o", "json"}).out);
  EXPECT_GE(document["faults"].get<int>(), 1);
  EXPECT_EQ(document["examined"][0]["findings"][1]["remedy"], "apt install it");
}

TEST_F(SupportCommandTest, DoctorSaysWhatToDoWhereNobodyAnswers) {
  const Result result =
      Run({"doctor", "--target", "unix:" + Socket("nobody"), "--timeout=1s"});
  EXPECT_EQ(result.code, kUnreachable);
  EXPECT_THAT(result.out, HasSubstr("systemctl status dfld"));
}

TEST_F(SupportCommandTest, ABundleHasNoSecrets) {
  // Planted wherever a text of people or peers gets through.
  observer_.metrics += "# dfl1.hidden1hidden2\n";
  observer_.lines.push_back({3,
                             absl::FromUnixSeconds(1800000002),
                             control::LogLevel::kError,
                             "learner",
                             "https://anna:hidden3@example.org failed",
                             {}});
  observer_.findings.push_back({"data", control::Finding::Kind::kWarning,
                                "password=hidden4 in data.train", "x"});
  control::DaemonStatus status = control::SampleStatus("box-1");
  status.node.last_error = "Authorization: Bearer hidden5hidden6";
  backends_[0]->SetStatus(status);
  const std::string file = folder_.File("bundle.tar.gz");
  const Result result = Run({"debug", "bundle", "--file", file, "-o", "json"});
  EXPECT_EQ(result.code, kOk) << result.err;
  EXPECT_GE(json::parse(result.out)["removed"].get<int>(), 4);
  std::ifstream packed(file, std::ios::binary);
  const auto files =
      Files(Unpack({std::istreambuf_iterator<char>(packed), {}}));
  EXPECT_GE(files.size(), 10U);
  bool log_seen = false;
  for (const auto& [name, content] : files) {
    EXPECT_THAT(content, Not(HasSubstr("hidden"))) << name;
    log_seen =
        log_seen || content.find("link-down: bert: gone") != std::string::npos;
  }
  EXPECT_TRUE(log_seen);
}

}  // namespace
}  // namespace dfl::cli
