// Federated averaging without a server: DeceFL's rule (decefl.h, both forms)
// with W = 11'/m on the complete graph. [DeceFL] eq. (8), supplement eq. (17)
//
// fedavg+ is fedavg up to a round and local fine-tuning of every node's model
// from there on: the same training, no exchange.
#ifndef DFL_CORE_ALGORITHMS_FEDAVG_H_
#define DFL_CORE_ALGORITHMS_FEDAVG_H_

#include <cstdint>
#include <vector>

#include "daemon/core/algorithm/algorithm_info.h"
#include "daemon/core/algorithms/decefl.h"

namespace dfl::core {

// The state machine is Decefl itself.
AlgorithmInfo FedavgInfo();

AlgorithmInfo FedavgPlusInfo();

class FedavgPlus : public Decefl {
 public:
  explicit FedavgPlus(const AlgorithmContext& context);

 private:
  // Fine-tuning is every node's own: none of its rounds is jumped over.
  void MoveTo(int64_t k) override;
  std::vector<NodeId> Receivers() const override;
  std::vector<NodeId> Senders() const override;
  void Mix(std::vector<PushBarrier::Arrival> arrivals) override;

  void OnPlanChanged() override;
  bool FineTunes() const { return step() >= fine_tunes_from_; }

  int64_t fine_tunes_from_ = 0;
};

}  // namespace dfl::core

#endif  // DFL_CORE_ALGORITHMS_FEDAVG_H_
