// Finding and opening LibTorch's learner, and what is told where that fails.
#include "daemon/learner/opening/torch_module.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "daemon/learner/opening/library_settings.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dfl::learner {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::string ErrorOf(const std::vector<std::string>& places) {
  const auto opened = OpenTorchModule(places);
  EXPECT_EQ(opened.status().code(), absl::StatusCode::kFailedPrecondition);
  return std::string(opened.status().message());
}

TEST(TorchModule, IsBesideTheProgramOrWhereItWasInstalledOrWhereASettingSays) {
  ::unsetenv(kTorchModuleVariable);
  const std::vector<std::string> places = TorchModulePlaces();
  ASSERT_THAT(places, SizeIs(2));
  EXPECT_THAT(places[0], EndsWith("/dfld-torch.so"));
  EXPECT_THAT(places[1], EndsWith("/dfld/dfld-torch.so"));
  ::setenv(kTorchModuleVariable, "/elsewhere/it.so", 1);
  EXPECT_THAT(TorchModulePlaces(), ElementsAre("/elsewhere/it.so"));
  ::unsetenv(kTorchModuleVariable);
}

TEST(TorchModule, SaysWhichFilesAreMissingAndWhatToInstall) {
  EXPECT_THAT(ErrorOf({"/nowhere/a.so", "/nowhere/b.so"}),
              AllOf(HasSubstr("there is no /nowhere/a.so and no /nowhere/b.so"),
                    HasSubstr("install the package dfld-torch"),
                    HasSubstr("-DDFL_TORCH=ON")));
}

TEST(TorchModule, SaysWhyAFileCannotBeLoaded) {
  const std::string file = ::testing::TempDir() + "no_library.so";
  std::ofstream(file) << "text\n";
  EXPECT_THAT(ErrorOf({file}), AllOf(HasSubstr(file), HasSubstr("install the "
                                                                "LibTorch")));
  std::remove(file.c_str());
}

TEST(TorchModule, RefusesAnotherLibraryAndAnotherBuild) {
  EXPECT_THAT(ErrorOf({"/nowhere/a.so", DFL_NO_SYMBOL}),
              AllOf(HasSubstr(DFL_NO_SYMBOL), HasSubstr(kTorchSymbol)));
  EXPECT_THAT(
      ErrorOf({DFL_OTHER_BUILD}),
      AllOf(HasSubstr(DFL_OTHER_BUILD), HasSubstr("another build"),
            HasSubstr("\"dfld 0.0.7\""), HasSubstr(TorchInterfaceVersion())));
}

TEST(LibrarySettings, AreSetUnlessTheEnvironmentSaysOtherwise) {
  ::unsetenv("OMP_WAIT_POLICY");
  ::setenv("OPENBLAS_NUM_THREADS", "4", 1);
  SetLibraryEnvironment();
  EXPECT_STREQ(std::getenv("OMP_WAIT_POLICY"), "passive");
  EXPECT_STREQ(std::getenv("OPENBLAS_NUM_THREADS"), "4");
  ::unsetenv("OPENBLAS_NUM_THREADS");
  SetLibraryEnvironment();
  EXPECT_STREQ(std::getenv("OPENBLAS_NUM_THREADS"), "1");
}

#ifdef DFL_TORCH_FILE
TEST(TorchModule, OpensTheOneOfThisBuild) {
  const auto torch = OpenTorchModule({DFL_TORCH_FILE});
  ASSERT_TRUE(torch.ok()) << torch.status();
  EXPECT_FALSE((*torch)->Version().empty());
  EXPECT_TRUE((*torch)->CheckDevice("cpu").ok());
  const auto again = OpenTorchModule({DFL_TORCH_FILE});
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(*again, *torch);
}
#endif

}  // namespace
}  // namespace dfl::learner
