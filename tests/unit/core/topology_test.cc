#include "daemon/core/graph/topology.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
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

using Edges = std::vector<std::pair<int64_t, int64_t>>;

std::pair<NodeId, NodeId> Edge(int64_t a, int64_t b) {
  return {NodeId(absl::StrCat("n", 1000 + a)),
          NodeId(absl::StrCat("n", 1000 + b))};
}

TopologySpec WithDegree(const std::string& kind, int64_t degree) {
  TopologySpec spec = Kind(kind);
  spec.degree = degree;
  return spec;
}

TopologySpec WithRadius(double radius) {
  TopologySpec spec = Kind("random-geometric");
  spec.radius = radius;
  return spec;
}

Graph Built(const TopologySpec& spec, int64_t nodes, uint64_t seed = 1,
            int64_t round = 0) {
  absl::StatusOr<Graph> graph = BuildGraph(spec, seed, Members(nodes), round);
  EXPECT_TRUE(graph.ok()) << spec.kind << " of " << nodes << ", seed " << seed
                          << ": " << graph.status();
  return graph.ok() ? *std::move(graph) : Graph(nodes);
}

std::string Refused(const TopologySpec& spec, int64_t nodes,
                    absl::StatusCode code) {
  const absl::Status status = BuildTopology(spec, 1, Members(nodes)).status();
  EXPECT_EQ(status.code(), code) << spec.kind << ": " << status;
  return std::string(status.message());
}

// ----------------------------------------------------------- fixed graphs ----

TEST(Topology, PathIsARingWithoutItsLastEdge) {
  EXPECT_THAT(Built(Kind("path"), 4).Edges(),
              ElementsAre(Pair(0, 1), Pair(1, 2), Pair(2, 3)));
  EXPECT_THAT(Built(Kind("path"), 1).Edges(), IsEmpty());
}

TEST(Topology, TorusClosesTheRowsAndColumnsOfTheGrid) {
  // 0 1 2
  // 3 4 5
  EXPECT_THAT(
      Built(Kind("torus"), 6).Edges(),
      ElementsAre(Pair(0, 1), Pair(0, 2), Pair(0, 3), Pair(1, 2), Pair(1, 4),
                  Pair(2, 5), Pair(3, 4), Pair(3, 5), Pair(4, 5)));
  const Graph nine = Built(Kind("torus"), 9);
  for (int64_t i = 0; i < 9; ++i) EXPECT_EQ(nine.degree(i), 4);
  EXPECT_TRUE(nine.HasEdge(0, 2));
  EXPECT_TRUE(nine.HasEdge(0, 6));
  // One row of a prime number of members is a ring.
  EXPECT_EQ(Built(Kind("torus"), 7).Edges(), Built(Kind("ring"), 7).Edges());
  EXPECT_THAT(Built(Kind("torus"), 2).Edges(), ElementsAre(Pair(0, 1)));
  EXPECT_THAT(Built(Kind("torus"), 1).Edges(), IsEmpty());
}

TEST(Topology, BipartiteJoinsEachOfOneHalfWithAllOfTheOther) {
  EXPECT_THAT(Built(Kind("bipartite"), 5).Edges(),
              ElementsAre(Pair(0, 2), Pair(0, 3), Pair(0, 4), Pair(1, 2),
                          Pair(1, 3), Pair(1, 4)));
  EXPECT_TRUE(Built(Kind("bipartite"), 8).IsBipartite());
  EXPECT_TRUE(Built(Kind("bipartite"), 8).IsConnected());
  EXPECT_THAT(Built(Kind("bipartite"), 1).Edges(), IsEmpty());
}

TEST(Topology, KNearestHasHalfOfTheNeighboursOnEachSide) {
  const Graph graph = Built(WithDegree("k-nearest", 4), 7);
  EXPECT_THAT(graph.neighbours(0), ElementsAre(1, 2, 5, 6));
  EXPECT_THAT(graph.neighbours(3), ElementsAre(1, 2, 4, 5));
  EXPECT_EQ(Built(WithDegree("k-nearest", 2), 9).Edges(),
            Built(Kind("ring"), 9).Edges());
  // All others are near, even where their number is odd.
  EXPECT_EQ(Built(WithDegree("k-nearest", 5), 6).Edges(),
            Built(Kind("complete"), 6).Edges());
  EXPECT_EQ(Built(WithDegree("k-nearest", 4), 5).Edges(),
            Built(Kind("complete"), 5).Edges());
}

// ---------------------------------------------------------- hashed graphs ----

int64_t Differing(const TopologySpec& spec, std::vector<NodeId> members,
                  const NodeId& left_out) {
  const auto edges = [&](const std::vector<NodeId>& of) {
    std::vector<std::pair<NodeId, NodeId>> named;
    const absl::StatusOr<Graph> graph = BuildGraph(spec, 7, of);
    EXPECT_TRUE(graph.ok()) << graph.status();
    for (const auto& [a, b] : graph->Edges()) {
      named.emplace_back(of[static_cast<size_t>(a)],
                         of[static_cast<size_t>(b)]);
    }
    std::sort(named.begin(), named.end());
    return named;
  };
  const auto with = edges(members);
  members.erase(std::find(members.begin(), members.end(), left_out));
  const auto without = edges(members);
  std::vector<std::pair<NodeId, NodeId>> differing;
  std::set_symmetric_difference(with.begin(), with.end(), without.begin(),
                                without.end(), std::back_inserter(differing));
  return static_cast<int64_t>(differing.size());
}

// A join is a leave read backwards.
TEST(HashedTopology, AJoinOrLeaveTouchesNoMoreEdgesInALargerNetwork) {
  for (const int64_t degree : {2, 4, 8}) {
    for (const int64_t nodes : {16, 64, 256, 1024}) {
      const std::vector<NodeId> members = Members(nodes);
      for (int64_t i = 0; i < nodes; i += nodes / 16) {
        EXPECT_LE(Differing(WithDegree("hashed", degree), members,
                            members[static_cast<size_t>(i)]),
                  3 * degree / 2)
            << degree << " of " << nodes << " without " << i;
      }
    }
  }
}

TEST(HashedTopology, IsConnectedAndOfItsDegree) {
  for (const int64_t nodes : {1, 2, 3, 5, 6, 17, 100, 1000}) {
    for (uint64_t seed = 1; seed <= 10; ++seed) {
      const Graph graph = Built(WithDegree("hashed", 4), nodes, seed);
      EXPECT_TRUE(graph.IsConnected()) << nodes << ", seed " << seed;
      for (int64_t i = 0; i < nodes; ++i) EXPECT_LE(graph.degree(i), 4);
    }
  }
  EXPECT_EQ(Built(WithDegree("hashed", 4), 5).Edges(),
            Built(Kind("complete"), 5).Edges());
  EXPECT_NE(Built(WithDegree("hashed", 4), 40, 1).Edges(),
            Built(WithDegree("hashed", 4), 40, 2).Edges());
  EXPECT_THAT(
      Refused(WithDegree("hashed", 3), 40, absl::StatusCode::kInvalidArgument),
      HasSubstr("topology.degree: 3"));
  EXPECT_THAT(
      Refused(WithDegree("hashed", 0), 40, absl::StatusCode::kInvalidArgument),
      HasSubstr("topology.degree: 0"));
}

TEST(Topology, TwoThatCannotBeDialledAreNotLinkedWhereThatCanBeAvoided) {
  TopologySpec drawn = Kind("erdos-renyi");
  drawn.edge_probability = 0.2;
  for (const TopologySpec& spec : {Kind("complete"), WithDegree("hashed", 4),
                                   drawn, WithDegree("random-regular", 4)}) {
    for (const int64_t dialable : {1, 3, 20, 39}) {
      const std::vector<NodeId> members = Members(40);
      const std::vector<NodeId> undialable(members.begin() + dialable,
                                           members.end());
      const auto built = BuildTopology(spec, 3, members, 0, undialable);
      ASSERT_TRUE(built.ok()) << built.status();
      const Graph& graph = std::get<Graph>(*built);
      EXPECT_TRUE(graph.IsConnected()) << spec.kind << ", " << dialable;
      int64_t useless = 0;
      for (const auto& [a, b] : graph.Edges()) {
        if (a >= dialable && b >= dialable) ++useless;
      }
      // A drawn graph may need some to hold together.
      if (spec.kind == "complete" || spec.kind == "hashed") {
        EXPECT_EQ(useless, 0) << spec.kind << ", " << dialable;
      } else {
        EXPECT_LE(useless, 40 - dialable) << spec.kind << ", " << dialable;
      }
    }
  }
}

TEST(Topology, WithoutUndialableOnesNothingChanges) {
  const std::vector<NodeId> members = Members(30);
  for (const TopologySpec& spec :
       {Kind("complete"), Kind("erdos-renyi"), WithDegree("hashed", 4)}) {
    const auto some = BuildTopology(spec, 3, members, 0, {members[4]});
    const auto none = BuildTopology(spec, 3, members);
    ASSERT_TRUE(some.ok() && none.ok());
    if (spec.kind != "hashed") {
      EXPECT_EQ(std::get<Graph>(*some).Edges(), std::get<Graph>(*none).Edges());
    }
  }
}

// ----------------------------------------------------------- drawn graphs ----

TEST(RandomRegular, IsSimpleConnectedAndHasTheDegree) {
  for (const auto& [degree, nodes] : Edges{{2, 3},
                                           {2, 12},
                                           {3, 4},
                                           {3, 10},
                                           {4, 9},
                                           {5, 8},
                                           {6, 40},
                                           {7, 10},
                                           {11, 20},
                                           {19, 20},
                                           {1, 2},
                                           {8, 9}}) {
    for (uint64_t seed = 1; seed <= 10; ++seed) {
      const Graph graph =
          Built(WithDegree("random-regular", degree), nodes, seed);
      EXPECT_TRUE(graph.IsConnected()) << nodes << " seed " << seed;
      for (int64_t i = 0; i < nodes; ++i) {
        EXPECT_EQ(graph.degree(i), degree) << nodes << " seed " << seed;
      }
    }
  }
}

// Every pair is an edge equally often: 3 of 9 possible neighbours.
TEST(RandomRegular, PrefersNoPair) {
  constexpr int64_t kNodes = 10;
  constexpr int kDraws = 2000;
  std::vector<std::vector<int>> seen(kNodes, std::vector<int>(kNodes, 0));
  for (uint64_t seed = 0; seed < kDraws; ++seed) {
    for (const auto& [a, b] :
         Built(WithDegree("random-regular", 3), kNodes, seed).Edges()) {
      ++seen[a][b];
    }
  }
  for (int64_t a = 0; a < kNodes; ++a) {
    for (int64_t b = a + 1; b < kNodes; ++b) {
      // sqrt(1/3 2/3 / 2000) = 0.0105; 5 of them.
      EXPECT_NEAR(seen[a][b] / static_cast<double>(kDraws), 1.0 / 3, 0.053)
          << a << " " << b;
    }
  }
}

TEST(RandomGeometric, IsConnectedAndGrowsWithTheRadius) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    EXPECT_TRUE(Built(WithRadius(0.35), 25, seed).IsConnected());
  }
  // Nothing in the unit square is further apart.
  EXPECT_EQ(Built(WithRadius(1.4143), 12).Edges(),
            Built(Kind("complete"), 12).Edges());
}

// The share of pairs within r in the unit square is
// pi r^2 - 8/3 r^3 + r^4/2 for r <= 1; redraws favour denser graphs a little.
TEST(RandomGeometric, HasAsManyEdgesAsTheSquareSays) {
  const double r = 0.6;
  const double expected =
      3.14159265358979323846 * r * r - 8.0 / 3 * r * r * r + r * r * r * r / 2;
  constexpr int kDraws = 400;
  double edges = 0;
  for (uint64_t seed = 0; seed < kDraws; ++seed) {
    edges += static_cast<double>(Built(WithRadius(r), 20, seed).Edges().size());
  }
  EXPECT_NEAR(edges / kDraws / (20 * 19 / 2.0), expected, 0.015);
}

// All pairs, of the points that the same draws give.
Graph NaiveGeometric(double radius, int64_t nodes, uint64_t seed) {
  Rng rng(DeriveSeed(seed, "random-geometric"));
  while (true) {
    std::vector<double> x(static_cast<size_t>(nodes));
    std::vector<double> y = x;
    for (size_t i = 0; i < x.size(); ++i) {
      x[i] = rng.Uniform();
      y[i] = rng.Uniform();
    }
    Graph graph(nodes);
    for (size_t a = 0; a < x.size(); ++a) {
      for (size_t b = 0; b < a; ++b) {
        const double dx = x[a] - x[b];
        const double dy = y[a] - y[b];
        if (dx * dx + dy * dy > radius * radius) continue;
        graph.AddEdge(static_cast<int64_t>(a), static_cast<int64_t>(b));
      }
    }
    if (graph.IsConnected()) return graph;
  }
}

TEST(RandomGeometric, LinksAllThatAreNearEnough) {
  for (const double radius : {0.09, 0.1, 0.125, 0.25, 0.3, 0.5, 0.99, 1.2}) {
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      const auto nodes = static_cast<int64_t>(radius < 0.2 ? 500 : 40);
      EXPECT_EQ(Built(WithRadius(radius), nodes, seed).Edges(),
                NaiveGeometric(radius, nodes, seed).Edges())
          << radius << " " << seed;
    }
  }
}

// Every node of a network, whatever its processor, must draw these graphs.
TEST(DrawnTopologies, KeepTheirEdgesForEver) {
  EXPECT_THAT(
      Built(WithDegree("random-regular", 3), 6, 7).Edges(),
      ElementsAre(Pair(0, 1), Pair(0, 4), Pair(0, 5), Pair(1, 2), Pair(1, 4),
                  Pair(2, 3), Pair(2, 5), Pair(3, 4), Pair(3, 5)));
  EXPECT_THAT(Built(WithRadius(0.5), 5, 7).Edges(),
              ElementsAre(Pair(0, 2), Pair(1, 3), Pair(2, 4), Pair(3, 4)));
}

std::vector<TopologySpec> Drawn() {
  TopologySpec random = Kind("erdos-renyi");
  random.edge_probability = 0.35;
  return {random, WithDegree("random-regular", 3), WithRadius(0.5)};
}

TEST(DrawnTopologies, AreFunctionsOfTheSeedAndTheNumberOfMembers) {
  for (const TopologySpec& spec : Drawn()) {
    bool differs = false;
    const Edges first = Built(spec, 16, 1).Edges();
    for (uint64_t seed = 1; seed <= 10; ++seed) {
      const Graph graph = Built(spec, 16, seed);
      EXPECT_EQ(graph.Edges(), Built(spec, 16, seed).Edges()) << spec.kind;
      differs = differs || graph.Edges() != first;
    }
    EXPECT_TRUE(differs) << spec.kind;
    // Other names in the same order make the same graph.
    std::vector<NodeId> others;
    for (int i = 0; i < 16; ++i) others.emplace_back(absl::StrCat("z", 10 + i));
    EXPECT_EQ(BuildGraph(spec, 1, others)->Edges(), first) << spec.kind;
  }
}

TEST(DrawnTopologies, AreDrawnAfreshEveryRRounds) {
  for (TopologySpec spec : Drawn()) {
    EXPECT_FALSE(TopologyVaries(spec));
    EXPECT_EQ(Built(spec, 14, 3, 1000).Edges(), Built(spec, 14, 3).Edges());
    const Edges first = Built(spec, 14, 3).Edges();
    spec.every = 5;
    EXPECT_TRUE(TopologyVaries(spec));
    std::vector<Edges> graphs;
    for (int64_t round = 0; round < 40; ++round) {
      const Graph graph = Built(spec, 14, 3, round);
      EXPECT_TRUE(graph.IsConnected());
      EXPECT_EQ(GraphNumber(spec, round), round / 5);
      EXPECT_EQ(NextGraphRound(spec, round), (round / 5 + 1) * 5);
      if (round % 5 == 0) {
        graphs.push_back(graph.Edges());
      } else {
        EXPECT_EQ(graph.Edges(), graphs.back()) << spec.kind << " " << round;
      }
    }
    // The first is that of the topology that stays; the others are their own.
    EXPECT_EQ(graphs[0], first) << spec.kind;
    std::sort(graphs.begin(), graphs.end());
    graphs.erase(std::unique(graphs.begin(), graphs.end()), graphs.end());
    EXPECT_GE(graphs.size(), 7u) << spec.kind;
  }
}

// A first draw that came out connected against the odds must not make a later
// round fail.
TEST(DrawnTopologies, ALaterRoundThatCannotBeDrawnHasTheFirstGraph) {
  TopologySpec spec = Kind("erdos-renyi");
  spec.edge_probability = 0.0325;  // one draw in about 1,300 is connected
  spec.every = 1;
  uint64_t seed = 0;
  while (!BuildGraph(spec, seed, Members(30)).ok()) ++seed;
  const Edges first = Built(spec, 30, seed).Edges();
  int repeated = 0;
  for (int64_t round = 1; round <= 12; ++round) {
    const Graph graph = Built(spec, 30, seed, round);
    EXPECT_TRUE(graph.IsConnected());
    if (graph.Edges() == first) ++repeated;
  }
  EXPECT_GE(repeated, 1);
}

// ------------------------------------------------------------ named edges ----

TEST(ExplicitTopology, MayBeDirected) {
  TopologySpec spec = Kind("explicit");
  spec.edges = {Edge(2, 0), Edge(0, 1), Edge(1, 2), Edge(2, 0)};
  spec.directed = true;
  const absl::StatusOr<AnyGraph> graph = BuildTopology(spec, 1, Members(3));
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_THAT(std::get<Digraph>(*graph).Arcs(),
              ElementsAre(Pair(0, 1), Pair(1, 2), Pair(2, 0)));
  spec.directed = false;
  EXPECT_THAT(BuildGraph(spec, 1, Members(3))->Edges(),
              ElementsAre(Pair(0, 1), Pair(0, 2), Pair(1, 2)));
}

TEST(TimeVaryingTopology, TakesItsSetsInTurn) {
  TopologySpec spec = Kind("time-varying");
  spec.edge_sets = {{Edge(0, 1)}, {Edge(1, 2), Edge(2, 3)}, {}};
  EXPECT_TRUE(TopologyVaries(spec));
  for (const int64_t cycle : {0, 3, 300}) {
    EXPECT_THAT(Built(spec, 4, 1, cycle).Edges(), ElementsAre(Pair(0, 1)));
    EXPECT_THAT(Built(spec, 4, 1, cycle + 1).Edges(),
                ElementsAre(Pair(1, 2), Pair(2, 3)));
    EXPECT_THAT(Built(spec, 4, 1, cycle + 2).Edges(), IsEmpty());
  }
  spec.every = 2;
  for (int64_t round = 0; round < 12; ++round) {
    EXPECT_EQ(GraphNumber(spec, round), round / 2 % 3) << round;
    EXPECT_EQ(NextGraphRound(spec, round), round / 2 * 2 + 2) << round;
  }
  spec.edge_sets.resize(1);
  EXPECT_FALSE(TopologyVaries(spec));
}

TEST(TimeVaryingTopology, AWindowHasTheEdgesOfAllRounds) {
  TopologySpec spec = Kind("time-varying");
  spec.edge_sets = {{Edge(0, 1)}, {Edge(1, 2)}, {Edge(2, 3), Edge(1, 0)}};
  const absl::StatusOr<AnyGraph> window = BuildWindow(spec, 1, Members(4));
  ASSERT_TRUE(window.ok());
  EXPECT_THAT(std::get<Graph>(*window).Edges(),
              ElementsAre(Pair(0, 1), Pair(1, 2), Pair(2, 3)));
  EXPECT_TRUE(std::get<Graph>(*window).IsConnected());
  spec.directed = true;
  const absl::StatusOr<AnyGraph> arcs = BuildWindow(spec, 1, Members(4));
  ASSERT_TRUE(arcs.ok());
  EXPECT_THAT(std::get<Digraph>(*arcs).Arcs(),
              ElementsAre(Pair(0, 1), Pair(1, 0), Pair(1, 2), Pair(2, 3)));
  EXPECT_FALSE(std::get<Digraph>(*arcs).IsStronglyConnected());
  // Of a topology that stays it is that graph.
  EXPECT_EQ(std::get<Graph>(*BuildWindow(Kind("ring"), 1, Members(5))).Edges(),
            Built(Kind("ring"), 5).Edges());
}

TEST(TimeVaryingTopology, AWindowOfFreshDrawsHasTheFirstEight) {
  TopologySpec spec = WithDegree("random-regular", 2);
  spec.every = 3;
  Graph expected(12);
  for (int64_t draw = 0; draw < 8; ++draw) {
    for (const auto& [a, b] : Built(spec, 12, 5, 3 * draw).Edges()) {
      expected.AddEdge(a, b);
    }
  }
  const absl::StatusOr<AnyGraph> window = BuildWindow(spec, 5, Members(12));
  ASSERT_TRUE(window.ok());
  EXPECT_EQ(std::get<Graph>(*window).Edges(), expected.Edges());
}

// --------------------------------------------------------------- refusals ----

// Sorted bytewise.
std::vector<NodeId> ManyMembers(int64_t count) {
  std::vector<NodeId> members;
  for (int64_t i = 0; i < count; ++i) {
    members.emplace_back(absl::StrCat("n", 100'000 + i));
  }
  return members;
}

TEST(Topology, RefusesMoreEdgesThanANodeCanHold) {
  const std::vector<NodeId> members = ManyMembers(16384);
  TopologySpec random = Kind("erdos-renyi");
  for (const TopologySpec& spec :
       {Kind("complete"), Kind("bipartite"), WithDegree("k-nearest", 16380),
        WithDegree("hashed", 1000), WithDegree("random-regular", 1000), random,
        WithRadius(0.5)}) {
    const absl::Status status = BuildTopology(spec, 1, members).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                AllOf(StartsWith(absl::StrCat("topology.kind: \"", spec.kind)),
                      HasSubstr("edges between 16384 members; allowed: at most "
                                "2097152")));
  }
  EXPECT_TRUE(BuildTopology(Kind("complete"), 1, ManyMembers(2048)).ok());
  EXPECT_FALSE(BuildTopology(Kind("complete"), 1, ManyMembers(2049)).ok());
  // All of a window together.
  TopologySpec varies = WithDegree("random-regular", 40);
  EXPECT_TRUE(BuildTopology(varies, 1, members).ok());
  varies.every = 1;
  EXPECT_THAT(
      std::string(BuildTopology(varies, 1, members).status().message()),
      HasSubstr("at most 262144 where they change from round to round"));
}

// Those whose edges are not too many.
TEST(Topology, TheLargestNetworkHasAGraphOfEveryKind) {
  const std::vector<NodeId> members = ManyMembers(16384);
  TopologySpec random = Kind("erdos-renyi");
  random.edge_probability = 0.002;
  TopologySpec sets = Kind("time-varying");
  TopologySpec list = Kind("explicit");
  for (size_t i = 0; i + 1 < members.size(); ++i) {
    list.edges.emplace_back(members[i], members[i + 1]);
    sets.edge_sets.push_back({list.edges.back()});
  }
  const double begin = CpuSeconds();
  for (const TopologySpec& spec :
       {Kind("ring"), Kind("star"), Kind("path"), Kind("grid"), Kind("torus"),
        WithDegree("k-nearest", 4), WithDegree("hashed", 4), random,
        WithDegree("random-regular", 4), WithRadius(0.03), sets, list}) {
    const auto window = BuildWindow(spec, 1, members);
    ASSERT_TRUE(window.ok()) << spec.kind << ": " << window.status();
    EXPECT_TRUE(std::get<Graph>(*window).IsConnected()) << spec.kind;
  }
  EXPECT_LT(CpuSeconds() - begin, 15);
}

TEST(Topology, EdgesOfStrangersAreAnErrorOrLeftOut) {
  TopologySpec spec = Kind("explicit");
  spec.edges = {Edge(0, 1), Edge(1, 7), Edge(8, 8), Edge(1, 2)};
  EXPECT_THAT(Refused(spec, 3, absl::StatusCode::kInvalidArgument),
              StartsWith("topology.edges[1]: \"n1007\" is unknown"));
  const auto graph =
      BuildTopology(spec, 1, Members(3), 0, {}, Strangers::kLeaveOut);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_THAT(std::get<Graph>(*graph).Edges(),
              ElementsAre(Pair(0, 1), Pair(1, 2)));
}

TEST(Topology, RefusesWhatIsOutOfRangeOrImpossible) {
  struct Case {
    TopologySpec spec;
    int64_t nodes;
    const char* start;
    const char* reason;
  };
  TopologySpec directed_ring = Kind("ring");
  directed_ring.directed = true;
  TopologySpec every_ring = Kind("ring");
  every_ring.every = 3;
  TopologySpec negative = WithDegree("random-regular", 3);
  negative.every = -1;
  TopologySpec endless = negative;
  endless.every = std::numeric_limits<int64_t>::max();
  TopologySpec stranger = Kind("time-varying");
  stranger.edge_sets = {{Edge(0, 1)}, {Edge(1, 2), Edge(1, 7)}};
  stranger.every = 1;
  TopologySpec loop = stranger;
  loop.edge_sets[1][1] = Edge(1, 1);
  for (const Case& c : std::vector<Case>{
           {Kind("toruss"), 4, "topology.kind: \"toruss\"",
            "did you mean \"torus\""},
           {WithDegree("k-nearest", 0), 4, "topology.degree: 0", ">= 1"},
           {WithDegree("k-nearest", 4), 4, "topology.degree: 4",
            "at least 5 members, but there are 4; allowed: at most 3"},
           {WithDegree("k-nearest", 3), 7, "topology.degree: 3 is odd",
            "even, or 6"},
           {WithDegree("k-nearest", 2), 1, "topology.degree: 2",
            "another kind"},
           {WithDegree("random-regular", -2), 4, "topology.degree: -2", ">= 1"},
           {WithDegree("random-regular", 9), 9, "topology.degree: 9",
            "at most 8"},
           {WithDegree("random-regular", 3), 7, "topology.degree: 3",
            "21 ends of edges, an odd number"},
           {WithDegree("random-regular", 1), 6, "topology.degree: 1", "2 to 5"},
           {WithRadius(0), 4, "topology.radius: 0", "number > 0"},
           {WithRadius(std::nan("")), 4, "topology.radius: nan", "number > 0"},
           {directed_ring, 4, "topology.directed: on", "kind ring"},
           {every_ring, 4, "topology.every: 3", "one graph for all rounds"},
           {negative, 4, "topology.every: -1", "from 0 to 1000000000"},
           {endless, 4, "topology.every: 9223372036854775807",
            "from 0 to 1000000000"},
           {Kind("time-varying"), 4, "topology.edge_sets: missing",
            "at least one"},
       }) {
    EXPECT_THAT(Refused(c.spec, c.nodes, absl::StatusCode::kInvalidArgument),
                AllOf(StartsWith(c.start), HasSubstr(c.reason)));
  }
  // A mistake in the set of a later round is seen by its round and the window.
  for (const auto& [spec, reason] :
       {std::pair{stranger, "\"n1007\" is unknown"},
        std::pair{loop, "joined to itself"}}) {
    EXPECT_TRUE(BuildTopology(spec, 1, Members(4)).ok());
    for (const absl::Status& status :
         {BuildTopology(spec, 1, Members(4), 1).status(),
          BuildWindow(spec, 1, Members(4)).status()}) {
      EXPECT_THAT(
          std::string(status.message()),
          AllOf(StartsWith("topology.edge_sets[1][1]: "), HasSubstr(reason)));
    }
  }
}

TEST(RandomGeometric, GivesUpAfterAThousandDisconnectedDraws) {
  EXPECT_THAT(
      Refused(WithRadius(0.01), 30, absl::StatusCode::kFailedPrecondition),
      AllOf(StartsWith("topology.radius: 0.01"), HasSubstr("1000 draws"),
            HasSubstr("0.19")));
}

}  // namespace
}  // namespace dfl::core
