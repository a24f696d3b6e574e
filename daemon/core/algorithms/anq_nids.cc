#include "daemon/core/algorithms/anq_nids.h"
#include "daemon/core/algorithm/algorithm_info.h"

#include <cmath>
#include <memory>
#include <utility>

#include "daemon/core/algorithm/state_fields.h"
#include "daemon/core/algorithms/nids.h"
#include "daemon/core/vector/flat_vector.h"

namespace dfl::core {

AlgorithmInfo AnqNidsInfo() {
  AlgorithmInfo info;
  info.name = "anq-nids";
  info.summary = "NIDS with differences quantised to a few bits";
  info.source = "[ANQ-NIDS], our form";
  info.caveats =
      "What travels are differences in codes of `bits` bits, whatever the "
      "plan's codec. Module buffers (batch normalisation) stay each node's "
      "own.";
  info.exchange = Exchange::kPush;
  info.lock_step = true;
  info.dense_only = true;
  info.why_dense =
      "all coordinates are sent, in as few bits as its knob bits says";
  info.gives_mass = true;
  info.keeps_replicas = true;
  info.exact_mass = "it sends differences, compressed by its own knobs already";
  info.extra_vectors = 4;
  info.edge = ReplicaCost(1) + MatchedCost();
  info.cost =
      "One gradient a round; to each neighbour bits n/8 + n/64 bytes, or 4 "
      "n as fp32 of a parcel that had to wait.";
  KnobSpec rho;
  rho.name = "rho";
  rho.default_value = 0.98;
  rho.min = 0;
  rho.min_open = true;
  rho.max = 1;
  rho.help =
      "How the range shrinks from round to round, R <- rho R; it widens, R <- "
      "R/rho, where a difference did not fit.";
  KnobSpec bits;
  bits.name = "bits";
  bits.type = KnobType::kInteger;
  bits.default_value = int64_t{8};
  bits.min = 1;
  bits.max = 16;
  bits.unit = "bits";
  bits.help = "Bits a coordinate, b.";
  info.knobs = {NidsStepKnob(),
                PositiveKnob("R0", 2.0,
                             "The range of differences at first, R_0: about "
                             "the largest parameter."),
                rho, bits};
  return info;
}

AnqNids::AnqNids(AlgorithmContext context)
    : ReplicaRounds(std::move(context), 1, true) {}

void AnqNids::ResetMass() {
  ReplicaRounds::ResetMass();
  flows_.Clear();
  range_ = plan().knobs.Number("R0");
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
  const auto bits = static_cast<int>(plan().knobs.Integer("bits"));
  const double d = 2 * range_ / static_cast<double>((int64_t{1} << bits) - 1);
  bool fits = true;
  const FlatVector& h = replica();
  for (size_t l = 0; l < h.size(); ++l) {
    fits = fits && std::fabs(static_cast<double>(phi[l]) - h[l]) <= range_;
  }
  StepOwn(0, bits, static_cast<float>(d), phi);
  const double rho = plan().knobs.Number("rho");
  range_ = fits ? range_ * rho : range_ / rho;
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

}  // namespace dfl::core
