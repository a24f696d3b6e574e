#include "daemon/app/service/rest.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dfl::app {
namespace {

using ::testing::HasSubstr;

constexpr int kNoon = 12 * 60;

BoxReadings Hot(double celsius) { return {celsius, std::nullopt}; }

TEST(RestRule, WithoutSettingsNothingCounts) {
  RestRule rule({});
  EXPECT_FALSE(rule.any());
  EXPECT_EQ(rule.Look({95.0, true}, kNoon), "");
  EXPECT_EQ(rule.Blind({}), "");
}

TEST(RestRule, TrainsWithinItsHours) {
  config::TrainSettings settings;
  settings.window = {"22:00-06:00", "12:00-12:30"};
  RestRule rule(settings);
  EXPECT_TRUE(rule.any());
  EXPECT_FALSE(rule.asks_sensors());
  EXPECT_EQ(rule.Look({}, kNoon), "");
  EXPECT_EQ(rule.Look({}, kNoon + 29), "");
  EXPECT_EQ(rule.Look({}, kNoon + 30),
            "outside of train.window (22:00-06:00, 12:00-12:30)");
  EXPECT_EQ(rule.Look({}, 22 * 60), "");
  EXPECT_EQ(rule.Look({}, 0), "");
  EXPECT_EQ(rule.Look({}, 6 * 60 - 1), "");
  EXPECT_NE(rule.Look({}, 6 * 60), "");
}

TEST(RestRule, CoolsBeforeItTrainsAgain) {
  config::TrainSettings settings;
  settings.pause_above = 70;
  RestRule rule(settings);
  EXPECT_EQ(rule.Look(Hot(69), kNoon), "");
  EXPECT_EQ(rule.Look(Hot(70), kNoon), "");
  EXPECT_THAT(rule.Look(Hot(70.1), kNoon), HasSubstr("too hot"));
  EXPECT_THAT(rule.Look(Hot(66), kNoon), HasSubstr("too hot"));
  // A sensor that is silent for once changes nothing.
  EXPECT_THAT(rule.Look({}, kNoon), HasSubstr("too hot"));
  EXPECT_EQ(rule.Look(Hot(65), kNoon), "");
  EXPECT_EQ(rule.Look(Hot(69), kNoon), "");
}

TEST(RestRule, RestsOnBattery) {
  config::TrainSettings settings;
  settings.pause_on_battery = true;
  RestRule rule(settings);
  EXPECT_THAT(rule.Look({std::nullopt, true}, kNoon), HasSubstr("on battery"));
  EXPECT_EQ(rule.Look({std::nullopt, false}, kNoon), "");
  EXPECT_EQ(rule.Look({std::nullopt, std::nullopt}, kNoon), "");
}

TEST(RestRule, SaysWhatNoSensorTells) {
  config::TrainSettings settings;
  settings.pause_above = 70;
  EXPECT_THAT(RestRule(settings).Blind({}), HasSubstr("train.pause_above has"));
  EXPECT_EQ(RestRule(settings).Blind(Hot(40)), "");
  settings.pause_on_battery = true;
  EXPECT_THAT(RestRule(settings).Blind(Hot(40)),
              HasSubstr("train.pause_on_battery has"));
  EXPECT_EQ(RestRule(settings).Blind({40.0, false}), "");
}

class BoxReadingsTest : public testing::Test {
 protected:
  BoxReadingsTest() : root_(testing::TempDir() + "/box_readings/") {
    std::filesystem::remove_all(root_);
  }
  ~BoxReadingsTest() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path whole = root_ + "sys/class/" + path;
    std::filesystem::create_directories(whole.parent_path());
    std::ofstream(whole) << text << "\n";
  }
  void Supply(const std::string& name, const std::string& type,
              const std::string& file, const std::string& text) {
    Write("power_supply/" + name + "/type", type);
    Write("power_supply/" + name + "/" + file, text);
  }
  BoxReadings Read() const { return ReadBox(root_); }

  const std::string root_;
};

TEST_F(BoxReadingsTest, ABoxWithoutSensorsTellsNothing) {
  EXPECT_FALSE(Read().celsius.has_value());
  EXPECT_FALSE(Read().on_battery.has_value());
}

TEST_F(BoxReadingsTest, TheHottestSensorCounts) {
  Write("thermal/thermal_zone0/temp", "41000");
  Write("thermal/thermal_zone1/temp", "63500");
  Write("thermal/thermal_zone2/temp", "");  // as of a sensor that is off
  Write("thermal/cooling_device0/temp", "99000");
  EXPECT_EQ(Read().celsius, 63.5);
}

TEST_F(BoxReadingsTest, ABatteryThatIsUsedUpWithoutMains) {
  Supply("BAT0", "Battery", "status", "Discharging");
  EXPECT_EQ(Read().on_battery, true);
  Supply("AC", "Mains", "online", "0");
  EXPECT_EQ(Read().on_battery, true);
  // A weak adapter: the battery helps out.
  Supply("AC", "Mains", "online", "1");
  EXPECT_EQ(Read().on_battery, false);
  Supply("AC", "Mains", "online", "0");
  Supply("BAT0", "Battery", "status", "Full");
  EXPECT_EQ(Read().on_battery, false);
}

TEST_F(BoxReadingsTest, TheBatteryOfAMouseIsNoneOfTheBox) {
  Supply("mouse", "Battery", "status", "Discharging");
  Write("power_supply/mouse/scope", "Device");
  EXPECT_FALSE(Read().on_battery.has_value());
  Supply("AC", "Mains", "online", "1");
  EXPECT_EQ(Read().on_battery, false);
}

}  // namespace
}  // namespace dfl::app
