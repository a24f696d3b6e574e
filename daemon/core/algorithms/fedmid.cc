#include "daemon/core/algorithms/fedmid.h"

#include <algorithm>
#include <utility>

#include "absl/types/span.h"
#include "daemon/core/vector/flat_vector.h"

namespace dfl::core {
namespace {

// The step of the hub's prox.
double HubStep(const Knobs& knobs) {
  return knobs.Number("eta_s") * knobs.Number("eta_c") *
         static_cast<double>(knobs.Integer("K"));
}

}  // namespace

Fedmid::Settings::Settings(const Knobs& knobs)
    : eta_c(knobs.Number("eta_c")),
      eta_s(knobs.Number("eta_s")),
      hub_step(HubStep(knobs)),
      prox(ProxOf(knobs)) {}

Fedmid::Fedmid(AlgorithmContext context)
    : LocalRounds(std::move(context)), settings_(plan().knobs) {}

std::vector<NodeId> Fedmid::Receivers() const {
  return IsHub() ? std::vector<NodeId>() : std::vector<NodeId>{hub()};
}

std::vector<NodeId> Fedmid::Senders() const {
  return IsHub() ? barrier().peers() : std::vector<NodeId>{hub()};
}

absl::Duration Fedmid::Deadline() const {
  return IsHub() ? LocalRounds::Deadline() : 2 * LocalRounds::Deadline();
}

void Fedmid::OnPlanChanged() {
  LocalRounds::OnPlanChanged();
  settings_ = Settings(plan().knobs);
}

void Fedmid::BeginLocalSteps() {
  start_.assign(vectors().parameters.begin(), vectors().parameters.end());
}

Fedmid::Next Fedmid::AfterGradient() {
  if (!has_gradient()) return EndLocalStep();
  AddScaled(static_cast<float>(-StepSize()), vectors().gradient,
            vectors().parameters);
  ApplyProx(settings_.prox, StepSize(), vectors().parameters);
  return EndLocalStep();
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
  const double step = settings_.eta_s * share;
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
  ApplyProx(settings_.prox, settings_.hub_step, absl::MakeSpan(start_));
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

// ---- catalogue entry ----

namespace {

std::vector<double> ProxSteps(const Knobs& knobs) {
  return {knobs.Number("eta_c"), HubStep(knobs)};
}

KnobSpec Shared(KnobSpec knob) {
  knob.shared = true;
  return knob;
}

}  // namespace

AlgorithmInfo FedmidInfo() {
  return {
      .name = "fedmid",
      .summary = "Composite federated averaging through the hub of a star",
      .source = "[FedMid] Alg. 1",
      .caveats =
          "Everything goes through the hub: it carries all the traffic, and "
          "nothing is learnt while it is down. A round has two hops, so it "
          "waits up to twice deadline.exchange. The mean of sparse z is less "
          "sparse than each of them; the hub's own prox makes w sparse again.",
      .pace = "A round is K steps and one exchange.",
      .create = Create<Fedmid>,
      .derive = DeriveHubs,
      .exchange = Exchange::kPush,
      .lock_step = true,
      .star_graph = true,
      .prox_steps = ProxSteps,
      .dense_only = true,
      .why_dense = "the hub's whole model replaces the others'",
      .extra_vectors = 1,
      .edge = PushCost(),
      .cost =
          "K gradients per round; from each node to the hub 4 n bytes as fp32, "
          "and 4 n back.",
      .own_step =
          "each of its steps ends with a proximal point for just that step "
          "size",
      .knobs = Joined(
          {PositiveKnob("eta_c", 0.01,
                        "Step size of the local steps, and of their prox."),
           Shared(PositiveKnob(
               "eta_s", 1.0,
               "Step of the hub towards the mean of what the local steps gave. "
               "The step of its prox is eta_s eta_c K.")),
           Shared(LocalStepsKnob())},
          ProxKnobs())};
}

}  // namespace dfl::core
