#include "daemon/config/daemon_command_line.h"

#include <stdlib.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "daemon/config/settings_table.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dfl::config {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

absl::StatusOr<DaemonCommandLine> Parse(
    std::vector<const char*> arguments,
    const std::map<std::string, std::string>& environment = {}) {
  arguments.insert(arguments.begin(), "dfld");
  return ParseDaemonCommandLine(static_cast<int>(arguments.size()),
                                arguments.data(), environment);
}

TEST(DaemonCommandLine, TakesBothFormsAndLoneToggles) {
  const absl::StatusOr<DaemonCommandLine> line =
      Parse({"--config", "a.yaml", "--conf-d=d", "--ready-file", "r", "--check",
             "--name=box", "--peers", "a:1", "--peers=b:2", "--run.autostart",
             "--peer.advertise="});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->config_file, "a.yaml");
  EXPECT_EQ(line->config_folder, "d");
  EXPECT_EQ(line->ready_file, "r");
  EXPECT_TRUE(line->check);
  EXPECT_FALSE(line->help);
  EXPECT_THAT(line->settings,
              ElementsAre(Pair("name", "box"), Pair("peers", "a:1"),
                          Pair("peers", "b:2"), Pair("run.autostart", "on"),
                          Pair("peer.advertise", "")));
}

TEST(DaemonCommandLine, PathsComeFromTheEnvironmentWhereNoFlagIsGiven) {
  const absl::StatusOr<DaemonCommandLine> line =
      Parse({"--config=flag.yaml"}, {{"DFLD_CONFIG", "variable.yaml"},
                                     {"DFLD_CONF_D", "folder"},
                                     {"DFLD_READY_FILE", "ready"}});
  ASSERT_TRUE(line.ok());
  EXPECT_EQ(line->config_file, "flag.yaml");
  EXPECT_EQ(line->config_folder, "folder");
  EXPECT_EQ(line->ready_file, "ready");
}

TEST(DaemonCommandLine, SaysWhatIsWrong) {
  struct Case {
    std::vector<const char*> arguments;
    const char* why;
  };
  for (const Case& c :
       {Case{{"--control.sokcet=/x"}, "did you mean --control.socket?"},
        Case{{"--confg", "x"}, "did you mean --config?"},
        Case{{"--zzzzzzzzzzzzzzz"}, "dfld --help lists all flags"},
        Case{{"start"}, "argument \"start\": not a flag"},
        Case{{"--name"}, "flag --name: its value is missing; allowed: 1 to 63"},
        Case{{"--check=yes"}, "flag --check: takes no value, found \"yes\""},
        Case{{"--config="}, "flag --config: found \"\"; allowed: a path"},
        Case{{"--"}, "argument \"--\""}}) {
    const absl::StatusOr<DaemonCommandLine> line = Parse(c.arguments);
    ASSERT_FALSE(line.ok()) << c.arguments[0];
    EXPECT_EQ(line.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(line.status().message()), HasSubstr(c.why));
  }
}

TEST(DaemonCommandLine, HelpNamesEverySetting) {
  const std::string help = DaemonHelp();
  for (const Setting& setting : SettingsTable()) {
    EXPECT_THAT(help, HasSubstr("  --" + setting.key + "\n"));
    EXPECT_THAT(help, HasSubstr("Allowed: "));
  }
  size_t start = 0;
  for (size_t end = help.find('\n'); end != std::string::npos;
       start = end + 1, end = help.find('\n', start)) {
    EXPECT_LE(end - start, 90u) << help.substr(start, end - start);
  }
}

TEST(DaemonCommandLine, HelpEndsWithAnExampleThatIsUnderstood) {
  const std::string help = DaemonHelp();
  const std::string mark = "\n\nExample: dfld ";
  const size_t at = help.rfind(mark);
  ASSERT_NE(at, std::string::npos);
  EXPECT_EQ(help.find('\n', at + mark.size()), help.size() - 1);
  const std::vector<std::string> words = absl::StrSplit(
      help.substr(at + mark.size()), absl::ByAnyChar(" \n"), absl::SkipEmpty());
  std::vector<const char*> arguments;
  for (const std::string& word : words) arguments.push_back(word.c_str());
  const absl::StatusOr<DaemonCommandLine> line = Parse(arguments);
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->config_file, kDefaultConfigFile);
  EXPECT_THAT(line->settings, ElementsAre(Pair("name", "gateway-07")));
}

class GatherSourcesTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/config_test_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ + "/" + name) << text;
  }
  std::string folder_;
};

TEST_F(GatherSourcesTest, ReadsTheFileThenTheFolderInOrderOfNames) {
  Write("main.cfg", "name: a\n");
  Write("20-b.yaml", "name: c\n");
  Write("10-a.yaml", "name: b\n");
  Write("ignored.txt", "name: [\n");
  Write(".hidden.yaml", "name: [\n");
  DaemonCommandLine line;
  line.config_file = folder_ + "/main.cfg";
  line.config_folder = folder_;
  const absl::StatusOr<SettingsSources> sources = GatherSources(line, {});
  ASSERT_TRUE(sources.ok()) << sources.status();
  ASSERT_EQ(sources->files.size(), 3u);
  EXPECT_EQ(sources->files[0].name, folder_ + "/main.cfg");
  EXPECT_EQ(sources->files[1].name, folder_ + "/10-a.yaml");
  EXPECT_EQ(sources->files[2].text, "name: c\n");
  EXPECT_FALSE(sources->host_name.empty());
}

TEST_F(GatherSourcesTest, WhatWasNamedMustBeThere) {
  DaemonCommandLine line;
  line.config_file = folder_ + "/absent.yaml";
  absl::StatusOr<SettingsSources> sources = GatherSources(line, {});
  EXPECT_EQ(sources.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(sources.status().message()),
              HasSubstr("absent.yaml: No such file"));

  Write("main.yaml", "");
  line.config_file = folder_ + "/main.yaml";
  line.config_folder = folder_ + "/absent.d";
  sources = GatherSources(line, {});
  EXPECT_EQ(sources.status().code(), absl::StatusCode::kNotFound);

  line.config_folder.clear();
  line.config_file = folder_;  // a folder is no file
  EXPECT_FALSE(GatherSources(line, {}).ok());
}

TEST_F(GatherSourcesTest, RefusesAFileThatIsTooLarge) {
  Write("main.yaml", std::string((1 << 20) + 1, '#'));
  DaemonCommandLine line;
  line.config_file = folder_ + "/main.yaml";
  const absl::StatusOr<SettingsSources> sources = GatherSources(line, {});
  EXPECT_EQ(sources.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(sources.status().message()),
              HasSubstr("longer than 1048576 bytes"));
}

}  // namespace
}  // namespace dfl::config
