#include "daemon/core/plan/check_plan.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "daemon/base/names.h"
#include "daemon/base/status_macros.h"
#include "daemon/core/graph/graph.h"
#include "daemon/core/graph/mixing.h"
#include "daemon/core/plan/check_aggregation.h"
#include "daemon/core/plan/check_data.h"
#include "daemon/core/plan/check_optimizer.h"
#include "daemon/core/plan/participants.h"
#include "daemon/core/plan/plan_network.h"
#include "daemon/core/plan/plan_topology.h"
#include "daemon/core/rounds/prox.h"

namespace dfl::core {
namespace {

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

absl::Status CheckMembers(const RunPlan& plan) {
  DFL_RETURN_IF_ERROR(CheckParticipants(plan));
  if (plan.members.empty() && !FollowsView(plan)) {
    return absl::InvalidArgumentError(
        "members: none are named; list the names of at least one node under "
        "participants.fixed, or write participants: all");
  }
  if (plan.members.size() > kMostPlanMembers) {
    return absl::InvalidArgumentError(
        absl::StrCat("members: ", plan.members.size(),
                     " are named; allowed: at most ", kMostPlanMembers));
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

std::string ShapeText(const ModelSpec& model) {
  return absl::StrCat("[", absl::StrJoin(model.input, ", "), "]");
}

absl::Status CheckClasses(const ModelSpec& model) {
  if (model.classes >= 2 || model.classes == -1) return absl::OkStatus();
  const bool classifier = model.kind == "logistic" || model.kind == "svm";
  if (model.classes == 0 && !classifier) return absl::OkStatus();
  return Bad("model.classes", absl::StrCat(model.classes),
             classifier
                 ? absl::StrCat("integer >= 2, since kind ", model.kind,
                                " tells classes apart (0, regression, is for "
                                "the other kinds)")
                 : "integer >= 2, or 0 for a regression, or nothing (as the "
                   "data say)");
}

absl::Status CheckInput(const ModelSpec& model) {
  for (const int64_t extent : model.input) {
    if (extent >= 1) continue;
    return Bad("model.input", ShapeText(model),
               "the shape of one example, each extent >= 1, or nothing (taken "
               "from the data)");
  }
  const bool image = model.kind == "cnn" || model.kind == "resnet20" ||
                     model.kind == "resnet18";
  if (image && !model.input.empty() && model.input.size() != 3) {
    return Bad(
        "model.input", ShapeText(model),
        absl::StrCat("[channels, height, width], since kind is ", model.kind));
  }
  return absl::OkStatus();
}

absl::Status CheckLayers(const ModelSpec& model) {
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
  return absl::OkStatus();
}

absl::Status CheckPath(const ModelSpec& model) {
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
  return absl::OkStatus();
}

// The loss against the task, as far as the plan tells it.
absl::Status CheckTask(const ModelSpec& model) {
  const bool for_regressions = model.loss == "mse" || model.loss == "huber";
  if (model.classes == 0 && !model.loss.empty() && !for_regressions) {
    return Bad("model.loss", Quoted(model.loss),
               "mse or huber, since model.classes is 0 (regression)");
  }
  if (model.classes > 0 && model.loss == "huber") {
    return Bad("model.loss", "\"huber\"",
               "cross-entropy, hinge, mse, logistic or bce, since there are "
               "classes (model.classes: 0 is a regression)");
  }
  return absl::OkStatus();
}

absl::Status CheckLossSettings(const ModelSpec& model) {
  if (!(std::isfinite(model.huber_delta) && model.huber_delta > 0)) {
    return Bad("model.huber_delta", ToString(model.huber_delta), "number > 0");
  }
  if (model.huber_delta != 1 && model.loss != "huber") {
    return Bad("model.huber_delta", ToString(model.huber_delta),
               "nothing, since model.loss is not huber");
  }
  if (model.class_weights.empty()) return absl::OkStatus();
  const auto count = static_cast<int64_t>(model.class_weights.size());
  if (model.classes >= 0 && count != model.classes) {
    return Bad("model.class_weights", absl::StrCat(count, " numbers"),
               absl::StrCat("one for each of the ", model.classes, " classes"));
  }
  for (const double weight : model.class_weights) {
    if (std::isfinite(weight) && weight > 0) continue;
    return Bad("model.class_weights", ToString(weight), "numbers > 0");
  }
  const bool cross_entropy = model.loss.empty()
                                 ? model.kind != "linear" && model.kind != "svm"
                                 : model.loss == "cross-entropy";
  if (cross_entropy) return absl::OkStatus();
  return Bad("model.class_weights", absl::StrCat(count, " numbers"),
             "nothing, since model.loss is not cross-entropy");
}

absl::Status CheckLoss(const ModelSpec& model) {
  if (!model.loss.empty()) {
    const std::vector<std::string> losses = {"cross-entropy", "hinge", "mse",
                                             "logistic",      "huber", "bce"};
    if (std::find(losses.begin(), losses.end(), model.loss) == losses.end()) {
      return UnknownNameError("model.loss", model.loss, losses);
    }
    DFL_RETURN_IF_ERROR(CheckTask(model));
  }
  DFL_RETURN_IF_ERROR(CheckLossSettings(model));
  if (!(std::isfinite(model.l2) && model.l2 >= 0)) {
    return Bad("model.l2", ToString(model.l2), "number >= 0");
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
  DFL_RETURN_IF_ERROR(CheckClasses(model));
  DFL_RETURN_IF_ERROR(CheckInput(model));
  DFL_RETURN_IF_ERROR(CheckLayers(model));
  DFL_RETURN_IF_ERROR(CheckPath(model));
  return CheckLoss(model);
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

absl::Status CheckTogether(const Knobs& knobs, const AlgorithmInfo& algorithm,
                           const std::string& key) {
  if (algorithm.check == nullptr) return absl::OkStatus();
  const absl::Status status = algorithm.check(knobs);
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(key, status.message()));
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
  DFL_RETURN_IF_ERROR(CheckTogether(*knobs, algorithm, common));
  const std::vector<NodeId> members = MemberIds(plan);
  for (const auto& [node, overrides] : plan.nodes) {
    const std::string key = absl::StrCat("nodes.", node.name());
    // One that may come later has its own knobs then.
    if (!FollowsView(plan) &&
        !std::binary_search(members.begin(), members.end(), node)) {
      return UnknownMemberError(key, node, plan);
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
    DFL_RETURN_IF_ERROR(
        CheckTogether(*own, algorithm, absl::StrCat(key, ".knobs.")));
  }
  return absl::OkStatus();
}

absl::Status NotComplete(const RunPlan& plan) {
  return Bad(
      "topology.kind", Quoted(plan.topology.kind),
      absl::StrCat("complete, since algorithm.name is ", plan.algorithm.name));
}

absl::Status NoStar(const RunPlan& plan) {
  return Bad("topology.kind", Quoted(plan.topology.kind),
             absl::StrCat("star, or explicit with the edges of one, since "
                          "algorithm.name is ",
                          plan.algorithm.name));
}

// What an algorithm that exchanges with every member needs of the topology.
absl::Status CheckComplete(const RunPlan& plan, const Graph& graph) {
  for (int64_t i = 0; i < graph.size(); ++i) {
    if (!TopologyVaries(plan.topology) && graph.degree(i) == graph.size() - 1) {
      continue;
    }
    return NotComplete(plan);
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
  return NoStar(plan);
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
  if (!algorithm.why_not_topk.empty() &&
      plan.codec.format.coordinates == Coordinates::kTopK) {
    return Bad("codec.coordinates", "\"topk\"",
               absl::StrCat("dense, random, since algorithm.name is ",
                            plan.algorithm.name, ": ", algorithm.why_not_topk));
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

absl::Status CheckEvaluationAndStop(const RunPlan& plan,
                                    const AlgorithmInfo& algorithm) {
  DFL_RETURN_IF_ERROR(
      CheckAtLeast("evaluation.every_steps", plan.evaluation.every_steps, 0));
  DFL_RETURN_IF_ERROR(
      CheckAtLeast("evaluation.examples", plan.evaluation.examples, 0));
  DFL_RETURN_IF_ERROR(CheckAtLeast("stop.steps", plan.stop.steps, 0));
  DFL_RETURN_IF_ERROR(CheckAtLeast("stop.rounds", plan.stop.rounds, 0));
  if (plan.stop.rounds > 0 && algorithm.exchange == Exchange::kNone) {
    return Bad("stop.rounds", absl::StrCat(plan.stop.rounds),
               absl::StrCat("0, since algorithm.name is ", plan.algorithm.name,
                            ", which exchanges nothing and so has no rounds; "
                            "end it by stop.steps or stop.epochs"));
  }
  if (!(std::isfinite(plan.stop.epochs) && plan.stop.epochs >= 0)) {
    return Bad("stop.epochs", ToString(plan.stop.epochs),
               "number >= 0 (0 = no limit)");
  }
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
  if (plan.deadline.ceiling < plan.deadline.exchange) {
    return Bad("deadline.ceiling", absl::FormatDuration(plan.deadline.ceiling),
               absl::StrCat("a duration of at least deadline.exchange (",
                            absl::FormatDuration(plan.deadline.exchange),
                            "), or nothing for ",
                            DeadlineSpec::kCeilingOfExchange, " times that"));
  }
  if (plan.deadline.floor < absl::ZeroDuration() ||
      plan.deadline.floor > plan.deadline.Ceiling()) {
    return Bad(
        "deadline.floor", absl::FormatDuration(plan.deadline.floor),
        absl::StrCat("a duration of at most the ceiling (",
                     absl::FormatDuration(plan.deadline.Ceiling()), ")"));
  }
  return absl::OkStatus();
}

absl::Status CheckCheckpoints(const CheckpointSpec& spec) {
  if (spec.keep >= CheckpointSpec::kLeastKept &&
      spec.keep <= CheckpointSpec::kMostKept) {
    return absl::OkStatus();
  }
  return Bad("checkpoint.keep", absl::StrCat(spec.keep),
             absl::StrCat("an integer from ", CheckpointSpec::kLeastKept,
                          " to ", CheckpointSpec::kMostKept,
                          ", how many checkpoints a node's disk holds"));
}

// Names of the algorithms that run on directed graphs; "" when there is none.
std::string DirectedAlgorithms(const Catalogue& catalogue) {
  std::vector<std::string> names;
  for (const AlgorithmInfo& info : catalogue.entries()) {
    if (info.graphs == GraphKind::kDirected) names.push_back(info.name);
  }
  return absl::StrJoin(names, ", ");
}

// Whether the algorithm can run on the graph, and the weights be made of it.
absl::Status CheckGraph(const RunPlan& plan, const AlgorithmInfo& algorithm,
                        const AnyGraph& graph, const Catalogue& catalogue) {
  const std::string& weights = plan.topology.weights;
  if (std::holds_alternative<Digraph>(graph)) {
    if (algorithm.exchange == Exchange::kNone ||
        algorithm.graphs == GraphKind::kDirected) {
      return absl::OkStatus();
    }
    const std::string others = DirectedAlgorithms(catalogue);
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

// An algorithm without rounds has nothing that a graph could change with.
absl::Status CheckContinuous(const RunPlan& plan) {
  if (!TopologyVaries(plan.topology)) return absl::OkStatus();
  const std::string why = absl::StrCat(
      "since algorithm.name is ", plan.algorithm.name, ", which has no rounds");
  if (plan.topology.kind == "time-varying") {
    return Bad("topology.kind", "\"time-varying\"",
               absl::StrCat("the others, ", why));
  }
  return Bad("topology.every", absl::StrCat(plan.topology.every),
             absl::StrCat("0, ", why));
}

// What the algorithm asks of the graph, which is that of round 0.
absl::Status CheckTopology(const RunPlan& plan, const AlgorithmInfo& algorithm,
                           const AnyGraph& graph, const Catalogue& catalogue) {
  DFL_RETURN_IF_ERROR(CheckGraph(plan, algorithm, graph, catalogue));
  if (algorithm.complete_graph) {
    DFL_RETURN_IF_ERROR(CheckComplete(plan, std::get<Graph>(graph)));
  }
  if (algorithm.continuous) DFL_RETURN_IF_ERROR(CheckContinuous(plan));
  if (algorithm.star_graph) {
    DFL_RETURN_IF_ERROR(CheckStar(plan, std::get<Graph>(graph)));
  }
  return TopologyVaries(plan.topology) ? PlanWindow(plan).status()
                                       : absl::OkStatus();
}

// What holds of the graph whoever its members will be.
absl::Status CheckWithoutMembers(const RunPlan& plan,
                                 const AlgorithmInfo& algorithm,
                                 const Catalogue& catalogue) {
  DFL_RETURN_IF_ERROR(CheckTopologySpec(plan.topology));
  const AnyGraph none =
      plan.topology.directed ? AnyGraph(Digraph(0)) : AnyGraph(Graph(0));
  DFL_RETURN_IF_ERROR(CheckGraph(plan, algorithm, none, catalogue));
  const std::string& kind = plan.topology.kind;
  if (algorithm.complete_graph && kind != "complete" && kind != "auto") {
    return NotComplete(plan);
  }
  if (algorithm.star_graph && kind != "star" && kind != "explicit") {
    return NoStar(plan);
  }
  return algorithm.continuous ? CheckContinuous(plan) : absl::OkStatus();
}

// What the checks of a plan find on their way.
struct Found {
  const AlgorithmInfo* algorithm;
  AnyGraph graph;  // of round 0
};

absl::StatusOr<Found> Check(const RunPlan& plan, const Catalogue& catalogue) {
  DFL_RETURN_IF_ERROR(CheckMembers(plan));
  DFL_RETURN_IF_ERROR(CheckModel(plan.model));
  DFL_RETURN_IF_ERROR(CheckData(plan.data, plan.model));
  DFL_RETURN_IF_ERROR(CheckAtLeast("batch_size", plan.batch_size, 1));
  const absl::StatusOr<const AlgorithmInfo*> algorithm =
      catalogue.Find(plan.algorithm.name);
  if (!algorithm.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("algorithm.name: ", algorithm.status().message()));
  }
  if ((*algorithm)->predicts && plan.model.classes == 0) {
    return Bad("model.classes", "0",
               absl::StrCat(
                   "integer >= 2, or nothing, since algorithm.name is ",
                   plan.algorithm.name, ", which compares predicted classes"));
  }
  DFL_RETURN_IF_ERROR(CheckKnobs(plan, **algorithm));
  DFL_RETURN_IF_ERROR(CheckOptimizer(plan, **algorithm));
  AnyGraph graph = Graph(0);
  if (plan.members.empty()) {
    DFL_RETURN_IF_ERROR(CheckWithoutMembers(plan, **algorithm, catalogue));
  } else {
    DFL_ASSIGN_OR_RETURN(graph, PlanGraph(plan));
    DFL_RETURN_IF_ERROR(CheckTopology(plan, **algorithm, graph, catalogue));
  }
  DFL_RETURN_IF_ERROR(CheckCodec(plan, **algorithm));
  DFL_RETURN_IF_ERROR(CheckAggregation(plan, **algorithm, graph));
  DFL_RETURN_IF_ERROR(CheckEvaluationAndStop(plan, **algorithm));
  DFL_RETURN_IF_ERROR(CheckCheckpoints(plan.checkpoint));
  return Found{*algorithm, std::move(graph)};
}

}  // namespace

absl::StatusOr<CheckedPlan> CheckPlan(RunPlan plan,
                                      const Catalogue& catalogue) {
  DFL_ASSIGN_OR_RETURN(Found found, Check(plan, catalogue));
  return CheckedPlan{std::make_shared<const RunPlan>(std::move(plan)),
                     std::make_shared<const AnyGraph>(std::move(found.graph)),
                     found.algorithm};
}

absl::Status ValidatePlan(const RunPlan& plan, const Catalogue& catalogue) {
  return Check(plan, catalogue).status();
}

}  // namespace dfl::core
