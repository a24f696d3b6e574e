#include "daemon/core/graph.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/base/check.h"
#include "daemon/base/distributions.h"
#include "daemon/base/rng.h"
#include "daemon/base/status_macros.h"
#include "daemon/core/knobs.h"

namespace dfl::core {
namespace {

constexpr int kMaxDraws = 1000;

Graph Complete(int64_t nodes) {
  Graph graph(nodes);
  for (int64_t a = 0; a < nodes; ++a) {
    for (int64_t b = a + 1; b < nodes; ++b) graph.AddEdge(a, b);
  }
  return graph;
}

Graph Ring(int64_t nodes) {
  Graph graph(nodes);
  for (int64_t a = 0; a < nodes; ++a) graph.AddEdge(a, (a + 1) % nodes);
  return graph;
}

Graph Star(int64_t nodes) {
  Graph graph(nodes);
  for (int64_t leaf = 1; leaf < nodes; ++leaf) graph.AddEdge(0, leaf);
  return graph;
}

// rows x columns, row by row; rows = the largest divisor <= sqrt(nodes).
Graph Grid(int64_t nodes) {
  int64_t rows = 1;
  for (int64_t d = 1; d * d <= nodes; ++d) {
    if (nodes % d == 0) rows = d;
  }
  const int64_t columns = nodes / rows;
  Graph graph(nodes);
  for (int64_t node = 0; node < nodes; ++node) {
    if ((node + 1) % columns != 0) graph.AddEdge(node, node + 1);
    if (node + columns < nodes) graph.AddEdge(node, node + columns);
  }
  return graph;
}

// One G(m, p) draw. Pairs are taken in the order (0,1) (0,2) .. (1,2) ..; the
// number of pairs skipped until the next edge is geometric, so that a sparse
// draw costs O(m + edges).
Graph DrawErdosRenyi(Rng& rng, int64_t nodes, double probability) {
  if (probability >= 1) return Complete(nodes);
  const double log_miss = Log(1 - probability);
  Graph graph(nodes);
  int64_t a = 0;
  int64_t b = 0;  // the pair before the first one
  while (a < nodes - 1) {
    double skip = std::floor(Log(1 - rng.Uniform()) / log_miss);
    // Past the last pair; so is -infinity or NaN, which log_miss == 0 gives (a
    // probability too small to matter).
    const double pairs =
        static_cast<double>(nodes) * static_cast<double>(nodes);
    if (!(skip >= 0 && skip < pairs)) skip = pairs;
    b += 1 + static_cast<int64_t>(skip);
    while (a < nodes - 1 && b >= nodes) {
      b = b - nodes + a + 2;  // row a ends; row a + 1 starts at a + 2
      ++a;
    }
    if (a < nodes - 1) graph.AddEdge(a, b);
  }
  return graph;
}

absl::StatusOr<Graph> ErdosRenyi(uint64_t seed, int64_t nodes,
                                 double probability) {
  if (!(probability > 0 && probability <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("topology.edge_probability: ", ToString(probability),
                     " is not in (0, 1]"));
  }
  Rng rng(DeriveSeed(seed, "erdos-renyi"));
  for (int draw = 0; draw < kMaxDraws; ++draw) {
    Graph graph = DrawErdosRenyi(rng, nodes, probability);
    if (graph.IsConnected()) return graph;
  }
  const auto m = static_cast<double>(nodes);
  return absl::FailedPreconditionError(absl::StrCat(
      "topology.edge_probability: ", ToString(probability), ": ", kMaxDraws,
      " draws in a row over ", nodes,
      " members were disconnected; choose a larger one, well above ln(m)/m = ",
      ToString(std::floor(1000 * Log(m) / m + 1) / 1000)));
}

absl::StatusOr<Graph> Explicit(const TopologySpec& spec,
                               absl::Span<const NodeId> members) {
  std::map<NodeId, int64_t> place;
  std::vector<std::string> names;
  for (const NodeId& member : members) {
    place.emplace(member, static_cast<int64_t>(names.size()));
    names.push_back(member.name());
  }
  Graph graph(static_cast<int64_t>(members.size()));
  for (size_t e = 0; e < spec.edges.size(); ++e) {
    const std::string path = absl::StrCat("topology.edges[", e, "]");
    const auto& [from, to] = spec.edges[e];
    for (const NodeId* end : {&from, &to}) {
      if (place.count(*end) == 0) {
        return UnknownNameError(path, end->name(), names);
      }
    }
    if (from == to) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": \"", from.name(),
                       "\" is joined to itself; an edge needs two members"));
    }
    graph.AddEdge(place[from], place[to]);
  }
  return graph;
}

}  // namespace

Graph::Graph(int64_t nodes) {
  DFL_CHECK(nodes >= 0);
  neighbours_.resize(static_cast<size_t>(nodes));
}

void Graph::AddEdge(int64_t a, int64_t b) {
  DFL_CHECK(a >= 0 && a < size() && b >= 0 && b < size());
  if (a == b) return;
  const auto insert = [this](int64_t node, int64_t other) {
    std::vector<int64_t>& list = neighbours_[static_cast<size_t>(node)];
    const auto at = std::lower_bound(list.begin(), list.end(), other);
    if (at == list.end() || *at != other) list.insert(at, other);
  };
  insert(a, b);
  insert(b, a);
}

bool Graph::HasEdge(int64_t a, int64_t b) const {
  const std::vector<int64_t>& list = neighbours_[static_cast<size_t>(a)];
  return std::binary_search(list.begin(), list.end(), b);
}

std::vector<std::pair<int64_t, int64_t>> Graph::Edges() const {
  std::vector<std::pair<int64_t, int64_t>> edges;
  for (int64_t a = 0; a < size(); ++a) {
    for (const int64_t b : neighbours(a)) {
      if (a < b) edges.emplace_back(a, b);
    }
  }
  return edges;
}

std::vector<std::vector<int64_t>> Graph::Components() const {
  std::vector<std::vector<int64_t>> components;
  std::vector<bool> seen(neighbours_.size(), false);
  for (int64_t start = 0; start < size(); ++start) {
    if (seen[static_cast<size_t>(start)]) continue;
    seen[static_cast<size_t>(start)] = true;
    std::vector<int64_t> reached = {start};
    for (size_t next = 0; next < reached.size(); ++next) {
      for (const int64_t other : neighbours(reached[next])) {
        if (seen[static_cast<size_t>(other)]) continue;
        seen[static_cast<size_t>(other)] = true;
        reached.push_back(other);
      }
    }
    std::sort(reached.begin(), reached.end());
    components.push_back(std::move(reached));
  }
  return components;
}

bool Graph::IsConnected() const { return Components().size() <= 1; }

bool Graph::IsBipartite() const {
  std::vector<int> side(neighbours_.size(), 0);  // 0 = not reached, else +-1
  for (int64_t start = 0; start < size(); ++start) {
    if (side[static_cast<size_t>(start)] != 0) continue;
    side[static_cast<size_t>(start)] = 1;
    std::vector<int64_t> reached = {start};
    for (size_t next = 0; next < reached.size(); ++next) {
      const int64_t node = reached[next];
      for (const int64_t other : neighbours(node)) {
        int& there = side[static_cast<size_t>(other)];
        if (there == side[static_cast<size_t>(node)]) return false;
        if (there != 0) continue;
        there = -side[static_cast<size_t>(node)];
        reached.push_back(other);
      }
    }
  }
  return true;
}

absl::StatusOr<Graph> BuildGraph(const TopologySpec& spec, uint64_t seed,
                                 absl::Span<const NodeId> members) {
  const auto nodes = static_cast<int64_t>(members.size());
  if (spec.kind == "complete") return Complete(nodes);
  if (spec.kind == "ring") return Ring(nodes);
  if (spec.kind == "star") return Star(nodes);
  if (spec.kind == "grid") return Grid(nodes);
  if (spec.kind == "erdos-renyi") {
    return ErdosRenyi(seed, nodes, spec.edge_probability);
  }
  if (spec.kind == "explicit") return Explicit(spec, members);
  return UnknownNameError(
      "topology.kind", spec.kind,
      {"complete", "ring", "star", "grid", "erdos-renyi", "explicit"});
}

}  // namespace dfl::core
