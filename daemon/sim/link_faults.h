// What is wrong with the links at the moment: cuts, partitions, black holes and
// loss, by the scenario's events.
#ifndef DFL_SIM_LINK_FAULTS_H_
#define DFL_SIM_LINK_FAULTS_H_

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "daemon/sim/members.h"
#include "daemon/sim/network_event.h"
#include "daemon/sim/scenario.h"
#include "daemon/simports/sim_network.h"

namespace dfl::sim {

class LinkFaults {
 public:
  // All must outlive it. Sets the paths of the scenario.
  LinkFaults(const Scenario& scenario, const Members& members,
             simports::SimNetwork& network);

  // An event of one of these kinds begins (+1) or ends (-1). What began twice
  // must end twice. Events of other kinds are not its business.
  void Change(const NetworkEvent& event, int64_t sign);

  // Contacts of `i` in the run, with nothing between them and it.
  int64_t Reachable(int64_t i) const;

 private:
  // Why two neighbours cannot reach each other; both count.
  struct Trouble {
    int64_t cuts = 0;
    int64_t holes = 0;
  };
  using Edge = std::pair<int64_t, int64_t>;  // smaller place first

  std::vector<Edge> EdgesOf(const NetworkEvent& event) const;
  void Apply(const Edge& edge, int64_t cuts, int64_t holes);
  // All links' paths, as they are now.
  void SetPaths();

  const Scenario& scenario_;
  const Members& members_;
  simports::SimNetwork& network_;
  std::map<Edge, Trouble> troubles_;
  double extra_loss_ = 0;   // by kLoss events
  bool paths_set_ = false;  // one by one, not by the network's default
};

}  // namespace dfl::sim

#endif  // DFL_SIM_LINK_FAULTS_H_
