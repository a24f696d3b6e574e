#include "daemon/core/algorithms/fedmid.h"
#include "daemon/core/algorithm/algorithm_info.h"

#include <algorithm>
#include <utility>

#include "absl/types/span.h"
#include "daemon/core/algorithms/dfedavgm.h"
#include "daemon/core/rounds/prox.h"
#include "daemon/core/vector/flat_vector.h"

namespace dfl::core {
namespace {

// The step of the hub's prox.
double HubStep(const Knobs& knobs) {
  return knobs.Number("eta_s") * knobs.Number("eta_c") *
         static_cast<double>(knobs.Integer("K"));
}

std::vector<double> ProxSteps(const Knobs& knobs) {
  return {knobs.Number("eta_c"), HubStep(knobs)};
}

}  // namespace

AlgorithmInfo FedmidInfo() {
  AlgorithmInfo info;
  info.name = "fedmid";
  info.summary = "Composite federated averaging through the hub of a star";
  info.source = "[FedMid] Alg. 1";
  info.caveats =
      "Everything goes through the hub: it carries all the traffic, and while "
      "it is down nothing is learnt. A round has two hops, so it waits up to "
      "twice deadline.exchange. The mean of sparse z is less sparse than each "
      "of them; the hub's own prox makes w sparse again.";
  info.exchange = Exchange::kPush;
  info.lock_step = true;
  info.star_graph = true;
  info.wants_hubs = true;
  info.dense_only = true;
  info.why_dense = "the hub's model replaces the others', whole";
  info.extra_vectors = 1;
  info.edge = PushCost();
  info.cost =
      "K gradients a round; from each node to the hub 4 n bytes as fp32, "
      "and 4 n back.";
  info.prox_steps = ProxSteps;
  KnobSpec eta_c = PositiveKnob("eta_c", 0.01,
                                "Step size of the local steps, and of their "
                                "prox.");
  KnobSpec eta_s = PositiveKnob(
      "eta_s", 1.0,
      "Step of the hub towards the mean of what the local steps gave; its prox "
      "has the step eta_s eta_c K.");
  eta_s.shared = true;
  KnobSpec steps = LocalStepsKnob();
  steps.shared = true;
  info.knobs = {eta_c, eta_s, steps};
  for (KnobSpec& knob : ProxKnobs()) info.knobs.push_back(std::move(knob));
  return info;
}

Fedmid::Fedmid(AlgorithmContext context) : PushRounds(std::move(context)) {}

std::vector<NodeId> Fedmid::Receivers() const {
  return IsHub() ? std::vector<NodeId>() : std::vector<NodeId>{hub()};
}

std::vector<NodeId> Fedmid::Senders() const {
  return IsHub() ? barrier().peers() : std::vector<NodeId>{hub()};
}

absl::Duration Fedmid::Deadline() const {
  return IsHub() ? PushRounds::Deadline() : 2 * PushRounds::Deadline();
}

void Fedmid::BeforeTraining() {
  start_.assign(vectors().parameters.begin(), vectors().parameters.end());
  local_left_ = plan().knobs.Integer("K");
}

Fedmid::Next Fedmid::AfterGradient() {
  AddScaled(static_cast<float>(-StepSize()), vectors().gradient,
            vectors().parameters);
  ApplyProx(ProxOf(plan().knobs), StepSize(), vectors().parameters);
  return --local_left_ > 0 ? Next::kNextBatch : Next::kTrained;
}

void Fedmid::Mix(std::vector<PushBarrier::Arrival> arrivals) {
  if (IsHub()) {
    MixAsHub(std::move(arrivals));
  } else {
    for (PushBarrier::Arrival& arrival : arrivals) {
      arrival.weight = arrival.from == hub() ? 1 : 0;
    }
    MixArrivals(arrivals, absl::MakeSpan(start_), vectors().buffers);
  }
  std::copy(start_.begin(), start_.end(), vectors().parameters.begin());
}

// w + eta_s mean(z - w), with eta_s (z - w)/m of its own z kept in the
// parameters while the others' are added in place.
void Fedmid::MixAsHub(std::vector<PushBarrier::Arrival> arrivals) {
  const double share = 1 / static_cast<double>(plan().member_count);
  const double step = plan().knobs.Number("eta_s") * share;
  const absl::Span<float> z = vectors().parameters;
  for (size_t l = 0; l < start_.size(); ++l) {
    z[l] = static_cast<float>(step) * (z[l] - start_[l]);
  }
  std::vector<WeightedVector> models;
  models.reserve(arrivals.size());
  for (PushBarrier::Arrival& arrival : arrivals) {
    models.push_back(WeightedVector{arrival.model.parameters.get(), step});
    arrival.weight = share;
  }
  MixDifferences(models, absl::MakeSpan(start_));
  AddScaled(1.0F, z, absl::MakeSpan(start_));
  MixBuffers(arrivals, vectors().buffers);
  ApplyProx(ProxOf(plan().knobs), HubStep(plan().knobs),
            absl::MakeSpan(start_));
}

void Fedmid::AfterMix(Actions& actions) {
  if (!IsHub()) return;
  std::vector<NodeId> spokes = barrier().peers();
  if (!spokes.empty()) {
    actions.Do(Push{std::move(spokes), step(), vectors().parameters});
  }
}

void Fedmid::AddGauges(std::map<std::string, double>& gauges) const {
  gauges["sparsity"] = Sparsity(vectors().parameters);
}

}  // namespace dfl::core
