// Graphs over the sorted members of a run, undirected and directed. topology.h
// makes one of a plan's topology.
#ifndef DFL_CORE_GRAPH_GRAPH_H_
#define DFL_CORE_GRAPH_GRAPH_H_

#include <cstdint>
#include <utility>
#include <vector>

namespace dfl::core {

// Undirected, without self-loops or doubles. Nodes are 0 .. size() - 1, the
// places of the members in bytewise order.
class Graph {
 public:
  explicit Graph(int64_t nodes);

  // Adds {a, b}; a double or a loop is ignored.
  void AddEdge(int64_t a, int64_t b);

  int64_t size() const { return static_cast<int64_t>(neighbours_.size()); }
  // Sorted.
  const std::vector<int64_t>& neighbours(int64_t node) const {
    return neighbours_[node];
  }
  int64_t degree(int64_t node) const {
    return static_cast<int64_t>(neighbours_[node].size());
  }
  bool HasEdge(int64_t a, int64_t b) const;
  // Each edge once, (smaller, larger), sorted.
  std::vector<std::pair<int64_t, int64_t>> Edges() const;
  // The connected components, each sorted, in the order of their first nodes.
  std::vector<std::vector<int64_t>> Components() const;
  bool IsConnected() const;
  bool IsBipartite() const;

 private:
  std::vector<std::vector<int64_t>> neighbours_;
};

// Directed, without self-loops or doubles: what `from` sends, `to` receives.
class Digraph {
 public:
  explicit Digraph(int64_t nodes);
  // Every edge of `graph` as two arcs.
  explicit Digraph(const Graph& graph);

  // Adds from -> to; a double or a loop is ignored.
  void AddArc(int64_t from, int64_t to);

  int64_t size() const { return static_cast<int64_t>(out_.size()); }
  // The nodes that send to `node`, sorted.
  const std::vector<int64_t>& in(int64_t node) const { return in_[node]; }
  // The nodes that `node` sends to, sorted.
  const std::vector<int64_t>& out(int64_t node) const { return out_[node]; }
  bool HasArc(int64_t from, int64_t to) const;
  // (from, to), sorted.
  std::vector<std::pair<int64_t, int64_t>> Arcs() const;
  // The strongly connected components, each sorted, in the order of their first
  // nodes.
  std::vector<std::vector<int64_t>> StrongComponents() const;
  bool IsStronglyConnected() const;
  // Its arcs without their directions.
  Graph Undirected() const;

 private:
  std::vector<std::vector<int64_t>> in_;
  std::vector<std::vector<int64_t>> out_;
};

}  // namespace dfl::core

#endif  // DFL_CORE_GRAPH_GRAPH_H_
