#include "daemon/core/plan/run_plan.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>
#include <optional>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "daemon/base/rng.h"
#include "daemon/base/status_macros.h"
#include "daemon/core/algorithms/catalogue.h"
#include "daemon/core/algorithms/pame.h"
#include "daemon/core/graph/graph.h"
#include "daemon/core/graph/mixing.h"
#include "daemon/core/graph/topology.h"
#include "daemon/core/plan/plan_topology.h"
#include "daemon/core/rounds/prox.h"

namespace dfl::core {
namespace {

// At most so many names are listed in a message.
constexpr size_t kNamesShown = 8;

// "`key`: `found` is not allowed; allowed: `allowed`".
absl::Status Bad(absl::string_view key, absl::string_view found,
                 absl::string_view allowed) {
  return absl::InvalidArgumentError(
      absl::StrCat(key, ": ", found, " is not allowed; allowed: ", allowed));
}

std::string Quoted(absl::string_view text) {
  return absl::StrCat("\"", text, "\"");
}

absl::Status CheckAtLeast(absl::string_view key, int64_t value, int64_t min) {
  if (value >= min) return absl::OkStatus();
  return Bad(key, absl::StrCat(value), absl::StrCat("integer >= ", min));
}

bool RowsKnown(const RunPlan& plan) {
  return std::all_of(plan.members.begin(), plan.members.end(),
                     [](const MemberSpec& member) { return member.rows > 0; });
}

absl::Status CheckMembers(const RunPlan& plan) {
  if (plan.members.empty()) {
    return absl::InvalidArgumentError(
        "members: none are named; list the names of at least one node");
  }
  for (size_t i = 0; i < plan.members.size(); ++i) {
    const MemberSpec& member = plan.members[i];
    const std::string key = absl::StrCat("members[", i, "]");
    DFL_RETURN_IF_ERROR(Annotate(ValidateNodeName(member.node.name()), key));
    DFL_RETURN_IF_ERROR(
        CheckAtLeast(absl::StrCat(key, ".rows"), member.rows, 0));
    if (i == 0) continue;
    const NodeId& before = plan.members[i - 1].node;
    if (member.node == before) {
      return absl::InvalidArgumentError(
          absl::StrCat(key, ": ", Quoted(member.node.name()),
                       " is named twice; each node is listed once"));
    }
    if (member.node < before) {
      return absl::InvalidArgumentError(absl::StrCat(
          key, ": ", Quoted(member.node.name()), " comes after ",
          Quoted(before.name()), "; members must be sorted bytewise"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckModel(const ModelSpec& model) {
  static constexpr const char* kKinds[] = {"linear",   "logistic",   "svm",
                                           "mlp",      "cnn",        "resnet20",
                                           "resnet18", "torchscript"};
  const std::vector<std::string> kinds(std::begin(kKinds), std::end(kKinds));
  if (std::find(kinds.begin(), kinds.end(), model.kind) == kinds.end()) {
    return UnknownNameError("model.kind", model.kind, kinds);
  }
  const bool regression = model.kind == "linear" && model.classes == 0;
  if (model.classes < 2 && !regression) {
    return Bad("model.classes", absl::StrCat(model.classes),
               model.kind == "linear"
                   ? "integer >= 2, or 0 for regression"
                   : absl::StrCat("integer >= 2 (0, regression, is for kind "
                                  "linear only; kind is ",
                                  model.kind, ")"));
  }
  for (const int64_t extent : model.input) {
    if (extent >= 1) continue;
    return Bad("model.input",
               absl::StrCat("[", absl::StrJoin(model.input, ", "), "]"),
               "the shape of one example, each extent >= 1, or nothing (taken "
               "from the data)");
  }
  const bool image = model.kind == "cnn" || model.kind == "resnet20" ||
                     model.kind == "resnet18";
  if (image && !model.input.empty() && model.input.size() != 3) {
    return Bad(
        "model.input", absl::StrCat("[", absl::StrJoin(model.input, ", "), "]"),
        absl::StrCat("[channels, height, width], since kind is ", model.kind));
  }
  if (model.kind == "mlp") {
    if (model.hidden.empty()) {
      return Bad("model.hidden", "[]",
                 "at least one width >= 1; without hidden layers use kind "
                 "linear");
    }
    for (const int64_t width : model.hidden) {
      DFL_RETURN_IF_ERROR(CheckAtLeast("model.hidden", width, 1));
    }
  }
  if (!(model.dropout >= 0 && model.dropout < 1)) {
    return Bad("model.dropout", ToString(model.dropout), "[0, 1)");
  }
  if (model.dropout > 0 && model.kind != "mlp") {
    return Bad("model.dropout", ToString(model.dropout),
               absl::StrCat("0, since kind is ", model.kind,
                            "; only mlp has dropout"));
  }
  if (model.kind == "torchscript" && model.path.empty()) {
    return absl::InvalidArgumentError(
        "model.path: missing; kind torchscript needs the path of the .pt file "
        "that every node has");
  }
  if (model.kind != "torchscript" && !model.path.empty()) {
    return Bad("model.path", Quoted(model.path),
               absl::StrCat("nothing, since kind is ", model.kind,
                            "; only torchscript reads a file"));
  }
  if (!model.loss.empty()) {
    const std::vector<std::string> losses = {"cross-entropy", "hinge", "mse",
                                             "logistic"};
    if (std::find(losses.begin(), losses.end(), model.loss) == losses.end()) {
      return UnknownNameError("model.loss", model.loss, losses);
    }
    if (regression && model.loss != "mse") {
      return Bad("model.loss", Quoted(model.loss),
                 "mse, since model.classes is 0 (regression)");
    }
  }
  if (!(std::isfinite(model.l2) && model.l2 >= 0)) {
    return Bad("model.l2", ToString(model.l2), "number >= 0");
  }
  return absl::OkStatus();
}

absl::Status UnknownMember(const std::string& key, const NodeId& node,
                           const RunPlan& plan) {
  std::vector<std::string> names;
  for (const MemberSpec& member : plan.members) {
    names.push_back(member.node.name());
  }
  const std::string nearest = NearestName(node.name(), names);
  const size_t shown = std::min(names.size(), kNamesShown);
  return absl::InvalidArgumentError(absl::StrCat(
      key, ": ", Quoted(node.name()), " is no member; ",
      nearest.empty() ? ""
                      : absl::StrCat("did you mean ", Quoted(nearest), "? "),
      "members: ", absl::StrJoin(absl::MakeConstSpan(names).first(shown), ", "),
      shown < names.size()
          ? absl::StrCat(" and ", names.size() - shown, " more")
          : ""));
}

bool IsOn(const Knobs& knobs, const std::string& flag) {
  const auto found = knobs.values().find(flag);
  return found != knobs.values().end() &&
         std::holds_alternative<bool>(found->second) &&
         std::get<bool>(found->second);
}

absl::Status CheckSampleWeighting(const RunPlan& plan, const Knobs& knobs,
                                  const std::string& key) {
  if (!IsOn(knobs, "sample_weighting") || RowsKnown(plan)) {
    return absl::OkStatus();
  }
  for (size_t i = 0; i < plan.members.size(); ++i) {
    if (plan.members[i].rows > 0) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        key, "sample_weighting: on needs the rows of every member, but ",
        "members[", i, "] (", plan.members[i].node.name(),
        ") does not tell its own; add rows there or turn it off"));
  }
  return absl::OkStatus();
}

// That every proximal step has one solution.
absl::Status CheckProxSteps(const Knobs& knobs, const AlgorithmInfo& algorithm,
                            const std::string& key) {
  if (algorithm.prox_steps == nullptr) return absl::OkStatus();
  for (const double step : algorithm.prox_steps(knobs)) {
    const absl::Status status = CheckProx(ProxOf(knobs), step);
    if (!status.ok()) {
      return absl::Status(status.code(), absl::StrCat(key, status.message()));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckKnobs(const RunPlan& plan, const AlgorithmInfo& algorithm) {
  const std::string common = "algorithm.knobs.";
  const absl::StatusOr<Knobs> knobs =
      Knobs::Resolve(algorithm.knobs, plan.algorithm.knobs);
  if (!knobs.ok()) {
    return absl::Status(knobs.status().code(),
                        absl::StrCat(common, knobs.status().message()));
  }
  DFL_RETURN_IF_ERROR(CheckSampleWeighting(plan, *knobs, common));
  DFL_RETURN_IF_ERROR(CheckProxSteps(*knobs, algorithm, common));
  const std::vector<NodeId> members = MemberIds(plan);
  for (const auto& [node, overrides] : plan.nodes) {
    const std::string key = absl::StrCat("nodes.", node.name());
    if (!std::binary_search(members.begin(), members.end(), node)) {
      return UnknownMember(key, node, plan);
    }
    for (const KnobSpec& knob : algorithm.knobs) {
      if (!knob.shared || overrides.knobs.count(knob.name) == 0) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          key, ".knobs.", knob.name,
          ": nodes rely on each other's value; set it for all of them under ",
          common, knob.name));
    }
    const absl::StatusOr<Knobs> own =
        Knobs::Resolve(algorithm.knobs, plan.algorithm.knobs, overrides.knobs);
    if (!own.ok()) {
      return absl::Status(own.status().code(),
                          absl::StrCat(key, ".knobs.", own.status().message()));
    }
    DFL_RETURN_IF_ERROR(
        CheckSampleWeighting(plan, *own, absl::StrCat(key, ".knobs.")));
    DFL_RETURN_IF_ERROR(
        CheckProxSteps(*own, algorithm, absl::StrCat(key, ".knobs.")));
  }
  return absl::OkStatus();
}

// What an algorithm that exchanges with every member needs of the topology.
absl::Status CheckComplete(const RunPlan& plan, const Graph& graph) {
  for (int64_t i = 0; i < graph.size(); ++i) {
    if (!TopologyVaries(plan.topology) && graph.degree(i) == graph.size() - 1) {
      continue;
    }
    return Bad("topology.kind", Quoted(plan.topology.kind),
               absl::StrCat("complete, since algorithm.name is ",
                            plan.algorithm.name));
  }
  if (plan.topology.weights == "explicit") {
    return Bad("topology.weights", "\"explicit\"",
               absl::StrCat("uniform, metropolis, laplacian (all the same "
                            "here), since algorithm.name is ",
                            plan.algorithm.name));
  }
  return absl::OkStatus();
}

// A star: one member is everyone's neighbour, and nobody has another.
absl::Status CheckStar(const RunPlan& plan, const Graph& graph) {
  int64_t edges = 0;
  int64_t most = 0;
  for (int64_t i = 0; i < graph.size(); ++i) {
    edges += graph.degree(i);
    most = std::max(most, graph.degree(i));
  }
  if (!TopologyVaries(plan.topology) && most == graph.size() - 1 &&
      edges == 2 * most) {
    return absl::OkStatus();
  }
  return Bad("topology.kind", Quoted(plan.topology.kind),
             absl::StrCat("star, or explicit with the edges of one, since "
                          "algorithm.name is ",
                          plan.algorithm.name));
}

// The members of the highest degree, in member order.
std::vector<NodeId> Hubs(const RunPlan& plan, const AnyGraph& graph) {
  const Graph* undirected = std::get_if<Graph>(&graph);
  const auto degree = [&](size_t i) {
    const auto place = static_cast<int64_t>(i);
    return undirected != nullptr ? undirected->neighbours(place).size()
                                 : std::get<Digraph>(graph).out(place).size();
  };
  size_t most = 0;
  for (size_t i = 0; i < plan.members.size(); ++i) {
    most = std::max(most, degree(i));
  }
  std::vector<NodeId> hubs;
  for (size_t i = 0; i < plan.members.size(); ++i) {
    if (degree(i) == most) hubs.push_back(plan.members[i].node);
  }
  return hubs;
}

absl::Status CheckCodec(const RunPlan& plan, const AlgorithmInfo& algorithm) {
  if (algorithm.dense_only &&
      plan.codec.format.coordinates != Coordinates::kDense) {
    return Bad("codec.coordinates",
               Quoted(ToString(plan.codec.format.coordinates)),
               absl::StrCat("dense, since algorithm.name is ",
                            plan.algorithm.name, ": ", algorithm.why_dense));
  }
  if (!(plan.codec.rate > 0 && plan.codec.rate <= 1)) {
    return Bad("codec.rate", ToString(plan.codec.rate), "(0, 1]");
  }
  if (plan.algorithm.name == "pame" &&
      plan.codec.format.coordinates == Coordinates::kTopK) {
    return Bad("codec.coordinates", "\"topk\"",
               "dense, random, since algorithm.name is pame: its theory needs "
               "uniformly random coordinates");
  }
  // It pushes no models then.
  if (!algorithm.exact_mass.empty() &&
      plan.codec.format.values != ValueType::kFp32) {
    return Bad("codec.values", Quoted(ToString(plan.codec.format.values)),
               absl::StrCat("fp32, since algorithm.name is ",
                            plan.algorithm.name, ": ", algorithm.exact_mass));
  }
  if (plan.codec.mass != ValueType::kFp32 &&
      (!algorithm.gives_mass || !algorithm.exact_mass.empty())) {
    return Bad("codec.mass", Quoted(ToString(plan.codec.mass)),
               absl::StrCat("fp32, since algorithm.name is ",
                            plan.algorithm.name, ": ",
                            algorithm.gives_mass ? algorithm.exact_mass
                                                 : "it gives no mass away"));
  }
  return absl::OkStatus();
}

absl::Status CheckEvaluationAndStop(const RunPlan& plan) {
  DFL_RETURN_IF_ERROR(
      CheckAtLeast("evaluation.every_steps", plan.evaluation.every_steps, 0));
  DFL_RETURN_IF_ERROR(
      CheckAtLeast("evaluation.examples", plan.evaluation.examples, 0));
  DFL_RETURN_IF_ERROR(CheckAtLeast("stop.steps", plan.stop.steps, 0));
  if (plan.stop.time <= absl::ZeroDuration()) {
    return Bad("stop.time", absl::FormatDuration(plan.stop.time),
               "a duration > 0, or nothing for no limit");
  }
  if (!(std::isfinite(plan.stop.loss_below) && plan.stop.loss_below >= 0)) {
    return Bad("stop.loss_below", ToString(plan.stop.loss_below),
               "number >= 0 (0 = off)");
  }
  if (!(plan.stop.accuracy_above >= 0 && plan.stop.accuracy_above <= 1)) {
    return Bad("stop.accuracy_above", ToString(plan.stop.accuracy_above),
               "[0, 1] (0 = off)");
  }
  if (plan.deadline.exchange <= absl::ZeroDuration() ||
      plan.deadline.exchange == absl::InfiniteDuration()) {
    return Bad("deadline.exchange",
               absl::FormatDuration(plan.deadline.exchange),
               "a finite duration > 0, so that a silent neighbour never blocks "
               "a node");
  }
  return absl::OkStatus();
}

// Names of the algorithms that run on directed graphs; "" when there is none.
std::string DirectedAlgorithms() {
  std::vector<std::string> names;
  for (const AlgorithmInfo& info : AlgorithmCatalogue()) {
    if (info.graphs == GraphKind::kDirected) names.push_back(info.name);
  }
  return absl::StrJoin(names, ", ");
}

// Whether the algorithm can run on the graph, and the weights be made of it.
absl::Status CheckGraph(const RunPlan& plan, const AlgorithmInfo& algorithm,
                        const AnyGraph& graph) {
  const std::string& weights = plan.topology.weights;
  if (std::holds_alternative<Digraph>(graph)) {
    if (algorithm.exchange == Exchange::kNone ||
        algorithm.graphs == GraphKind::kDirected) {
      return absl::OkStatus();
    }
    const std::string others = DirectedAlgorithms();
    return absl::InvalidArgumentError(absl::StrCat(
        "topology.directed: on, but ", algorithm.name,
        " mixes over edges that run both ways, by weights that are the same in "
        "both directions; turn it off",
        others.empty() ? "" : absl::StrCat(", or take one of ", others)));
  }
  if (TopologyVaries(plan.topology) &&
      (weights == "explicit" || weights == "uniform")) {
    return Bad("topology.weights", Quoted(weights),
               "metropolis, laplacian, since the graph changes from round to "
               "round");
  }
  return CheckMixing(weights, std::get<Graph>(graph), plan.topology.matrix);
}

// ValidatePlan, and the graph of `round` that it had to build.
absl::StatusOr<AnyGraph> ValidateAndBuildGraph(const RunPlan& plan,
                                               int64_t round = 0) {
  DFL_RETURN_IF_ERROR(CheckMembers(plan));
  DFL_RETURN_IF_ERROR(CheckModel(plan.model));
  DFL_RETURN_IF_ERROR(CheckAtLeast("batch_size", plan.batch_size, 1));
  const absl::StatusOr<const AlgorithmInfo*> algorithm =
      FindAlgorithm(plan.algorithm.name);
  if (!algorithm.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("algorithm.name: ", algorithm.status().message()));
  }
  if ((*algorithm)->predicts && plan.model.classes == 0) {
    return Bad("model.classes", "0",
               absl::StrCat("integer >= 2, since algorithm.name is ",
                            plan.algorithm.name,
                            ", which compares predicted classes"));
  }
  DFL_RETURN_IF_ERROR(CheckKnobs(plan, **algorithm));
  DFL_ASSIGN_OR_RETURN(AnyGraph graph, PlanGraph(plan));
  DFL_RETURN_IF_ERROR(CheckGraph(plan, **algorithm, graph));
  if ((*algorithm)->complete_graph) {
    DFL_RETURN_IF_ERROR(CheckComplete(plan, std::get<Graph>(graph)));
  }
  if ((*algorithm)->continuous && TopologyVaries(plan.topology)) {
    const std::string why =
        absl::StrCat("since algorithm.name is ", plan.algorithm.name,
                     ", which has no rounds");
    if (plan.topology.kind == "time-varying") {
      return Bad("topology.kind", "\"time-varying\"",
                 absl::StrCat("the others, ", why));
    }
    return Bad("topology.every", absl::StrCat(plan.topology.every),
               absl::StrCat("0, ", why));
  }
  if ((*algorithm)->star_graph) {
    DFL_RETURN_IF_ERROR(CheckStar(plan, std::get<Graph>(graph)));
  }
  if (TopologyVaries(plan.topology)) {
    DFL_RETURN_IF_ERROR(PlanWindow(plan).status());
    DFL_ASSIGN_OR_RETURN(graph, PlanGraph(plan, round));
  }
  DFL_RETURN_IF_ERROR(CheckCodec(plan, **algorithm));
  DFL_RETURN_IF_ERROR(CheckEvaluationAndStop(plan));
  return graph;
}

double NumberOf(const KnobValue& value) {
  const auto* integer = std::get_if<int64_t>(&value);
  return integer != nullptr ? static_cast<double>(*integer)
                            : std::get<double>(value);
}

// The values that the members have of the number `name`, each once or more
// often; empty where the algorithm has no such knob.
std::vector<double> ValuesOfMembers(const RunPlan& plan,
                                    const AlgorithmInfo& algorithm,
                                    absl::string_view name) {
  std::vector<double> values;
  const auto spec =
      std::find_if(algorithm.knobs.begin(), algorithm.knobs.end(),
                   [name](const KnobSpec& k) { return k.name == name; });
  if (spec == algorithm.knobs.end()) return values;
  for (const auto& [node, overrides] : plan.nodes) {
    const auto found = overrides.knobs.find(spec->name);
    if (found == overrides.knobs.end()) continue;
    values.push_back(NumberOf(found->second));
  }
  if (values.size() == plan.members.size()) return values;
  const auto found = plan.algorithm.knobs.find(spec->name);
  values.push_back(NumberOf(found == plan.algorithm.knobs.end()
                                ? spec->default_value
                                : found->second));
  return values;
}

double LargestQ(const RunPlan& plan, const AlgorithmInfo& algorithm) {
  const std::vector<double> q = ValuesOfMembers(plan, algorithm, "q");
  return q.empty() ? 0 : *std::max_element(q.begin(), q.end());
}

double LeastP(const RunPlan& plan, const AlgorithmInfo& algorithm) {
  const std::vector<double> p = ValuesOfMembers(plan, algorithm, "p");
  return p.empty() ? 1 : *std::min_element(p.begin(), p.end());
}

// Neighbours of a node, by place, all with one weight.
std::vector<Neighbour> WithWeight(const RunPlan& plan,
                                  const std::vector<int64_t>& places,
                                  double weight) {
  std::vector<Neighbour> out;
  out.reserve(places.size());
  for (const int64_t place : places) {
    out.push_back(
        Neighbour{plan.members[static_cast<size_t>(place)].node, weight});
  }
  return out;
}

void TakeUndirected(const RunPlan& plan, const Graph& graph, int64_t place,
                    NodePlan& out) {
  const MixingRow row =
      BuildMixingRow(plan.topology.weights, graph, plan.topology.matrix, place);
  const std::vector<int64_t>& places = graph.neighbours(place);
  out.self_weight = row.self;
  out.neighbours = WithWeight(plan, places, 0);
  for (size_t q = 0; q < places.size(); ++q) {
    out.neighbours[q].weight = row.weights[q];
  }
  // In and out are the same places: so are a_ij and b_ji.
  out.receiver_weight = 1 / static_cast<double>(1 + places.size());
  out.sender_weight = out.receiver_weight;
  out.in_neighbours = WithWeight(plan, places, out.receiver_weight);
  out.out_neighbours = out.in_neighbours;
}

void TakeDirected(const RunPlan& plan, const Digraph& graph, int64_t place,
                  NodePlan& out) {
  out.receiver_weight = ReceiverWeight(graph, place);
  out.sender_weight = SenderWeight(graph, place);
  out.in_neighbours = WithWeight(plan, graph.in(place), out.receiver_weight);
  out.out_neighbours = WithWeight(plan, graph.out(place), out.sender_weight);
  out.self_weight = out.receiver_weight;
  std::vector<int64_t> only_out;
  std::set_difference(graph.out(place).begin(), graph.out(place).end(),
                      graph.in(place).begin(), graph.in(place).end(),
                      std::back_inserter(only_out));
  const std::vector<Neighbour> silent = WithWeight(plan, only_out, 0);
  std::merge(
      out.in_neighbours.begin(), out.in_neighbours.end(), silent.begin(),
      silent.end(), std::back_inserter(out.neighbours),
      [](const Neighbour& a, const Neighbour& b) { return a.node < b.node; });
}

// What the members have in common in a round.
struct Round {
  AnyGraph graph = Graph(0);
  const AlgorithmInfo* algorithm = nullptr;
  double rows = 0;  // of all members; 0: not every one tells
  double largest_q = 0;
  double least_p = 1;
  std::vector<NodeId> hubs;
  std::vector<double> least_omega;  // one a member, or none
};

// NodePlan::least_omega of every member; empty where it is not known.
std::vector<double> OmegaOf(const RunPlan& plan, const AnyGraph& graph) {
  if (TopologyVaries(plan.topology)) return {};
  const Graph* undirected = std::get_if<Graph>(&graph);
  const Digraph digraph =
      undirected != nullptr ? Digraph(*undirected) : std::get<Digraph>(graph);
  if (!digraph.IsStronglyConnected()) return {};
  return LeastOmega(digraph);
}

// `plan` is checked, `graph` is that of the round.
absl::StatusOr<Round> RoundOf(const RunPlan& plan, AnyGraph graph) {
  Round round;
  DFL_ASSIGN_OR_RETURN(round.algorithm, FindAlgorithm(plan.algorithm.name));
  if (RowsKnown(plan)) {
    for (const MemberSpec& member : plan.members) {
      round.rows += static_cast<double>(member.rows);
    }
  }
  round.largest_q = LargestQ(plan, *round.algorithm);
  round.least_p = LeastP(plan, *round.algorithm);
  if (round.algorithm->wants_hubs) round.hubs = Hubs(plan, graph);
  if (round.algorithm->wants_omega) round.least_omega = OmegaOf(plan, graph);
  round.graph = std::move(graph);
  return round;
}

// The plan as member `place` sees it.
absl::StatusOr<NodePlan> Derive(const RunPlan& plan, const Round& round,
                                int64_t place) {
  const MemberSpec& member = plan.members[static_cast<size_t>(place)];
  NodePlan out;
  out.self = member.node;
  out.seed = plan.seed;
  const auto overrides = plan.nodes.find(out.self);
  DFL_ASSIGN_OR_RETURN(
      out.knobs,
      Knobs::Resolve(round.algorithm->knobs, plan.algorithm.knobs,
                     overrides == plan.nodes.end() ? KnobValues{}
                                                   : overrides->second.knobs));
  if (const Graph* undirected = std::get_if<Graph>(&round.graph)) {
    TakeUndirected(plan, *undirected, place, out);
  } else {
    TakeDirected(plan, std::get<Digraph>(round.graph), place, out);
  }
  out.member_count = static_cast<int64_t>(plan.members.size());
  out.place = place;
  out.rows_known = round.rows > 0;
  if (out.rows_known) {
    out.sample_weight = static_cast<double>(member.rows) *
                        static_cast<double>(out.member_count) / round.rows;
  }
  out.largest_q = round.largest_q;
  out.least_p = round.least_p;
  out.hubs = round.hubs;
  if (!round.least_omega.empty()) {
    out.least_omega = round.least_omega[static_cast<size_t>(place)];
  }
  out.exchange_deadline = plan.deadline.exchange;
  return out;
}

// The plan as `self` sees it in the round of `graph`.
absl::StatusOr<NodePlan> DeriveFor(const RunPlan& plan, const NodeId& self,
                                   AnyGraph graph) {
  const std::optional<int64_t> place = PlaceOf(plan, self);
  if (!place) {
    const absl::Status status = UnknownMember("members", self, plan);
    return absl::NotFoundError(status.message());
  }
  DFL_ASSIGN_OR_RETURN(const Round round, RoundOf(plan, std::move(graph)));
  return Derive(plan, round, *place);
}

std::string RangeText(double lo, double hi) {
  // Three significant digits are enough for a hint.
  const std::string low = absl::StrCat(absl::SixDigits(lo));
  return lo == hi ? low : absl::StrCat(low, " to ", absl::SixDigits(hi));
}

// `window`: all edges that the rounds have.
void WarnOfPame(const RunPlan& plan, const Graph& graph, const Graph& window,
                std::vector<std::string>& warnings) {
  const absl::StatusOr<Round> round = RoundOf(plan, graph);
  if (!round.ok()) return;
  double least = std::numeric_limits<double>::infinity();
  double most = 0;
  bool asks_everyone = graph.size() >= 2;
  bool sends_everything = true;
  for (int64_t i = 0; i < graph.size(); ++i) {
    const absl::StatusOr<NodePlan> node = Derive(plan, *round, i);
    if (!node.ok()) return;
    const int64_t asked =
        PameParticipants(node->knobs.Number("nu"), graph.degree(i));
    const double step =
        1 / (node->knobs.Number("sigma0") * static_cast<double>(asked));
    least = std::min(least, step);
    most = std::max(most, step);
    asks_everyone = asks_everyone && asked >= graph.degree(i);
    sends_everything = sends_everything && node->knobs.Number("p") >= 1;
  }
  if (asks_everyone && sends_everything && window.IsBipartite()) {
    warnings.push_back(
        "topology.kind: on this bipartite graph (as on every path, star, even "
        "ring and grid) pame with nu = p = 1 never mixes its two sides; take "
        "nu or p below 1, or an odd cycle into the graph");
  }
  warnings.push_back(absl::StrCat(
      "algorithm.knobs.sigma0: the first step 1/(sigma0 m) is ",
      RangeText(least, most),
      ", m being the number of neighbours asked; beyond 2/L (L = the largest "
      "curvature of the loss) the run blows up before gamma shrinks it; "
      "raising "
      "nu or the degree slows training unless sigma0 falls in proportion"));
}

void WarnOfFineTuning(const RunPlan& plan, const AlgorithmInfo& algorithm,
                      std::vector<std::string>& warnings) {
  const absl::StatusOr<Knobs> knobs =
      Knobs::Resolve(algorithm.knobs, plan.algorithm.knobs);
  if (!knobs.ok()) return;
  const int64_t from = knobs->Integer("fine_tune_from");
  if (plan.stop.steps == 0 || plan.stop.steps > from) return;
  warnings.push_back(absl::StrCat(
      "algorithm.knobs.fine_tune_from: ", from, ", but the run ends after ",
      plan.stop.steps,
      " rounds (stop.steps), so no node fine-tunes; lower the one or raise the "
      "other"));
}

void WarnOfParts(const RunPlan& plan, const AnyGraph& window,
                 std::vector<std::string>& warnings) {
  const Digraph* directed = std::get_if<Digraph>(&window);
  const std::vector<std::vector<int64_t>> parts =
      directed != nullptr ? directed->StrongComponents()
                          : std::get<Graph>(window).Components();
  if (parts.size() <= 1) return;
  std::vector<std::string> texts;
  for (const std::vector<int64_t>& part : parts) {
    if (texts.size() == kNamesShown) {
      texts.push_back("...");
      break;
    }
    std::vector<std::string> names;
    for (const int64_t i : part) {
      if (names.size() == kNamesShown) {
        names.push_back("...");
        break;
      }
      names.push_back(plan.members[static_cast<size_t>(i)].node.name());
    }
    texts.push_back(absl::StrCat("{", absl::StrJoin(names, ", "), "}"));
  }
  const std::string key = absl::StrCat(
      "topology.", plan.topology.kind == "time-varying" ? "edge_sets" : "edges",
      ": the graph ", TopologyVaries(plan.topology) ? "of all rounds " : "");
  warnings.push_back(absl::StrCat(
      key,
      directed != nullptr
          ? absl::StrCat("is not strongly connected: what some members learn "
                         "never reaches others; its strongly connected parts: ")
          : absl::StrCat("falls into ", parts.size(),
                         " parts that never hear of each other: "),
      absl::StrJoin(texts, ", ")));
}

// Values that the chosen kind does not look at.
void WarnOfIgnored(const TopologySpec& topology,
                   std::vector<std::string>& warnings) {
  const auto ignored = [&warnings](absl::string_view key,
                                   absl::string_view why) {
    warnings.push_back(
        absl::StrCat("topology.", key, ": ignored, since ", why));
  };
  const std::string kind = absl::StrCat("topology.kind is ", topology.kind);
  if (topology.kind != "explicit" && !topology.edges.empty()) {
    ignored("edges", kind);
  }
  if (topology.kind != "time-varying" && !topology.edge_sets.empty()) {
    ignored("edge_sets", kind);
  }
  if (topology.directed && topology.weights != TopologySpec().weights) {
    ignored("weights",
            "a directed graph has its own, 1/(1 + number of in- or "
            "out-neighbours)");
  } else if (topology.weights != "explicit" && !topology.matrix.empty()) {
    ignored("matrix", absl::StrCat("topology.weights is ", topology.weights));
  }
}

}  // namespace

absl::Status ValidatePlan(const RunPlan& plan) {
  return ValidateAndBuildGraph(plan).status();
}

absl::StatusOr<AnyGraph> ValidatedGraph(const RunPlan& plan) {
  return ValidateAndBuildGraph(plan);
}

std::vector<std::string> PlanWarnings(const RunPlan& plan) {
  const absl::StatusOr<AnyGraph> graph = ValidateAndBuildGraph(plan);
  return graph.ok() ? PlanWarnings(plan, *graph) : std::vector<std::string>();
}

std::vector<std::string> PlanWarnings(const RunPlan& plan,
                                      const AnyGraph& graph) {
  std::vector<std::string> warnings;
  const absl::StatusOr<const AlgorithmInfo*> algorithm =
      FindAlgorithm(plan.algorithm.name);
  const absl::StatusOr<AnyGraph> window =
      TopologyVaries(plan.topology) ? PlanWindow(plan) : graph;
  if (!algorithm.ok() || !window.ok()) return warnings;
  const bool exchanges = (*algorithm)->exchange != Exchange::kNone;
  if (exchanges) WarnOfParts(plan, *window, warnings);
  WarnOfIgnored(plan.topology, warnings);
  if (plan.algorithm.name == "pame") {
    WarnOfPame(plan, std::get<Graph>(graph), std::get<Graph>(*window),
               warnings);
  }
  if (plan.algorithm.name == "fedavg+") {
    WarnOfFineTuning(plan, **algorithm, warnings);
  }
  return warnings;
}

absl::StatusOr<NodePlan> DeriveNodePlan(const RunPlan& plan, const NodeId& self,
                                        int64_t round) {
  DFL_ASSIGN_OR_RETURN(AnyGraph graph, ValidateAndBuildGraph(plan, round));
  return DeriveFor(plan, self, std::move(graph));
}

absl::StatusOr<NodePlan> DeriveCheckedNodePlan(const RunPlan& plan,
                                               const NodeId& self,
                                               int64_t round) {
  DFL_ASSIGN_OR_RETURN(AnyGraph graph, PlanGraph(plan, round));
  return DeriveFor(plan, self, std::move(graph));
}

absl::StatusOr<NodePlan> DeriveCheckedNodePlan(const RunPlan& plan,
                                               const NodeId& self,
                                               AnyGraph graph) {
  return DeriveFor(plan, self, std::move(graph));
}

absl::StatusOr<std::vector<NodePlan>> DeriveNodePlans(const RunPlan& plan,
                                                      int64_t round) {
  DFL_ASSIGN_OR_RETURN(AnyGraph graph, ValidateAndBuildGraph(plan, round));
  return DeriveCheckedNodePlans(plan, std::move(graph));
}

absl::StatusOr<std::vector<NodePlan>> DeriveCheckedNodePlans(
    const RunPlan& plan, AnyGraph graph) {
  DFL_ASSIGN_OR_RETURN(const Round common, RoundOf(plan, std::move(graph)));
  std::vector<NodePlan> plans;
  for (size_t i = 0; i < plan.members.size(); ++i) {
    DFL_ASSIGN_OR_RETURN(NodePlan node,
                         Derive(plan, common, static_cast<int64_t>(i)));
    plans.push_back(std::move(node));
  }
  return plans;
}

}  // namespace dfl::core
