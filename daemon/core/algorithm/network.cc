#include "daemon/core/algorithm/network.h"

#include <variant>

namespace dfl::core {

const Knobs& Network::KnobsOf(int64_t place) const {
  const auto own = own_knobs.find(place);
  return own == own_knobs.end() ? knobs : own->second;
}

std::vector<double> Network::Numbers(absl::string_view name) const {
  std::vector<double> values;
  for (const auto& [place, own] : own_knobs) {
    values.push_back(own.Number(name));
  }
  if (values.size() < members.size()) values.push_back(knobs.Number(name));
  return values;
}

int64_t Network::Degree(int64_t place) const {
  const Graph* undirected = std::get_if<Graph>(&graph);
  if (undirected != nullptr) return undirected->degree(place);
  return static_cast<int64_t>(std::get<Digraph>(graph).out(place).size());
}

}  // namespace dfl::core
