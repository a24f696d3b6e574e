// What the campaigns on dflsim's simulation share: playing a scenario, drawing
// faults that fit into it, and what is allowed to come of it.
#ifndef DFL_TESTS_SIM_CAMPAIGN_RUN_H_
#define DFL_TESTS_SIM_CAMPAIGN_RUN_H_

#include <string>
#include <vector>

#include "daemon/base/rng.h"
#include "daemon/sim/simulation.h"
#include "gtest/gtest.h"
#include "tests/sim/fault_schedule.h"
#include "tests/sim/optimum.h"

namespace dfl::sim {

struct Outcome {
  Result result;
  bool finite = true;  // all parameters of all nodes
  // f(mean w) - f*, the mean over the last tenth; of an algorithm in continuous
  // time, of the part in which no node has finished.
  double gap = 0;

  // Models and parcels taken, of those that could have been.
  double exchanges() const;
};

// Plays the text of a scenario; a scenario that is wrong fails the test.
Outcome Play(const std::string& text, double least_loss);

// What the nodes of the network learn.
Problems MakeProblems(const CampaignNetwork& network);

// What the gap under faults may be.
double Allowed(double gap);

// From `share` of its steps on the gap was what it may be at the end.
bool ConvergedFrom(double share, const Outcome& calm, double least_loss);

// Seconds from one step of a node that trains to its next: four times the
// longest without faults, four deadlines, and the time in which a model must
// move.
double LongestStep(const Outcome& calm, const CampaignNetwork& network);

// A scenario without faults, and how it went.
struct CalmRun {
  const CampaignNetwork& network;
  const std::string& algorithm;
  std::vector<std::string> events;
  double least_loss = 0;  // f*
  const Outcome& outcome;
};

struct Schedule {
  std::string text;
  Outcome outcome;
};

// The same with faults that end when two thirds of the run are over.
Schedule DrawSchedule(const CalmRun& calm, Rng& rng);

// Writes the scenario where a failure can be played from; returns its path.
std::string WriteScenario(const std::string& name, const std::string& text);

// Of the present test.
int FailuresSoFar();

// Every algorithm, and its name as part of a test's.
std::vector<std::string> CatalogueNames();
std::string CatalogueTestName(const testing::TestParamInfo<std::string>& info);

}  // namespace dfl::sim

#endif  // DFL_TESTS_SIM_CAMPAIGN_RUN_H_
