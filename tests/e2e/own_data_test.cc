// Data as people have it, with dfld as a user has it: what it guesses, what it
// says it understood, and what it refuses with the cure.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/daemon_process.h"

namespace dfl::testing_support {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int kUsage = 2;
constexpr int kConfig = 78;

class Data : public testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& text) {
    WriteFile(folder_.File(name), text);
    return folder_.File(name);
  }

  // dfld --check with this section, and settings that a daemon needs.
  Outcome Check(const std::string& data) {
    const std::string path =
        Write("dfld.yaml",
              absl::StrCat("name: a\nsecurity: insecure\nstate_dir: \"",
                           folder_.path(), "/state\"\ncontrol: {socket: \"",
                           folder_.path(), "/a.sock\"}\n", data));
    return Run({"--config", path, "--check"});
  }

  static Outcome Run(const std::vector<std::string>& arguments) {
    std::vector<std::string> command = {Program("dfld")};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return RunCommand(command, {{"OPENBLAS_NUM_THREADS", "1"}},
                      absl::Seconds(60));
  }

  TemporaryFolder folder_;
};

// What is guessed is what a daemon reads.
TEST_F(Data, AGuessIsASectionThatADaemonReads) {
  const std::string train = Write("patients.csv",
                                  ",age,smokes,ward,Target\n0,61,True,red,ill\n"
                                  "1,40,False,blue,well\n2,33,,red,well\n");
  const std::string test =
      Write("patients_test.csv", "Target,age,smokes\nwell,20,False\n");
  const Outcome guess = Run({"data", train, test});
  ASSERT_EQ(guess.exit_code, 0) << guess.err;
  EXPECT_THAT(guess.out, AllOf(StartsWith("data:\n"), HasSubstr("format: csv"),
                               HasSubstr("label_column: Target"),
                               HasSubstr("missing: mean"), HasSubstr(test)));
  EXPECT_THAT(guess.err, AllOf(HasSubstr("guessed: data.drop_columns: 3"),
                               HasSubstr("'red' is not a number"),
                               HasSubstr("training: 3 rows")));
  const Outcome check = Check(guess.out);
  EXPECT_EQ(check.exit_code, 0) << check.err;
  EXPECT_THAT(check.out,
              AllOf(HasSubstr("ill"), HasSubstr("feature 0 ('age'): 33 to 61"),
                    EndsWith("the configuration is valid\n")));
}

TEST_F(Data, GuessingSaysHowItIsCalled) {
  const Outcome help = Run({"data", "--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.out, HasSubstr("Example: dfld data "));
  EXPECT_EQ(Run({"data"}).exit_code, kUsage);
  EXPECT_EQ(Run({"data", "--fast"}).exit_code, kUsage);
  const Outcome absent = Run({"data", folder_.File("absent.csv")});
  EXPECT_EQ(absent.exit_code, kConfig);
  EXPECT_THAT(absent.err, HasSubstr(folder_.File("absent.csv")));
  EXPECT_EQ(absent.out, "");
}

TEST_F(Data, ACheckRefusesWithTheCure) {
  const std::string holes = Write("holes.csv", "a,b,y\n1,,0\n2,3,1\n");
  const std::string odd = Write("odd.csv", "x,2,0\n3,4,1\n5,6,0\n");
  const std::string train = Write("t.csv", "age,bp,y\n1,2,0\n3,4,1\n");
  const std::string other = Write("o.csv", "age,sex,y\n1,2,0\n3,4,1\n");
  const struct {
    std::string data;
    std::vector<std::string> parts;
  } cases[] = {
      {absl::StrCat("{format: csv, train: {paths: [\"", holes, "\"]}}"),
       {holes, "line 2, column 2 ('b')", "is missing", "data.missing: mean"}},
      {absl::StrCat("{format: csv, train: {paths: [\"", odd, "\"]}}"),
       {odd, "line 1", "'x' is a word", "data.header: yes"}},
      {absl::StrCat("{format: csv, train: {paths: [\"", train,
                    "\"]}, test: {paths: [\"", other, "\"]}}"),
       {other, "without 'bp', with 'sex'", "data.drop_columns"}},
  };
  for (const auto& c : cases) {
    const Outcome check = Check(absl::StrCat("data: ", c.data, "\n"));
    EXPECT_EQ(check.exit_code, kConfig) << check.err;
    for (const std::string& part : c.parts) {
      EXPECT_THAT(check.err, HasSubstr(part));
    }
  }
}

}  // namespace
}  // namespace dfl::testing_support
