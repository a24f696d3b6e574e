#include "daemon/core/algorithms/fedavg.h"
#include "daemon/core/algorithm/algorithm_info.h"

#include <algorithm>
#include <string>
#include <utility>

namespace dfl::core {

AlgorithmInfo FedavgInfo() {
  AlgorithmInfo info = DeceflInfo();
  info.name = "fedavg";
  info.summary = "Federated averaging without a server: everyone with everyone";
  info.source = "[DeceFL] eq. (8), supplement eq. (17)";
  info.caveats =
      "Every node sends its model to all others: m (m-1) messages a round "
      "(swarm: 2 (m-1)). A node's own progress of a round reaches the others "
      "in the next; for averages of what the local steps gave take dfedavgm "
      "with theta 0 on the complete graph.";
  info.complete_graph = true;
  for (KnobSpec& knob : info.knobs) {
    if (knob.name == "form") knob.default_value = std::string("local");
  }
  return info;
}

AlgorithmInfo FedavgPlusInfo() {
  AlgorithmInfo info = FedavgInfo();
  info.name = "fedavg+";
  info.summary = "Federated averaging, then local fine-tuning on every node";
  info.source = "baseline of [thesis] ch. 4";
  info.caveats =
      "Nodes end with different models. A node that joins while others "
      "fine-tune starts from one of their models.";
  info.cost += " From round fine_tune_from on nothing is sent.";
  KnobSpec from;
  from.name = "fine_tune_from";
  from.type = KnobType::kInteger;
  from.default_value = int64_t{100};
  from.min = 0;
  from.unit = "rounds";
  from.shared = true;
  from.noun = KnobNoun::kPeriod;
  from.help =
      "The first round in which nodes train their own model and exchange "
      "nothing.";
  info.knobs.push_back(from);
  return info;
}

FedavgPlus::FedavgPlus(const AlgorithmContext& context) : Decefl(context) {}

std::vector<NodeId> FedavgPlus::Receivers() const {
  return FineTunes() ? std::vector<NodeId>() : Decefl::Receivers();
}

std::vector<NodeId> FedavgPlus::Senders() const {
  return FineTunes() ? std::vector<NodeId>() : Decefl::Senders();
}

void FedavgPlus::Mix(std::vector<PushBarrier::Arrival> arrivals) {
  if (FineTunes()) arrivals.clear();  // late ones of the last average
  Decefl::Mix(std::move(arrivals));
}

void FedavgPlus::JumpTo(int64_t round) {
  Decefl::JumpTo(std::max(step(), std::min(round, FineTunesFrom())));
}

}  // namespace dfl::core
