#include "daemon/app/service/rest.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/civil_time.h"
#include "absl/time/clock.h"
#include "daemon/config/values.h"

namespace dfl::app {

bool RestRule::any() const {
  return !settings_.window.empty() || asks_sensors();
}

bool RestRule::asks_sensors() const {
  return settings_.pause_above > 0 || settings_.pause_on_battery;
}

std::string RestRule::Look(const BoxReadings& readings, int minute) {
  const std::vector<std::string>& window = settings_.window;
  const auto holds = [minute](const std::string& text) {
    const std::optional<config::Hours> hours = config::ReadHours(text);
    return hours.has_value() && hours->Hold(minute);
  };
  if (settings_.pause_above > 0 && readings.celsius.has_value()) {
    const auto limit = static_cast<double>(settings_.pause_above);
    hot_ = *readings.celsius > (hot_ ? limit - kCooler : limit);
  }
  if (!window.empty() && std::none_of(window.begin(), window.end(), holds)) {
    return absl::StrCat("outside of train.window (",
                        absl::StrJoin(window, ", "), ")");
  }
  if (settings_.pause_on_battery && readings.on_battery.value_or(false)) {
    return "on battery (train.pause_on_battery)";
  }
  if (hot_) {
    return absl::StrCat("too hot (train.pause_above: ", settings_.pause_above,
                        " degrees)");
  }
  return "";
}

std::string RestRule::Blind(const BoxReadings& readings) const {
  if (settings_.pause_above > 0 && !readings.celsius.has_value()) {
    return "train.pause_above has no effect: no temperature can be read below "
           "/sys/class/thermal";
  }
  if (settings_.pause_on_battery && !readings.on_battery.has_value()) {
    return "train.pause_on_battery has no effect: /sys/class/power_supply "
           "tells of neither battery nor mains";
  }
  return "";
}

RestSources SourcesOfThisBox() {
  RestSources sources;
  sources.read = [] { return ReadBox(); };
  sources.minute = [] {
    const absl::CivilMinute now =
        absl::ToCivilMinute(absl::Now(), absl::LocalTimeZone());
    return now.hour() * 60 + now.minute();
  };
  return sources;
}

Rest::Rest(ports::Loop& loop, ports::Worker& reader, runtime::Node& node,
           Logger& log, RestSources sources)
    : loop_(loop),
      reader_(reader),
      node_(node),
      log_(log),
      sources_(std::move(sources)) {}

void Rest::Set(const config::TrainSettings& settings) {
  rule_ = std::make_shared<RestRule>(settings);
  LookNow();
}

void Rest::Insist() {
  if (!why_.empty()) node_.Rest(why_);
}

void Rest::Stop() {
  stopped_ = true;
  loop_.Cancel(timer_);
}

void Rest::LookLater() {
  timer_ = loop_.After(kPeriod, [this] { LookNow(); });
}

void Rest::LookNow() {
  if (stopped_) return;
  loop_.Cancel(timer_);
  if (!rule_->any() || !rule_->asks_sensors()) {
    Obey({});
    if (rule_->any()) LookLater();
    return;
  }
  auto readings = std::make_shared<BoxReadings>();
  reader_.Run([read = sources_.read, readings] { *readings = read(); },
              [this, readings, rule = rule_] {
                // The settings may have changed meanwhile.
                if (stopped_ || rule != rule_) return;
                Obey(*readings);
                LookLater();
              });
}

void Rest::Obey(const BoxReadings& readings) {
  const std::string blind = rule_->asks_sensors() ? rule_->Blind(readings) : "";
  if (!blind.empty() && blind != blind_) log_.Warning("rest", blind);
  blind_ = blind;
  const std::string why = rule_->Look(readings, sources_.minute());
  if (!why.empty()) {
    if (why_.empty()) log_.Info("rest", absl::StrCat("training rests: ", why));
  } else if (!why_.empty()) {
    log_.Info("rest", "the rest is over");
    node_.EndRest();
  }
  why_ = why;
  Insist();
}

}  // namespace dfl::app
