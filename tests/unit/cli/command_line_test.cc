// What dflctl says to a wrong command line, and its exit codes.
#include <gmock/gmock.h>

#include "tests/support/command_examples.h"
#include "tests/unit/cli/fake_daemon.h"

namespace dfl::cli {
namespace {

using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

TEST_F(CliTest, HelpGoesToStdoutAndDocumentsExitCodes) {
  const Result help = Run({"--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_THAT(help.out, HasSubstr("Exit codes:"));
  EXPECT_THAT(help.out, HasSubstr("  8   version skew"));
  EXPECT_THAT(help.out, HasSubstr("participation"));
  EXPECT_THAT(help.err, IsEmpty());
  EXPECT_EQ(Run({"plan", "apply", "--help"}).code, 0);
}

// Nothing is called: a wrong --timeout is told once all words were understood.
TEST_F(CliTest, EveryCommandsHelpEndsWithAnExampleThatIsUnderstood) {
  const std::vector<CommandHelp> commands =
      AllCommands("dflctl", [&](const std::vector<std::string>& arguments) {
        return Run(arguments).out;
      });
  EXPECT_THAT(commands, Contains(Field(&CommandHelp::path, "dflctl version")));
  EXPECT_THAT(commands,
              Contains(Field(&CommandHelp::path, "dflctl plan apply")));
  ExpectExamples(commands);
  for (const CommandHelp& command : commands) {
    std::vector<std::string> arguments = ExampleArguments(command);
    arguments.push_back("--timeout=never");
    const Result result = Run(arguments);
    EXPECT_EQ(result.code, 2) << command.example;
    EXPECT_THAT(result.err, StartsWith("dflctl: --timeout: \"never\""))
        << command.example;
  }
}

TEST_F(CliTest, UnknownWordsNameTheNearestOne) {
  struct Case {
    std::vector<std::string> arguments;
    std::string said;
  };
  const Case cases[] = {
      {{"stauts"}, "unknown command \"stauts\"; did you mean \"status\"?"},
      {{"plan", "aply", "x"},
       "unknown command \"aply\"; did you mean \"apply\""},
      {{"status", "--timout=1s"}, "did you mean \"--timeout\"?"},
      {{"topology", "set", "ring", "--wieghts=uniform"},
       "did you mean \"--weights\"?"},
      {{"status", "-o", "jason"}, "did you mean \"json\"?"},
      {{"algorithm", "show", "pam"}, "did you mean \"pame\"?"},
      {{}, "a command is missing: status, "},
      {{"plan"}, "a command is missing: validate, show, apply"},
      {{"plan", "apply"}, "FILE is required"},
      {{"status", "extra"}, "\"extra\" is one argument too many"},
      {{"status", "--timeout=soon"}, "--timeout: \"soon\" is no time"},
      {{"status", "--target=nonsense"}, "has no port"},
      {{"watch", "--interval=1ms"}, "--interval: \"1ms\""},
  };
  for (const Case& c : cases) {
    const Result result = Run(c.arguments);
    EXPECT_EQ(result.code, 2) << c.said;
    EXPECT_THAT(result.err, HasSubstr(c.said));
    EXPECT_THAT(result.out, IsEmpty());
  }
}

TEST_F(CliTest, NobodyThereIsThree) {
  const Result result = RunAt("box-1", {"status"});
  EXPECT_EQ(result.code, 3);
  EXPECT_THAT(result.err, HasSubstr("FOLDER/box-1.sock"));
  EXPECT_THAT(result.err, HasSubstr("there is no such socket"));
  EXPECT_EQ(RunAt("box-1", {"watch"}).code, 3);
  EXPECT_EQ(RunAt("box-1", {"topology", "set", "ring"}).code, 3);
}

TEST_F(CliTest, EachClassOfErrorHasItsCode) {
  control::FakeBackend& daemon = StartDaemon("box-1");
  const std::pair<absl::Status, int> cases[] = {
      {absl::FailedPreconditionError("x"), 1},
      {absl::InvalidArgumentError("x"), 1},
      {absl::PermissionDeniedError("x"), 4},
      {absl::DeadlineExceededError("x"), 5},
      {absl::AbortedError("x"), 7},
      {absl::UnimplementedError("x"), 8},
  };
  for (const auto& [status, code] : cases) {
    daemon.SetFailure(status);
    EXPECT_EQ(RunAt("box-1", {"train", "start"}).code, code) << status;
  }
}

TEST_F(CliTest, ATimeoutIsFive) {
  control::FakeBackend& daemon = StartDaemon("box-1");
  daemon.KeepTrainQuiet();
  const Result late = RunAt("box-1", {"train", "start", "--timeout=100ms"});
  EXPECT_EQ(late.code, 5);
  EXPECT_THAT(late.err, HasSubstr("100ms"));
  daemon.ReleaseTrain();
}

TEST_F(CliTest, SomeOfSeveralIsSixAndEachOneIsReported) {
  control::FakeBackend& daemon = StartDaemon("box-1");
  const std::string file =
      WriteFile("targets", "# both boxes\nunix:" + Socket("box-1") +
                               "\n  unix:" + Socket("box-2") + "  # down\n");
  const Result result = Run({"train", "pause", "--all", file, "-o", "json"});
  EXPECT_EQ(result.code, 6);
  EXPECT_EQ(result.out, R"({
  "targets": [
    {
      "target": "unix:FOLDER/box-1.sock",
      "ok": true,
      "phase": "paused"
    },
    {
      "target": "unix:FOLDER/box-2.sock",
      "ok": false,
      "error": {
        "code": "unreachable",
        "exit_code": 3,
        "message": "unix:FOLDER/box-2.sock: there is no such socket; is dfld running, and is control.socket that path?"
      }
    }
  ]
}
)");
  EXPECT_THAT(result.err, HasSubstr("box-2.sock: there is no such socket"));
  EXPECT_EQ(daemon.orders().size(), 1u);
}

TEST_F(CliTest, TargetsComeFromTheEnvironmentToo) {
  StartDaemon("box-1");
  environment_["DFLCTL_TARGET"] = "unix:" + Socket("box-1");
  EXPECT_EQ(Run({"status"}).code, 0);
  EXPECT_EQ(Run({"status", "--all", folder_.File("none")}).code, 1);
  EXPECT_EQ(Run({"status", "--all", WriteFile("empty", "# nobody\n")}).code, 2);
}

// `dflctl top --help` says what is wrong; it does not pass for help.
TEST_F(CliTest, HelpOfWhatNobodyKnowsIsAnError) {
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{"stauts", "--help"},
       "unknown command \"stauts\"; did you mean \"status\"?"},
      {{"--help", "stauts"}, "unknown command \"stauts\""},
      {{"plan", "aply", "--help"}, "did you mean \"apply\"?"},
      {{"status", "--peres", "--help"}, "did you mean \"--peers\"?"},
      {{"status", "extra", "-h"}, "\"extra\" is one argument too many"},
  };
  for (const auto& [arguments, said] : cases) {
    const Result result = Run(arguments);
    EXPECT_EQ(result.code, 2) << said;
    EXPECT_THAT(result.err, HasSubstr(said));
    EXPECT_THAT(result.out, IsEmpty());
  }
}

TEST_F(CliTest, LinesOfJsonAreALineForEachTarget) {
  StartDaemon("box-1");
  StartDaemon("box-2");
  const Result result =
      Run({"train", "pause", "-o", "jsonl", "-t", "unix:" + Socket("box-1"),
           "-t", "unix:" + Socket("box-2")});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.out,
            "{\"target\":\"unix:FOLDER/box-1.sock\",\"ok\":true,\"phase\":"
            "\"paused\"}\n"
            "{\"target\":\"unix:FOLDER/box-2.sock\",\"ok\":true,\"phase\":"
            "\"paused\"}\n");
}

TEST_F(CliTest, CompletionIsAScriptThatAsksTheProgram) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const Result script = Run({"completion", shell});
    EXPECT_EQ(script.code, 0);
    EXPECT_THAT(script.out, HasSubstr("__complete"));
  }
  EXPECT_THAT(Run({"completion", "bahs"}).err,
              HasSubstr("did you mean \"bash\""));
}

TEST_F(CliTest, PipesGetNoEscapeSequences) {
  StartDaemon("box-1");
  EXPECT_THAT(RunAt("box-1", {"watch", "--count=1"}).out,
              Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace dfl::cli
