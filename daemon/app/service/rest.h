// When this box does not train although it was told to: outside of its hours,
// when it is hot, and on its battery.
#ifndef DFL_APP_SERVICE_REST_H_
#define DFL_APP_SERVICE_REST_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "daemon/app/logger.h"
#include "daemon/app/service/box_readings.h"
#include "daemon/app/worker.h"
#include "daemon/config/node_settings.h"
#include "daemon/ports/loop.h"
#include "daemon/runtime/node.h"

namespace dfl::app {

// Thread-compatible.
class RestRule {
 public:
  // A box that was too hot trains again when it is so much cooler.
  static constexpr double kCooler = 5;

  explicit RestRule(config::TrainSettings settings)
      : settings_(std::move(settings)) {}

  // Whether anything can have the box rest.
  bool any() const;
  // Whether sensors are asked at all.
  bool asks_sensors() const;

  // Why the box rests, "" when it trains. `minute`: of the local day.
  std::string Look(const BoxReadings& readings, int minute);

  // What is set and can have no effect, since no sensor tells; "": nothing.
  std::string Blind(const BoxReadings& readings) const;

 private:
  const config::TrainSettings settings_;
  bool hot_ = false;  // at the last look
};

// Where a Rest gets what it goes by.
struct RestSources {
  std::function<BoxReadings()> read;  // away from the loop
  std::function<int()> minute;        // of the local day
};
RestSources SourcesOfThisBox();

// Loop only, but for the destructor.
class Rest {
 public:
  static constexpr absl::Duration kPeriod = absl::Seconds(5);

  // All must outlive it; the loop has ended, or does not run what it holds,
  // when it goes.
  Rest(ports::Loop& loop, ports::Worker& reader, runtime::Node& node,
       Logger& log, RestSources sources);

  // Goes by these settings from here on.
  void Set(const config::TrainSettings& settings);
  // A node that rests and was told to train rests on. Often.
  void Insist();
  // Looks no more.
  void Stop();

 private:
  void LookLater();
  void LookNow();
  void Obey(const BoxReadings& readings);

  ports::Loop& loop_;
  ports::Worker& reader_;
  runtime::Node& node_;
  Logger& log_;
  const RestSources sources_;
  std::shared_ptr<RestRule> rule_;
  std::string why_;    // the node rests; "": it does not
  std::string blind_;  // as told last
  ports::TimerId timer_ = 0;
  bool stopped_ = false;
};

}  // namespace dfl::app

#endif  // DFL_APP_SERVICE_REST_H_
