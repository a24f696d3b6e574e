#include "daemon/core/algorithms/kd_pdfl.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

#include "absl/types/span.h"
#include "daemon/core/algorithm/dispatch.h"
#include "daemon/core/algorithm/state_fields.h"
#include "daemon/core/rounds/push_barrier.h"
#include "daemon/core/vector/flat_vector.h"

namespace dfl::core {
namespace {

constexpr double kDelta = 1e-6;
// Weights that sum to less leave theta as it is.
constexpr double kLeastSum = 1e-6;

}  // namespace

KdPdfl::Settings::Settings(const Knobs& knobs)
    : eta(knobs.Number("eta")),
      period(knobs.Integer("T_ex")),
      subset(knobs.Integer("subset")),
      mu1(knobs.Number("mu1")),
      mu2(knobs.Number("mu2")),
      c_base(knobs.Number("c_base")),
      adopt(knobs.Flag("adopt")),
      own_timers(knobs.Text("stars") == "own-timer"),
      literal_rounds(knobs.Flag("literal_rounds")) {}

KdPdfl::KdPdfl(AlgorithmContext context, Decisions& decisions)
    : plan_(std::move(context.plan)),
      settings_(plan_.knobs),
      vectors_(context.vectors),
      decisions_(decisions),
      train_rows_(context.train_rows) {}

void KdPdfl::Handle(Event event, Actions& actions) {
  Dispatch(
      std::move(event),
      [&](const Started& e) {
        Start(e.step);
        BeginPace(e);
      },
      [&](StepBegins) { OnStepBegins(actions); },
      [&](const GradientReady& e) {
        NoteGradient(e);
        OnGradient(actions);
      },
      [&](const AskArrived& e) {
        answered_.insert(e.from);
        actions.Do(
            Answer{e.from, e.ask, 1, decisions_.NameCoordinates(e.from)});
      },
      [&](AnswerArrived e) { OnAnswer(std::move(e), actions); },
      [&](const AnswerMissing& e) {
        exchange_.OnMissing(e);
        PredictIfReady(actions);
      },
      [&](const TimerFired& e) {
        if (exchange_.OnTimer(e.timer, actions)) PredictModels(actions);
      },
      [&](const Predicted& e) { OnPredicted(e, actions); },
      [&](PushArrived e) { OnPush(std::move(e)); },
      [&](PlanChanged e) {
        if (e.train_rows > 0) train_rows_ = e.train_rows;
        ChangePlan(std::move(e.plan));
      },
      Ignored<PeerUp, PeerDown, MassArrived, Delivered, Skipped,
              EpochBegins>());
}

void KdPdfl::OnGradient(Actions& actions) {
  AddScaled(static_cast<float>(-settings_.eta), vectors_.gradient,
            vectors_.parameters);
  CountGradient();
  FinishRound(actions);
}

// A part of a model cannot predict.
void KdPdfl::OnAnswer(AnswerArrived answer, Actions& actions) {
  const RemoteVector& model = *answer.model.parameters;
  if (model.carried() == model.size()) {
    exchange_.OnAnswer(std::move(answer));
  } else {
    exchange_.OnMissing(AnswerMissing{answer.from, answer.ask});
  }
  PredictIfReady(actions);
}

// Only a model of one that had ours, as a star, may be adopted.
void KdPdfl::OnPush(PushArrived push) {
  if (settings_.adopt && answered_.erase(push.from) > 0) {
    adopted_ = std::move(push.model);
  }
}

void KdPdfl::Start(int64_t round) {
  r_ = round;
  exchange_.Drop();
  predicting_.reset();
  deliver_to_.clear();
  answered_.clear();
  adopted_.reset();
}

// Of last_star_ what gauges show.
void KdPdfl::VisitState(StateFields& fields) {
  fields.Count("step", r_);
  fields.ByNode("weights", weights_,
                [&](double& weight) { fields.Number("w", weight); });
  exchange_.VisitState(fields);
  fields.Nodes("deliver_to", deliver_to_);
  fields.Nodes("answered", answered_);
  fields.Model("adopted", adopted_, vectors_.parameters.size(),
               vectors_.buffers.size());
  fields.Nodes("received", last_star_.received);
  fields.Numbers("distances", last_star_.distances);
  fields.Number("c", last_star_.own_share);
}

void KdPdfl::ChangePlan(NodePlan plan) {
  plan_ = std::move(plan);
  settings_ = Settings(plan_.knobs);
  const auto is_neighbour = [this](const NodeId& node) {
    return std::any_of(plan_.neighbours.begin(), plan_.neighbours.end(),
                       [&](const Neighbour& n) { return n.node == node; });
  };
  // Memory for present neighbours only.
  for (auto it = weights_.begin(); it != weights_.end();) {
    it = is_neighbour(it->first) ? std::next(it) : weights_.erase(it);
  }
  for (auto it = answered_.begin(); it != answered_.end();) {
    it = is_neighbour(*it) ? std::next(it) : answered_.erase(it);
  }
  if (!settings_.adopt) {
    deliver_to_.clear();
    adopted_.reset();
  }
}

int64_t KdPdfl::Phase() const {
  if (settings_.literal_rounds || !settings_.own_timers) return 0;
  return decisions_.DrawFrom("star", IntRange{0, settings_.period - 1});
}

int64_t KdPdfl::TurnsBelow(int64_t k, int64_t phase) const {
  return k <= phase ? 0 : (k - 1 - phase) / settings_.period;
}

bool KdPdfl::IsTurn() const {
  return r_ >= settings_.period && r_ % settings_.period == Phase();
}

// What is adopted takes the place of steps too; nobody knows how often.
Pace KdPdfl::PaceOf(int64_t k) const {
  const int64_t turns = TurnsBelow(k, Phase());
  int64_t without = turns;
  if (settings_.literal_rounds) {
    without += TurnsBelow(k, 1);
  } else if (!settings_.own_timers) {
    without /= std::max<int64_t>(1, plan_.member_count);
  }
  return {k - without, turns};
}

bool KdPdfl::WakesAsStar() const {
  if (!IsTurn() || plan_.neighbours.empty()) return false;
  if (!settings_.literal_rounds && settings_.own_timers) return true;
  return decisions_.ChooseTogether(plan_.seed, "star", r_, plan_.member_count,
                                   1)[0] == plan_.place;
}

bool KdPdfl::TrainsNow() const {
  const int64_t period = settings_.period;
  return !settings_.literal_rounds || r_ < period || r_ % period > 1;
}

void KdPdfl::OnStepBegins(Actions& actions) {
  if (!deliver_to_.empty()) {
    actions.Do(Push{std::exchange(deliver_to_, {}), r_});
  }
  if (WakesAsStar()) {
    BeginStar(actions);
  } else if (adopted_) {
    // Alg. 4 l. 13
    std::vector<PushBarrier::Arrival> taken(1);
    taken[0].weight = 1;
    taken[0].model = *std::move(adopted_);
    adopted_.reset();
    MixArrivals(taken, vectors_.parameters, vectors_.buffers);
    FinishRound(actions);
  } else if (TrainsNow()) {
    actions.Do(ComputeGradient{});
  } else {
    FinishRound(actions);
  }
}

void KdPdfl::BeginStar(Actions& actions) {
  exchange_.Begin(plan_.neighbours, settings_.subset, settings_.subset,
                  decisions_, actions);
  exchange_.Wait(plan_.exchange_deadline, actions);
}

void KdPdfl::PredictIfReady(Actions& actions) {
  if (exchange_.ready()) PredictModels(actions);
}

void KdPdfl::PredictModels(Actions& actions) {
  std::map<NodeId, RemoteModel> answers;
  for (AnswerArrived& answer : exchange_.End(actions)) {
    answers.emplace(std::move(answer.from), std::move(answer.model));
  }
  if (answers.empty()) {
    last_star_ = Star();
    FinishRound(actions);
    return;
  }
  auto models = std::make_shared<std::vector<ModelValues>>();
  models->reserve(answers.size());
  for (const auto& [from, answer] : answers) {
    ModelValues model;
    model.parameters.assign(vectors_.parameters.size(), 0.0F);
    AddValues(*answer.parameters, 1, absl::MakeSpan(model.parameters));
    model.buffers = answer.buffers;
    models->push_back(std::move(model));
  }
  predicting_ = std::move(answers);
  actions.Do(Predict{std::move(models)});
}

void KdPdfl::OnPredicted(const Predicted& predicted, Actions& actions) {
  if (!predicting_) return;
  last_star_ = Compare(predicted);
  if (!last_star_.received.empty()) {
    UpdateWeights(last_star_);
    Mix(last_star_);
  }
  predicting_.reset();
  if (settings_.adopt) deliver_to_ = last_star_.received;
  FinishRound(actions, /*counts=*/!predicted.probabilities.empty());
}

// Eq. (4.3). A model whose predictions are no numbers counts as not received.
KdPdfl::Star KdPdfl::Compare(const Predicted& predicted) const {
  Star star;
  const std::vector<std::vector<double>>& p = predicted.probabilities;
  if (p.size() != predicting_->size() + 1) return star;  // it failed
  size_t j = 0;
  for (const auto& [from, answer] : *predicting_) {
    ++j;
    double sum = 0;
    for (size_t l = 0; l < p[0].size(); ++l) {
      sum += (p[0][l] - p[j][l]) * (p[0][l] - p[j][l]);
    }
    if (!std::isfinite(sum)) continue;
    star.received.push_back(from);
    star.distances.push_back(sum / static_cast<double>(predicted.rows));
  }
  return star;
}

double KdPdfl::weight(const NodeId& node) const {
  const auto it = weights_.find(node);
  return it != weights_.end() ? it->second
                              : 1 / static_cast<double>(plan_.member_count);
}

// Eq. (4.2).
void KdPdfl::UpdateWeights(Star& star) {
  // Over the whole row: members that are no neighbours keep 1/m.
  double sum = kDelta;
  for (const Neighbour& n : plan_.neighbours) sum += weight(n.node);
  sum += static_cast<double>(plan_.member_count - 1 -
                             static_cast<int64_t>(plan_.neighbours.size())) /
         static_cast<double>(plan_.member_count);
  double squares = 0;
  for (size_t j = 0; j < star.received.size(); ++j) {
    const double gradient_of_g = weight(star.received[j]) - 1 / sum;
    star.gradient.push_back(settings_.mu1 * star.distances[j] +
                            settings_.mu2 * gradient_of_g);
    squares += star.gradient[j] * star.gradient[j];
  }
  star.norm = std::sqrt(squares);
  for (size_t j = 0; j < star.received.size(); ++j) {
    const double step = star.norm > 0 ? star.gradient[j] / star.norm : 0;
    star.raw.push_back(weight(star.received[j]) - step);
  }
  for (size_t j = 0; j < star.received.size(); ++j) {
    weights_[star.received[j]] = std::max(0.0, star.raw[j]);
  }
}

// Eq. (4.4), by differences.
void KdPdfl::Mix(Star& star) {
  const double base = settings_.c_base;
  const double size =
      base > 0 ? static_cast<double>(train_rows_) / base : plan_.sample_weight;
  star.own_share =
      std::min(size, 1 / static_cast<double>(star.received.size() + 1));
  double sum = 0;
  for (const NodeId& node : star.received) sum += weight(node);
  if (sum <= kLeastSum) return;  // nobody it would mix with
  std::vector<PushBarrier::Arrival> arrivals;
  for (const NodeId& node : star.received) {
    PushBarrier::Arrival arrival;
    arrival.from = node;
    arrival.weight = (1 - star.own_share) * weight(node) / sum;
    arrival.model = std::move((*predicting_)[node]);
    arrivals.push_back(std::move(arrival));
  }
  MixArrivals(arrivals, vectors_.parameters, vectors_.buffers);
}

void KdPdfl::FinishRound(Actions& actions, bool counts) {
  if (counts && IsTurn()) CountRound();
  ++r_;
  actions.Do(StepDone{});
}

std::map<std::string, double> KdPdfl::Gauges() const {
  double distance = 0;
  for (const double d : last_star_.distances) {
    distance += d / static_cast<double>(last_star_.distances.size());
  }
  int64_t nonzero = 0;
  for (const Neighbour& n : plan_.neighbours) {
    nonzero += weight(n.node) > 0 ? 1 : 0;
  }
  return {{"distance", distance},
          {"nonzero_weights", static_cast<double>(nonzero)},
          {"own_share", last_star_.own_share},
          {"received", static_cast<double>(last_star_.received.size())},
          {"step_size", settings_.eta}};
}

// ---- catalogue entry ----

namespace {

std::vector<KnobSpec> KdPdflKnobs() {
  return {PositiveKnob("eta", 0.01, "Step size of local SGD."),
          {.name = "T_ex",
           .type = KnobType::kInteger,
           .default_value = int64_t{20},
           .min = 3,
           .unit = "iterations",
           .noun = KnobNoun::kPeriod,
           .help = "Period: iterations from one time that the node is star to "
                   "the next."},
          {.name = "subset",
           .type = KnobType::kInteger,
           .default_value = int64_t{5},
           .min = 1,
           .unit = "neighbours",
           .noun = KnobNoun::kParticipation,
           .help = "How many neighbours a star asks for their models."},
          {.name = "mu1",
           .default_value = 1.0,
           .min = 0,
           .help = "Weight of the distance between predictions: a higher value "
                   "parts unlike clients faster."},
          {.name = "mu2",
           .default_value = 0.1,
           .min = 0,
           .help = "Weight of G, which keeps the weights small and their sum "
                   "above 0."},
          {.name = "c_base",
           .default_value = 0.0,
           .min = 0,
           .unit = "rows",
           .help = "A typical number of rows. A node with fewer keeps less of "
                   "its own model: c = rows/c_base, at most 1/(received + 1). "
                   "0: the members' mean, if the plan gives their rows."},
          {.name = "adopt",
           .type = KnobType::kFlag,
           .default_value = false,
           .shared = true,
           .help = "Whether a star's new model replaces those of the "
                   "neighbours that it asked."},
          {.name = "stars",
           .type = KnobType::kText,
           .default_value = std::string("own-timer"),
           .choices = {"own-timer", "drawn"},
           .shared = true,
           .noun = KnobNoun::kPeriod,
           .help = "own-timer: every node is star every T_ex iterations. "
                   "drawn: in iterations 0 mod T_ex one member is star, drawn "
                   "from the run's seed."},
          {.name = "literal_rounds",
           .type = KnobType::kFlag,
           .default_value = false,
           .shared = true,
           .help = "Follows the thesis to the letter: stars are drawn, and "
                   "nobody trains in iterations 0 and 1 mod T_ex."}};
}

}  // namespace

AlgorithmInfo KdPdflInfo() {
  return {
      .name = "kd-pdfl",
      .summary = "Personalised models, mixed with those that predict alike",
      .source = "[thesis] ch. 4, eq. (4.2)-(4.4), Alg. 4",
      .caveats =
          "Nodes end with different models. Where all nodes have the same data "
          "an averaging algorithm learns faster. With adopt on, a star's model "
          "replaces its neighbours'.",
      .pace =
          "An iteration is one step, or a turn as star, or the adoption of a "
          "star's model. A round is a turn: every T_ex iterations the node, or "
          "with stars drawn a member, is star and receives models.",
      .create = Create<KdPdfl>,
      .exchange = Exchange::kPull,
      .round_is_iteration = false,
      .steps_of = [](const Knobs& /*knobs*/) { return StepsOf::kChance; },
      .dense_only = true,
      .why_dense =
          "the models that come are run, which takes all their parameters",
      .predicts = true,
      .extra_vectors = 1,  // a model to adopt
      // `taken` is the same model as values, to predict with.
      .edge = {.taken = 1, .sent = 1, .waiting = 1},
      .heard_at_once =
          [](const Knobs& knobs, int64_t degree) {
            return std::min(degree, knobs.Integer("subset"));
          },
      .cost =
          "One gradient per iteration. Every T_ex iterations a star receives, "
          "instead of training, from each of `subset` neighbours 4 n bytes as "
          "fp32: a "
          "model that is kept and run on one batch.",
      .own_step = "[thesis] Alg. 4 is about plain steps",
      .knobs = KdPdflKnobs()};
}

}  // namespace dfl::core
