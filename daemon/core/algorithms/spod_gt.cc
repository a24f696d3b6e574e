#include "daemon/core/algorithms/spod_gt.h"
#include "daemon/core/algorithm/algorithm_info.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "daemon/base/distributions.h"
#include "daemon/base/rng.h"
#include "daemon/core/algorithm/state_fields.h"
#include "daemon/core/vector/flat_vector.h"

namespace dfl::core {
namespace {

constexpr double kSmallestUnbiased = 0.1;
constexpr double kSmallestDrawn = 0.01;

KnobSpec ProbabilityKnob(std::string name, std::string help) {
  KnobSpec knob;
  knob.name = std::move(name);
  knob.default_value = 1.0;
  knob.min = 0;
  knob.min_open = true;
  knob.max = 1;
  knob.noun = KnobNoun::kParticipation;
  knob.help = std::move(help);
  return knob;
}

KnobSpec ComputeKnob() {
  return ProbabilityKnob(
      "p", "Probability that the node computes a gradient in a round, p_i.");
}

KnobSpec UnbiasKnob() {
  KnobSpec unbias;
  unbias.name = "unbias";
  unbias.type = KnobType::kText;
  unbias.default_value = std::string("auto");
  unbias.choices = {"auto", "on", "off"};
  unbias.help =
      "Scale gradients by 1/p, so that unequal p minimise the sum of f_i and "
      "not of p_i f_i. auto: on while every p is at least 0.1 (noise, else) "
      "and none is drawn; off: the paper's form.";
  unbias.shared = true;
  return unbias;
}

KnobSpec DrawKnob() {
  KnobSpec draw;
  draw.name = "p_draw";
  draw.type = KnobType::kText;
  draw.default_value = std::string("off");
  draw.choices = {"off", "beta"};
  draw.noun = KnobNoun::kParticipation;
  draw.help =
      "beta: the probabilities of this node and of each of its links are drawn "
      "once from Beta(0.5, 0.5), by the run's seed, in place of those given "
      "([Spod-GT] sec. 5); less than 0.01 counts as 0.01.";
  draw.shared = true;
  return draw;
}

bool Has(const Knobs& knobs, const char* name) {
  return knobs.values().count(name) > 0;
}

// Whether probabilities are drawn instead of given.
bool Draws(const Knobs& knobs) {
  return Has(knobs, "p_draw") && knobs.Text("p_draw") == "beta";
}

// The node's own p, or the p_hat of its link to `peer`: the same at each call.
double DrawnProbability(uint64_t run_seed, absl::string_view knob,
                        const NodeId& self, const NodeId& peer) {
  Rng rng(DeriveSeed(DeriveSeed(DeriveSeed(run_seed, knob), self.name()),
                     peer.name()));
  return std::max(kSmallestDrawn, Beta(rng, 0.5, 0.5));
}

KnobSpec SendKnob() {
  return ProbabilityKnob(
      "p_hat",
      "Probability that the node sends to an out-neighbour in a round, each "
      "drawn by itself.");
}

AlgorithmInfo Info(std::string name, std::string summary, bool computes,
                   bool sends) {
  AlgorithmInfo info;
  info.name = std::move(name);
  info.summary = std::move(summary);
  info.source = "[Spod-GT] Alg. 1, eq. (2), (3)";
  info.caveats =
      "A step that is too large for the graph diverges; halve eta on sparse or "
      "unbalanced digraphs. A node mixes but does not step while all its "
      "out-neighbours are away and others still send to it; cut off altogether "
      "after that, it steps without what they sent.";
  info.exchange = Exchange::kPush;
  info.graphs = GraphKind::kDirected;
  info.lock_step = true;
  info.dense_only = true;
  info.why_dense =
      "models are mixed by the weights that trackers move by, whole ones";
  info.gives_mass = true;
  info.auxiliary = {"y"};
  info.gradient_estimate = "y";
  info.extra_vectors = 2;  // one of them while it is a sink
  info.edge = LedgerCost() + PushCost();
  info.cost =
      "At most one gradient a round; to each drawn out-neighbour 8 n bytes "
      "as fp32, a model and a tracker.";
  info.knobs = {PositiveKnob("eta", 0.01, "Step size.")};
  if (computes) {
    info.knobs.push_back(ComputeKnob());
    info.knobs.push_back(UnbiasKnob());
  }
  if (sends) info.knobs.push_back(SendKnob());
  if (computes || sends) info.knobs.push_back(DrawKnob());
  info.knobs.push_back(MaxLagKnob());
  return info;
}

}  // namespace

AlgorithmInfo SpodGtInfo() {
  return Info("spod-gt",
              "Gradient tracking on digraphs; computes and sends sporadically",
              true, true);
}

AlgorithmInfo PushPullInfo() {
  return Info("push-pull", "Gradient tracking on digraphs (AB)", false, false);
}

AlgorithmInfo GPushPullInfo() {
  return Info("g-push-pull",
              "Gradient tracking on digraphs; links are used at random", false,
              true);
}

AlgorithmInfo SporadicKGtInfo() {
  return Info("sporadic-k-gt",
              "Gradient tracking on digraphs; gradients at random", true,
              false);
}

std::optional<DrawnProbabilities> DrawnBy(const NodePlan& plan) {
  if (!Draws(plan.knobs)) return std::nullopt;
  DrawnProbabilities drawn;
  if (Has(plan.knobs, "p")) {
    drawn.p = DrawnProbability(plan.seed, "p", plan.self, plan.self);
  }
  if (!Has(plan.knobs, "p_hat")) return drawn;
  for (const Neighbour& neighbour : plan.out_neighbours) {
    drawn.p_hat[neighbour.node] =
        DrawnProbability(plan.seed, "p_hat", plan.self, neighbour.node);
  }
  return drawn;
}

SpodGt::SpodGt(AlgorithmContext context, Decisions& decisions)
    : MassRounds(std::move(context), &NodePlan::in_neighbours),
      decisions_(decisions) {}

void SpodGt::ResetMass() {
  z_.assign(vectors().parameters.size(), 0.0F);
  held_.clear();
}

void SpodGt::ResetState() {
  begun_ = false;
  scale_ = 0;
}

void SpodGt::VisitState(StateFields& fields) {
  MassRounds::VisitState(fields);
  fields.Flag("begun", begun_);
  fields.Number("v", scale_);
  fields.Vector("z", z_, n());
  bool holds = !held_.empty();
  fields.Flag("holds", holds);
  held_.resize(holds ? n() : 0);
  if (holds) fields.Vector("held", held_, n());
  fields.Count("sent", sent_);
  fields.Count("could_send", could_send_);
}

double SpodGt::Probability(const char* knob, const NodeId& peer) const {
  if (!Has(plan().knobs, knob)) return 1;
  if (!Draws(plan().knobs)) return plan().knobs.Number(knob);
  return DrawnProbability(plan().seed, knob, plan().self, peer);
}

float SpodGt::Scale() const {
  if (!Has(plan().knobs, "unbias")) return 1;
  const std::string& unbias = plan().knobs.Text("unbias");
  const bool on = unbias == "on" || (unbias == "auto" && !Draws(plan().knobs) &&
                                     plan().least_p >= kSmallestUnbiased);
  return on ? static_cast<float>(1 / Probability("p", plan().self)) : 1.0F;
}

FlatVector SpodGt::Tracker() const {
  FlatVector y(z_);
  if (scale_ != 0) AddScaled(scale_, vectors().gradient, absl::MakeSpan(y));
  return y;
}

bool SpodGt::IsSink() const {
  const std::vector<Neighbour>& to = plan().out_neighbours;
  return !to.empty() && Up(to).empty() && !Up(plan().in_neighbours).empty();
}

void SpodGt::BeginRound(Actions& actions) {
  phase_ = Phase::kFirstGradient;
  if (begun_) {
    Send(actions);
  } else {
    MayCompute(actions);
  }
}

void SpodGt::MayCompute(Actions& actions) {
  begun_ = true;
  scale_ = 0;
  const NodeId& self = plan().self;
  if (decisions_.Happens("compute", self, Probability("p", self))) {
    Compute(actions);
  } else if (phase_ == Phase::kFirstGradient) {
    Send(actions);
  } else {
    EndMassRound(actions);
  }
}

void SpodGt::AfterGradient(Actions& actions) {
  scale_ = Scale();
  CountGradient();
  if (phase_ == Phase::kFirstGradient) {
    Send(actions);
  } else {
    EndMassRound(actions);
  }
}

void SpodGt::Send(Actions& actions) {
  phase_ = Phase::kExchange;
  std::vector<Neighbour> drawn;
  Skip skip;
  skip.round = step();
  for (const Neighbour& neighbour : Up(plan().out_neighbours)) {
    ++could_send_;
    const NodeId& to = neighbour.node;
    if (decisions_.Happens("send", to, Probability("p_hat", to))) {
      drawn.push_back(neighbour);
    } else {
      skip.peers.push_back(neighbour.node);
    }
  }
  sent_ += static_cast<int64_t>(drawn.size());
  if (!skip.peers.empty()) actions.Do(std::move(skip));
  GiveShares(drawn, Tracker(), absl::MakeSpan(z_));
  Exchange(Parts::kModelsAndMass, drawn, actions);
}

void SpodGt::AfterExchange(Arrivals arrivals, Actions& actions) {
  MixArrivals(arrivals, vectors().parameters, vectors().buffers);
  TakeMass();
  Step();
  phase_ = Phase::kGradient;
  MayCompute(actions);
}

void SpodGt::TakeMass() {
  if (!Up(plan().out_neighbours).empty()) held_.clear();
  if (!IsSink()) {
    ledger().AddTo(step(), absl::MakeSpan(z_));
    return;
  }
  if (held_.empty()) held_.assign(n(), 0.0F);
  AddScaled(-1.0F, z_, absl::MakeSpan(held_));
  ledger().AddTo(step(), absl::MakeSpan(z_));
  AddScaled(1.0F, z_, absl::MakeSpan(held_));
}

// What others gave to a sink is their descent, not this node's: it does not step
// while it comes in. Where nobody sends any more either, it steps without it: the
// sum at the time of the cut would drive it away for as long as it is alone.
void SpodGt::Step() {
  if (IsSink()) return;
  FlatVector y = Tracker();
  if (!held_.empty()) AddScaled(-1.0F, held_, absl::MakeSpan(y));
  AddScaled(static_cast<float>(-StepSize()), y, vectors().parameters);
}

void SpodGt::AddGauges(std::map<std::string, double>& gauges) const {
  gauges["send_share"] =
      could_send_ == 0
          ? 1
          : static_cast<double>(sent_) / static_cast<double>(could_send_);
}

}  // namespace dfl::core
