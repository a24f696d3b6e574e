#include "daemon/core/algorithm/dispatch.h"

#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "gtest/gtest.h"

namespace dfl::core {
namespace {

struct Rain {
  std::unique_ptr<int> drops;
};
struct Snow {};
struct Wind {};
using Weather = std::variant<Rain, Snow, Wind>;

TEST(DispatchTest, MovesTheEventToItsHandler) {
  std::string happened;
  const auto handle = [&](Weather event) {
    Dispatch(
        std::move(event),
        [&](Rain rain) { happened += "rain " + std::to_string(*rain.drops); },
        [&](const Snow&) { happened += " snow"; }, Ignored<Wind>());
  };
  handle(Rain{std::make_unique<int>(3)});
  handle(Wind{});
  handle(Snow{});
  EXPECT_EQ(happened, "rain 3 snow");
}

using OnRain = void (*)(const Rain&);
using OnSnow = void (*)(const Snow&);
using OnNumber = void (*)(int);
struct OnAnything {
  template <typename Kind>
  void operator()(const Kind&) const {}
};

// What would not compile.
static_assert(kDispatches<Weather, OnRain, OnSnow, Ignored<Wind>>);
static_assert(!kDispatches<Weather, OnRain, OnSnow>, "nobody takes wind");
static_assert(!kDispatches<Weather, OnRain, OnSnow, Ignored<Wind>, OnNumber>,
              "a number is no weather");
static_assert(!kDispatches<Weather, OnRain, OnSnow, Ignored<Snow, Wind>>,
              "snow has two handlers");
static_assert(!kDispatches<Weather, OnRain, OnSnow, Ignored<Wind, int>>,
              "a number is no weather that could be ignored");
static_assert(!kDispatches<Weather, OnAnything>,
              "a new kind would be taken by it unseen");

}  // namespace
}  // namespace dfl::core
