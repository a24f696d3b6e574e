#include "daemon/core/graph/topology.h"

#include <algorithm>
#include <cmath>
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

constexpr int64_t kWindowDraws = 8;

// How often a graph is drawn until it is connected: fewer times where each
// takes long.
int64_t MaxDraws(int64_t nodes) {
  constexpr int64_t kMostDraws = 1000;
  constexpr int64_t kDrawnNodes = int64_t{1} << 22;  // of all draws together
  return std::clamp<int64_t>(kDrawnNodes / std::max<int64_t>(1, nodes), 1,
                             kMostDraws);
}

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

// Up to MaxDraws draws of one generator until one is connected; nullopt: none
// was. `draw` gives nullopt where it got stuck.
template <typename Draw>
std::optional<Graph> DrawConnected(absl::string_view kind, uint64_t seed,
                                   int64_t nodes, int64_t number, Draw draw) {
  Rng rng(number == 0 ? DeriveSeed(seed, kind)
                      : DeriveSeed(seed, kind, static_cast<uint64_t>(number)));
  for (int64_t tries = 0; tries < MaxDraws(nodes); ++tries) {
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

struct Point {
  double x = 0;
  double y = 0;
};

// Points of the unit square by the square cells that they lie in. A cell is at
// least `radius` wide, so that neighbours lie in the same cell or next to it,
// and there are not more cells than points.
class Cells {
 public:
  Cells(const std::vector<Point>& points, double radius)
      : side_(SideOf(points.size(), radius)), cells_(side_ * side_) {
    for (size_t i = 0; i < points.size(); ++i) {
      cells_[CellAt(points[i].x) * side_ + CellAt(points[i].y)].push_back(i);
    }
  }

  // Calls visit(i) for the points of the cell of `at` and those around it.
  template <typename Visit>
  void Around(const Point& at, Visit visit) const {
    const size_t x = CellAt(at.x);
    const size_t y = CellAt(at.y);
    for (size_t i = x - (x > 0); i <= x + 1 && i < side_; ++i) {
      for (size_t j = y - (y > 0); j <= y + 1 && j < side_; ++j) {
        for (const size_t point : cells_[i * side_ + j]) visit(point);
      }
    }
  }

 private:
  static size_t SideOf(size_t points, double radius) {
    const double most = std::sqrt(static_cast<double>(points));
    // A little wider than need be: products are rounded.
    const double side = std::min(most, 0.999 / radius);
    return std::max<size_t>(1, static_cast<size_t>(side));
  }
  size_t CellAt(double coordinate) const {
    return std::min(side_ - 1, static_cast<size_t>(coordinate *
                                                   static_cast<double>(side_)));
  }

  const size_t side_;
  std::vector<std::vector<size_t>> cells_;
};

// Points in the order x0, y0, x1, y1, ...
Graph DrawGeometric(Rng& rng, int64_t nodes, double radius) {
  std::vector<Point> points;
  for (int64_t node = 0; node < nodes; ++node) {
    const double x = rng.Uniform();
    const double y = rng.Uniform();
    points.push_back(Point{x, y});
  }
  const Cells cells(points, radius);
  Graph graph(nodes);
  for (size_t a = 0; a < points.size(); ++a) {
    cells.Around(points[a], [&](size_t b) {
      if (b <= a) return;
      const double dx = std::fabs(points[b].x - points[a].x);
      const double dy = points[b].y - points[a].y;
      if (dx <= radius && dx * dx + dy * dy <= radius * radius) {
        graph.AddEdge(static_cast<int64_t>(a), static_cast<int64_t>(b));
      }
    });
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
      DrawConnected("erdos-renyi", seed, nodes, number, [&](Rng& rng) {
        return std::optional<Graph>(DrawErdosRenyi(rng, nodes, probability));
      });
  if (graph.has_value()) return *std::move(graph);
  const auto m = static_cast<double>(nodes);
  return absl::FailedPreconditionError(absl::StrCat(
      "topology.edge_probability: ", NumberText(probability), ": ",
      MaxDraws(nodes), " draws in a row over ", nodes,
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
      DrawConnected("random-regular", seed, nodes, number, [&](Rng& rng) {
        return DrawRegularOrComplement(rng, nodes, spec.degree);
      });
  if (graph.has_value()) return *std::move(graph);
  return absl::FailedPreconditionError(absl::StrCat(
      "topology.degree: ", spec.degree, ": ", MaxDraws(nodes),
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
      DrawConnected("random-geometric", seed, nodes, number, [&](Rng& rng) {
        return std::optional<Graph>(DrawGeometric(rng, nodes, radius));
      });
  if (graph.has_value()) return *std::move(graph);
  constexpr double kPi = 3.14159265358979323846;
  const auto m = static_cast<double>(nodes);
  return absl::FailedPreconditionError(absl::StrCat(
      "topology.radius: ", NumberText(radius), ": ", MaxDraws(nodes),
      " draws in a row over ", nodes,
      " members were disconnected; choose a larger one, well above "
      "sqrt(ln(m)/(pi m)) = ",
      UpToThousandths(std::sqrt(Log(m) / (kPi * m)))));
}

// ------------------------------------------------------------ named edges ----

// Of which members a graph is made.
struct GraphMembers {
  absl::Span<const NodeId> names;  // sorted
  std::vector<bool> undialable;    // empty: none is
  Strangers strangers;
};

absl::Status StrangerError(absl::string_view path, const NodeId& stranger,
                           absl::Span<const NodeId> members) {
  std::vector<std::string> names;
  for (const NodeId& member : members) names.push_back(member.name());
  return UnknownNameError(path, stranger.name(), names);
}

AnyGraph NoEdges(bool directed, int64_t nodes) {
  return directed ? AnyGraph(Digraph(nodes)) : AnyGraph(Graph(nodes));
}

// Adds the edges of a list, which stands under `key`.
absl::Status AddNamed(const std::string& key, const EdgeList& edges,
                      const GraphMembers& members, AnyGraph& graph) {
  const auto find = [&members](const NodeId& name) {
    return std::lower_bound(members.names.begin(), members.names.end(), name);
  };
  const auto is_stranger = [&members](const auto at, const NodeId& name) {
    return at == members.names.end() || *at != name;
  };
  for (size_t e = 0; e < edges.size(); ++e) {
    const auto& [from, to] = edges[e];
    const auto a = find(from);
    const auto b = find(to);
    if (is_stranger(a, from) || is_stranger(b, to)) {
      if (members.strangers == Strangers::kLeaveOut) continue;
      return StrangerError(absl::StrCat(key, "[", e, "]"),
                           is_stranger(a, from) ? from : to, members.names);
    }
    if (a == b) {
      return absl::InvalidArgumentError(
          absl::StrCat(key, "[", e, "]: \"", from.name(),
                       "\" is joined to itself; an edge needs two members"));
    }
    const int64_t first = a - members.names.begin();
    const int64_t second = b - members.names.begin();
    if (Graph* undirected = std::get_if<Graph>(&graph)) {
      undirected->AddEdge(first, second);
    } else {
      std::get<Digraph>(graph).AddArc(first, second);
    }
  }
  return absl::OkStatus();
}

// The same of set `number` of a time-varying topology.
absl::Status AddSet(const TopologySpec& spec, int64_t number,
                    const GraphMembers& members, AnyGraph& graph) {
  return AddNamed(absl::StrCat("topology.edge_sets[", number, "]"),
                  spec.edge_sets[static_cast<size_t>(number)], members, graph);
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
  if (spec.every < 0 || spec.every > kMostEvery) {
    return Bad("every", absl::StrCat(spec.every),
               absl::StrCat("integer from 0 to ", kMostEvery));
  }
  if (spec.every > 0 && !varying && !IsDrawn(spec.kind)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "topology.every: ", spec.every, ", but kind ", spec.kind,
        " has one graph for all rounds; allowed: 0, or kind erdos-renyi, "
        "random-regular, random-geometric or time-varying"));
  }
  return absl::OkStatus();
}

GraphMembers MembersOf(absl::Span<const NodeId> names,
                       absl::Span<const NodeId> undialable,
                       Strangers strangers) {
  GraphMembers members{names, {}, strangers};
  if (undialable.empty()) return members;
  members.undialable.reserve(names.size());
  for (const NodeId& name : names) {
    members.undialable.push_back(
        std::binary_search(undialable.begin(), undialable.end(), name));
  }
  return members;
}

// About how many edges the graph will have; of kinds that have no more than two
// for each member, 0.
double ExpectedEdges(const TopologySpec& spec, const std::string& kind,
                     double nodes) {
  const double pairs = nodes * (nodes - 1) / 2;
  const double of_degree =
      std::min(pairs, nodes * static_cast<double>(spec.degree) / 2);
  if (kind == "complete") return pairs;
  if (kind == "bipartite") return nodes * nodes / 4;
  if (kind == "k-nearest" || kind == "random-regular") return of_degree;
  // One that hangs beside the rings has as many edges as two that are on them.
  if (kind == "hashed") return std::min(pairs, 2 * of_degree);
  if (kind == "erdos-renyi") return spec.edge_probability * pairs;
  if (kind == "random-geometric") {
    constexpr double kPi = 3.14159265358979323846;
    return std::min(1.0, kPi * spec.radius * spec.radius) * pairs;
  }
  return 0;
}

absl::Status CheckEdges(const TopologySpec& spec, const std::string& kind,
                        int64_t nodes) {
  const int64_t most =
      TopologyVaries(spec) ? kMostEdges / kWindowDraws : kMostEdges;
  const double edges = ExpectedEdges(spec, kind, static_cast<double>(nodes));
  if (!(edges > static_cast<double>(most))) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "topology.kind: \"", kind, "\" has about ", NumberText(std::floor(edges)),
      " edges between ", nodes, " members; allowed: at most ", most,
      TopologyVaries(spec) ? " where they change from round to round" : "",
      "; fewer members, fewer neighbours of each, or kind hashed"));
}

absl::StatusOr<Graph> BuildUndirected(const TopologySpec& spec, uint64_t seed,
                                      const GraphMembers& members,
                                      int64_t number) {
  const auto nodes = static_cast<int64_t>(members.names.size());
  const std::string kind = KindInForce(spec, nodes);
  DFL_RETURN_IF_ERROR(CheckEdges(spec, kind, nodes));
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
  const auto nodes = static_cast<int64_t>(members.names.size());
  if (spec.kind == "explicit" || spec.kind == "time-varying") {
    AnyGraph graph = NoEdges(spec.directed, nodes);
    DFL_RETURN_IF_ERROR(
        spec.kind == "explicit"
            ? AddNamed("topology.edges", spec.edges, members, graph)
            : AddSet(spec, number, members, graph));
    return graph;
  }
  absl::StatusOr<Graph> graph = BuildUndirected(spec, seed, members, number);
  if (number > 0 && absl::IsFailedPrecondition(graph.status())) {
    graph = BuildUndirected(spec, seed, members, 0);
  }
  if (!graph.ok()) return graph.status();
  if (!members.undialable.empty() && MayLeaveOut(spec, nodes)) {
    return AnyGraph(WithoutUndialable(*graph, members.undialable));
  }
  return AnyGraph(*std::move(graph));
}

void AddEdgesOf(const AnyGraph& from, AnyGraph& to) {
  for (const auto& [a, b] : std::get<Graph>(from).Edges()) {
    std::get<Graph>(to).AddEdge(a, b);
  }
}

}  // namespace

absl::StatusOr<AnyGraph> BuildTopology(const TopologySpec& spec, uint64_t seed,
                                       absl::Span<const NodeId> members,
                                       int64_t round,
                                       absl::Span<const NodeId> undialable,
                                       Strangers strangers) {
  DFL_RETURN_IF_ERROR(CheckSpec(spec));
  return BuildNumbered(spec, seed, MembersOf(members, undialable, strangers),
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
                                     absl::Span<const NodeId> undialable,
                                     Strangers strangers) {
  DFL_ASSIGN_OR_RETURN(AnyGraph window, BuildTopology(spec, seed, members, 0,
                                                      undialable, strangers));
  if (!TopologyVaries(spec)) return window;
  const GraphMembers all = MembersOf(members, undialable, strangers);
  if (spec.kind == "time-varying") {
    const auto sets = static_cast<int64_t>(spec.edge_sets.size());
    for (int64_t number = 1; number < sets; ++number) {
      DFL_RETURN_IF_ERROR(AddSet(spec, number, all, window));
    }
    return window;
  }
  for (int64_t number = 1; number < kWindowDraws; ++number) {
    DFL_ASSIGN_OR_RETURN(const AnyGraph graph,
                         BuildNumbered(spec, seed, all, number));
    AddEdgesOf(graph, window);
  }
  return window;
}

}  // namespace dfl::core
