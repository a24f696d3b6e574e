#include "daemon/core/algorithms/sgp.h"
#include "daemon/core/algorithm/algorithm_info.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "daemon/core/algorithm/state_fields.h"
#include "daemon/core/vector/flat_vector.h"

namespace dfl::core {
namespace {

// NodePlan::least_omega of a plan that can't tell.
constexpr double kLeastOmega = 0.2;
// Sums of shares are rounded.
constexpr double kRounding = 1 + 1e-6;
// With less than this it gives nothing until something comes: halved every round
// omega would soon be 0, and the model x/omega no number.
constexpr double kLeastOmegaGiven = 1e-3;

}  // namespace

AlgorithmInfo SgpInfo() {
  AlgorithmInfo info;
  info.name = "sgp";
  info.summary = "Push-sum SGD on digraphs";
  info.source = "[SGP] Alg. 1";
  info.caveats =
      "A node whose incoming links fail gives its weight away. With less than "
      "it ever has on this graph while nothing fails (0.2 where that is not "
      "known: a graph that varies or is not strongly connected), or with a "
      "smaller share of it from others, its step shrinks; below omega = 0.001 "
      "it keeps what it has. Module buffers (batch normalisation) stay each "
      "node's own: only what is trained is pushed.";
  info.exchange = Exchange::kPush;
  info.graphs = GraphKind::kDirected;
  info.lock_step = true;
  info.dense_only = true;
  info.why_dense = "a part of x with all of omega is another model";
  info.gives_mass = true;
  info.wants_omega = true;
  info.exact_mass =
      "a part of x that stays behind while all of its omega goes changes the "
      "model x/omega";
  info.extra_vectors = 1;
  info.edge = LedgerCost();
  info.edge.given = 1;  // nothing is given while something is out
  info.cost = "One gradient a round; to each out-neighbour 4 n bytes as fp32.";
  info.knobs = {PositiveKnob("eta", 0.01, "Step size."), MaxLagKnob()};
  return info;
}

Sgp::Sgp(AlgorithmContext context)
    : MassRounds(std::move(context), &NodePlan::in_neighbours) {}

void Sgp::ResetMass() {
  x_.assign(vectors().parameters.begin(), vectors().parameters.end());
  omega_ = 1;
  own_share_ = 0;
}

void Sgp::VisitState(StateFields& fields) {
  MassRounds::VisitState(fields);
  fields.Vector("x", x_, n());
  fields.Number("omega", omega_);
  fields.Number("own_share", own_share_);
}

void Sgp::BeginRound(Actions& actions) { Compute(actions); }

// A step of x moves the model z by step/omega, and of the next z a share is the
// node's own: while nothing fails at most b_ii eta/least_omega, which the loss has
// to bear. Where a cut has let omega fall, or nothing comes from others any more,
// more than that would blow up, be it only in what is cut off.
double Sgp::StepSize() const {
  const double least =
      plan().least_omega > 0 ? plan().least_omega : kLeastOmega;
  const double b = plan().sender_weight;
  const double bound = omega_ / least * b / std::max(b, own_share_);
  return plan().knobs.Number("eta") * std::min(1.0, kRounding * bound);
}

void Sgp::AfterGradient(Actions& actions) {
  CountGradient();
  AddScaled(static_cast<float>(-StepSize()), vectors().gradient,
            absl::MakeSpan(x_));
  // Not to those who have not got the last parcel yet: what waits is nobody's.
  std::vector<Neighbour> receivers = Up(plan().out_neighbours);
  receivers.erase(
      std::remove_if(receivers.begin(), receivers.end(),
                     [&](const Neighbour& n) { return ledger().Owes(n.node); }),
      receivers.end());
  if (omega_ < kLeastOmegaGiven && !receivers.empty()) {
    Skip skip;
    skip.round = step();
    for (const Neighbour& receiver : receivers) {
      skip.peers.push_back(receiver.node);
    }
    actions.Do(std::move(skip));
    receivers.clear();
  }
  double given = 0;
  for (const Neighbour& receiver : receivers) given += receiver.weight * omega_;
  GiveShares(receivers, x_, absl::MakeSpan(x_), omega_);
  omega_ -= given;
  Exchange(Parts::kMass, receivers, actions);
}

void Sgp::AfterExchange(Arrivals /*arrivals*/, Actions& actions) {
  const double kept = omega_;
  omega_ += ledger().AddTo(step(), absl::MakeSpan(x_));
  own_share_ = kept / omega_;
  const auto omega = static_cast<float>(omega_);
  for (size_t l = 0; l < x_.size(); ++l) {
    vectors().parameters[l] = x_[l] / omega;
  }
  EndMassRound(actions);
}

void Sgp::AddGauges(std::map<std::string, double>& gauges) const {
  gauges["omega"] = omega_;
}

}  // namespace dfl::core
