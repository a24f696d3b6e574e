// Algorithms by themselves on a network that loses, delays and cuts: fast
// enough for thousands of schedules. Messages are values here, but for mass in
// a lossy format, which goes through the codec; how others travel as bytes is
// the runtime's and tested there.
//
// A message takes a random time, and is lost with a probability or while its
// edge is cut. A parcel of mass is sent again until it is acknowledged, so that
// it arrives more than once and late. A cut is noticed by its ends (PeerDown,
// PeerUp) or not. A node that hears of a later round jumps there at its next
// boundary.
#ifndef DFL_TESTS_SIM_LOSSY_NETWORK_H_
#define DFL_TESTS_SIM_LOSSY_NETWORK_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/base/rng.h"
#include "daemon/codec/mass_codec.h"
#include "daemon/core/algorithm/algorithm.h"
#include "daemon/core/algorithms/gossip_nids.h"
#include "daemon/core/rounds/mass_rounds.h"
#include "daemon/simports/problems.h"
#include "tests/support/test_network.h"

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

class LossyNetwork : public TestNetwork {
 public:
  // One node for each plan. `problems` must outlive it.
  LossyNetwork(const std::string& algorithm, std::vector<NodePlan> plans,
               const std::vector<std::unique_ptr<simports::Problem>>& problems,
               LossyOptions options);

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
  int64_t lost() const { return lost_; }

 private:
  // Beside what the network knows of a node.
  struct State {
    codec::MassCodec mass_codec;
    std::vector<float> settled;  // the parameters of the last boundary
    int64_t furthest = 0;        // round heard of
    // That goes with the update of a replica that is out, by taker.
    std::map<size_t, FlatVector> mass;
  };

  std::optional<double> Latency(size_t from, size_t to,
                                const Event& message) override;
  double ResendAfter() const override { return options_.resend_after; }
  std::optional<double> ComputeTime(size_t /*i*/) override {
    return options_.gradient_time * (0.5 + rng_.Uniform());
  }
  std::unique_ptr<RemoteVector> Decoded(const Give& give) override;
  void OnAction(size_t i, const Action& action) override;
  void OnEvent(size_t i, const Event& event) override;
  void OnBoundary(size_t i) override;

  const MassRounds& rounds(size_t i) const;
  // Null: it gives mass in rounds.
  const GossipNids* gossip(size_t i) const;
  // Of node i, and what is unsettled there.
  std::vector<double> MassAt(size_t i) const;
  bool Cut(size_t a, size_t b) const;
  void PlanCuts(size_t a, size_t b);
  void BeginOrJump(size_t i);

  const LossyOptions options_;
  Rng rng_;
  std::vector<std::unique_ptr<State>> states_;
  // By unordered pair: the times at which a cut begins and ends, in turn.
  std::map<std::pair<size_t, size_t>, std::vector<double>> cuts_;
  int64_t lost_ = 0;
};

}  // namespace dfl::core

#endif  // DFL_TESTS_SIM_LOSSY_NETWORK_H_
