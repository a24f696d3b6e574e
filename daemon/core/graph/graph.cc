#include "daemon/core/graph/graph.h"

#include <algorithm>

#include "daemon/base/check.h"

namespace dfl::core {
namespace {

using Lists = std::vector<std::vector<int64_t>>;

// Both keep `list` sorted.
void Insert(std::vector<int64_t>& list, int64_t node) {
  const auto at = std::lower_bound(list.begin(), list.end(), node);
  if (at == list.end() || *at != node) list.insert(at, node);
}
bool Holds(const std::vector<int64_t>& list, int64_t node) {
  return std::binary_search(list.begin(), list.end(), node);
}

// What is reached from `start` along `next`, itself included, in order of
// discovery.
std::vector<int64_t> Reached(const Lists& next, int64_t start) {
  std::vector<bool> seen(next.size(), false);
  seen[static_cast<size_t>(start)] = true;
  std::vector<int64_t> reached = {start};
  for (size_t at = 0; at < reached.size(); ++at) {
    for (const int64_t other : next[static_cast<size_t>(reached[at])]) {
      if (seen[static_cast<size_t>(other)]) continue;
      seen[static_cast<size_t>(other)] = true;
      reached.push_back(other);
    }
  }
  return reached;
}

// The nodes in the order in which a search along `next`, depth first, leaves
// them.
std::vector<int64_t> LeavingOrder(const Lists& next) {
  std::vector<bool> seen(next.size(), false);
  std::vector<int64_t> order;
  order.reserve(next.size());
  struct Step {
    int64_t node = 0;
    size_t followed = 0;  // of next[node]
  };
  std::vector<Step> path;
  const auto enter = [&](int64_t node) {
    if (seen[static_cast<size_t>(node)]) return;
    seen[static_cast<size_t>(node)] = true;
    path.push_back({node, 0});
  };
  for (size_t start = 0; start < next.size(); ++start) {
    enter(static_cast<int64_t>(start));
    while (!path.empty()) {
      Step& last = path.back();
      const std::vector<int64_t>& others = next[static_cast<size_t>(last.node)];
      if (last.followed < others.size()) {
        enter(others[last.followed++]);
      } else {
        order.push_back(last.node);
        path.pop_back();
      }
    }
  }
  return order;
}

}  // namespace

Graph::Graph(int64_t nodes) {
  DFL_CHECK(nodes >= 0);
  neighbours_.resize(static_cast<size_t>(nodes));
}

void Graph::AddEdge(int64_t a, int64_t b) {
  DFL_CHECK(a >= 0 && a < size() && b >= 0 && b < size());
  if (a == b) return;
  Insert(neighbours_[static_cast<size_t>(a)], b);
  Insert(neighbours_[static_cast<size_t>(b)], a);
}

bool Graph::HasEdge(int64_t a, int64_t b) const {
  return Holds(neighbours_[static_cast<size_t>(a)], b);
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
  std::vector<bool> placed(neighbours_.size(), false);
  for (int64_t start = 0; start < size(); ++start) {
    if (placed[static_cast<size_t>(start)]) continue;
    std::vector<int64_t> component = {start};
    placed[static_cast<size_t>(start)] = true;
    for (size_t at = 0; at < component.size(); ++at) {
      for (const int64_t other : neighbours(component[at])) {
        if (placed[static_cast<size_t>(other)]) continue;
        placed[static_cast<size_t>(other)] = true;
        component.push_back(other);
      }
    }
    std::sort(component.begin(), component.end());
    components.push_back(std::move(component));
  }
  return components;
}

bool Graph::IsConnected() const {
  return size() == 0 || Reached(neighbours_, 0).size() == neighbours_.size();
}

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

Digraph::Digraph(int64_t nodes) {
  DFL_CHECK(nodes >= 0);
  in_.resize(static_cast<size_t>(nodes));
  out_.resize(static_cast<size_t>(nodes));
}

Digraph::Digraph(const Graph& graph) : Digraph(graph.size()) {
  for (int64_t node = 0; node < graph.size(); ++node) {
    in_[static_cast<size_t>(node)] = graph.neighbours(node);
  }
  out_ = in_;
}

void Digraph::AddArc(int64_t from, int64_t to) {
  DFL_CHECK(from >= 0 && from < size() && to >= 0 && to < size());
  if (from == to) return;
  Insert(out_[static_cast<size_t>(from)], to);
  Insert(in_[static_cast<size_t>(to)], from);
}

bool Digraph::HasArc(int64_t from, int64_t to) const {
  return Holds(out_[static_cast<size_t>(from)], to);
}

std::vector<std::pair<int64_t, int64_t>> Digraph::Arcs() const {
  std::vector<std::pair<int64_t, int64_t>> arcs;
  for (int64_t from = 0; from < size(); ++from) {
    for (const int64_t to : out(from)) arcs.emplace_back(from, to);
  }
  return arcs;
}

// Kosaraju: of the nodes that are left, the one that a search along the arcs
// leaves last is reached from its own component alone.
std::vector<std::vector<int64_t>> Digraph::StrongComponents() const {
  std::vector<std::vector<int64_t>> components;
  std::vector<bool> placed(out_.size(), false);
  std::vector<int64_t> order = LeavingOrder(out_);
  for (auto start = order.rbegin(); start != order.rend(); ++start) {
    if (placed[static_cast<size_t>(*start)]) continue;
    placed[static_cast<size_t>(*start)] = true;
    std::vector<int64_t> component = {*start};
    for (size_t at = 0; at < component.size(); ++at) {
      for (const int64_t other : in(component[at])) {
        if (placed[static_cast<size_t>(other)]) continue;
        placed[static_cast<size_t>(other)] = true;
        component.push_back(other);
      }
    }
    std::sort(component.begin(), component.end());
    components.push_back(std::move(component));
  }
  std::sort(components.begin(), components.end());
  return components;
}

bool Digraph::IsStronglyConnected() const {
  const auto all = static_cast<size_t>(size());
  return all == 0 ||
         (Reached(out_, 0).size() == all && Reached(in_, 0).size() == all);
}

Graph Digraph::Undirected() const {
  Graph graph(size());
  for (const auto& [from, to] : Arcs()) graph.AddEdge(from, to);
  return graph;
}

}  // namespace dfl::core
