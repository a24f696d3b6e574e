// Algorithms by themselves on a network that loses, delays and cuts, in virtual
// time: fast enough for thousands of schedules. Messages are values here, but for
// mass in a lossy format, which goes through the codec; how others travel as bytes
// is the runtime's and tested there.
//
// Modelled: a message takes a random delay, and is lost with a probability or
// while its edge is cut; a parcel of mass is sent again until its
// acknowledgement has come, so that it arrives more than once and late; a cut is
// noticed by its ends (PeerDown, PeerUp) or not. A node that hears of a later
// round jumps there at its next boundary.
#ifndef DFL_TESTS_SIM_LOSSY_NETWORK_H_
#define DFL_TESTS_SIM_LOSSY_NETWORK_H_

#include <cstdint>
#include <map>
#include <memory>
#include <queue>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "daemon/base/rng.h"
#include "daemon/core/algorithm/algorithm.h"
#include "daemon/core/rounds/mass_rounds.h"
#include "daemon/simports/problems.h"

namespace dfl::core {

struct LossyOptions {
  uint64_t seed = 1;
  double loss = 0;             // of each message, in [0, 1)
  double cut_share = 0;        // of the time that an edge is cut
  double shortest_cut = 5;     // s
  double longest_cut = 40;     // s
  double longest_delay = 0.4;  // s, of a message
  double gradient_time = 1;    // s, times [0.5, 1.5)
  double resend_after = 1;     // s, of a parcel
  ValueType mass = ValueType::kFp32;
};

class LossyNetwork {
 public:
  // One node for each plan. `problems` must outlive it.
  LossyNetwork(const std::string& algorithm, std::vector<NodePlan> plans,
               const std::vector<std::unique_ptr<simports::Problem>>& problems,
               LossyOptions options);
  ~LossyNetwork();

  // Until every node has done `rounds`, or `most_events` have happened; false:
  // the latter.
  bool RunToRound(int64_t rounds, int64_t most_events);

  int64_t lowest_round() const;
  // Of the models as of each node's last boundary.
  std::vector<double> Mean() const;
  // Sum over nodes of what is conserved and of what is in flight, exactly once.
  std::vector<double> TotalMass() const;
  // The largest |entry| of a gradient or conserved vector.
  double LargestEntry() const;
  // sgp: sum of omega, in flight included.
  double TotalOmega() const;
  int64_t missed() const { return missed_; }
  int64_t lost() const { return lost_; }
  int64_t repeated() const { return repeated_; }
  const MassRounds& rounds(size_t i) const;

 private:
  struct Node;
  struct Parcel {
    Give give;
    bool taken = false;
    FlatVector mass;  // that goes with an update of a replica
  };
  struct Happening {
    double when = 0;
    uint64_t order = 0;
    size_t node = 0;
    std::shared_ptr<Event> event;  // null: look at the rest
    uint64_t timer = 0;            // TimerFired, if it is still set
    uint64_t timer_version = 0;
    bool gradient = false;
    bool resend = false;  // to `peer`, `sequence`
    size_t peer = 0;
    uint64_t sequence = 0;
  };
  struct Later {
    bool operator()(const Happening& a, const Happening& b) const {
      return a.when != b.when ? a.when > b.when : a.order > b.order;
    }
  };

  size_t IndexOf(const NodeId& id) const { return index_.at(id); }
  void Add(double delay, Happening happening);
  void AddEvent(double delay, size_t node, Event event);
  bool Cut(size_t a, size_t b) const;
  // A message from a to b arrives.
  bool Arrives(size_t a, size_t b);
  void Handle(size_t node, Event event);
  void Do(size_t node, Action action);
  void Transmit(size_t from, size_t to);
  void Happen(Happening happening);
  void Begin(size_t node);
  void PlanCuts(size_t a, size_t b);

  const LossyOptions options_;
  const std::vector<std::unique_ptr<simports::Problem>>& problems_;
  mutable Rng rng_;
  double now_ = 0;
  uint64_t order_ = 0;
  std::map<NodeId, size_t> index_;
  std::vector<NodeId> names_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::priority_queue<Happening, std::vector<Happening>, Later> queue_;
  // By unordered pair: the times at which a cut begins and ends, in turn.
  std::map<std::pair<size_t, size_t>, std::vector<double>> cuts_;
  int64_t missed_ = 0;
  int64_t lost_ = 0;
  int64_t repeated_ = 0;
};

}  // namespace dfl::core

#endif  // DFL_TESTS_SIM_LOSSY_NETWORK_H_
