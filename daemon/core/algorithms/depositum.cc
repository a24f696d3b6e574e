#include "daemon/core/algorithms/depositum.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "daemon/core/algorithm/state_fields.h"
#include "daemon/core/vector/flat_vector.h"

namespace dfl::core {
namespace {

// Line 1 of an iteration, coordinate by coordinate.
class Momentum {
 public:
  Momentum(float gamma, bool nesterov) : gamma_(gamma), nesterov_(nesterov) {}

  // What is kept: nu (Polyak) or mu (Nesterov).
  float Next(float momentum, float y) const {
    return gamma_ * momentum + (1 - gamma_) * y;
  }
  // nu, from what is kept by then.
  float Nu(float next, float y) const {
    return nesterov_ ? gamma_ * next + (1 - gamma_) * y : next;
  }

 private:
  float gamma_;
  bool nesterov_;
};

}  // namespace

Depositum::Settings::Settings(const Knobs& knobs)
    : alpha(knobs.Number("alpha")),
      beta(static_cast<float>(knobs.Number("beta"))),
      gamma(static_cast<float>(knobs.Number("gamma"))),
      nesterov(knobs.Text("option") == "nesterov"),
      period(knobs.Integer("T0")),
      prox(ProxOf(knobs)) {}

Depositum::Depositum(AlgorithmContext context)
    : MassRounds(std::move(context), &NodePlan::neighbours),
      settings_(plan().knobs) {}

void Depositum::ResetMass() { z_.assign(vectors().parameters.size(), 0.0F); }

void Depositum::ResetState() {
  begun_ = false;
  momentum_.assign(vectors().parameters.size(), 0.0F);
}

void Depositum::VisitState(StateFields& fields) {
  MassRounds::VisitState(fields);
  fields.Flag("begun", begun_);
  fields.Vector("z", z_, n());
  fields.Vector("momentum", momentum_, n());
}

int64_t Depositum::NextExchange(int64_t step) const {
  const int64_t period = settings_.period;
  return std::max(period, (step + period - 1) / period * period);
}

void Depositum::BeginRound(Actions& actions) {
  const int64_t period = settings_.period;
  mixes_ = step() > 0 && step() % period == 0;
  trained_ = false;

  const double alpha = StepSize();
  const float beta = settings_.beta;
  const Momentum rule(settings_.gamma, settings_.nesterov);
  const absl::Span<float> x = vectors().parameters;
  const absl::Span<const float> g = vectors().gradient;
  for (size_t l = 0; l < z_.size(); ++l) {
    const float y = begun_ ? z_[l] + beta * g[l] : z_[l];
    momentum_[l] = rule.Next(momentum_[l], y);
    x[l] -= static_cast<float>(alpha) * rule.Nu(momentum_[l], y);
  }
  ApplyProx(settings_.prox, alpha, x);
  if (mixes_) {
    Exchange(Parts::kModels, Up(plan().neighbours), actions);
  } else {
    Compute(actions);
  }
}

void Depositum::AfterGradient(Actions& actions) {
  trained_ = true;
  begun_ = true;
  CountGradient();
  if (!mixes_) {
    EndMassRound(actions);
    return;
  }
  // y^, of which W_ji goes to each neighbour j.
  const std::vector<Neighbour> receivers = Up(plan().neighbours);
  GiveShares(receivers, Tracker(), absl::MakeSpan(z_));
  Exchange(Parts::kMass, receivers, actions);
}

void Depositum::AfterExchange(Arrivals arrivals, Actions& actions) {
  if (!trained_) {
    MixArrivals(arrivals, vectors().parameters, vectors().buffers);
    Compute(actions);
    return;
  }
  ledger().AddTo(step(), absl::MakeSpan(z_));
  EndMassRound(actions);
}

FlatVector Depositum::Tracker() const {
  FlatVector y(z_);
  if (begun_) {
    AddScaled(settings_.beta, vectors().gradient, absl::MakeSpan(y));
  }
  return y;
}

FlatVector Depositum::Auxiliary(absl::string_view symbol) const {
  if (symbol != "y" && symbol != "nu") return {};
  FlatVector vector = Tracker();
  if (symbol == "y") return vector;
  const Momentum rule(settings_.gamma, settings_.nesterov);
  for (size_t l = 0; l < vector.size(); ++l) {
    vector[l] = rule.Nu(rule.Next(momentum_[l], vector[l]), vector[l]);
  }
  return vector;
}

void Depositum::AddGauges(std::map<std::string, double>& gauges) const {
  gauges["sparsity"] = Sparsity(vectors().parameters);
}

// ---- catalogue entry ----

namespace {

std::vector<KnobSpec> DepositumKnobs() {
  return Joined(
      Joined({PositiveKnob("alpha", 0.05, "Step size."),
              PositiveKnob("beta", 1.0,
                           "Weight of gradients in the tracker. The "
                           "product alpha beta sets the pace, and the "
                           "limit minimises f + h/beta."),
              {.name = "gamma",
               .default_value = 0.5,
               .min = 0,
               .max = 1,
               .max_open = true,
               .help = "Momentum; 0 means none."},
              {.name = "option",
               .type = KnobType::kText,
               .default_value = std::string("polyak"),
               .choices = {"polyak", "nesterov"},
               .retunable = false,
               .help = "Which momentum: Option I (polyak) or II "
                       "(nesterov)."},
              {.name = "T0",
               .type = KnobType::kInteger,
               .default_value = int64_t{10},
               .min = 1,
               .unit = "steps",
               .shared = true,
               .noun = KnobNoun::kPeriod,
               .help = "Steps from one exchange to the next."}},
             ProxKnobs()),
      {MaxLagKnob()});
}

}  // namespace

AlgorithmInfo DepositumInfo() {
  return {
      .name = "depositum",
      .summary = "Proximal gradient tracking with momentum",
      .source = "[DEPOSITUM] Alg. 1",
      .caveats =
          "The limit minimises f + h/beta. To solve the problem as it is "
          "stated, use beta = 1 or scale the penalty: for l1 use beta lambda; "
          "for mcp use beta lambda and theta/beta, with alpha < theta/beta; "
          "for scad only beta = 1 will do.",
      .pace =
          "Every iteration is one step. A round is one exchange: every T0 "
          "steps, from step T0 on.",
      .create = Create<Depositum>,
      .exchange = Exchange::kPush,
      .lock_step = true,
      .round_is_iteration = false,
      .prox_steps =
          [](const Knobs& knobs) {
            return std::vector<double>{knobs.Number("alpha")};
          },
      .dense_only = true,
      .why_dense =
          "it mixes whole models by the same weights that move the trackers",
      .gives_mass = true,
      .auxiliary = {"y", "nu"},
      .gradient_estimate = "nu",
      .extra_vectors = 2,
      .edge = LedgerCost() + PushCost(),
      .cost =
          "One gradient per iteration; every T0 of them to each neighbour 8 n "
          "bytes as fp32, for a model and a tracker.",
      .own_step = "momentum and proximal point belong to its own step",
      .knobs = DepositumKnobs()};
}

}  // namespace dfl::core
