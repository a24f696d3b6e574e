#include "daemon/core/algorithms/depositum.h"
#include "daemon/core/algorithm/algorithm_info.h"

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
  explicit Momentum(const Knobs& knobs)
      : gamma_(static_cast<float>(knobs.Number("gamma"))),
        nesterov_(knobs.Text("option") == "nesterov") {}

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

AlgorithmInfo DepositumInfo() {
  AlgorithmInfo info;
  info.name = "depositum";
  info.summary = "Proximal gradient tracking with momentum";
  info.source = "[DEPOSITUM] Alg. 1";
  info.caveats =
      "The limit minimises f + h/beta: for the stated problem use beta = 1, or "
      "scale the penalty (l1: beta lambda; mcp: beta lambda and theta/beta, "
      "with alpha < theta/beta; scad: beta = 1).";
  info.exchange = Exchange::kPush;
  info.lock_step = true;
  info.dense_only = true;
  info.why_dense =
      "models are mixed by the weights that trackers move by, whole ones";
  info.gives_mass = true;
  info.auxiliary = {"y", "nu"};
  info.gradient_estimate = "nu";
  info.extra_vectors = 2;
  info.edge = LedgerCost() + PushCost();
  info.cost =
      "One gradient an iteration; every T0 iterations to each neighbour 8 "
      "n bytes as fp32, a model and a tracker.";
  KnobSpec gamma;
  gamma.name = "gamma";
  gamma.default_value = 0.5;
  gamma.min = 0;
  gamma.max = 1;
  gamma.max_open = true;
  gamma.help = "Momentum; 0: none.";
  KnobSpec option;
  option.name = "option";
  option.type = KnobType::kText;
  option.default_value = std::string("polyak");
  option.choices = {"polyak", "nesterov"};
  option.retunable = false;
  option.help = "Which momentum: Option I (polyak) or II (nesterov).";
  KnobSpec period;
  period.name = "T0";
  period.type = KnobType::kInteger;
  period.default_value = int64_t{10};
  period.min = 1;
  period.unit = "iterations";
  period.noun = KnobNoun::kPeriod;
  period.shared = true;
  period.help = "Iterations between two exchanges.";
  info.knobs = {PositiveKnob("alpha", 0.05, "Step size."),
                PositiveKnob("beta", 1.0,
                             "Weight of gradients in the tracker; the pace is "
                             "set by alpha beta, and the limit minimises "
                             "f + h/beta."),
                gamma, option, period};
  for (KnobSpec& knob : ProxKnobs()) info.knobs.push_back(std::move(knob));
  info.knobs.push_back(MaxLagKnob());
  info.prox_steps = [](const Knobs& knobs) {
    return std::vector<double>{knobs.Number("alpha")};
  };
  return info;
}

Depositum::Depositum(AlgorithmContext context)
    : MassRounds(std::move(context), &NodePlan::neighbours) {}

void Depositum::ResetMass() { z_.assign(vectors().parameters.size(), 0.0F); }

void Depositum::ResetState() {
  has_gradient_ = false;
  momentum_.assign(vectors().parameters.size(), 0.0F);
}

void Depositum::VisitState(StateFields& fields) {
  MassRounds::VisitState(fields);
  fields.Flag("has_gradient", has_gradient_);
  fields.Vector("z", z_, n());
  fields.Vector("momentum", momentum_, n());
}

int64_t Depositum::NextExchange(int64_t step) const {
  const int64_t period = plan().knobs.Integer("T0");
  return std::max(period, (step + period - 1) / period * period);
}

void Depositum::BeginRound(Actions& actions) {
  const int64_t period = plan().knobs.Integer("T0");
  mixes_ = step() > 0 && step() % period == 0;
  trained_ = false;

  const double alpha = StepSize();
  const float beta = Beta();
  const Momentum rule(plan().knobs);
  const absl::Span<float> x = vectors().parameters;
  const absl::Span<const float> g = vectors().gradient;
  for (size_t l = 0; l < z_.size(); ++l) {
    const float y = has_gradient_ ? z_[l] + beta * g[l] : z_[l];
    momentum_[l] = rule.Next(momentum_[l], y);
    x[l] -= static_cast<float>(alpha) * rule.Nu(momentum_[l], y);
  }
  ApplyProx(ProxOf(plan().knobs), alpha, x);
  if (mixes_) {
    Exchange(Parts::kModels, Up(plan().neighbours), actions);
  } else {
    Compute(actions);
  }
}

void Depositum::AfterGradient(Actions& actions) {
  trained_ = true;
  has_gradient_ = true;
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
  if (has_gradient_) {
    AddScaled(Beta(), vectors().gradient, absl::MakeSpan(y));
  }
  return y;
}

FlatVector Depositum::Auxiliary(absl::string_view symbol) const {
  if (symbol != "y" && symbol != "nu") return {};
  FlatVector vector = Tracker();
  if (symbol == "y") return vector;
  const Momentum rule(plan().knobs);
  for (size_t l = 0; l < vector.size(); ++l) {
    vector[l] = rule.Nu(rule.Next(momentum_[l], vector[l]), vector[l]);
  }
  return vector;
}

void Depositum::AddGauges(std::map<std::string, double>& gauges) const {
  gauges["sparsity"] = Sparsity(vectors().parameters);
}

}  // namespace dfl::core
