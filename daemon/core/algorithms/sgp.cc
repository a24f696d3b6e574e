#include "daemon/core/algorithms/sgp.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "daemon/core/algorithm/network.h"
#include "daemon/core/algorithm/state_fields.h"
#include "daemon/core/graph/mixing.h"
#include "daemon/core/vector/flat_vector.h"

namespace dfl::core {
namespace {

// The least omega where the graph does not tell it.
constexpr double kLeastOmega = 0.2;
// Sums of shares are rounded.
constexpr double kRounding = 1 + 1e-6;
// With less than this it gives nothing until something comes: halved every
// round omega would soon be 0, and the model x/omega no number.
constexpr double kLeastOmegaGiven = 1e-3;

}  // namespace

double SgpStepShare(double omega, double own_share, double b,
                    double least_omega) {
  const double bound = omega / least_omega * b / std::max(b, own_share);
  return std::min(1.0, kRounding * bound);
}

Sgp::Settings::Settings(const NodePlan& plan) : eta(plan.knobs.Number("eta")) {
  const std::vector<double>& known = FactsOf<SgpFacts>(plan).least_omega;
  least_omega =
      known.empty() ? kLeastOmega : known[static_cast<size_t>(plan.place)];
}

Sgp::Sgp(AlgorithmContext context)
    : MassRounds(std::move(context), &NodePlan::in_neighbours),
      settings_(plan()) {}

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

double Sgp::StepSize() const {
  return settings_.eta * SgpStepShare(omega_, own_share_, plan().sender_weight,
                                      settings_.least_omega);
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

// ---- catalogue entry ----

namespace {

// Least omegas are known of a graph that stays as it is and lets every member
// reach every other.
std::shared_ptr<const AlgorithmFacts> DeriveOmega(const Network& network) {
  auto facts = std::make_shared<SgpFacts>();
  if (network.varies) return facts;
  const Graph* undirected = std::get_if<Graph>(&network.graph);
  const Digraph graph = undirected != nullptr
                            ? Digraph(*undirected)
                            : std::get<Digraph>(network.graph);
  if (graph.IsStronglyConnected()) facts->least_omega = LeastOmega(graph);
  return facts;
}

// The ledger's cost; nothing is given while something is out.
EdgeCost SgpCost() {
  EdgeCost cost = LedgerCost();
  cost.given = 1;
  return cost;
}

}  // namespace

AlgorithmInfo SgpInfo() {
  return {
      .name = "sgp",
      .summary = "Push-sum SGD on digraphs",
      .source = "[SGP] Alg. 1",
      .caveats =
          "A node whose incoming links fail loses its weight omega. Its "
          "step shrinks when omega falls below the least value it takes on "
          "this graph while nothing fails (0.2 where that is not known, which "
          "is on a graph that varies or is not strongly connected), or when a "
          "smaller share of omega comes from others. Below omega = 0.001 a "
          "node keeps what it has. Module buffers (batch normalisation) are "
          "not exchanged: every node keeps its own, because only what is "
          "trained is pushed.",
      .create = Create<Sgp>,
      .derive = DeriveOmega,
      .exchange = Exchange::kPush,
      .graphs = GraphKind::kDirected,
      .lock_step = true,
      .dense_only = true,
      .why_dense = "a part of x with all of omega would be another model",
      .gives_mass = true,
      .exact_mass =
          "a part of x that stays behind while all of its omega goes changes "
          "the model x/omega",
      .extra_vectors = 1,
      .edge = SgpCost(),
      .cost =
          "One gradient per round; to each out-neighbour 4 n bytes as fp32.",
      .own_step = "it steps in x, while its model is x/omega",
      .knobs = {PositiveKnob("eta", 0.01, "Step size."), MaxLagKnob()}};
}

}  // namespace dfl::core
