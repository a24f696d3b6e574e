// The kinds of topologies. A graph is a pure function of (spec, seed, sorted
// members, round), so each node derives the same one by itself.
#ifndef DFL_CORE_GRAPH_TOPOLOGY_H_
#define DFL_CORE_GRAPH_TOPOLOGY_H_

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/base/ids.h"
#include "daemon/core/graph/graph.h"

namespace dfl::core {

// Pairs of member names; of a directed graph (from, to).
using EdgeList = std::vector<std::pair<NodeId, NodeId>>;

// What a plan says of the graph; BuildTopology says what each kind is.
struct TopologySpec {
  // complete, ring, star, path, grid, torus, bipartite, k-nearest, hashed,
  // erdos-renyi, random-regular, random-geometric, explicit, time-varying; auto
  // is one of two by the number of members (KindInForce).
  std::string kind = "complete";
  // erdos-renyi: probability of an edge, in (0, 1].
  double edge_probability = 0.3;
  // k-nearest, random-regular: neighbours of each node, in [1, members - 1].
  // hashed: at the most so many of each that can be dialled; even, or at least
  // members - 1.
  int64_t degree = 4;
  // random-geometric: the longest edge between points of the unit square, > 0.
  double radius = 0.5;
  // explicit.
  EdgeList edges;
  // time-varying: the edges of one round after the other, in turn.
  std::vector<EdgeList> edge_sets;
  // explicit, time-varying: edges run from their first member to the second.
  bool directed = false;
  // Rounds until a drawn graph is drawn afresh (0 = never), or until the next
  // of edge_sets (0 is taken as 1). At most kMostEvery.
  int64_t every = 0;
  // metropolis, laplacian, uniform, explicit. Unused by directed graphs, whose
  // weights are 1/(1 + number of in- or out-neighbours).
  std::string weights = "metropolis";
  // weights explicit: one row per member, in sorted member order.
  std::vector<std::vector<double>> matrix;
};

// The most edges of a graph that no list of edges gives: a complete one has so
// many with 2,048 members. One that changes from round to round has an eighth
// of them.
inline constexpr int64_t kMostEdges = int64_t{1} << 21;

inline constexpr int64_t kMostEvery = 1'000'000'000;

// What becomes of listed edges with a name that is no member.
enum class Strangers {
  kRefuse,    // they are an error
  kLeaveOut,  // they are left out
};

// Directed or not, as the topology says.
using AnyGraph = std::variant<Graph, Digraph>;

// The graph of round `round` >= 0. Members are m nodes in bytewise order:
//   complete         every pair
//   ring             a cycle in member order (a path of 2 for two nodes)
//   star             the first member is the hub
//   path             0 - 1 - ... - m-1
//   grid             rows = the largest divisor <= sqrt(m)
//   torus            the grid with its rows and columns closed to rings
//   bipartite        complete: the first floor(m/2) members with all others
//   k-nearest        a ring where each has `degree` / 2 neighbours on each side
//   hashed           `degree` / 2 rings, each in the order of hashes of the
//                    members' names; complete up to `degree` + 1 members. One
//                    that cannot be dialled is on no ring: on each it hangs
//                    between the two that its own hash lies between
//   erdos-renyi      each pair with `edge_probability`, redrawn until connected
//   random-regular   `degree` neighbours each, redrawn until simple and
//                    connected
//   random-geometric points in the unit square, edges up to `radius`, redrawn
//                    until connected
//   explicit         `edges`
//   time-varying     `edge_sets` in turn, each for `every` rounds (0: one)
// A member that joins or leaves a hashed graph touches at most 3 edges a ring,
// however many members there are, and those of undialable members that hang
// beside it. The drawn kinds are drawn anew each `every` rounds (0: never). A
// later draw that stays disconnected 1,000 times gives the first graph again,
// so that what holds in round 0 never fails afterwards. With more than 4,194
// members it is fewer times: 2^22 / m.
//
// `undialable` are members that others cannot dial, sorted. Two of them cannot
// be linked. A complete, hashed or drawn graph has an edge between two only
// where it would fall apart without; the other kinds leave no choice, and
// neither do uniform weights.
//
// Errors: INVALID_ARGUMENT for an unknown kind (with the nearest), a parameter
// that is out of range or impossible for m members, more than kMostEdges, an
// edge to itself or, as `strangers` says, to a name that is no member;
// FAILED_PRECONDITION when 1,000 draws in a row were disconnected. All begin
// with the key, "topology.degree: ...".
absl::StatusOr<AnyGraph> BuildTopology(
    const TopologySpec& spec, uint64_t seed, absl::Span<const NodeId> members,
    int64_t round = 0, absl::Span<const NodeId> undialable = {},
    Strangers strangers = Strangers::kRefuse);

// What of a topology is wrong whatever its members are.
// Errors: as BuildTopology.
absl::Status CheckTopologySpec(const TopologySpec& spec);

// The kind, and what auto means for so many members: complete up to
// kMostComplete, hashed beyond.
inline constexpr int64_t kMostComplete = 16;
std::string KindInForce(const TopologySpec& spec, int64_t members);

// Whether rounds differ in their graphs.
bool TopologyVaries(const TopologySpec& spec);

// Which of its graphs a topology has in `round`: rounds of one number have the
// same graph. 0 for one that does not vary.
int64_t GraphNumber(const TopologySpec& spec, int64_t round);

// The first round of the graph after that of `round`; `spec` varies.
int64_t NextGraphRound(const TopologySpec& spec, int64_t round);

// The graph of all edges that the rounds of a window have: every edge set; of a
// fresh draw the first eight; of a topology that does not vary, itself.
// Errors: as BuildTopology, for any of these rounds.
absl::StatusOr<AnyGraph> BuildWindow(const TopologySpec& spec, uint64_t seed,
                                     absl::Span<const NodeId> members,
                                     absl::Span<const NodeId> undialable = {},
                                     Strangers strangers = Strangers::kRefuse);

}  // namespace dfl::core

#endif  // DFL_CORE_GRAPH_TOPOLOGY_H_
