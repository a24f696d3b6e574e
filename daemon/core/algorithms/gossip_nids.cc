#include "daemon/core/algorithms/gossip_nids.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/core/algorithm/dispatch.h"
#include "daemon/core/algorithm/network.h"
#include "daemon/core/algorithm/state_fields.h"
#include "daemon/core/vector/flat_vector.h"
#include "daemon/core/vector/powers.h"

namespace dfl::core {
namespace {

// The gain guard: so many exchanges in a row above the running mean, of which
// each one is this share.
constexpr int64_t kGrowing = 10;
constexpr double kNewShare = 0.125;
// As many as a plan has members.
constexpr size_t kMostWaiting = 16384;

bool Contains(const std::vector<Neighbour>& neighbours, const NodeId& node) {
  return std::any_of(neighbours.begin(), neighbours.end(),
                     [&](const Neighbour& n) { return n.node == node; });
}

}  // namespace

double GossipNidsBound(int64_t modulus, double window) {
  const double ratio = 2 * window / static_cast<double>(modulus);
  return 1 / (2 * (1 + ratio * ratio / 6));
}

double GossipNidsGain(double c, double c0, int64_t exchanges) {
  // 2^(-j/6).
  constexpr std::array<double, 6> kSixths = {
      0x1.0000000000000p+0, 0x1.c823e074ec129p-1, 0x1.965fea53d6e3dp-1,
      0x1.6a09e667f3bcdp-1, 0x1.428a2f98d728bp-1, 0x1.1f59ac3c7d6c0p-1};
  return c + (c0 - c) * kSixths[exchanges % 6] * Power(0.5, exchanges / 6);
}

GossipNids::Settings::Settings(const NodePlan& plan)
    : alpha(plan.knobs.Number("alpha")),
      period(plan.knobs.Integer("K")),
      gamma(plan.knobs.Number("gamma")),
      c(plan.knobs.Number("c")),
      c0(plan.knobs.Number("c0")),
      settle(plan.knobs.Integer("settle")) {
  const auto& facts = FactsOf<GossipFacts>(plan);
  spec.modulus = static_cast<int>(plan.knobs.Integer("M"));
  spec.window = plan.knobs.Number("w");
  spec.block = facts.block;
  plan_alpha = facts.alpha > 0 ? facts.alpha : alpha;
  plan_period = facts.period > 0 ? facts.period : period;
  last_step = facts.last_step;
}

GossipNids::GossipNids(AlgorithmContext context, Decisions& decisions)
    : plan_(std::move(context.plan)),
      settings_(plan_),
      vectors_(context.vectors),
      decisions_(decisions),
      control_(vectors_.parameters.size(), 0.0F),
      scales_(static_cast<size_t>(ModBlocks(
          settings_.spec, static_cast<int64_t>(vectors_.parameters.size())))) {}

void GossipNids::Handle(Event event, Actions& actions) {
  Dispatch(
      std::move(event), [&](const Started& e) { Start(e); },
      [&](StepBegins) {
        Exchange(actions);
        actions.Do(ComputeGradient{});
      },
      [&](const GradientReady& e) {
        NoteGradient(e);
        OnGradient(actions);
      },
      [&](PushArrived e) { OnOffer(std::move(e)); },
      [&](const MassArrived& e) {
        const ModAnswer* answer = ledger_.Take(e, vectors_.parameters.size());
        if (answer == nullptr) return;
        FollowScales(*answer, absl::MakeSpan(scales_));
        CountExchange();
      },
      [&](const Delivered& e) { ledger_.OnDelivered(e); },
      [&](EpochBegins) { BeginEpoch(); },
      [&](PlanChanged e) { ChangePlan(std::move(e.plan)); },
      [&](const PeerUp& e) { up_.insert(e.peer); },
      [&](const PeerDown& e) { up_.erase(e.peer); },
      [&](const AskArrived& e) { actions.Do(Answer{e.from, e.ask, 1, 0}); },
      Ignored<AnswerArrived, AnswerMissing, Skipped, TimerFired, Predicted>());
}

void GossipNids::Start(const Started& event) {
  BeginPace(event);
  step_ = event.step;
  const absl::Span<const float> x = vectors_.parameters;
  start_.assign(x.begin(), x.end());
  std::fill(scales_.begin(), scales_.end(), BlockScale());
  exchanges_ = 2 * pace().rounds;  // others begin as many
  gain_factor_ = 1;
  usual_scale_ = 0;
  growing_ = 0;
  BeginEpoch();
  DrawPeriod();
}

// x, the scales and kappa stay.
void GossipNids::BeginEpoch() {
  std::fill(control_.begin(), control_.end(), 0.0F);
  ledger_.Reset();
  waiting_.clear();
}

void GossipNids::ChangePlan(NodePlan plan) {
  const int64_t period = settings_.period;
  plan_ = std::move(plan);
  settings_ = Settings(plan_);
  if (settings_.period != period) DrawPeriod();
}

// -------------------------------------------------------------- own steps ----

void GossipNids::OnGradient(Actions& actions) {
  ++step_;
  if (has_gradient()) {
    const auto step_size = static_cast<float>(-settings_.alpha);
    AddScaled(step_size, vectors_.gradient, vectors_.parameters);
    AddScaled(step_size, control_, vectors_.parameters);
    CountGradient();
    --steps_to_offer_;
  }
  if (steps_to_offer_ <= 0) Offer(actions);
  Exchange(actions);
  actions.Do(StepDone{});
}

// Half of a node's exchanges are begun by others, so 2K on the mean. In the
// last steps of a plan that says so, K is 1.
void GossipNids::DrawPeriod() {
  const bool settles = settings_.settle > 0 && settings_.last_step > 0 &&
                       pace().steps + settings_.settle >= settings_.last_step;
  const int64_t period = settles ? 1 : settings_.period;
  steps_to_offer_ = decisions_.DrawAnew("period", {period, 3 * period});
}

void GossipNids::MakeFirstScales() {
  if (start_.empty()) return;
  FirstScales(settings_.spec, vectors_.parameters, start_,
              absl::MakeSpan(scales_));
  if (std::all_of(scales_.begin(), scales_.end(),
                  [](const BlockScale& scale) { return scale.e != 0; })) {
    start_ = FlatVector();
  }
}

void GossipNids::Offer(Actions& actions) {
  CountRound();
  DrawPeriod();
  std::vector<NodeId> candidates;
  for (const Neighbour& neighbour : plan_.neighbours) {
    if (up_.count(neighbour.node) > 0) candidates.push_back(neighbour.node);
  }
  if (candidates.empty()) return;
  MakeFirstScales();
  const std::vector<NodeId> chosen = decisions_.ChooseNeighbours(candidates, 1);
  const NodeId& to = chosen.front();
  ModOffer offer = WriteMod(settings_.spec, vectors_.parameters, scales_,
                            decisions_.NameCoordinates(to));
  if (std::all_of(offer.scales.begin(), offer.scales.end(),
                  [](uint8_t e) { return e == 0; })) {
    return;  // nothing has moved yet
  }
  offer.number = ledger_.NextOffer(to);
  ++offers_;
  Push push;
  push.peers = {to};
  push.round = step_;
  push.offer = std::make_shared<const ModOffer>(std::move(offer));
  actions.Do(std::move(push));
}

// -------------------------------------------------------------- exchanges ----

// A newer offer takes the place of one that waits.
void GossipNids::OnOffer(PushArrived push) {
  const std::shared_ptr<const ModOffer>& offer = push.model.offer;
  const auto n = static_cast<int64_t>(vectors_.parameters.size());
  if (offer == nullptr || offer->n != n ||
      offer->spec.block != settings_.spec.block ||
      !Contains(plan_.neighbours, push.from)) {
    return;
  }
  for (Waiting& waiting : waiting_) {
    if (waiting.from != push.from) continue;
    if (waiting.offer->number < offer->number) {
      waiting.offer = offer;
      waiting.buffers = std::move(push.model.buffers);
    }
    return;
  }
  waiting_.push_back({push.from, offer, std::move(push.model.buffers)});
}

void GossipNids::Exchange(Actions& actions) {
  ApplyAnswers();
  const std::vector<Waiting> waiting = std::exchange(waiting_, {});
  for (const Waiting& one : waiting) {
    // While an answer is out it is repeated, and other offers are dropped.
    if (ledger_.MayAnswer(one.from, one.offer->number)) {
      AnswerOffer(one, actions);
    }
  }
}

void GossipNids::ApplyAnswers() {
  const AnswerLedger::Taken taken = ledger_.TakeOut();
  if (taken.empty()) return;
  AddScaled(-1.0F, taken.moves, vectors_.parameters);
  AddScaled(1.0F, taken.mass, absl::MakeSpan(control_));
  for (const auto& [gamma, buffers] : taken.buffers) {
    MixBuffers(gamma, buffers);
  }
}

void GossipNids::AnswerOffer(const Waiting& waiting, Actions& actions) {
  MakeFirstScales();
  ModAnswer answer =
      ReadMod(*waiting.offer, vectors_.parameters, absl::MakeSpan(scales_));
  answer.gamma = settings_.gamma;
  answer.beta =
      Gain() * settings_.gamma /
      (settings_.plan_alpha * static_cast<double>(settings_.plan_period));
  const auto refused =
      std::accumulate(answer.refused.begin(), answer.refused.end(), 0.0);
  refused_share_ = refused / static_cast<double>(answer.refused.size());
  auto difference = std::make_shared<const FlatVector>(ModDifference(answer));
  Apply(answer.gamma, answer.beta, *difference);
  // Ours as they are before they mix.
  std::vector<float> buffers(vectors_.buffers.begin(), vectors_.buffers.end());
  MixBuffers(answer.gamma, waiting.buffers);
  CountExchange();
  ++answers_;
  ledger_.Give(waiting.from, step_,
               std::make_shared<const ModAnswer>(std::move(answer)),
               std::move(difference), std::move(buffers), actions);
}

void GossipNids::Apply(double gamma, double beta, absl::Span<const float> v) {
  AddScaled(static_cast<float>(gamma), v, vectors_.parameters);
  AddScaled(-static_cast<float>(beta), v, absl::MakeSpan(control_));
}

// Between the two, so that variances stay >= 0.
void GossipNids::MixBuffers(double gamma, const std::vector<float>& received) {
  if (received.size() != vectors_.buffers.size()) return;
  for (size_t l = 0; l < received.size(); ++l) {
    vectors_.buffers[l] +=
        static_cast<float>(gamma) * (received[l] - vectors_.buffers[l]);
  }
}

void GossipNids::CountExchange() {
  ++exchanges_;
  WatchScales();
}

// ------------------------------------------------------------------- gain ----

double GossipNids::Gain() const {
  return gain_factor_ * GossipNidsGain(settings_.c, settings_.c0, exchanges_);
}

double GossipNids::MeanScale() const {
  int64_t sum = 0;
  for (const BlockScale& scale : scales_) sum += scale.e;
  return static_cast<double>(sum) / static_cast<double>(scales_.size());
}

void GossipNids::WatchScales() {
  const double now = MeanScale();
  if (usual_scale_ == 0) usual_scale_ = now;
  growing_ = now > usual_scale_ ? growing_ + 1 : 0;
  usual_scale_ += kNewShare * (now - usual_scale_);
  if (growing_ < kGrowing) return;
  growing_ = 0;
  gain_factor_ /= 2;
}

std::map<std::string, double> GossipNids::Gauges() const {
  return {{"exchanges", static_cast<double>(exchanges_)},
          {"offers", static_cast<double>(offers_)},
          {"answers", static_cast<double>(answers_)},
          {"refused_share", refused_share_},
          {"scale", MeanScale()},
          {"gain", Gain()},
          {"gain_factor", gain_factor_},
          {"mass_imbalance", ledger_.Imbalance()},
          {"mass_repeats", static_cast<double>(ledger_.repeats())},
          {"step_size", settings_.alpha}};
}

void GossipNids::VisitState(StateFields& fields) {
  const size_t n = vectors_.parameters.size();
  fields.Count("step", step_);
  fields.Count("steps_to_offer", steps_to_offer_);
  fields.Vector("D", control_, n);
  bool has_start = !start_.empty();
  fields.Vector("x0", has_start, start_, n);
  if (!has_start) start_ = FlatVector();
  std::vector<uint8_t> codes;
  std::vector<uint8_t> refusals;
  for (const BlockScale& scale : scales_) {
    codes.push_back(scale.e);
    refusals.push_back(scale.refusals);
  }
  fields.Bytes("e", codes, scales_.size());
  fields.Bytes("r", refusals, scales_.size());
  for (size_t b = 0; b < scales_.size(); ++b) {
    scales_[b] = {codes[b], refusals[b]};
  }
  fields.Count("exchanges", exchanges_);
  ledger_.VisitState(fields, n, vectors_.buffers.size());
  fields.Positive("gain_factor", gain_factor_);
  fields.Number("usual_scale", usual_scale_);
  fields.Count("growing", growing_, 0, kGrowing);
  fields.Number("refused_share", refused_share_);
  fields.List("waiting_offers", waiting_, kMostWaiting, [&](Waiting& waiting) {
    fields.Node("from", waiting.from);
    auto offer = waiting.offer != nullptr
                     ? std::make_shared<ModOffer>(*waiting.offer)
                     : std::make_shared<ModOffer>();
    VisitOffer(fields, *offer, n);
    VisitBuffers(fields, waiting.buffers, vectors_.buffers.size());
    waiting.offer = std::move(offer);
  });
  fields.Count("offers", offers_);
  fields.Count("answers", answers_);
}

// ---- catalogue entry ----

namespace {

std::shared_ptr<const AlgorithmFacts> DeriveGossip(const Network& network) {
  auto facts = std::make_shared<GossipFacts>();
  facts->alpha = network.knobs.Number("alpha");
  facts->period = network.knobs.Integer("K");
  facts->last_step = network.stop_steps;
  return facts;
}

absl::Status CheckGain(const Knobs& knobs) {
  const double bound = GossipNidsBound(knobs.Integer("M"), knobs.Number("w"));
  const double c = knobs.Number("c");
  if (c < bound) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "c: %g is not below %.4f, the bound 1/(2 (1 + (2w/M)^2/6)) of M %d and w "
      "%g: with more, D stalls or diverges. Take a smaller c, or a larger M; "
      "c0 may be above the bound",
      c, bound, knobs.Integer("M"), knobs.Number("w")));
}

// A node takes part in (1 + the sum over its neighbours j of 1/d_j)/2
// exchanges in K steps, where the gain assumes one.
std::vector<std::string> WarnOfHubs(const Network& network,
                                    const AnyGraph& window) {
  const auto* graph = std::get_if<Graph>(&window);
  if (graph == nullptr) return {};
  double most = 0;
  int64_t where = 0;
  for (int64_t i = 0; i < graph->size(); ++i) {
    double exchanges = 0.5;
    for (const int64_t j : graph->neighbours(i)) {
      exchanges += 0.5 / static_cast<double>(graph->degree(j));
    }
    if (exchanges <= most) continue;
    most = exchanges;
    where = i;
  }
  if (most <= 2) return {};
  const std::string node =
      static_cast<size_t>(where) < network.members.size()
          ? network.members[static_cast<size_t>(where)].name()
          : absl::StrCat("member ", where);
  return {absl::StrFormat(
      "algorithm.knobs.c: in this topology %s takes part in %.1f exchanges "
      "every K steps, and the gain assumes one; take c below %.3f",
      node, most,
      GossipNidsBound(network.knobs.Integer("M"), network.knobs.Number("w")) /
          most)};
}

std::vector<KnobSpec> FormatKnobs() {
  return {
      {.name = "alpha",
       .default_value = 0.05,
       .min = 0,
       .min_open = true,
       .help = "Step size. The control variate D is in units of a gradient, so "
               "it may change while the run goes on."},
      {.name = "K",
       .type = KnobType::kInteger,
       .default_value = int64_t{20},
       .min = 1,
       .max = 100000,
       .unit = "steps",
       .noun = KnobNoun::kPeriod,
       .help = "Own steps for each exchange that a node takes part in, on the "
               "mean: 10 takes the fewest steps, 40 the fewest bytes. With "
               "noisy labels 3 to 5."},
      {.name = "M",
       .type = KnobType::kInteger,
       .default_value = int64_t{8},
       .min = kLeastModulus,
       .max = kMostModulus,
       .shared = true,
       .help = "Modulus of the offers: log2(M) bits for each parameter. 6 "
               "costs fewer bytes with mini-batches."},
      {.name = "w",
       .default_value = 5.0,
       .min = 0,
       .max = kMostWindow,
       .min_open = true,
       .shared = true,
       .help = "Half of the window in which an offer is decoded, in root mean "
               "square differences. 4.5 to 5 is flat; 4 fails often."}};
}

std::vector<KnobSpec> GainKnobs() {
  return {
      {.name = "gamma",
       .default_value = 0.5,
       .min = 0,
       .max = 1,
       .min_open = true,
       .max_open = true,
       .shared = true,
       .help = "How far both ends of an exchange move: 0.5 is the full "
               "pairwise average."},
      {.name = "c",
       .default_value = 0.1,
       .min = 0,
       .max = 0.5,
       .max_open = true,
       .shared = true,
       .help = "Last gain of the control variate, below 1/(2 (1 + (2w/M)^2/6)) "
               "(0.397 for M 8). 0.3 with full batches; 0 is AD-PSGD with "
               "local steps."},
      {.name = "c0",
       .default_value = 0.1,
       .min = 0,
       .max = 1,
       .shared = true,
       .help = "First gain; its distance to c halves every 6 exchanges. 0.7 "
               "with full batches."},
      {.name = "settle",
       .type = KnobType::kInteger,
       .default_value = int64_t{0},
       .min = 0,
       .max = 100000,
       .unit = "steps",
       .shared = true,
       .help = "In the last so many steps before stop.steps K is 1, which "
               "brings the local models to their mean. Each such step costs "
               "one exchange. 0: never."}};
}

}  // namespace

AlgorithmInfo GossipNidsInfo() {
  return {
      .name = "gossip-nids",
      .summary = "Fewest bytes: pairs agree on coded differences; nobody waits",
      .source = "this project; docs/papers/gossip-nids.md",
      .caveats =
          "The mean of the models is ahead of each of them while exchanges are "
          "few; the knob settle closes that gap. Differences between "
          "neighbours above 235 (root mean square) cannot be coded: "
          "standardise the data. Its gain assumes that nodes exchange about "
          "equally often: a star wants a smaller c.",
      .pace =
          "An iteration is one step. A round ends with an offer, one every 2 K "
          "steps on the mean, whoever is there; others begin as many exchanges "
          "with the node. Every node counts its own.",
      .create = Create<GossipNids>,
      .derive = DeriveGossip,
      .check = CheckGain,
      .warnings = WarnOfHubs,
      .exchange = Exchange::kPush,
      .continuous = true,
      .round_is_iteration = false,
      .dense_only = true,
      .why_dense = "it offers every parameter in log2(M) bits",
      .gives_mass = true,
      .exact_mass = "its answers are coded already",
      .offers = true,
      .extra_vectors = 4,  // D, x^0, and what was taken and waits
      .edge = AnswerCost() + EdgeCost{.sent = 1, .waiting = 1},
      .cost =
          "One gradient per step. An offer takes to each partner 3 n/8 bytes "
          "with M 8, log2(M) bits a parameter, and its answer about 2 n/8 "
          "back.",
      .own_step = "its correction is about plain steps of length alpha",
      .knobs = Joined(FormatKnobs(), GainKnobs())};
}

}  // namespace dfl::core
