#include "daemon/core/algorithms/spod_gt.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "daemon/base/distributions.h"
#include "daemon/base/rng.h"
#include "daemon/core/algorithm/network.h"
#include "daemon/core/algorithm/state_fields.h"
#include "daemon/core/vector/flat_vector.h"

namespace dfl::core {
namespace {

constexpr double kSmallestUnbiased = 0.1;
constexpr double kSmallestDrawn = 0.01;

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

}  // namespace

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

// ---------------------------------------------------------------- sinks ----

void SinkRule::SetLinks(size_t out, size_t out_up, size_t in_up) {
  sink_ = out > 0 && out_up == 0 && in_up > 0;
  if (out_up > 0) held_.clear();
}

void SinkRule::Take(absl::Span<const float> z, absl::FunctionRef<void()> take) {
  if (!sink_) {
    take();
    return;
  }
  if (held_.empty()) held_.assign(z.size(), 0.0F);
  AddScaled(-1.0F, z, absl::MakeSpan(held_));
  take();
  AddScaled(1.0F, z, absl::MakeSpan(held_));
}

void SinkRule::Deduct(absl::Span<float> y) const {
  if (!held_.empty()) AddScaled(-1.0F, held_, y);
}

void SinkRule::Reset() { held_.clear(); }

void SinkRule::VisitState(StateFields& fields, size_t n) {
  bool holds = !held_.empty();
  fields.Vector("held", holds, held_, n);
  if (!holds) held_.clear();
}

// --------------------------------------------------------------- rounds ----

SpodGt::Settings::Settings(const NodePlan& plan)
    : eta(plan.knobs.Number("eta")) {
  const Knobs& knobs = plan.knobs;
  const std::optional<DrawnProbabilities> drawn = DrawnBy(plan);
  if (Has(knobs, "p")) p = drawn ? *drawn->p : knobs.Number("p");
  for (const Neighbour& neighbour : plan.out_neighbours) {
    const NodeId& to = neighbour.node;
    p_hat[to] = !Has(knobs, "p_hat") ? 1
                : drawn              ? drawn->p_hat.at(to)
                                     : knobs.Number("p_hat");
  }
  if (!Has(knobs, "unbias")) return;
  const std::string& unbias = knobs.Text("unbias");
  if (unbias == "on" ||
      (unbias == "auto" && !drawn &&
       FactsOf<SpodGtFacts>(plan).least_p >= kSmallestUnbiased)) {
    scale = static_cast<float>(1 / p);
  }
}

SpodGt::SpodGt(AlgorithmContext context, Decisions& decisions)
    : MassRounds(std::move(context), &NodePlan::in_neighbours),
      settings_(plan()),
      decisions_(decisions) {}

void SpodGt::ResetMass() {
  z_.assign(vectors().parameters.size(), 0.0F);
  sink_rule_.Reset();
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
  sink_rule_.VisitState(fields, n());
  fields.Count("sent", sent_);
  fields.Count("could_send", could_send_);
}

FlatVector SpodGt::Tracker() const {
  FlatVector y(z_);
  if (scale_ != 0) AddScaled(scale_, vectors().gradient, absl::MakeSpan(y));
  return y;
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
  if (decisions_.Happens("compute", plan().self, settings_.p)) {
    Compute(actions);
  } else if (phase_ == Phase::kFirstGradient) {
    Send(actions);
  } else {
    EndMassRound(actions);
  }
}

void SpodGt::AfterGradient(Actions& actions) {
  scale_ = settings_.scale;
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
    if (decisions_.Happens("send", to, settings_.p_hat.at(to))) {
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
  sink_rule_.SetLinks(plan().out_neighbours.size(),
                      Up(plan().out_neighbours).size(),
                      Up(plan().in_neighbours).size());
  sink_rule_.Take(z_, [&] { ledger().AddTo(step(), absl::MakeSpan(z_)); });
  if (!sink_rule_.sink()) Step();
  phase_ = Phase::kGradient;
  MayCompute(actions);
}

void SpodGt::Step() {
  FlatVector y = Tracker();
  sink_rule_.Deduct(absl::MakeSpan(y));
  AddScaled(static_cast<float>(-StepSize()), y, vectors().parameters);
}

void SpodGt::AddGauges(std::map<std::string, double>& gauges) const {
  gauges["send_share"] =
      could_send_ == 0
          ? 1
          : static_cast<double>(sent_) / static_cast<double>(could_send_);
}

// ---- catalogue entry ----

namespace {

std::shared_ptr<const AlgorithmFacts> DeriveLeastP(const Network& network) {
  auto facts = std::make_shared<SpodGtFacts>();
  for (const double p : network.Numbers("p")) {
    facts->least_p = std::min(facts->least_p, p);
  }
  return facts;
}

StepsOf StepsOfKnobs(const Knobs& knobs) {
  return Draws(knobs) || knobs.Number("p") < 1 ? StepsOf::kChance
                                               : StepsOf::kAll;
}

KnobSpec ProbabilityKnob(std::string name, std::string help) {
  return {.name = std::move(name),
          .default_value = 1.0,
          .min = 0,
          .max = 1,
          .min_open = true,
          .noun = KnobNoun::kParticipation,
          .help = std::move(help)};
}

std::vector<KnobSpec> ComputeKnobs() {
  return {
      ProbabilityKnob(
          "p",
          "Probability that the node computes a gradient in a round, p_i."),
      {.name = "unbias",
       .type = KnobType::kText,
       .default_value = std::string("auto"),
       .choices = {"auto", "on", "off"},
       .shared = true,
       .help =
           "on: gradients are multiplied by 1/p, so that unequal p minimise "
           "the sum of f_i and not that of p_i f_i. off: the paper's form. "
           "auto: on while every p is at least 0.1 (a smaller one would "
           "make noise) and none is drawn."}};
}

KnobSpec DrawKnob() {
  return {.name = "p_draw",
          .type = KnobType::kText,
          .default_value = std::string("off"),
          .choices = {"off", "beta"},
          .shared = true,
          .noun = KnobNoun::kParticipation,
          .help =
              "beta: the probabilities of this node and of each of its "
              "links are not those given. They are drawn once from "
              "Beta(0.5, 0.5), by the run's seed ([Spod-GT] sec. 5); less "
              "than 0.01 counts as 0.01."};
}

KnobSpec SendKnob() {
  return ProbabilityKnob(
      "p_hat",
      "Probability that the node sends to an out-neighbour in a round; drawn "
      "for each of them separately.");
}

std::vector<KnobSpec> KnobsOfVariant(bool computes, bool sends) {
  std::vector<KnobSpec> knobs = {PositiveKnob("eta", 0.01, "Step size.")};
  if (computes) knobs = Joined(std::move(knobs), ComputeKnobs());
  if (sends) knobs.push_back(SendKnob());
  if (computes || sends) knobs.push_back(DrawKnob());
  knobs.push_back(MaxLagKnob());
  return knobs;
}

// A variant that computes at random, sends at random, or both.
AlgorithmInfo Variant(std::string name, std::string summary, bool computes,
                      bool sends) {
  return {
      .name = std::move(name),
      .summary = std::move(summary),
      .source = "[Spod-GT] Alg. 1, eq. (2), (3)",
      .caveats =
          "A step that is too large for the graph diverges; halve eta on "
          "sparse or unbalanced digraphs. While all its out-neighbours are "
          "away and others still send to it, a node mixes but does not step. "
          "If it is cut off altogether after that, it steps without what they "
          "sent.",
      .pace = computes
                  ? "A round is one exchange and, with probability p, one "
                    "step; the first round may be two steps."
                  : "A round is one step and one exchange; the first round is "
                    "two steps.",
      .create = Create<SpodGt>,
      .derive = computes ? DeriveLeastP : nullptr,
      .exchange = Exchange::kPush,
      .graphs = GraphKind::kDirected,
      .lock_step = true,
      .steps_of = computes ? StepsOfKnobs : nullptr,
      .dense_only = true,
      .why_dense =
          "it mixes whole models by the same weights that move the trackers",
      .gives_mass = true,
      .auxiliary = {"y"},
      .gradient_estimate = "y",
      .extra_vectors = 2,  // one of them while it is a sink
      .edge = LedgerCost() + PushCost(),
      .cost =
          "At most one gradient per round; to each drawn out-neighbour 8 n "
          "bytes "
          "as fp32, for a model and a tracker.",
      .own_step =
          "its step is the tracker, which sums the gradients of all nodes",
      .knobs = KnobsOfVariant(computes, sends)};
}

}  // namespace

AlgorithmInfo SpodGtInfo() {
  return Variant("spod-gt",
                 "Gradient tracking on digraphs; computes and sends "
                 "sporadically",
                 true, true);
}

AlgorithmInfo PushPullInfo() {
  return Variant("push-pull", "Gradient tracking on digraphs (AB)", false,
                 false);
}

AlgorithmInfo GPushPullInfo() {
  return Variant("g-push-pull",
                 "Gradient tracking on digraphs; links are used at random",
                 false, true);
}

AlgorithmInfo SporadicKGtInfo() {
  return Variant("sporadic-k-gt",
                 "Gradient tracking on digraphs; gradients at random", true,
                 false);
}

}  // namespace dfl::core
