// Random scenarios for dflsim, twice: without faults, and with a schedule of
// everything that a network does to its nodes. All of it is the text of a
// scenario file, so `dflsim run` plays the very same run.
#ifndef DFL_TESTS_SIM_FAULT_SCHEDULE_H_
#define DFL_TESTS_SIM_FAULT_SCHEDULE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "daemon/base/rng.h"
#include "daemon/core/algorithm/algorithm.h"
#include "daemon/core/algorithm/algorithm_info.h"
#include "daemon/core/algorithm/pace.h"

namespace dfl::sim {

// What a scenario is but for its faults.
struct CampaignNetwork {
  std::string membership = {};   // its pace; "": all are known from the start
  bool plans_by_gossip = false;  // a change is given to one node
  bool checkpoints = false;      // nodes go on from them after a crash
  // "{nodes: [n3], attack: stale}", against which all trim; "": none.
  std::string hostile = {};
  uint64_t seed = 1;
  int64_t nodes = 4;
  int64_t n = 2;
  int64_t rows = 50;
  std::string problem = "linear";  // logistic, softmax
  int64_t classes = 3;             // softmax
  int64_t batch = 50;
  int64_t steps = 150;  // about; see StopAfter
  std::string stop = "{steps: 1}";
  absl::Duration gradient;  // of the fastest node
  absl::Duration extra;     // mean of what is drawn on top
  absl::Duration deadline;
  absl::Duration delay;
  std::string graph;  // "{kind: ...}"
  std::string codec;
  // Whom a link may join, by place, smaller first.
  std::vector<std::pair<int64_t, int64_t>> edges;
};

// 4 to 8 nodes with 2 to 20 parameters, a connected graph of a kind that `info`
// takes, and gradients that take long against the time-outs of links: 150 to
// 400 steps are minutes. `classes`: the problem is to have some, also where
// `info` does not need them.
CampaignNetwork DrawNetwork(Rng& rng, const core::AlgorithmInfo& info,
                            bool classes = false);

// Another graph and codec for the network, of kinds that `info` takes.
void DrawExchange(Rng& rng, const core::AlgorithmInfo& info,
                  CampaignNetwork& network);

// Makes one node of a complete graph hostile, now and then, if models of `info`
// are averaged by a rule that bears it.
void DrawBadPeer(Rng& rng, const core::AlgorithmInfo& info,
                 CampaignNetwork& network);

// The slowest that a slow node gets.
constexpr double kSlowestFactor = 4;

// "n3".
std::string CampaignNode(int64_t i);

// A list of events: links that lose frames, cuts, black holes, partitions,
// crashes with a restart (never of more than half of the nodes at a time),
// joins, slow nodes; where nodes keep checkpoints also disks that are full,
// tear what was written last, or lose everything. Every one has ended by
// `last`.
std::vector<std::string> DrawFaults(Rng& rng, const CampaignNetwork& network,
                                    absl::Duration last);

// How far `iterations` of `algorithm` bring a node of the network.
core::Pace PaceOf(const CampaignNetwork& network, const std::string& algorithm,
                  int64_t iterations);

// The section `stop` that ends a run of `algorithm` after `iterations`, in all
// lock-step nodes at once: rounds, or steps where a round takes several
// iterations. What comes before, of another algorithm, is `before`.
std::string StopAfter(const CampaignNetwork& network,
                      const std::string& algorithm, int64_t iterations,
                      const core::Pace& before = {});

// Whether that is by rounds.
bool StopsByRounds(const core::AlgorithmInfo& algorithm);

// The scenario file. `algorithm`: "{name: ..., knobs: ...}".
std::string ScenarioText(const CampaignNetwork& network,
                         const std::string& algorithm,
                         const std::vector<std::string>& faults,
                         absl::Duration limit);

}  // namespace dfl::sim

#endif  // DFL_TESTS_SIM_FAULT_SCHEDULE_H_
