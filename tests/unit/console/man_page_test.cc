// Pages of the manual. Those of dflctl and dflsim are compared with the files
// of deploy/man where these programs are tested.
#include "daemon/console/man_page.h"

#include "daemon/config/settings_table.h"
#include "daemon/console/command_line.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/written_file.h"

namespace dfl::console {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing_support::ExpectIsFile;

TEST(ManPage, OfDfldAreTheFilesInDeploy) {
  ExpectIsFile(DFL_DEPLOY_DIR "/man/dfld.8", DaemonPage());
  ExpectIsFile(DFL_DEPLOY_DIR "/man/dfld.yaml.5", SettingsPage());
}

TEST(ManPage, SettingsPageNamesEverySetting) {
  const std::string page = SettingsPage();
  for (const config::Setting& setting : config::SettingsTable()) {
    EXPECT_THAT(page, HasSubstr("\n\\fB" + setting.key + "\\fR\n"));
  }
}

TEST(ManPage, HasEachCommandWithItsOptionsAndNotes) {
  CLI::App app("Sorts things.\nAnd more.", "sorter");
  app.footer("Exit codes:\n  0  ok");
  SetExample(app, "list");
  app.add_option("-o,--output", "Form of what is printed")
      ->group("Global options");
  CLI::App* noun = AddCommand(app, "shelf", "Of shelves", "add north");
  CLI::App* add = AddCommand(*noun, "add", "Makes one more", "north --rows 3");
  add->add_option("NAME", "Of the shelf")->required();
  int rows = 1;
  add->add_option("--rows", rows, "How many");
  const std::string page = ProgramPage(app, "other(1)");
  EXPECT_THAT(page, HasSubstr(".TH SORTER 1 "));
  EXPECT_THAT(page, HasSubstr("sorter \\- Sorts things\n"));
  EXPECT_THAT(page, HasSubstr("\\fB\\-o,\\-\\-output\\fR"));
  EXPECT_THAT(page, HasSubstr(".SS \\fBsorter shelf\\fR COMMAND\n"));
  EXPECT_THAT(page, HasSubstr(".SS \\fBsorter shelf add\\fR [OPTIONS] NAME"));
  EXPECT_THAT(page, HasSubstr("\\fB\\-\\-rows\\fR INT"));
  EXPECT_THAT(page, HasSubstr("How many\n"));
  EXPECT_THAT(page, HasSubstr("Example: sorter shelf add north \\-\\-rows 3"));
  EXPECT_THAT(page, HasSubstr("other(1)"));
  // What all commands share stands there once.
  EXPECT_EQ(page.find("Exit codes:"), page.rfind("Exit codes:"));
  EXPECT_THAT(page, Not(HasSubstr("\\-\\-help")));
}

// A line of help may begin with what roff takes for a command, and hold what
// it takes for an escape.
TEST(ManPage, EscapesWhatRoffWouldRead) {
  CLI::App app("Sorts.", "sorter");
  app.add_option("--path", "C:\\dir\n.TH is no command\n'nor this");
  const std::string page = ProgramPage(app, "other(1)");
  EXPECT_THAT(page, HasSubstr("C:\\edir\n\\&.TH is no command\n\\&'nor this"));
}

}  // namespace
}  // namespace dfl::console
