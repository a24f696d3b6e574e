// FedMid, federated mirror descent: federated averaging for a composite problem
// f + h, on a star graph. [FedMid] Alg. 1
//
// Round r at every node, from the hub's w:
//   z = w; K times: z <- prox(z - eta_c g_i(z)) with step eta_c
// and at the hub, of all m nodes' z, its own among them:
//   w <- prox(w + eta_s mean(z - w)) with step eta_s eta_c K
//
// The hub is the star's centre, the member of the highest degree. On a network
// the spokes push z to it and it pushes w back, which they take as theirs. A z
// that does not come counts as no difference, and so does one of another round.
// Without the hub's w a spoke stays at the w it has.
#ifndef DFL_CORE_ALGORITHMS_FEDMID_H_
#define DFL_CORE_ALGORITHMS_FEDMID_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "daemon/base/aligned_vector.h"
#include "daemon/core/algorithm/algorithm_info.h"
#include "daemon/core/algorithms/hubs.h"
#include "daemon/core/rounds/local_rounds.h"
#include "daemon/core/rounds/prox.h"

namespace dfl::core {

AlgorithmInfo FedmidInfo();

class Fedmid : public LocalRounds {
 public:
  explicit Fedmid(AlgorithmContext context);

 private:
  // The knobs, by their symbols.
  struct Settings {
    explicit Settings(const Knobs& knobs);

    double eta_c;
    double eta_s;
    double hub_step;
    Prox prox;
  };

  std::vector<NodeId> Receivers() const override;
  std::vector<NodeId> Senders() const override;
  // The hub waits for the others first, and its w comes after that.
  absl::Duration Deadline() const override;
  void BeginLocalSteps() override;
  Next AfterGradient() override;
  void Mix(std::vector<PushBarrier::Arrival> arrivals) override;
  void AfterMix(Actions& actions) override;
  double StepSize() const override { return settings_.eta_c; }
  void OnPlanChanged() override;
  // sparsity: the share of parameters that are 0.
  void AddGauges(std::map<std::string, double>& gauges) const override;

  const NodeId& hub() const { return FactsOf<HubFacts>(plan()).hubs.front(); }
  bool IsHub() const { return hub() == plan().self; }
  void MixAsHub(std::vector<PushBarrier::Arrival> arrivals);

  Settings settings_;
  FlatVector start_;  // w of the round, [n]
};

}  // namespace dfl::core

#endif  // DFL_CORE_ALGORITHMS_FEDMID_H_
