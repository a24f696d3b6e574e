#include "daemon/core/algorithms/hubs.h"

#include <algorithm>
#include <cstdint>

namespace dfl::core {

std::shared_ptr<const AlgorithmFacts> DeriveHubs(const Network& network) {
  const auto count = static_cast<int64_t>(network.members.size());
  int64_t most = 0;
  for (int64_t i = 0; i < count; ++i) {
    most = std::max(most, network.Degree(i));
  }
  auto facts = std::make_shared<HubFacts>();
  for (int64_t i = 0; i < count; ++i) {
    if (network.Degree(i) == most) {
      facts->hubs.push_back(network.members[static_cast<size_t>(i)]);
    }
  }
  return facts;
}

}  // namespace dfl::core
