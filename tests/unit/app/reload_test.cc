#include "daemon/app/service/reload.h"

#include "daemon/config/settings_table.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dfl::app {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<config::EffectiveSetting> Settings(const std::string& level,
                                               const std::string& format) {
  return {{"log.level", level, "a.yaml:1"}, {"log.format", format, "a.yaml:2"}};
}

TEST(Reload, ChangesAtOnceOrAfterARestart) {
  const SettingChanges changes =
      CompareSettings(Settings("info", "text"), Settings("debug", "json"));
  EXPECT_THAT(changes.now, ElementsAre("log.level"));
  EXPECT_THAT(changes.later, ElementsAre("log.format"));
  ASSERT_EQ(changes.effective.size(), 2u);
  EXPECT_EQ(changes.effective[0].value, "debug");
  EXPECT_EQ(changes.effective[1].value, "text") << "it is not in force yet";
  EXPECT_EQ(Describe(changes),
            "in force: log.level; after a restart: log.format");
}

TEST(Reload, TheSameSettingsChangeNothing) {
  const SettingChanges changes =
      CompareSettings(Settings("info", "text"), Settings("info", "text"));
  EXPECT_THAT(changes.now, IsEmpty());
  EXPECT_THAT(changes.later, IsEmpty());
  EXPECT_EQ(Describe(changes), "the settings are as before");
}

// What waits for a restart is compared with what is in force, so that taking
// it back is no change.
TEST(Reload, WhatWasTakenBackDoesNotWait) {
  const SettingChanges first =
      CompareSettings(Settings("info", "text"), Settings("info", "json"));
  EXPECT_THAT(first.later, ElementsAre("log.format"));
  const SettingChanges second =
      CompareSettings(first.effective, Settings("info", "text"));
  EXPECT_THAT(second.later, IsEmpty());
}

TEST(Reload, TheSettingsThatItTakesUpExist) {
  int found = 0;
  for (const config::Setting& setting : config::SettingsTable()) {
    if (IsReloadable(setting.key)) ++found;
  }
  EXPECT_EQ(found, 4);
}

}  // namespace
}  // namespace dfl::app
