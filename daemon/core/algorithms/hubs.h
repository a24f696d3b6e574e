// The hubs of a network, which DRACO and FedMid want to know.
#ifndef DFL_CORE_ALGORITHMS_HUBS_H_
#define DFL_CORE_ALGORITHMS_HUBS_H_

#include <memory>
#include <utility>
#include <vector>

#include "daemon/base/ids.h"
#include "daemon/core/algorithm/algorithm_info.h"
#include "daemon/core/algorithm/network.h"

namespace dfl::core {

// The members of the highest degree (directed: with the most out-neighbours),
// in member order.
struct HubFacts : AlgorithmFacts {
  HubFacts() = default;
  explicit HubFacts(std::vector<NodeId> nodes) : hubs(std::move(nodes)) {}

  std::vector<NodeId> hubs;
};

// AlgorithmInfo::derive of HubFacts.
std::shared_ptr<const AlgorithmFacts> DeriveHubs(const Network& network);

}  // namespace dfl::core

#endif  // DFL_CORE_ALGORITHMS_HUBS_H_
