#include "daemon/core/algorithms/anq_nids.h"

#include <algorithm>
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
      adapts(knobs.Text("range") == "largest"),
      bits(static_cast<int>(knobs.Integer("bits"))),
      local_steps(knobs.Integer("K")),
      gain(knobs.Number("c_D") / static_cast<double>(local_steps)) {
  if (bits == 0) bits = adapts ? 2 : 8;
}

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

void AnqNids::BeginRound(Actions& actions) {
  steps_left_ = settings_.local_steps;
  Compute(actions);
}

void AnqNids::AddCorrection(absl::Span<float> vector) {
  AddScaled(1.0F, z(), vector);
  flows_.AddTo(vector);
}

float AnqNids::StepOf(absl::Span<const float> phi) {
  const FlatVector& h = replica();
  double largest = 0;
  for (size_t l = 0; l < h.size(); ++l) {
    largest = std::max(largest, std::fabs(static_cast<double>(phi[l]) - h[l]));
  }
  const double range = settings_.adapts ? largest : range_;
  if (settings_.adapts) {
    if (range > 0) range_ = range;  // the gauge
  } else {
    range_ = largest <= range ? range * settings_.rho : range / settings_.rho;
  }
  const auto codes = static_cast<double>((int64_t{1} << settings_.bits) - 1);
  return static_cast<float>(2 * range / codes);
}

void AnqNids::Quantise(absl::Span<const float> phi) {
  StepOwn(0, settings_.bits, StepOf(phi), phi);
}

// x <- x + s (u - alpha g), s the share of the neighbours that are present
// (matched.h). After the last step x waits without Z, which comes back with
// what the exchange makes of it: phi - c.
void AnqNids::AfterGradient(Actions& actions) {
  CountGradient();
  const absl::Span<float> x = vectors().parameters;
  FlatVector correction(x.size(), 0.0F);
  AddCorrection(absl::MakeSpan(correction));
  const double present =
      flows_.Present(plan().neighbours, Up(plan().neighbours));
  AddScaled(static_cast<float>(-present * StepSize()), vectors().gradient, x);
  AddScaled(static_cast<float>(present * settings_.gain), correction, x);
  if (--steps_left_ > 0) return Compute(actions);
  Quantise(x);
  AddScaled(-1.0F, correction, x);
  Give(actions);
}

void AnqNids::Give(Actions& actions) {
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

namespace {

std::vector<KnobSpec> AnqNidsKnobs() {
  return {NidsStepKnob(),
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
          {.name = "range",
           .type = KnobType::kText,
           .default_value = std::string("published"),
           .choices = {"published", "largest"},
           .shared = true,
           .help = "published: R0 and rho say the range. largest: each "
                   "message has its own, the largest difference, and "
                   "nothing is clipped."},
          {.name = "bits",
           .type = KnobType::kInteger,
           .default_value = int64_t{0},
           .min = 0,
           .max = 16,
           .unit = "bits",
           .help = "Bits for each coordinate, b. 0: 8 in the published "
                   "range, 2 in the largest."},
          {.name = "K",
           .type = KnobType::kInteger,
           .default_value = int64_t{1},
           .min = 1,
           .max = 100000,
           .unit = "steps",
           .retunable = false,
           .shared = true,
           .noun = KnobNoun::kPeriod,
           .help = "Local steps in each round, all with the same "
                   "correction. 1 is the published form."},
          {.name = "c_D",
           .default_value = 1.0,
           .min = 0,
           .max = 1,
           .min_open = true,
           .retunable = false,
           .shared = true,
           .help = "Gain of the correction: it moves by c_D/(alpha K) "
                   "times the difference. 1 is the published form; 0.25 "
                   "with mini-batches or K > 1."}};
}

}  // namespace

AlgorithmInfo AnqNidsInfo() {
  return {
      .name = "anq-nids",
      .summary = "NIDS with differences quantised to a few bits",
      .source = "[ANQ-NIDS], our form",
      .caveats =
          "It sends differences in codes of `bits` bits, whatever codec the "
          "plan names. Module buffers (batch normalisation) are not exchanged: "
          "every node keeps its own.",
      .pace = "A round is K steps and one exchange.",
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
          "K gradients per round; to each neighbour at most bits n/8 + n/64 "
          "bytes, entropy coded less, or 4 n bytes as fp32 for a parcel that "
          "had to wait.",
      .own_step = "its correction is about plain steps of length alpha",
      .knobs = AnqNidsKnobs()};
}

}  // namespace dfl::core
