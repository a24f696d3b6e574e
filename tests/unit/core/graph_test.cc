#include "daemon/core/graph/graph.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/rng.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/cpu_seconds.h"
#include "tests/unit/core/graphs.h"

namespace dfl::core {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::StartsWith;

using EdgeList = std::vector<std::pair<int64_t, int64_t>>;

TEST(Graph, IgnoresDoublesAndLoopsAndSortsNeighbours) {
  Graph graph(4);
  graph.AddEdge(3, 0);
  graph.AddEdge(0, 3);
  graph.AddEdge(0, 1);
  graph.AddEdge(2, 2);
  EXPECT_THAT(graph.neighbours(0), ElementsAre(1, 3));
  EXPECT_THAT(graph.Edges(), ElementsAre(Pair(0, 1), Pair(0, 3)));
  EXPECT_EQ(graph.degree(2), 0);
  EXPECT_TRUE(graph.HasEdge(3, 0));
  EXPECT_FALSE(graph.HasEdge(1, 3));
  EXPECT_FALSE(graph.HasEdge(2, 2));
  EXPECT_THAT(graph.Components(),
              ElementsAre(ElementsAre(0, 1, 3), ElementsAre(2)));
  EXPECT_FALSE(graph.IsConnected());
}

TEST(Digraph, KeepsDirectionsAndIgnoresDoublesAndLoops) {
  Digraph graph(4);
  graph.AddArc(0, 2);
  graph.AddArc(0, 2);
  graph.AddArc(3, 2);
  graph.AddArc(2, 0);
  graph.AddArc(1, 1);
  EXPECT_THAT(graph.in(2), ElementsAre(0, 3));
  EXPECT_THAT(graph.out(2), ElementsAre(0));
  EXPECT_THAT(graph.Arcs(), ElementsAre(Pair(0, 2), Pair(2, 0), Pair(3, 2)));
  EXPECT_TRUE(graph.HasArc(3, 2));
  EXPECT_FALSE(graph.HasArc(2, 3));
  EXPECT_THAT(graph.Undirected().Edges(), ElementsAre(Pair(0, 2), Pair(2, 3)));
  EXPECT_THAT(graph.StrongComponents(),
              ElementsAre(ElementsAre(0, 2), ElementsAre(1), ElementsAre(3)));
  EXPECT_FALSE(graph.IsStronglyConnected());
}

// What each node reaches and is reached from.
std::vector<std::vector<int64_t>> NaiveStrongComponents(const Digraph& graph) {
  const int64_t m = graph.size();
  std::vector<std::vector<bool>> reaches(m, std::vector<bool>(m));
  for (int64_t i = 0; i < m; ++i) reaches[i][i] = true;
  for (const auto& [from, to] : graph.Arcs()) reaches[from][to] = true;
  for (int64_t k = 0; k < m; ++k) {
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < m; ++j) {
        if (reaches[i][k] && reaches[k][j]) reaches[i][j] = true;
      }
    }
  }
  std::vector<std::vector<int64_t>> components;
  std::vector<bool> placed(m);
  for (int64_t i = 0; i < m; ++i) {
    if (placed[i]) continue;
    components.emplace_back();
    for (int64_t j = i; j < m; ++j) {
      if (!reaches[i][j] || !reaches[j][i]) continue;
      placed[j] = true;
      components.back().push_back(j);
    }
  }
  return components;
}

TEST(Digraph, HasTheStrongComponentsThatPathsBothWaysMake) {
  Rng rng(3);
  for (int draw = 0; draw < 200; ++draw) {
    const int64_t nodes = 1 + draw % 12;
    Digraph graph(nodes);
    for (int arc = 0; arc < draw % 20; ++arc) {
      const int64_t from = std::min(
          nodes - 1,
          static_cast<int64_t>(rng.Uniform() * static_cast<double>(nodes)));
      const int64_t to = std::min(
          nodes - 1,
          static_cast<int64_t>(rng.Uniform() * static_cast<double>(nodes)));
      graph.AddArc(from, to);
    }
    EXPECT_EQ(graph.StrongComponents(), NaiveStrongComponents(graph)) << draw;
  }
}

// From each of them all that follow are reached.
TEST(Digraph, FindsTheComponentsOfALongPathQuickly) {
  constexpr int64_t kNodes = 200'000;
  Digraph path(kNodes);
  for (int64_t i = 0; i + 1 < kNodes; ++i) path.AddArc(i, i + 1);
  const double begin = CpuSeconds();
  EXPECT_EQ(path.StrongComponents().size(), static_cast<size_t>(kNodes));
  EXPECT_LT(CpuSeconds() - begin, 5);
}

TEST(Digraph, IsStronglyConnectedWhenAllReachAll) {
  Digraph ring(5);
  for (int64_t i = 0; i < 5; ++i) ring.AddArc(i, (i + 1) % 5);
  EXPECT_TRUE(ring.IsStronglyConnected());
  EXPECT_THAT(ring.StrongComponents(), ElementsAre(ElementsAre(0, 1, 2, 3, 4)));
  // 0 hears of everyone, but nobody hears of it; and the other way round.
  Digraph sink(3);
  sink.AddArc(1, 2);
  sink.AddArc(2, 1);
  sink.AddArc(1, 0);
  EXPECT_FALSE(sink.IsStronglyConnected());
  Digraph source(3);
  source.AddArc(1, 2);
  source.AddArc(2, 1);
  source.AddArc(0, 1);
  EXPECT_FALSE(source.IsStronglyConnected());
  EXPECT_TRUE(Digraph(1).IsStronglyConnected());
}

TEST(Digraph, OfAnUndirectedGraphHasEveryEdgeBothWays) {
  Graph path(3);
  path.AddEdge(0, 1);
  path.AddEdge(1, 2);
  const Digraph graph(path);
  EXPECT_THAT(graph.Arcs(),
              ElementsAre(Pair(0, 1), Pair(1, 0), Pair(1, 2), Pair(2, 1)));
  EXPECT_THAT(graph.in(1), ElementsAre(0, 2));
  EXPECT_TRUE(graph.IsStronglyConnected());
}

TEST(Graph, CompleteJoinsEveryPair) {
  const Graph graph = Built("complete", 5);
  EXPECT_EQ(graph.Edges().size(), 10u);
  for (int64_t i = 0; i < 5; ++i) EXPECT_EQ(graph.degree(i), 4);
  EXPECT_FALSE(graph.IsBipartite());
}

TEST(Graph, RingIsACycleAndAPathOfTwoForTwoNodes) {
  EXPECT_THAT(Built("ring", 4).Edges(),
              ElementsAre(Pair(0, 1), Pair(0, 3), Pair(1, 2), Pair(2, 3)));
  EXPECT_THAT(Built("ring", 2).Edges(), ElementsAre(Pair(0, 1)));
  EXPECT_THAT(Built("ring", 1).Edges(), IsEmpty());
}

TEST(Graph, StarHasTheFirstMemberAsHub) {
  const Graph graph = Built("star", 5);
  EXPECT_EQ(graph.degree(0), 4);
  for (int64_t leaf = 1; leaf < 5; ++leaf) {
    EXPECT_THAT(graph.neighbours(leaf), ElementsAre(0));
  }
}

TEST(Graph, GridHasTheLargestDivisorUpToTheRootAsRows) {
  struct Shape {
    int64_t nodes, rows, columns;
  };
  for (const Shape& shape : std::vector<Shape>{{1, 1, 1},
                                               {2, 1, 2},
                                               {6, 2, 3},
                                               {7, 1, 7},
                                               {9, 3, 3},
                                               {12, 3, 4},
                                               {20, 4, 5}}) {
    const Graph graph = Built("grid", shape.nodes);
    EdgeList expected;
    for (int64_t r = 0; r < shape.rows; ++r) {
      for (int64_t c = 0; c < shape.columns; ++c) {
        const int64_t node = r * shape.columns + c;
        if (c + 1 < shape.columns) expected.emplace_back(node, node + 1);
        if (r + 1 < shape.rows) {
          expected.emplace_back(node, node + shape.columns);
        }
      }
    }
    EXPECT_EQ(graph.Edges(), expected) << shape.nodes;
    EXPECT_TRUE(graph.IsConnected()) << shape.nodes;
  }
}

TEST(Graph, BipartiteExactlyWithoutOddCycles) {
  EXPECT_TRUE(Built("ring", 6).IsBipartite());
  EXPECT_FALSE(Built("ring", 5).IsBipartite());
  EXPECT_TRUE(Built("star", 7).IsBipartite());
  EXPECT_TRUE(Built("grid", 12).IsBipartite());
  EXPECT_TRUE(Built("complete", 2).IsBipartite());
  EXPECT_FALSE(Built("complete", 3).IsBipartite());
}

TEST(ErdosRenyi, IsConnectedAndAFunctionOfSeedAndMembers) {
  TopologySpec spec = Kind("erdos-renyi");
  spec.edge_probability = 0.3;
  EdgeList first;
  bool differs = false;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const absl::StatusOr<Graph> graph = BuildGraph(spec, seed, Members(16));
    ASSERT_TRUE(graph.ok()) << "seed " << seed << ": " << graph.status();
    EXPECT_TRUE(graph->IsConnected()) << "seed " << seed;
    EXPECT_EQ(graph->Edges(), BuildGraph(spec, seed, Members(16))->Edges());
    if (seed == 1) first = graph->Edges();
    differs = differs || graph->Edges() != first;
  }
  EXPECT_TRUE(differs);
}

// Every node of a network, whatever its processor, must draw this graph.
TEST(ErdosRenyi, KeepsItsEdgesForEver) {
  TopologySpec spec = Kind("erdos-renyi");
  spec.edge_probability = 0.5;
  EXPECT_THAT(BuildGraph(spec, 7, Members(5))->Edges(),
              ElementsAre(Pair(0, 1), Pair(0, 2), Pair(0, 3), Pair(1, 2),
                          Pair(1, 3), Pair(3, 4)));
}

TEST(ErdosRenyi, HasTheWantedShareOfEdgesEachPairAlike) {
  TopologySpec spec = Kind("erdos-renyi");
  spec.edge_probability = 0.6;  // hardly ever disconnected with 12 nodes
  constexpr int64_t kNodes = 12;
  constexpr int kDraws = 2000;
  std::vector<std::vector<int>> seen(kNodes, std::vector<int>(kNodes, 0));
  for (uint64_t seed = 0; seed < kDraws; ++seed) {
    const absl::StatusOr<Graph> graph = BuildGraph(spec, seed, Members(kNodes));
    ASSERT_TRUE(graph.ok());
    for (const auto& [a, b] : graph->Edges()) ++seen[a][b];
  }
  for (int64_t a = 0; a < kNodes; ++a) {
    for (int64_t b = a + 1; b < kNodes; ++b) {
      // sqrt(0.6 * 0.4 / 2000) = 0.011; 5 of them.
      EXPECT_NEAR(seen[a][b] / static_cast<double>(kDraws), 0.6, 0.055)
          << a << " " << b;
    }
  }
}

TEST(ErdosRenyi, ProbabilityOneIsComplete) {
  TopologySpec spec = Kind("erdos-renyi");
  spec.edge_probability = 1;
  EXPECT_EQ(BuildGraph(spec, 3, Members(6))->Edges(),
            Built("complete", 6).Edges());
}

TEST(ErdosRenyi, GivesUpAfterAThousandDisconnectedDraws) {
  TopologySpec spec = Kind("erdos-renyi");
  for (const double probability : {0.001, 1e-300}) {
    spec.edge_probability = probability;
    const absl::Status status = BuildGraph(spec, 1, Members(30)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()),
                AllOf(StartsWith("topology.edge_probability: "),
                      HasSubstr("1000 draws"), HasSubstr("0.114")));
  }
}

TEST(ErdosRenyi, RefusesAProbabilityThatIsNone) {
  TopologySpec spec = Kind("erdos-renyi");
  for (const double probability : {0.0, -0.1, 1.01}) {
    spec.edge_probability = probability;
    const absl::Status status = BuildGraph(spec, 1, Members(4)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("not in (0, 1]"));
  }
}

TEST(BuildTopology, ExplicitTakesNamesInAnyOrder) {
  TopologySpec spec = Kind("explicit");
  spec.edges = {{NodeId("n1002"), NodeId("n1000")},
                {NodeId("n1000"), NodeId("n1002")},
                {NodeId("n1001"), NodeId("n1002")}};
  EXPECT_THAT(BuildGraph(spec, 1, Members(3))->Edges(),
              ElementsAre(Pair(0, 2), Pair(1, 2)));
}

TEST(BuildTopology, RefusesEdgesToStrangersAndLoops) {
  TopologySpec spec = Kind("explicit");
  spec.edges = {{NodeId("n1000"), NodeId("n1001")},
                {NodeId("n1000"), NodeId("n100l")}};
  absl::Status status = BuildGraph(spec, 1, Members(2)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              AllOf(StartsWith("topology.edges[1]: \"n100l\""),
                    HasSubstr("did you mean \"n1000\"")));
  spec.edges = {{NodeId("n1000"), NodeId("n1000")}};
  status = BuildGraph(spec, 1, Members(2)).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("joined to itself"));
}

TEST(BuildTopology, AnUnknownKindIsRefusedWithTheNearest) {
  const absl::Status status = BuildGraph(Kind("rign"), 1, Members(3)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(std::string(status.message()),
            "topology.kind: \"rign\" is unknown; did you mean \"ring\"? "
            "allowed: auto, complete, ring, star, path, grid, torus, "
            "bipartite, k-nearest, hashed, erdos-renyi, random-regular, "
            "random-geometric, explicit, time-varying");
}

}  // namespace
}  // namespace dfl::core
