#include "daemon/core/algorithms/anq_nids.h"

#include <cmath>
#include <memory>
#include <utility>

#include "daemon/core/algorithm/state_fields.h"
#include "daemon/core/algorithms/nids.h"
#include "daemon/core/vector/flat_vector.h"

namespace dfl::core {

AnqNids::Settings::Settings(const Knobs& knobs)
    : alpha(knobs.Number("alpha")),
      initial_range(knobs.Number("R0")),
      rho(knobs.Number("rho")),
      bits(static_cast<int>(knobs.Integer("bits"))) {}

AnqNids::AnqNids(AlgorithmContext context)
    : ReplicaRounds(std::move(context), 1, true), settings_(plan().knobs) {}

void AnqNids::ResetMass() {
  ReplicaRounds::ResetMass();
  flows_.Clear();
  range_ = settings_.initial_range;
}

void AnqNids::VisitState(StateFields& fields) {
  ReplicaRounds::VisitState(fields);
  fields.Positive("R", range_);
  flows_.VisitState(fields, n());
}

void AnqNids::BeginRound(Actions& actions) { Compute(actions); }

void AnqNids::AddCorrection(absl::Span<float> vector) {
  AddScaled(1.0F, z(), vector);
  flows_.AddTo(vector);
}

void AnqNids::Quantise(absl::Span<const float> phi) {
  const int bits = settings_.bits;
  const double d = 2 * range_ / static_cast<double>((int64_t{1} << bits) - 1);
  bool fits = true;
  const FlatVector& h = replica();
  for (size_t l = 0; l < h.size(); ++l) {
    fits = fits && std::fabs(static_cast<double>(phi[l]) - h[l]) <= range_;
  }
  StepOwn(0, bits, static_cast<float>(d), phi);
  range_ = fits ? range_ * settings_.rho : range_ / settings_.rho;
}

void AnqNids::AfterGradient(Actions& actions) {
  CountGradient();
  const absl::Span<float> x = vectors().parameters;
  FlatVector phi(x.size(), 0.0F);
  AddCorrection(absl::MakeSpan(phi));
  TakeStep(flows_.Present(plan().neighbours, Up(plan().neighbours)), StepSize(),
           vectors().gradient, phi, x);
  AddScaled(1.0F, x, absl::MakeSpan(phi));
  Quantise(phi);
  std::map<double, MassLedger::Share> by_weight;
  GiveOwn([&](const Neighbour& neighbour) {
    if (!MayGiveMass(neighbour) || !flows_.MayGive(neighbour.node)) return 0.0;
    const double w = neighbour.weight / 2;
    MassLedger::Share& share = by_weight[w];
    if (!share) {
      FlatVector made(replica().size(), 0.0F);
      AddScaled(static_cast<float>(w), replica(), absl::MakeSpan(made));
      share = std::make_shared<const FlatVector>(std::move(made));
    }
    flows_.Gave(neighbour.node, share, w);
    return w;
  });
  Exchange(Parts::kMass, Up(plan().neighbours), actions);
}

void AnqNids::AddMass(const NodeId& from, double weight,
                      absl::Span<const float> replica) {
  FlatVector share(replica.size(), 0.0F);
  AddScaled(static_cast<float>(weight), replica, absl::MakeSpan(share));
  AddScaled(1.0F, share, absl::MakeSpan(z()));
  flows_.Got(from, share, weight);
}

void AnqNids::AfterExchange(Arrivals /*arrivals*/, Actions& actions) {
  TakeUpdates();
  AddCorrection(vectors().parameters);
  EndMassRound(actions);
}

void AnqNids::AddGauges(std::map<std::string, double>& gauges) const {
  gauges["range"] = range_;
}

// ---- catalogue entry ----

AlgorithmInfo AnqNidsInfo() {
  return {
      .name = "anq-nids",
      .summary = "NIDS with differences quantised to a few bits",
      .source = "[ANQ-NIDS], our form",
      .caveats =
          "It sends differences in codes of `bits` bits, whatever codec the "
          "plan names. Module buffers (batch normalisation) are not exchanged: "
          "every node keeps its own.",
      .create = Create<AnqNids>,
      .exchange = Exchange::kPush,
      .lock_step = true,
      .dense_only = true,
      .why_dense =
          "it sends every coordinate, in as few bits as its knob bits says",
      .gives_mass = true,
      .exact_mass =
          "it sends differences, which its own knobs compress already",
      .keeps_replicas = true,
      .extra_vectors = 4,
      .edge = ReplicaCost(1) + MatchedCost(),
      .cost =
          "One gradient per round; to each neighbour bits n/8 + n/64 bytes, or "
          "4 n bytes as fp32 for a parcel that had to wait.",
      .own_step = "its correction is about plain steps of length alpha",
      .knobs = {NidsStepKnob(),
                PositiveKnob("R0", 2.0,
                             "Initial range of the differences, R_0. Choose it "
                             "about as large as the largest parameter."),
                {.name = "rho",
                 .default_value = 0.98,
                 .min = 0,
                 .max = 1,
                 .min_open = true,
                 .help = "How fast the range shrinks: R <- rho R after every "
                         "round. It widens, R <- R/rho, when a difference did "
                         "not fit."},
                {.name = "bits",
                 .type = KnobType::kInteger,
                 .default_value = int64_t{8},
                 .min = 1,
                 .max = 16,
                 .unit = "bits",
                 .help = "Bits for each coordinate, b."}}};
}

}  // namespace dfl::core
