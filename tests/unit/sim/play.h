// Plays scenarios for tests.
#ifndef DFL_TESTS_UNIT_SIM_PLAY_H_
#define DFL_TESTS_UNIT_SIM_PLAY_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>

#include "daemon/sim/metrics.h"
#include "daemon/sim/scenario.h"
#include "daemon/sim/simulation.h"

namespace dfl::sim {

inline Result RunOnce(const std::string& text, uint64_t seed = 0,
                      const std::string& variant = "") {
  Result none;
  none.rows.resize(8);  // so that tests may look at some
  absl::StatusOr<Scenario> scenario =
      ParseScenario(text, "s.yaml", seed, variant);
  EXPECT_TRUE(scenario.ok()) << scenario.status();
  if (!scenario.ok()) return none;
  auto made = Simulation::Create(*std::move(scenario));
  EXPECT_TRUE(made.ok()) << made.status();
  return made.ok() ? (*made)->Run([](const Progress&) { return true; }) : none;
}

// Every scenario is played twice: the same seed is the same run.
inline Result RunTwice(const std::string& text, uint64_t seed = 0) {
  const Result first = RunOnce(text, seed);
  Result second = RunOnce(text, seed);
  EXPECT_EQ(first.digest, second.digest) << text;
  // As text: of a run that diverged they are not numbers.
  EXPECT_EQ(ToCsv(first.rows), ToCsv(second.rows)) << text;
  EXPECT_EQ(first.rows.back().extra, second.rows.back().extra) << text;
  return second;
}

}  // namespace dfl::sim

#endif  // DFL_TESTS_UNIT_SIM_PLAY_H_
