#include "daemon/core/algorithms/pame.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/core/algorithm/dispatch.h"
#include "daemon/core/algorithm/network.h"
#include "daemon/core/algorithm/state_fields.h"
#include "daemon/core/vector/flat_vector.h"
#include "daemon/core/vector/powers.h"

namespace dfl::core {

int64_t PameParticipants(double nu, int64_t neighbours) {
  if (neighbours == 0) return 1;
  return std::max<int64_t>(
      1, static_cast<int64_t>(
             std::ceil(nu * static_cast<double>(neighbours) - 1e-9)));
}

Pame::Settings::Settings(const Knobs& knobs)
    : nu(knobs.Number("nu")),
      p(knobs.Number("p")),
      sigma0(knobs.Number("sigma0")),
      gamma(knobs.Number("gamma")),
      kappa(knobs.Range("kappa")),
      extra_asked(knobs.Integer("extra_asked")),
      asks_ahead(knobs.Integer("lookahead") == 1) {}

Pame::Pame(AlgorithmContext context, Decisions& decisions)
    : plan_(std::move(context.plan)),
      settings_(plan_.knobs),
      vectors_(context.vectors),
      decisions_(decisions) {
  kappa_ = decisions_.DrawFrom("kappa", settings_.kappa);
  Start(0);
}

// Nothing is pushed or given to PaME; a lost neighbour shows as AnswerMissing.
void Pame::Handle(Event event, Actions& actions) {
  Dispatch(
      std::move(event),
      [&](const Started& e) {
        Start(e.step);
        BeginPace(e);
      },
      [&](StepBegins e) { On(e, actions); },
      [&](const GradientReady& e) { On(e, actions); },
      [&](const AskArrived& e) { On(e, actions); },
      [&](AnswerArrived e) {
        exchange_.OnAnswer(std::move(e));
        MixIfReady(actions);
      },
      [&](const AnswerMissing& e) {
        exchange_.OnMissing(e);
        MixIfReady(actions);
      },
      [&](const TimerFired& e) {
        if (exchange_.OnTimer(e.timer, actions)) Mix(actions);
      },
      [&](PlanChanged e) { On(std::move(e)); },
      Ignored<PushArrived, PeerUp, PeerDown, MassArrived, Delivered, Skipped,
              EpochBegins, Predicted>());
}

void Pame::Start(int64_t k) {
  k_ = k;
  sigma_ = settings_.sigma0 * Power(settings_.gamma, k);
  m_ = PameParticipants(settings_.nu, plan_.neighbours.size());
  exchange_.Drop();
  mixed_ = false;
}

// kappa is drawn once and for all.
void Pame::VisitState(StateFields& fields) {
  fields.Count("step", k_);
  fields.Positive("sigma", sigma_);
  fields.Count("m", m_, 1);
  exchange_.VisitState(fields);
}

void Pame::On(StepBegins /*event*/, Actions& actions) {
  if (!IsExchangeStep(k_) || plan_.neighbours.empty()) {
    BeginGradient(actions);
    return;
  }
  if (!exchange_.open() || asked_for_ != k_) AskFor(k_, actions);
  exchange_.Wait(plan_.exchange_deadline, actions);
  MixIfReady(actions);
}

// Alg. 1 l. 3: N_i^k, uniformly.
void Pame::AskFor(int64_t step, Actions& actions) {
  const int64_t need = PameParticipants(settings_.nu, plan_.neighbours.size());
  asked_for_ = step;
  exchange_.Begin(plan_.neighbours, need + settings_.extra_asked, need,
                  decisions_, actions);
}

void Pame::On(const AskArrived& event, Actions& actions) {
  // Alg. 2: T_j of |T_j| = s_j coordinates, fresh for every message.
  actions.Do(Answer{event.from, event.ask, settings_.p,
                    decisions_.NameCoordinates(event.from)});
}

void Pame::MixIfReady(Actions& actions) {
  if (exchange_.ready()) Mix(actions);
}

// The partial mean, eq. (5)-(7); m_i^k = the number of answers used.
void Pame::Mix(Actions& actions) {
  const std::vector<AnswerArrived> answers = exchange_.End(actions);
  if (!answers.empty()) {
    mixed_ = true;
    if (plan_.aggregation.robust()) {
      MixByRule(answers);
    } else {
      MixByMean(answers);
    }
    m_ = static_cast<int64_t>(answers.size());
  }
  BeginGradient(actions);
}

void Pame::MixByMean(const std::vector<AnswerArrived>& answers) {
  std::vector<RemoteVector*> messages;
  messages.reserve(answers.size());
  for (const AnswerArrived& answer : answers) {
    messages.push_back(answer.model.parameters.get());
  }
  PartialMean(messages, vectors_.parameters);
  MixBuffers(answers);
}

void Pame::MixByRule(const std::vector<AnswerArrived>& answers) {
  const double weight = 1 / static_cast<double>(answers.size());
  std::vector<ModelMixer::Model> models;
  models.reserve(answers.size());
  for (const AnswerArrived& answer : answers) {
    models.push_back({&answer.model, weight});
  }
  mixer_.Mix(plan_.aggregation, models, 1, vectors_.parameters,
             vectors_.buffers);
}

// Module buffers: the mean of own and received, by differences.
void Pame::MixBuffers(const std::vector<AnswerArrived>& answers) {
  const float weight = 1.0F / static_cast<float>(answers.size() + 1);
  for (size_t l = 0; l < vectors_.buffers.size(); ++l) {
    float sum = 0;
    for (const AnswerArrived& answer : answers) {
      sum += answer.model.buffers[l] - vectors_.buffers[l];
    }
    vectors_.buffers[l] += weight * sum;
  }
}

void Pame::BeginGradient(Actions& actions) {
  if (IsExchangeStep(k_ + 1) && !plan_.neighbours.empty() &&
      settings_.asks_ahead) {
    AskFor(k_ + 1, actions);
  }
  actions.Do(ComputeGradient{});
}

void Pame::On(const GradientReady& event, Actions& actions) {
  NoteGradient(event);
  if (has_gradient()) {
    // Eq. (3).
    const double step_size = 1 / (sigma_ * static_cast<double>(m_));
    AddScaled(static_cast<float>(-step_size), vectors_.gradient,
              vectors_.parameters);
    sigma_ *= settings_.gamma;
  }
  mixed_ = false;
  CountGradient();
  if (IsExchangeStep(k_)) CountRound();
  ++k_;
  actions.Do(StepDone{});
}

void Pame::On(PlanChanged event) {
  const double old_sigma0 = settings_.sigma0;
  plan_ = std::move(event.plan);
  settings_ = Settings(plan_.knobs);
  // sigma keeps its growth so far: sigma0 gamma^k for the new sigma0.
  sigma_ *= settings_.sigma0 / old_sigma0;
  kappa_ = decisions_.DrawFrom("kappa", settings_.kappa);
  if (plan_.neighbours.empty()) m_ = 1;
}

std::map<std::string, double> Pame::Gauges() const {
  std::map<std::string, double> gauges = {
      {"kappa", static_cast<double>(kappa_)},
      {"m", static_cast<double>(m_)},
      {"sigma", sigma_},
      {"step_size", 1 / (sigma_ * static_cast<double>(m_))}};
  mixer_.AddGauges(gauges);
  return gauges;
}

// ---- catalogue entry ----

namespace {

int64_t AskedAtOnce(const Knobs& knobs, int64_t degree) {
  return std::min(degree, PameParticipants(knobs.Number("nu"), degree) +
                              knobs.Integer("extra_asked"));
}

std::string FirstStep(const NodePlan& plan) {
  const int64_t m =
      PameParticipants(plan.knobs.Number("nu"), plan.neighbours.size());
  return absl::StrFormat(
      "the first step is 1/(sigma0 m) = %.4g with m = %d",
      1 / (plan.knobs.Number("sigma0") * static_cast<double>(m)), m);
}

// With nu = p = 1 every node replaces its model by the mean of its neighbours'.
bool TakesEverything(const Network& network) {
  for (int64_t i = 0; i < static_cast<int64_t>(network.members.size()); ++i) {
    const Knobs& knobs = network.KnobsOf(i);
    const int64_t degree = network.Degree(i);
    if (knobs.Number("p") < 1 ||
        PameParticipants(knobs.Number("nu"), degree) < degree) {
      return false;
    }
  }
  return network.members.size() >= 2;
}

// Three significant digits are enough for a hint.
std::string RangeText(double lo, double hi) {
  const std::string low = absl::StrCat(absl::SixDigits(lo));
  return lo == hi ? low : absl::StrCat(low, " to ", absl::SixDigits(hi));
}

std::vector<std::string> Warnings(const Network& network,
                                  const AnyGraph& window) {
  std::vector<std::string> warnings;
  if (TakesEverything(network) && std::get<Graph>(window).IsBipartite()) {
    warnings.push_back(
        "topology.kind: on this bipartite graph (as on every path, star, even "
        "ring and grid) pame with nu = p = 1 never mixes its two sides; take "
        "nu or p below 1, or an odd cycle into the graph");
  }
  double least = std::numeric_limits<double>::infinity();
  double most = 0;
  for (int64_t i = 0; i < static_cast<int64_t>(network.members.size()); ++i) {
    const Knobs& knobs = network.KnobsOf(i);
    const auto asked = static_cast<double>(
        PameParticipants(knobs.Number("nu"), network.Degree(i)));
    const double step = 1 / (knobs.Number("sigma0") * asked);
    least = std::min(least, step);
    most = std::max(most, step);
  }
  warnings.push_back(absl::StrCat(
      "algorithm.knobs.sigma0: the first step 1/(sigma0 m) is ",
      RangeText(least, most),
      ", m being the number of neighbours asked; beyond 2/L (L = the largest "
      "curvature of the loss) the run blows up before gamma shrinks it; "
      "raising nu or the degree slows training unless sigma0 falls in "
      "proportion"));
  return warnings;
}

std::vector<KnobSpec> PameKnobs() {
  return {{.name = "nu",
           .default_value = 0.5,
           .min = 0,
           .max = 1,
           .min_open = true,
           .noun = KnobNoun::kParticipation,
           .help = "Participation rate: share of the neighbours asked in an "
                   "exchange. Raising it slows the step 1/(sigma m) unless "
                   "sigma0 falls with it."},
          {.name = "p",
           .default_value = 0.1,
           .min = 0,
           .max = 1,
           .min_open = true,
           .noun = KnobNoun::kParticipation,
           .help = "Transmission rate s/n: share of the coordinates in an "
                   "answer."},
          {.name = "kappa",
           .type = KnobType::kIntRange,
           .default_value = IntRange{5, 10},
           .min = 1,
           .unit = "steps",
           .noun = KnobNoun::kPeriod,
           .help = "Period: steps from one exchange to the next. From a range "
                   "each node draws its own period once."},
          PositiveKnob("sigma0", 5.0,
                       "Inverse of the first step: step k has the length "
                       "1/(sigma0 gamma^k m). A first step beyond 2/L blows "
                       "up."),
          {.name = "gamma",
           .default_value = 1.001,
           .min = 1,
           .help = "Growth of sigma in each step."},
          {.name = "extra_asked",
           .type = KnobType::kInteger,
           .default_value = int64_t{0},
           .min = 0,
           .noun = KnobNoun::kParticipation,
           .help = "Neighbours asked beyond m. The first m answers count; the "
                   "others are stragglers."},
          {.name = "lookahead",
           .type = KnobType::kInteger,
           .default_value = int64_t{1},
           .min = 0,
           .max = 1,
           .unit = "steps",
           .noun = KnobNoun::kPeriod,
           .help = "How many steps before an exchange the neighbours are "
                   "asked."}};
}

}  // namespace

AlgorithmInfo PameInfo() {
  return {
      .name = "pame",
      .summary =
          "Partial message exchange: random coordinates from random "
          "neighbours, every kappa steps",
      .source = "[PaME] Alg. 1 and 2, eq. (3), (5)-(7)",
      .caveats =
          "All steps together have the length gamma/(sigma0 m (gamma-1)): a "
          "large gamma stops early, and gamma = 1 leaves a consensus error. "
          "With nu = p = 1 a bipartite graph never mixes. The step is "
          "1/(sigma m): raising nu or the degree slows it unless sigma0 falls "
          "in proportion.",
      .pace =
          "Every iteration is one step. A round is one of its exchanges, every "
          "kappa steps, so nodes that drew different periods have different "
          "numbers of rounds behind them at the same step.",
      .create = Create<Pame>,
      .warnings = Warnings,
      .first_step = FirstStep,
      .exchange = Exchange::kPull,
      .round_is_iteration = false,
      .mixes_models = true,
      .why_not_topk = "its theory needs uniformly random coordinates",
      .edge = {.sent = 1, .waiting = 1},
      .message_rate = [](const Knobs& knobs) { return knobs.Number("p"); },
      .heard_at_once = AskedAtOnce,
      .cost =
          "One gradient per step; every kappa steps from each of m neighbours "
          "4 "
          "s bytes as fp32, s = p n coordinates.",
      .own_step = "it converges by its own step size 1/(sigma m)",
      .knobs = PameKnobs()};
}

}  // namespace dfl::core
