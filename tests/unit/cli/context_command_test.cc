// dflctl context, and what wins: options, variables or contexts.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "tests/unit/cli/fake_daemon.h"

namespace dfl::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ContextTest : public CliTest {
 protected:
  ContextTest() { environment_["XDG_CONFIG_HOME"] = folder_.File("config"); }

  std::string File() const { return folder_.File("config/dfl/contexts.json"); }
  std::string Target(const std::string& name) const {
    return "unix:" + Socket(name);
  }
  // Of the daemon that answers.
  std::string Answers(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"version", "-o", "json"});
    const Result result = Run(arguments);
    const auto json =
        nlohmann::json::parse(result.out, nullptr, /*allow_exceptions=*/false);
    if (json.is_discarded()) return result.err;
    return json["targets"][0].value("node", result.err);
  }
};

TEST_F(ContextTest, OptionsGoBeforeVariablesAndThoseBeforeTheCurrentContext) {
  for (const char* name : {"box-1", "box-2", "box-3", "box-4"}) {
    StartDaemon(name);
  }
  EXPECT_EQ(Run({"context", "add", "one", "--target", Target("box-1")}).out,
            "context one: unix:FOLDER/box-1.sock, the current one\n");
  EXPECT_EQ(Run({"context", "add", "two", "--target", Target("box-2")}).out,
            "context two: unix:FOLDER/box-2.sock\n");
  EXPECT_EQ(Answers({}), "box-1");
  EXPECT_EQ(Run({"context", "use", "two"}).out, "the current context is two\n");
  EXPECT_EQ(Answers({}), "box-2");
  environment_["DFLCTL_CONTEXT"] = "one";
  EXPECT_EQ(Answers({}), "box-1");
  environment_["DFLCTL_TARGET"] = Target("box-3");
  EXPECT_EQ(Answers({}), "box-3");
  EXPECT_EQ(Answers({"--context=two"}), "box-2");
  EXPECT_EQ(Answers({"--context=two", "--target", Target("box-4")}), "box-4");
}

TEST_F(ContextTest, TheFileIsItsOwnersAloneAndReadBack) {
  ASSERT_EQ(Run({"context", "add", "lab", "-t", "10.0.0.1:7601", "-t",
                 "10.0.0.2:7601", "--identity", folder_.File("me")})
                .code,
            0);
  struct stat facts{};
  ASSERT_EQ(stat(File().c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600u);
  EXPECT_EQ(Run({"context", "list"}).out,
            "CURRENT  NAME  TARGETS                       IDENTITY\n"
            "*        lab   10.0.0.1:7601, 10.0.0.2:7601  FOLDER/me\n");
  EXPECT_EQ(Run({"context", "show", "-o", "jsonl"}).out,
            "{\"name\":\"lab\",\"current\":true,\"targets\":[\"10.0.0.1:7601\","
            "\"10.0.0.2:7601\"],\"identity\":\"FOLDER/me\"}\n");
  EXPECT_THAT(Run({"context", "list", "-o", "jsonl"}).out,
              testing::StartsWith("{\"name\":\"lab\""));
}

// The identity of a context is that of its network: it is not shown to a
// target that is named beside it.
TEST_F(ContextTest, TheIdentityBelongsToTheContextsOwnTargets) {
  ASSERT_EQ(Run({"context", "add", "lab", "-t", "localhost:1", "--identity",
                 folder_.File("me")})
                .code,
            0);
  EXPECT_THAT(Run({"status"}).err, HasSubstr("FOLDER/me"));
  EXPECT_THAT(Run({"status", "-t", "localhost:2"}).err,
              testing::Not(HasSubstr("FOLDER/me")));
  EXPECT_THAT(Run({"status", "-t", "localhost:2", "--context=lab"}).err,
              HasSubstr("FOLDER/me"));
  environment_["DFLCTL_IDENTITY"] = folder_.File("other");
  EXPECT_THAT(Run({"status"}).err, HasSubstr("FOLDER/other"));
}

// Plain text is a property of the target that was named so, and of no other.
TEST_F(ContextTest, InsecurityStaysWithItsTarget) {
  ASSERT_EQ(
      Run({"context", "add", "lab", "-t", "localhost:1", "--insecure"}).code,
      0);
  EXPECT_THAT(Run({"context", "show"}).out, HasSubstr("insecure:localhost:1"));
}

TEST_F(ContextTest, MistakesAreNamed) {
  EXPECT_EQ(Run({"context", "add", "lab"}).code, 2);
  EXPECT_THAT(Run({"context", "add", "lab"}).err,
              HasSubstr("a context needs a target"));
  EXPECT_EQ(Run({"context", "add", "a/b", "-t", "x:1"}).code, 2);
  EXPECT_THAT(Run({"status", "--context=lab"}).err,
              HasSubstr("there is no context \"lab\", and no other"));
  ASSERT_EQ(Run({"context", "add", "lab", "-t", "x:1"}).code, 0);
  const Result again = Run({"context", "add", "lab", "-t", "x:2"});
  EXPECT_EQ(again.code, 1);
  EXPECT_THAT(again.err, HasSubstr("--replace"));
  EXPECT_EQ(Run({"context", "add", "lab", "-t", "x:2", "--replace"}).code, 0);
  const Result wrong = Run({"status", "--context=lap"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("did you mean \"lab\"?"));
  // One that is gone is no reason not to choose another.
  environment_["DFLCTL_CONTEXT"] = "gone";
  EXPECT_EQ(Run({"status"}).code, 2);
  EXPECT_EQ(Run({"context", "list"}).code, 0);
  EXPECT_EQ(Run({"context", "remove", "lab"}).code, 0);
  EXPECT_EQ(Run({"context", "show"}).code, 1);
}

TEST_F(ContextTest, ADamagedFileIsSaidAndNotOverwritten) {
  ASSERT_EQ(Run({"context", "add", "lab", "-t", "x:1"}).code, 0);
  const std::string file = WriteFile("config/dfl/contexts.json", "{\"con");
  const Result result = Run({"status"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, AllOf(HasSubstr("contexts.json is damaged"),
                                HasSubstr("dflctl context add")));
  EXPECT_EQ(Run({"context", "add", "b", "-t", "x:1"}).code, 1);
  // Whoever names the target does not need it.
  StartDaemon("box-1");
  EXPECT_EQ(RunAt("box-1", {"status"}).code, 0);
}

TEST_F(ContextTest, WithoutAHomeThereAreNone) {
  environment_.clear();
  EXPECT_EQ(Run({"context", "list"}).code, 0);
  const Result added = Run({"context", "add", "lab", "-t", "x:1"});
  EXPECT_EQ(added.code, 1);
  EXPECT_THAT(added.err, HasSubstr("XDG_CONFIG_HOME"));
  EXPECT_THAT(added.out, IsEmpty());
}

}  // namespace
}  // namespace dfl::cli
