#include "tests/unit/core/four_nodes.h"

#include <string>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "daemon/base/check.h"
#include "daemon/base/rng.h"
#include "daemon/core/plan/derived_plan.h"
#include "daemon/core/plan/run_plan.h"

namespace dfl::core {
namespace {

constexpr double kGradient = 0.02;  // s
constexpr double kLateGradient = 0.08;
constexpr double kLateParcel = 1.6;
constexpr double kLateAnswer = 0.33;
constexpr int64_t kLateFrom = 4;  // rounds
constexpr double kDeadline = 0.2;
constexpr int64_t kBatch = 3;

simports::SoftmaxSpec Data() {
  simports::SoftmaxSpec spec;
  spec.nodes = FourNodes::kNodes;
  spec.features = 3;
  spec.classes = 3;
  spec.rows_per_node = 12;
  spec.test_rows = 1;
  return spec;
}

NodeId NameOf(size_t i) { return NodeId(absl::StrCat("node-", i)); }

// Short periods, and chance where there can be: of the knobs that `info` has.
KnobValues KnobsOf(const AlgorithmInfo& info) {
  const KnobValues wanted = {{"T0", int64_t{2}},
                             {"T_ex", int64_t{3}},
                             {"kappa", IntRange{3, 3}},
                             {"K", int64_t{2}},
                             {"B", int64_t{2}},
                             {"P", 0.3},
                             {"gamma_max", 0.06},
                             {"fine_tune_from", int64_t{12}},
                             {"p_hat", 0.7}};
  KnobValues values;
  for (const KnobSpec& knob : info.knobs) {
    const auto it = wanted.find(knob.name);
    if (it != wanted.end()) values.insert(*it);
  }
  return values;
}

RunPlan PlanOf(const AlgorithmInfo& info) {
  RunPlan plan;
  plan.seed = 7;
  for (size_t i = 0; i < FourNodes::kNodes; ++i) {
    plan.members.push_back(MemberSpec{.node = NameOf(i), .rows = 12});
  }
  plan.algorithm.name = info.name;
  plan.algorithm.knobs = KnobsOf(info);
  plan.topology.kind = info.star_graph ? "star" : "complete";
  plan.codec.format.coordinates = Coordinates::kDense;
  plan.deadline.exchange = absl::Seconds(kDeadline);
  return plan;
}

}  // namespace

FourNodes::FourNodes(const AlgorithmInfo& info)
    : TestNetwork({NameOf(0), NameOf(1), NameOf(2), NameOf(3)}),
      catalogue_({info}),
      data_(simports::SoftmaxExample(Data())) {
  auto plans = DeriveNodePlans(PlanOf(info), 0, catalogue_);
  DFL_CHECK(plans.ok());
  for (size_t i = 0; i < kNodes; ++i) {
    const simports::Problem& problem = *data_.nodes[i];
    NodePlan& plan = (*plans)[i];
    DFL_CHECK(plan.self == name(i));
    auto decisions = std::make_unique<SeededDecisions>(
        DeriveSeed(plan.seed, plan.self.name()));
    Add(i, {.plan = std::move(plan),
            .decisions = std::move(decisions),
            .parameters = std::vector<float>(problem.n()),
            .buffers = {static_cast<float>(i), 0},
            .problem = &problem});
  }
  for (size_t i = 0; i < kNodes; ++i) Handle(i, Started{0});
  for (size_t i = 0; i < kNodes; ++i) LinkUp(i);
}

void FourNodes::Replace(size_t i, std::unique_ptr<Algorithm> algorithm) {
  node(i).algorithm = std::move(algorithm);
  LinkUp(i);
}

void FourNodes::RunToStep(int64_t steps) {
  goal_ = steps;
  for (size_t i = 0; i < kNodes; ++i) MayBegin(i);
  for (size_t i = 0; i < kNodes; ++i) {
    while (!node(i).at_boundary || node(i).algorithm->step() < goal_) {
      DFL_CHECK(HappenNext());
    }
  }
}

void FourNodes::MayBegin(size_t i) {
  if (!node(i).at_boundary || node(i).algorithm->step() >= goal_) return;
  Begin(i);
}

std::optional<double> FourNodes::Latency(size_t from, size_t to,
                                         const Event& message) {
  const auto* mass = std::get_if<MassArrived>(&message);
  if (mass != nullptr && mass->model.step >= kLateFrom) {
    if (from == kSlowGiver && to == kSlowTaker) return kLateParcel;
    if (from == kSlowTaker && to == kSlowGiver) return kLateAnswer;
  }
  return 0.001 * static_cast<double>(1 + from + 2 * to);
}

// Every fifth takes long, at each node another.
std::optional<double> FourNodes::ComputeTime(size_t i) {
  return batches_[i] % 5 == static_cast<int64_t>(i) ? kLateGradient : kGradient;
}

std::vector<int64_t> FourNodes::NextBatch(size_t i) {
  ++batches_[i];
  std::vector<int64_t> batch;
  for (int64_t row = 0; row < kBatch; ++row) {
    batch.push_back((batches_[i] * kBatch + row) % data_.nodes[i]->rows());
  }
  return batch;
}

GradientReady FourNodes::Gradient(size_t i, absl::Span<const float> model,
                                  const std::vector<int64_t>& batch) {
  const GradientReady ready = TestNetwork::Gradient(i, model, batch);
  node(i).buffers[1] += static_cast<float>(ready.loss);
  return ready;
}

}  // namespace dfl::core
