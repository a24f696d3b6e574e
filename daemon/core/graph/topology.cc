#include "daemon/core/graph/topology.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/distributions.h"
#include "daemon/base/names.h"
#include "daemon/base/rng.h"
#include "daemon/base/status_macros.h"

namespace dfl::core {
namespace {

constexpr int kMaxDraws = 1000;
constexpr int64_t kWindowDraws = 8;

absl::Status Bad(absl::string_view key, absl::string_view found,
                 absl::string_view allowed) {
  return absl::InvalidArgumentError(absl::StrCat(
      "topology.", key, ": ", found, " is not allowed; allowed: ", allowed));
}

bool IsDrawn(absl::string_view kind) {
  return kind == "erdos-renyi" || kind == "random-regular" ||
         kind == "random-geometric";
}

// ----------------------------------------------------------- fixed graphs ----

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

Graph Path(int64_t nodes) {
  Graph graph(nodes);
  for (int64_t a = 0; a + 1 < nodes; ++a) graph.AddEdge(a, a + 1);
  return graph;
}

int64_t GridColumns(int64_t nodes) {
  int64_t rows = 1;
  for (int64_t d = 1; d * d <= nodes; ++d) {
    if (nodes % d == 0) rows = d;
  }
  return nodes / rows;
}

// rows x columns, row by row.
Graph Grid(int64_t nodes) {
  const int64_t columns = GridColumns(nodes);
  Graph graph(nodes);
  for (int64_t node = 0; node < nodes; ++node) {
    if ((node + 1) % columns != 0) graph.AddEdge(node, node + 1);
    if (node + columns < nodes) graph.AddEdge(node, node + columns);
  }
  return graph;
}

Graph Torus(int64_t nodes) {
  const int64_t columns = GridColumns(nodes);
  Graph graph(nodes);
  for (int64_t node = 0; node < nodes; ++node) {
    const int64_t row = node / columns * columns;
    graph.AddEdge(node, row + (node - row + 1) % columns);
    graph.AddEdge(node, (node + columns) % nodes);
  }
  return graph;
}

Graph CompleteBipartite(int64_t nodes) {
  Graph graph(nodes);
  for (int64_t a = 0; a < nodes / 2; ++a) {
    for (int64_t b = nodes / 2; b < nodes; ++b) graph.AddEdge(a, b);
  }
  return graph;
}

// What k-nearest and random-regular need of `degree`.
absl::Status CheckDegree(const TopologySpec& spec, int64_t nodes) {
  if (spec.degree < 1) {
    return Bad("degree", absl::StrCat(spec.degree), "integer >= 1");
  }
  if (spec.degree < nodes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "topology.degree: ", spec.degree, " neighbours each need at least ",
      spec.degree + 1, " members, but there are ", nodes, "; allowed: ",
      nodes < 2 ? "another kind" : absl::StrCat("at most ", nodes - 1)));
}

absl::StatusOr<Graph> NearestOnRing(const TopologySpec& spec, int64_t nodes) {
  DFL_RETURN_IF_ERROR(CheckDegree(spec, nodes));
  if (spec.degree == nodes - 1) return Complete(nodes);
  if (spec.degree % 2 != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "topology.degree: ", spec.degree,
        " is odd, but on a ring half the neighbours are on each side; "
        "allowed: even, or ",
        nodes - 1, " for all others"));
  }
  Graph graph(nodes);
  for (int64_t node = 0; node < nodes; ++node) {
    for (int64_t hop = 1; hop <= spec.degree / 2; ++hop) {
      graph.AddEdge(node, (node + hop) % nodes);
    }
  }
  return graph;
}

// ---------------------------------------------------------- hashed graphs ----

absl::Status CheckHashed(const TopologySpec& spec, int64_t nodes) {
  if (spec.degree >= 2 && (spec.degree % 2 == 0 || spec.degree >= nodes - 1)) {
    return absl::OkStatus();
  }
  return Bad("degree", absl::StrCat(spec.degree),
             "an even integer >= 2, since each ring of hashes gives two "
             "neighbours");
}

// Places on a ring, by hash. Equal hashes are told apart by place.
using HashRing = std::vector<std::pair<uint64_t, int64_t>>;

// The two of `ring` that `hash` lies between: the one after it, the one before.
std::pair<int64_t, int64_t> Around(const HashRing& ring, uint64_t hash) {
  auto after =
      std::lower_bound(ring.begin(), ring.end(), std::pair(hash, int64_t{0}));
  const auto before = after == ring.begin() ? ring.end() - 1 : after - 1;
  if (after == ring.end()) after = ring.begin();
  return {after->second, before->second};
}

// `hangs[i]`: member i is on no ring, unless all are such.
Graph Hashed(const TopologySpec& spec, uint64_t seed,
             absl::Span<const NodeId> members, std::vector<bool> hangs) {
  const auto nodes = static_cast<int64_t>(members.size());
  if (spec.degree >= nodes - 1) return Complete(nodes);
  if (std::find(hangs.begin(), hangs.end(), false) == hangs.end()) {
    hangs.assign(members.size(), false);
  }
  Graph graph(nodes);
  for (int64_t r = 0; r < spec.degree / 2; ++r) {
    const uint64_t of_ring =
        DeriveSeed(seed, "hashed", static_cast<uint64_t>(r));
    HashRing ring;
    HashRing beside;
    for (int64_t i = 0; i < nodes; ++i) {
      const auto at = static_cast<size_t>(i);
      (hangs[at] ? beside : ring)
          .emplace_back(DeriveSeed(of_ring, members[at].name()), i);
    }
    std::sort(ring.begin(), ring.end());
    for (size_t k = 0; k < ring.size(); ++k) {
      graph.AddEdge(ring[k].second, ring[(k + 1) % ring.size()].second);
    }
    for (const auto& [hash, i] : beside) {
      const auto [after, before] = Around(ring, hash);
      graph.AddEdge(i, after);
      graph.AddEdge(i, before);
    }
  }
  return graph;
}

// The same without edges between two that cannot be dialled, but for those that
// it would fall apart without: of these the first ones in order are kept. Where
// nobody can be dialled all are kept.
Graph WithoutUndialable(const Graph& graph,
                        const std::vector<bool>& undialable) {
  Graph kept(graph.size());
  std::vector<std::pair<int64_t, int64_t>> doubtful;
  for (const auto& [a, b] : graph.Edges()) {
    if (undialable[static_cast<size_t>(a)] &&
        undialable[static_cast<size_t>(b)]) {
      doubtful.emplace_back(a, b);
    } else {
      kept.AddEdge(a, b);
    }
  }
  const bool nobody = std::find(undialable.begin(), undialable.end(), false) ==
                      undialable.end();
  if (doubtful.empty() || nobody) return graph;
  std::vector<int64_t> part(static_cast<size_t>(graph.size()));
  const std::vector<std::vector<int64_t>> parts = kept.Components();
  for (size_t p = 0; p < parts.size(); ++p) {
    for (const int64_t i : parts[p]) {
      part[static_cast<size_t>(i)] = static_cast<int64_t>(p);
    }
  }
  auto left = static_cast<int64_t>(parts.size());
  for (const auto& [a, b] : doubtful) {
    if (left == 1) break;
    const int64_t from = part[static_cast<size_t>(b)];
    const int64_t to = part[static_cast<size_t>(a)];
    if (from == to) continue;
    kept.AddEdge(a, b);
    std::replace(part.begin(), part.end(), from, to);
    --left;
  }
  return kept;
}

// ----------------------------------------------------------- drawn graphs ----

// Up to 1,000 draws of one generator until one is connected; nullopt: none was.
// `draw` gives nullopt where it got stuck.
template <typename Draw>
std::optional<Graph> DrawConnected(absl::string_view kind, uint64_t seed,
                                   int64_t number, Draw draw) {
  Rng rng(number == 0 ? DeriveSeed(seed, kind)
                      : DeriveSeed(seed, kind, static_cast<uint64_t>(number)));
  for (int tries = 0; tries < kMaxDraws; ++tries) {
    std::optional<Graph> graph = draw(rng);
    if (graph.has_value() && graph->IsConnected()) return graph;
  }
  return std::nullopt;
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

// Pairs of stubs at random; a pair that would be a loop or a double goes back
// into the pot (Steger and Wormald 1999: nearly uniform, and unlike plain
// redrawing it ends for larger degrees). nullopt: what is left cannot be
// paired.
std::optional<Graph> DrawRegular(Rng& rng, int64_t nodes, int64_t degree) {
  Graph graph(nodes);
  std::vector<int64_t> stubs;
  for (int64_t node = 0; node < nodes; ++node) {
    stubs.insert(stubs.end(), static_cast<size_t>(degree), node);
  }
  while (!stubs.empty()) {
    rng.Shuffle(absl::MakeSpan(stubs));
    std::vector<int64_t> left;
    for (size_t s = 0; s + 1 < stubs.size(); s += 2) {
      const int64_t a = stubs[s];
      const int64_t b = stubs[s + 1];
      if (a != b && !graph.HasEdge(a, b)) {
        graph.AddEdge(a, b);
      } else {
        left.push_back(a);
        left.push_back(b);
      }
    }
    const bool possible = std::any_of(left.begin(), left.end(), [&](int64_t a) {
      return std::any_of(left.begin(), left.end(), [&](int64_t b) {
        return a != b && !graph.HasEdge(a, b);
      });
    });
    if (!left.empty() && !possible) return std::nullopt;
    stubs = std::move(left);
  }
  return graph;
}

// A dense one is drawn as what it lacks, which is sparse and regular too.
std::optional<Graph> DrawRegularOrComplement(Rng& rng, int64_t nodes,
                                             int64_t degree) {
  if (degree <= (nodes - 1) / 2) return DrawRegular(rng, nodes, degree);
  const std::optional<Graph> missing =
      DrawRegular(rng, nodes, nodes - 1 - degree);
  if (!missing.has_value()) return std::nullopt;
  Graph graph(nodes);
  for (int64_t a = 0; a < nodes; ++a) {
    for (int64_t b = a + 1; b < nodes; ++b) {
      if (!missing->HasEdge(a, b)) graph.AddEdge(a, b);
    }
  }
  return graph;
}

// Points in the order x0, y0, x1, y1, ...; swept by x, so that a small radius
// is cheap.
Graph DrawGeometric(Rng& rng, int64_t nodes, double radius) {
  struct Point {
    double x = 0;
    double y = 0;
    int64_t node = 0;
  };
  std::vector<Point> points;
  for (int64_t node = 0; node < nodes; ++node) {
    const double x = rng.Uniform();
    const double y = rng.Uniform();
    points.push_back(Point{x, y, node});
  }
  std::sort(points.begin(), points.end(), [](const Point& a, const Point& b) {
    return a.x != b.x ? a.x < b.x : a.node < b.node;
  });
  Graph graph(nodes);
  for (size_t a = 0; a < points.size(); ++a) {
    for (size_t b = a + 1; b < points.size(); ++b) {
      const double dx = points[b].x - points[a].x;
      if (dx > radius) break;
      const double dy = points[b].y - points[a].y;
      if (dx * dx + dy * dy <= radius * radius) {
        graph.AddEdge(points[a].node, points[b].node);
      }
    }
  }
  return graph;
}

std::string UpToThousandths(double value) {
  return NumberText(std::floor(1000 * value + 1) / 1000);
}

absl::StatusOr<Graph> ErdosRenyi(const TopologySpec& spec, uint64_t seed,
                                 int64_t nodes, int64_t number) {
  const double probability = spec.edge_probability;
  if (!(probability > 0 && probability <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("topology.edge_probability: ", NumberText(probability),
                     " is not in (0, 1]"));
  }
  std::optional<Graph> graph =
      DrawConnected("erdos-renyi", seed, number, [&](Rng& rng) {
        return std::optional<Graph>(DrawErdosRenyi(rng, nodes, probability));
      });
  if (graph.has_value()) return *std::move(graph);
  const auto m = static_cast<double>(nodes);
  return absl::FailedPreconditionError(absl::StrCat(
      "topology.edge_probability: ", NumberText(probability), ": ", kMaxDraws,
      " draws in a row over ", nodes,
      " members were disconnected; choose a larger one, well above ln(m)/m = ",
      UpToThousandths(Log(m) / m)));
}

absl::StatusOr<Graph> RandomRegular(const TopologySpec& spec, uint64_t seed,
                                    int64_t nodes, int64_t number) {
  DFL_RETURN_IF_ERROR(CheckDegree(spec, nodes));
  if (spec.degree % 2 != 0 && nodes % 2 != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "topology.degree: ", spec.degree, " neighbours for each of ", nodes,
        " members would be ", spec.degree * nodes,
        " ends of edges, an odd number; allowed: an even degree, or one member "
        "more or less"));
  }
  if (spec.degree == 1 && nodes > 2) {
    return absl::InvalidArgumentError(absl::StrCat(
        "topology.degree: 1 makes pairs that never hear of each other; "
        "allowed: 2 to ",
        nodes - 1));
  }
  std::optional<Graph> graph =
      DrawConnected("random-regular", seed, number, [&](Rng& rng) {
        return DrawRegularOrComplement(rng, nodes, spec.degree);
      });
  if (graph.has_value()) return *std::move(graph);
  return absl::FailedPreconditionError(absl::StrCat(
      "topology.degree: ", spec.degree, ": ", kMaxDraws,
      " draws in a row over ", nodes,
      " members were not connected; choose a larger one, or another seed"));
}

absl::StatusOr<Graph> RandomGeometric(const TopologySpec& spec, uint64_t seed,
                                      int64_t nodes, int64_t number) {
  const double radius = spec.radius;
  if (!(std::isfinite(radius) && radius > 0)) {
    return Bad("radius", NumberText(radius),
               "number > 0 (points lie in the unit square; from 1.415 on the "
               "graph is complete)");
  }
  std::optional<Graph> graph =
      DrawConnected("random-geometric", seed, number, [&](Rng& rng) {
        return std::optional<Graph>(DrawGeometric(rng, nodes, radius));
      });
  if (graph.has_value()) return *std::move(graph);
  constexpr double kPi = 3.14159265358979323846;
  const auto m = static_cast<double>(nodes);
  return absl::FailedPreconditionError(absl::StrCat(
      "topology.radius: ", NumberText(radius), ": ", kMaxDraws,
      " draws in a row over ", nodes,
      " members were disconnected; choose a larger one, well above "
      "sqrt(ln(m)/(pi m)) = ",
      UpToThousandths(std::sqrt(Log(m) / (kPi * m)))));
}

// ------------------------------------------------------------ named edges ----

// The places of the two ends of each edge.
absl::StatusOr<std::vector<std::pair<int64_t, int64_t>>> Places(
    const std::string& key, const EdgeList& edges,
    absl::Span<const NodeId> members) {
  std::map<NodeId, int64_t> place;
  std::vector<std::string> names;
  for (const NodeId& member : members) {
    place.emplace(member, static_cast<int64_t>(names.size()));
    names.push_back(member.name());
  }
  std::vector<std::pair<int64_t, int64_t>> out;
  for (size_t e = 0; e < edges.size(); ++e) {
    const std::string path = absl::StrCat(key, "[", e, "]");
    const auto& [from, to] = edges[e];
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
    out.emplace_back(place[from], place[to]);
  }
  return out;
}

absl::StatusOr<AnyGraph> Named(const std::string& key, const EdgeList& edges,
                               bool directed,
                               absl::Span<const NodeId> members) {
  DFL_ASSIGN_OR_RETURN(const auto places, Places(key, edges, members));
  const auto nodes = static_cast<int64_t>(members.size());
  if (directed) {
    Digraph graph(nodes);
    for (const auto& [from, to] : places) graph.AddArc(from, to);
    return AnyGraph(std::move(graph));
  }
  Graph graph(nodes);
  for (const auto& [a, b] : places) graph.AddEdge(a, b);
  return AnyGraph(std::move(graph));
}

// --------------------------------------------------------------- a plan's ----

absl::Status CheckSpec(const TopologySpec& spec) {
  const std::vector<std::string> kinds = {"auto",
                                          "complete",
                                          "ring",
                                          "star",
                                          "path",
                                          "grid",
                                          "torus",
                                          "bipartite",
                                          "k-nearest",
                                          "hashed",
                                          "erdos-renyi",
                                          "random-regular",
                                          "random-geometric",
                                          "explicit",
                                          "time-varying"};
  if (std::find(kinds.begin(), kinds.end(), spec.kind) == kinds.end()) {
    return UnknownNameError("topology.kind", spec.kind, kinds);
  }
  const bool varying = spec.kind == "time-varying";
  if (varying && spec.edge_sets.empty()) {
    return absl::InvalidArgumentError(
        "topology.edge_sets: missing; kind time-varying needs at least one set "
        "of edges, such as [[[a, b]], [[b, c]]]");
  }
  if (spec.directed && !varying && spec.kind != "explicit") {
    return absl::InvalidArgumentError(absl::StrCat(
        "topology.directed: on, but the edges of kind ", spec.kind,
        " run both ways; allowed: off, or kind explicit or time-varying"));
  }
  if (spec.every < 0) {
    return Bad("every", absl::StrCat(spec.every), "integer >= 0");
  }
  if (spec.every > 0 && !varying && !IsDrawn(spec.kind)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "topology.every: ", spec.every, ", but kind ", spec.kind,
        " has one graph for all rounds; allowed: 0, or kind erdos-renyi, "
        "random-regular, random-geometric or time-varying"));
  }
  return absl::OkStatus();
}

// Of which members a graph is made.
struct GraphMembers {
  absl::Span<const NodeId> names;
  std::vector<bool> undialable;  // empty: none is
};

GraphMembers MembersOf(absl::Span<const NodeId> names,
                       absl::Span<const NodeId> undialable) {
  GraphMembers members{names, {}};
  if (undialable.empty()) return members;
  members.undialable.reserve(names.size());
  for (const NodeId& name : names) {
    members.undialable.push_back(
        std::binary_search(undialable.begin(), undialable.end(), name));
  }
  return members;
}

absl::StatusOr<Graph> BuildUndirected(const TopologySpec& spec, uint64_t seed,
                                      const GraphMembers& members,
                                      int64_t number) {
  const auto nodes = static_cast<int64_t>(members.names.size());
  const std::string kind = KindInForce(spec, nodes);
  if (kind == "complete") return Complete(nodes);
  if (kind == "ring") return Ring(nodes);
  if (kind == "star") return Star(nodes);
  if (kind == "path") return Path(nodes);
  if (kind == "grid") return Grid(nodes);
  if (kind == "torus") return Torus(nodes);
  if (kind == "bipartite") return CompleteBipartite(nodes);
  if (kind == "k-nearest") return NearestOnRing(spec, nodes);
  if (kind == "hashed") {
    DFL_RETURN_IF_ERROR(CheckHashed(spec, nodes));
    return Hashed(spec, seed, members.names, members.undialable);
  }
  if (kind == "erdos-renyi") return ErdosRenyi(spec, seed, nodes, number);
  if (kind == "random-regular") {
    return RandomRegular(spec, seed, nodes, number);
  }
  return RandomGeometric(spec, seed, nodes, number);
}

bool MayLeaveOut(const TopologySpec& spec, int64_t nodes) {
  const std::string kind = KindInForce(spec, nodes);
  return spec.weights != "uniform" &&
         (kind == "complete" || kind == "hashed" || IsDrawn(kind));
}

absl::StatusOr<AnyGraph> BuildNumbered(const TopologySpec& spec, uint64_t seed,
                                       const GraphMembers& members,
                                       int64_t number) {
  if (spec.kind == "explicit") {
    return Named("topology.edges", spec.edges, spec.directed, members.names);
  }
  if (spec.kind == "time-varying") {
    return Named(absl::StrCat("topology.edge_sets[", number, "]"),
                 spec.edge_sets[static_cast<size_t>(number)], spec.directed,
                 members.names);
  }
  absl::StatusOr<Graph> graph = BuildUndirected(spec, seed, members, number);
  if (number > 0 && absl::IsFailedPrecondition(graph.status())) {
    graph = BuildUndirected(spec, seed, members, 0);
  }
  if (!graph.ok()) return graph.status();
  if (!members.undialable.empty() &&
      MayLeaveOut(spec, static_cast<int64_t>(members.names.size()))) {
    return AnyGraph(WithoutUndialable(*graph, members.undialable));
  }
  return AnyGraph(*std::move(graph));
}

void AddEdgesOf(const AnyGraph& from, AnyGraph& to) {
  if (const Graph* graph = std::get_if<Graph>(&from)) {
    for (const auto& [a, b] : graph->Edges()) std::get<Graph>(to).AddEdge(a, b);
    return;
  }
  for (const auto& [a, b] : std::get<Digraph>(from).Arcs()) {
    std::get<Digraph>(to).AddArc(a, b);
  }
}

}  // namespace

absl::StatusOr<AnyGraph> BuildTopology(const TopologySpec& spec, uint64_t seed,
                                       absl::Span<const NodeId> members,
                                       int64_t round,
                                       absl::Span<const NodeId> undialable) {
  DFL_RETURN_IF_ERROR(CheckSpec(spec));
  return BuildNumbered(spec, seed, MembersOf(members, undialable),
                       GraphNumber(spec, round));
}

absl::Status CheckTopologySpec(const TopologySpec& spec) {
  return CheckSpec(spec);
}

std::string KindInForce(const TopologySpec& spec, int64_t members) {
  if (spec.kind != "auto") return spec.kind;
  return members <= kMostComplete ? "complete" : "hashed";
}

bool TopologyVaries(const TopologySpec& spec) {
  if (spec.kind == "time-varying") return spec.edge_sets.size() > 1;
  return spec.every > 0 && IsDrawn(spec.kind);
}

int64_t GraphNumber(const TopologySpec& spec, int64_t round) {
  if (!TopologyVaries(spec)) return 0;
  const int64_t turn = round / std::max<int64_t>(1, spec.every);
  return spec.kind == "time-varying"
             ? turn % static_cast<int64_t>(spec.edge_sets.size())
             : turn;
}

int64_t NextGraphRound(const TopologySpec& spec, int64_t round) {
  const int64_t every = std::max<int64_t>(1, spec.every);
  return (round / every + 1) * every;
}

absl::StatusOr<AnyGraph> BuildWindow(const TopologySpec& spec, uint64_t seed,
                                     absl::Span<const NodeId> members,
                                     absl::Span<const NodeId> undialable) {
  DFL_ASSIGN_OR_RETURN(AnyGraph window,
                       BuildTopology(spec, seed, members, 0, undialable));
  if (!TopologyVaries(spec)) return window;
  const int64_t graphs = spec.kind == "time-varying"
                             ? static_cast<int64_t>(spec.edge_sets.size())
                             : kWindowDraws;
  const GraphMembers all = MembersOf(members, undialable);
  for (int64_t number = 1; number < graphs; ++number) {
    DFL_ASSIGN_OR_RETURN(const AnyGraph graph,
                         BuildNumbered(spec, seed, all, number));
    AddEdgesOf(graph, window);
  }
  return window;
}

}  // namespace dfl::core
