#include "tests/sim/fault_schedule.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "daemon/core/algorithm/algorithm_info.h"
#include "daemon/core/algorithm/decisions.h"
#include "daemon/core/algorithms/catalogue.h"
#include "daemon/core/plan/derived_plan.h"
#include "daemon/sim/scenario.h"
#include "gtest/gtest.h"

namespace dfl::sim {
namespace {

using Edge = std::pair<int64_t, int64_t>;

double Between(Rng& rng, double low, double high) {
  return low + (high - low) * rng.Uniform();
}
int64_t From(Rng& rng, int64_t low, int64_t high) {
  return low +
         static_cast<int64_t>(rng.Below(static_cast<uint64_t>(high - low + 1)));
}

// Whole milliseconds, as a scenario has them.
std::string Millis(absl::Duration time) {
  return absl::StrCat(absl::ToInt64Milliseconds(time), "ms");
}

std::string Pair(const Edge& edge) {
  return absl::StrCat("[", CampaignNode(edge.first), ", ",
                      CampaignNode(edge.second), "]");
}

std::vector<Edge> AllPairs(int64_t nodes) {
  std::vector<Edge> edges;
  for (int64_t i = 0; i < nodes; ++i) {
    for (int64_t j = i + 1; j < nodes; ++j) edges.emplace_back(i, j);
  }
  return edges;
}

// A random tree, and some more.
std::vector<Edge> ConnectedEdges(Rng& rng, int64_t nodes) {
  std::set<Edge> edges;
  for (int64_t i = 1; i < nodes; ++i) {
    edges.emplace(static_cast<int64_t>(rng.Below(static_cast<uint64_t>(i))), i);
  }
  const double more = Between(rng, 0, 0.6);
  for (const Edge& edge : AllPairs(nodes)) {
    if (rng.Bernoulli(more)) edges.insert(edge);
  }
  return {edges.begin(), edges.end()};
}

// A ring one way round, and some more: strongly connected.
std::vector<Edge> ConnectedArcs(Rng& rng, int64_t nodes) {
  std::vector<Edge> arcs;
  const double more = Between(rng, 0, 0.5);
  for (int64_t i = 0; i < nodes; ++i) {
    for (int64_t j = 0; j < nodes; ++j) {
      if (i == j) continue;
      if (j == (i + 1) % nodes || rng.Bernoulli(more)) arcs.emplace_back(i, j);
    }
  }
  return arcs;
}

void DrawGraph(Rng& rng, const core::AlgorithmInfo& info,
               CampaignNetwork& network) {
  network.edges.clear();
  if (info.complete_graph) {
    network.graph = "{kind: complete}";
    network.edges = AllPairs(network.nodes);
    return;
  }
  if (info.star_graph) {
    network.graph = "{kind: star}";
    for (int64_t i = 1; i < network.nodes; ++i)
      network.edges.emplace_back(0, i);
    return;
  }
  const bool directed =
      info.graphs == core::GraphKind::kDirected && rng.Bernoulli(0.6);
  const std::vector<Edge> edges = directed ? ConnectedArcs(rng, network.nodes)
                                           : ConnectedEdges(rng, network.nodes);
  network.graph = absl::StrCat(
      "{kind: explicit, directed: ", directed ? "on" : "off", ", edges: [",
      absl::StrJoin(edges, ", ",
                    [](std::string* out, const Edge& edge) {
                      absl::StrAppend(out, Pair(edge));
                    }),
      "]}");
  std::set<Edge> links;
  for (const auto& [a, b] : edges) links.insert(std::minmax(a, b));
  network.edges.assign(links.begin(), links.end());
}

// What a list of events is drawn with.
struct Draw {
  Rng& rng;
  const CampaignNetwork& network;
  absl::Duration last;  // everything has ended by then
  std::vector<std::string> events;

  // "at: 3s, WHAT, for: 2s", WHAT taking `least` to `most` of `last`.
  std::pair<absl::Duration, absl::Duration> Span(double least, double most) {
    const absl::Duration length = Between(rng, least, most) * last;
    const absl::Duration at = Between(rng, 0.02, 1) * (last - length);
    return {at, at + length};
  }
  void Add(const std::string& what, absl::Duration at, absl::Duration until) {
    events.push_back(absl::StrCat("{at: ", Millis(at), ", ", what,
                                  ", for: ", Millis(until - at), "}"));
  }
};

struct Absence {
  absl::Duration from;
  absl::Duration until;
  int64_t node;
};

// Whether `next` may be added: a node once at a time, half of them at most, and
// never for a moment all whose neighbours have a model.
bool Bearable(const std::vector<Absence>& absences, const Absence& next,
              int64_t nodes) {
  int64_t at_once = 1;
  for (const Absence& other : absences) {
    // A restarted node needs time to find a neighbour.
    const absl::Duration rest = absl::Seconds(5);
    if (other.from > next.until + rest || next.from > other.until + rest) {
      continue;
    }
    if (other.node == next.node) return false;
    ++at_once;
  }
  return at_once <= nodes / 2;
}

void DrawAbsences(Draw& draw) {
  std::vector<Absence> absences;
  const int64_t nodes = draw.network.nodes;
  if (draw.rng.Bernoulli(0.3)) {
    const Absence late{absl::ZeroDuration(),
                       Between(draw.rng, 0.05, 0.7) * draw.last,
                       From(draw.rng, 0, nodes - 1)};
    absences.push_back(late);
    draw.events.push_back(absl::StrCat(
        "{at: ", Millis(late.until), ", join: ", CampaignNode(late.node), "}"));
  }
  const int64_t crashes = From(draw.rng, 1, 4);
  for (int64_t i = 0; i < crashes; ++i) {
    const auto [from, until] = draw.Span(0.01, 0.3);
    const Absence crash{from, until, From(draw.rng, 0, nodes - 1)};
    if (!Bearable(absences, crash, nodes)) continue;
    absences.push_back(crash);
    draw.Add(absl::StrCat("crash: ", CampaignNode(crash.node)), from, until);
  }
}

void DrawLinkFaults(Draw& draw) {
  const std::vector<Edge>& edges = draw.network.edges;
  const auto edge = [&] { return Pair(edges[draw.rng.Below(edges.size())]); };
  for (int64_t i = From(draw.rng, 0, 3); i > 0; --i) {
    const auto [from, until] = draw.Span(0.01, 0.4);
    draw.Add(absl::StrCat("cut: ", edge()), from, until);
  }
  for (int64_t i = From(draw.rng, 0, 2); i > 0; --i) {
    const auto [from, until] = draw.Span(0.01, 0.4);
    draw.Add(absl::StrCat("black_hole: ", edge()), from, until);
  }
  if (draw.rng.Bernoulli(0.5)) {
    const auto [from, until] = draw.Span(0.1, 0.6);
    draw.Add(absl::StrFormat("loss: %.4f", Between(draw.rng, 0.001, 0.02)),
             from, until);
  }
}

void DrawPartition(Draw& draw) {
  if (!draw.rng.Bernoulli(0.4)) return;
  std::vector<std::string> group;
  for (int64_t i = 0; i < draw.network.nodes; ++i) {
    if (draw.rng.Bernoulli(0.5)) group.push_back(CampaignNode(i));
  }
  if (group.empty()) return;
  const auto [from, until] = draw.Span(0.02, 0.25);
  draw.Add(absl::StrCat("partition: [[", absl::StrJoin(group, ", "), "]]"),
           from, until);
}

void DrawSlowNodes(Draw& draw) {
  std::set<int64_t> nodes;  // each once, so that no node is slower than that
  for (int64_t i = From(draw.rng, 0, 2); i > 0; --i) {
    nodes.insert(From(draw.rng, 0, draw.network.nodes - 1));
  }
  for (const int64_t node : nodes) {
    const auto [from, until] = draw.Span(0.05, 0.4);
    draw.Add(absl::StrFormat("slow: %s, factor: %.2f", CampaignNode(node),
                             Between(draw.rng, 1.5, kSlowestFactor)),
             from, until);
  }
}

void DrawDisks(Draw& draw) {
  constexpr const char* kFaults[] = {"torn", "lost", "full"};
  for (int64_t i = From(draw.rng, 0, 3); i > 0; --i) {
    const auto [from, until] = draw.Span(0.1, 0.6);
    draw.Add(
        absl::StrCat(
            "disk: ", CampaignNode(From(draw.rng, 0, draw.network.nodes - 1)),
            ", fault: ", kFaults[draw.rng.Below(std::size(kFaults))]),
        from, until);
  }
}

}  // namespace

std::string CampaignNode(int64_t i) { return absl::StrCat("n", i); }

void DrawExchange(Rng& rng, const core::AlgorithmInfo& info,
                  CampaignNetwork& network) {
  DrawGraph(rng, info, network);
  network.codec = "{coordinates: dense, values: fp32, mass: fp32}";
  if (!info.dense_only && !info.predicts && rng.Bernoulli(0.5)) {
    network.codec = absl::StrFormat(
        "{coordinates: random, values: fp32, mass: fp32, rate: %.2f}",
        Between(rng, 0.3, 1));
  }
  if (info.gives_mass && info.exact_mass.empty() && rng.Bernoulli(0.5)) {
    network.codec = "{coordinates: dense, values: fp32, mass: int8}";
  }
}

void DrawBadPeer(Rng& rng, const core::AlgorithmInfo& info,
                 CampaignNetwork& network) {
  constexpr const char* kAttacks[] = {"sign-flip", "scale", "huge", "noise",
                                      "stale"};
  if (!info.mixes_models || info.star_graph || !rng.Bernoulli(0.3)) return;
  network.graph = "{kind: complete}";
  network.edges = AllPairs(network.nodes);
  network.codec = "{coordinates: dense, values: fp32, mass: fp32}";
  network.hostile = absl::StrCat(
      "{nodes: [", CampaignNode(From(rng, 0, network.nodes - 1)),
      "], attack: ", kAttacks[rng.Below(std::size(kAttacks))], "}");
}

CampaignNetwork DrawNetwork(Rng& rng, const core::AlgorithmInfo& info,
                            bool classes) {
  CampaignNetwork network;
  network.seed = 1 + rng.Below(1'000'000);
  network.nodes = From(rng, 4, 8);
  network.problem = classes || info.predicts ? "softmax"
                    : rng.Bernoulli(0.5)     ? "linear"
                                             : "logistic";
  // With many parameters logistic regression has directions that are too flat
  // for a few hundred steps.
  network.n = From(rng, 2, network.problem == "linear" ? 20 : 6);
  network.rows = From(rng, 8 * network.n, 16 * network.n);
  network.batch = network.rows;
  network.steps = From(rng, 250, 400);
  network.gradient = absl::Milliseconds(From(rng, 300, 600));
  network.extra =
      rng.Bernoulli(0.5) ? 0.2 * network.gradient : absl::ZeroDuration();
  network.deadline = absl::Milliseconds(From(rng, 800, 2000));
  network.delay = absl::Milliseconds(From(rng, 1, 40));
  DrawExchange(rng, info, network);
  return network;
}

std::vector<std::string> DrawFaults(Rng& rng, const CampaignNetwork& network,
                                    absl::Duration last) {
  Draw draw{rng, network, last - absl::Milliseconds(2), {}};
  DrawAbsences(draw);
  DrawLinkFaults(draw);
  DrawPartition(draw);
  DrawSlowNodes(draw);
  if (network.checkpoints) DrawDisks(draw);
  return draw.events;
}

namespace {

// The network with another algorithm, which may not know how it was to end.
absl::StatusOr<Scenario> Under(CampaignNetwork network,
                               const std::string& algorithm) {
  network.stop = "{steps: 1}";
  absl::StatusOr<Scenario> scenario = ParseScenario(
      ScenarioText(network, algorithm, {}, absl::Hours(1)), "under.yaml");
  EXPECT_TRUE(scenario.ok()) << scenario.status();
  return scenario;
}

}  // namespace

core::Pace PaceOf(const CampaignNetwork& network, const std::string& algorithm,
                  int64_t iterations) {
  const absl::StatusOr<Scenario> scenario = Under(network, algorithm);
  const auto plans = core::DeriveNodePlans(scenario->plan);
  EXPECT_TRUE(plans.ok()) << plans.status();
  std::vector<float> parameters(static_cast<size_t>(network.n));
  std::vector<float> gradient(parameters.size());
  core::AlgorithmContext context;
  context.plan = plans->front();
  context.vectors = {absl::MakeSpan(parameters), absl::MakeSpan(gradient), {}};
  context.batches_per_pass = (network.rows + network.batch - 1) / network.batch;
  context.train_rows = network.rows;
  core::SeededDecisions decisions(1);
  const core::AlgorithmInfo& info = *plans->front().algorithm;
  return core::CreateAlgorithm(info, std::move(context), decisions)
      ->PaceAt(iterations);
}

bool StopsByRounds(const core::AlgorithmInfo& algorithm) {
  return algorithm.round_is_iteration &&
         algorithm.exchange != core::Exchange::kNone;
}

std::string StopAfter(const CampaignNetwork& network,
                      const std::string& algorithm, int64_t iterations,
                      const core::Pace& before) {
  const absl::StatusOr<Scenario> scenario = Under(network, algorithm);
  const core::Pace pace = PaceOf(network, algorithm, iterations);
  const core::AlgorithmInfo& info =
      **core::BuiltInCatalogue().Find(scenario->plan.algorithm.name);
  return StopsByRounds(info)
             ? absl::StrCat("{steps: 0, rounds: ", before.rounds + pace.rounds,
                            "}")
             : absl::StrCat("{steps: ", before.steps + pace.steps,
                            ", rounds: 0}");
}

std::string ScenarioText(const CampaignNetwork& network,
                         const std::string& algorithm,
                         const std::vector<std::string>& faults,
                         absl::Duration limit) {
  std::string events;
  for (const std::string& fault : faults) {
    absl::StrAppend(&events, "    - ", fault, "\n");
  }
  return absl::StrCat(
      "seed: ", network.seed, "\nbatch_size: ", network.batch,
      "\nalgorithm: ", algorithm, "\ntopology: ", network.graph,
      "\ncodec: ", network.codec, "\nstop: ", network.stop,
      "\ndeadline: {exchange: ", Millis(network.deadline), "}\n",
      // About that many steps are lost with a crash.
      network.checkpoints
          ? absl::StrCat("checkpoint: {interval: ",
                         Millis(10 * (network.gradient + network.extra)), "}\n")
          : "",
      network.hostile.empty()
          ? ""
          : "aggregation: {rule: trimmed-mean, hostile: 1}\n",
      "network:\n  nodes: [",
      [&] {
        std::vector<std::string> names;
        for (int64_t i = 0; i < network.nodes; ++i) {
          names.push_back(CampaignNode(i));
        }
        return absl::StrJoin(names, ", ");
      }(),
      "]\n",
      network.hostile.empty()
          ? ""
          : absl::StrCat("  hostile: ", network.hostile, "\n"),
      network.membership.empty()
          ? ""
          : absl::StrCat("  membership: ", network.membership, "\n"),
      network.plans_by_gossip ? "  plans: gossip\n" : "",
      network.checkpoints ? "  checkpoints: yes\n" : "",
      "  problem: {kind: ", network.problem,
      network.problem == "softmax"
          ? absl::StrCat(", classes: ", network.classes)
          : "",
      ", n: ", network.n, ", rows: ", network.rows, ", seed: ", network.seed,
      "}\n  links: {delay: ", Millis(network.delay),
      "}\n  compute: {time: ", Millis(network.gradient),
      ", extra: ", Millis(network.extra), "}\n  limit: ", Millis(limit), "\n",
      events.empty() ? "" : absl::StrCat("  events:\n", events));
}

}  // namespace dfl::sim
