// The files that are installed beside dflctl: made by it.
#include <gmock/gmock.h>

#include "tests/support/written_file.h"
#include "tests/unit/cli/fake_daemon.h"

namespace dfl::cli {
namespace {

using testing_support::ExpectIsFile;

class InstalledFiles : public CliTest {
 protected:
  std::string Printed(const std::vector<std::string>& arguments) {
    const Result result = Run(arguments);
    EXPECT_EQ(result.code, 0) << result.err;
    return result.out;
  }
};

TEST_F(InstalledFiles, ManPageIsWhatItPrints) {
  ExpectIsFile(DFL_DEPLOY_DIR "/man/dflctl.1", Printed({"__man"}));
}

TEST_F(InstalledFiles, CompletionsAreWhatItPrints) {
  const std::string folder = DFL_DEPLOY_DIR "/completion/";
  ExpectIsFile(folder + "dflctl.bash", Printed({"completion", "bash"}));
  ExpectIsFile(folder + "dflctl.zsh", Printed({"completion", "zsh"}));
  ExpectIsFile(folder + "dflctl.fish", Printed({"completion", "fish"}));
}

}  // namespace
}  // namespace dfl::cli
