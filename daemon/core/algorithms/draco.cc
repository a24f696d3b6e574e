#include "daemon/core/algorithms/draco.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

#include "absl/types/span.h"
#include "daemon/core/algorithm/dispatch.h"
#include "daemon/core/algorithm/state_fields.h"
#include "daemon/core/algorithms/hubs.h"
#include "daemon/core/rounds/push_barrier.h"
#include "daemon/core/vector/flat_vector.h"

namespace dfl::core {
namespace {

constexpr uint64_t kWindowTimer = 1;
constexpr uint64_t kSendTimer = 2;
constexpr uint64_t kPeriodTimer = 3;

// Scalars of a push: its kind, and q of a delta or M of a unification.
enum Scalar { kKind = 0, kNumber, kScalars };
constexpr double kDelta = 0;
constexpr double kUnification = 1;

// A neighbour's period is believed so far ahead.
constexpr int64_t kPeriodsAhead = 1000;
constexpr double kLastPeriod = 9e15;  // below 2^53

bool Contains(const std::vector<Neighbour>& neighbours, const NodeId& node) {
  return std::any_of(neighbours.begin(), neighbours.end(),
                     [&](const Neighbour& n) { return n.node == node; });
}

}  // namespace

Draco::Settings::Settings(const Knobs& knobs)
    : eta(knobs.Number("eta")),
      batches(knobs.Integer("B")),
      schedule(knobs.Text("send") == "on-update" ? Schedule::kOnUpdate
               : knobs.Text("send") == "every"   ? Schedule::kEvery
                                                 : Schedule::kPoisson),
      send_every(knobs.Number("send_every")),
      gamma_max(absl::Seconds(knobs.Number("gamma_max"))),
      window(knobs.Number("window")),
      psi(knobs.Integer("psi")),
      period(knobs.Number("P")),
      own_update(knobs.Flag("own_update")) {}

Draco::Draco(AlgorithmContext context, Decisions& decisions)
    : plan_(std::move(context.plan)),
      settings_(plan_.knobs),
      vectors_(context.vectors),
      decisions_(decisions),
      reference_(std::make_shared<FlatVector>(vectors_.parameters.size())),
      delta_(vectors_.parameters.size()),
      unsent_(vectors_.parameters.size()),
      window_(vectors_.parameters.size()) {}

void Draco::Handle(Event event, Actions& actions) {
  Dispatch(
      std::move(event),
      [&](const Started& e) {
        BeginPace(e);
        Start(e.step, actions);
      },
      [&](StepBegins) { OnStepBegins(actions); },
      [&](const GradientReady& e) {
        NoteGradient(e);
        OnGradient(actions);
      },
      [&](PushArrived e) { OnPush(std::move(e), actions); },
      [&](const TimerFired& e) { OnTimer(e.timer, actions); },
      [&](PlanChanged e) { ChangePlan(std::move(e.plan), actions); },
      [&](const AskArrived& e) { actions.Do(Answer{e.from, e.ask, 1, 0}); },
      Ignored<AnswerArrived, AnswerMissing, PeerUp, PeerDown, MassArrived,
              Delivered, Skipped, EpochBegins, Predicted>());
}

void Draco::Start(int64_t step, Actions& actions) {
  step_ = step;
  heard_ = false;
  at_boundary_ = true;
  WaitToSend(actions);
  WaitForPeriod(actions);
}

// delta_ and reference_ are of the training under way.
void Draco::VisitState(StateFields& fields) {
  const size_t n = vectors_.parameters.size();
  fields.Count("step", step_);
  fields.Vector("unsent", has_unsent_, unsent_, n);
  fields.Vector("window", window_open_, window_, n);
  fields.Flag("window_over", window_over_);
  fields.Count("accepted", accepted_);
  fields.Count("accepted_in_period", accepted_in_period_);
  fields.Count("dropped_late", late_);
  fields.Count("dropped_full", full_);
  fields.Count("period", period_);
  fields.Count("unified", unified_);
  fields.Flag("leads", leads_);
  fields.Node("unification_from", unification_.from);
  fields.Model("unification", unification_.model, n, vectors_.buffers.size());
}

void Draco::Resume(Actions& actions) {
  WaitToSend(actions);
  WaitForPeriod(actions);
  if (window_open_ && !window_over_) {
    actions.Do(WakeAfter{kWindowTimer, absl::Seconds(settings_.window)});
  }
}

void Draco::ChangePlan(NodePlan plan, Actions& actions) {
  const Settings before = settings_;
  plan_ = std::move(plan);
  settings_ = Settings(plan_.knobs);
  if (settings_.schedule != before.schedule ||
      settings_.send_every != before.send_every) {
    WaitToSend(actions);
  }
  if (settings_.period != before.period) WaitForPeriod(actions);
}

void Draco::OnTimer(uint64_t timer, Actions& actions) {
  if (timer == kWindowTimer) {
    CloseWindow();
  } else if (timer == kSendTimer) {
    if (std::exchange(has_unsent_, false)) Send(unsent_, actions);
    WaitToSend(actions);
  } else if (timer == kPeriodTimer) {
    BeginPeriod(period_ + 1);
    WaitForPeriod(actions);
    leads_ = HubOf(period_) == plan_.self;
    if (!at_boundary_) Lead(actions);
  }
}

// --------------------------------------------------------------- training ----

void Draco::OnStepBegins(Actions& actions) {
  at_boundary_ = false;
  if (unification_.model) Unify(std::exchange(unification_, {}), actions);
  Lead(actions);
  if (window_over_) CloseWindow();
  batches_left_ = settings_.batches;
  reference_->assign(vectors_.parameters.begin(), vectors_.parameters.end());
  std::fill(delta_.begin(), delta_.end(), 0.0F);
  actions.Do(ComputeGradient{false, reference_});
}

// Alg. 3 l. 4-9: y_{b+1} = y_b - eta g(y_b).
void Draco::OnGradient(Actions& actions) {
  const auto step_size = static_cast<float>(-settings_.eta);
  AddScaled(step_size, vectors_.gradient, absl::MakeSpan(*reference_));
  AddScaled(step_size, vectors_.gradient, absl::MakeSpan(delta_));
  CountGradient();
  if (--batches_left_ > 0) {
    actions.Do(ComputeGradient{false, reference_});
    return;
  }
  ++step_;
  if (settings_.own_update) {
    AddScaled(1.0F, delta_, vectors_.parameters);
  }
  if (settings_.schedule == Schedule::kOnUpdate) {
    has_unsent_ = false;
    Send(delta_, actions);
  } else {
    has_unsent_ = true;
    unsent_.swap(delta_);
  }
  at_boundary_ = true;
  actions.Do(StepDone{});
}

// ---------------------------------------------------------------- sending ----

void Draco::Send(absl::Span<const float> delta, Actions& actions) {
  CountRound();
  if (plan_.out_neighbours.empty()) return;
  Push push;
  for (const Neighbour& to : plan_.out_neighbours) {
    push.peers.push_back(to.node);
  }
  push.round = step_;
  push.values = delta;
  push.scalars.resize(kScalars);
  push.scalars[kKind] = kDelta;
  push.scalars[kNumber] = 1 / static_cast<double>(push.peers.size());
  actions.Do(std::move(push));
}

void Draco::WaitToSend(Actions& actions) {
  if (settings_.schedule == Schedule::kOnUpdate) {
    actions.Do(CancelTimer{kSendTimer});
    return;
  }
  double wait = settings_.send_every;
  if (settings_.schedule == Schedule::kPoisson)
    wait = decisions_.DrawWait("send", wait);
  actions.Do(WakeAfter{kSendTimer, absl::Seconds(wait)});
}

// -------------------------------------------------------------- receiving ----

void Draco::OnPush(PushArrived push, Actions& actions) {
  const std::vector<double>& said = push.model.scalars;
  if (said.size() != kScalars || !Contains(plan_.in_neighbours, push.from)) {
    return;
  }
  if (said[kKind] == kUnification) {
    HearUnification(std::move(push), actions);
  } else if (said[kKind] == kDelta && said[kNumber] >= 0 &&
             said[kNumber] <= 1) {
    Receive(push.model, actions);
  }
}

// Alg. 3 l. 11-14, sec. 3.2.2.
void Draco::Receive(const RemoteModel& model, Actions& actions) {
  if (model.age > settings_.gamma_max) {
    ++late_;
    return;
  }
  const int64_t psi = settings_.psi;
  if (psi > 0 && accepted_in_period_ >= psi) {
    ++full_;
    return;
  }
  ++accepted_;
  ++accepted_in_period_;
  const double length = settings_.window;
  if (!window_open_ && length > 0) {
    actions.Do(WakeAfter{kWindowTimer, absl::Seconds(length)});
  }
  const bool opens = !std::exchange(window_open_, true);
  if (opens) std::fill(window_.begin(), window_.end(), 0.0F);
  AddValues(*model.parameters, model.scalars[kNumber], absl::MakeSpan(window_));
  if (opens && length == 0) CloseWindow();
}

void Draco::CloseWindow() {
  window_over_ = window_open_ && at_boundary_;
  if (!window_open_ || at_boundary_) return;
  window_open_ = false;
  AddScaled(1.0F, window_, vectors_.parameters);
}

// ------------------------------------------------------------ unification ----

void Draco::WaitForPeriod(Actions& actions) {
  if (settings_.period > 0) {
    actions.Do(WakeAfter{kPeriodTimer, absl::Seconds(settings_.period)});
  } else {
    actions.Do(CancelTimer{kPeriodTimer});
  }
}

void Draco::BeginPeriod(int64_t period) {
  period_ = period;
  accepted_in_period_ = 0;
}

const NodeId& Draco::HubOf(int64_t period) const {
  const std::vector<NodeId>& hubs = FactsOf<HubFacts>(plan_).hubs;
  return hubs[static_cast<size_t>(period) % hubs.size()];
}

// The hub sends its theta of this moment.
void Draco::Lead(Actions& actions) {
  if (!std::exchange(leads_, false) || unified_ >= period_) return;
  unified_ = period_;
  Push push;
  for (const Neighbour& to : plan_.out_neighbours) {
    push.peers.push_back(to.node);
  }
  if (push.peers.empty()) return;
  push.round = step_;
  push.values = vectors_.parameters;
  push.scalars = {kUnification, static_cast<double>(period_)};
  push.apart = true;
  actions.Do(std::move(push));
}

void Draco::HearUnification(PushArrived push, Actions& actions) {
  const double said = push.model.scalars[kNumber];
  if (settings_.period == 0 || !(said >= 1 && said <= kLastPeriod)) return;
  const auto period = static_cast<int64_t>(said);
  // One that has just started may be far behind, also where it is a hub and has
  // led by its own count since. After that nobody gets that far ahead.
  const int64_t believed = std::max(period_, unified_) + kPeriodsAhead;
  if (period < unified_ && push.from == HubOf(period)) {
    // A hub that has lost count, since it restarted: nobody would hear it until
    // it is told where the others are.
    actions.Do(Push{{push.from},
                    step_,
                    vectors_.parameters,
                    {kUnification, static_cast<double>(unified_)},
                    true});
    return;
  }
  if (period <= unified_ || (heard_ && period > believed)) return;
  heard_ = true;
  unified_ = period;
  if (period > period_) {
    BeginPeriod(period);
    WaitForPeriod(actions);
  }
  leads_ = false;
  Unification heard{push.from, std::move(push.model)};
  if (at_boundary_) {
    // A window that is over by now would have been applied before.
    if (std::exchange(window_over_, false)) window_open_ = false;
    unification_ = std::move(heard);
  } else {
    Unify(std::move(heard), actions);
  }
}

void Draco::Unify(Unification unification, Actions& actions) {
  std::vector<PushBarrier::Arrival> arrivals(1);
  arrivals[0].weight = 1;
  arrivals[0].model = *std::move(unification.model);
  MixArrivals(arrivals, vectors_.parameters, vectors_.buffers);
  Push push;
  for (const Neighbour& to : plan_.out_neighbours) {
    if (to.node == unification.from || to.node == HubOf(unified_)) continue;
    push.peers.push_back(to.node);
  }
  if (push.peers.empty()) return;
  push.round = step_;
  push.values = vectors_.parameters;
  push.scalars = {kUnification, static_cast<double>(unified_)};
  push.apart = true;
  actions.Do(std::move(push));
}

std::map<std::string, double> Draco::Gauges() const {
  return {{"accepted", static_cast<double>(accepted_)},
          {"dropped_full", static_cast<double>(full_)},
          {"dropped_late", static_cast<double>(late_)},
          {"period", static_cast<double>(period_)},
          {"step_size", settings_.eta},
          {"unified", static_cast<double>(unified_)}};
}

// ---- catalogue entry ----

namespace {

KnobSpec SecondsKnob(std::string name, double default_value, std::string help) {
  return {.name = std::move(name),
          .default_value = default_value,
          .min = 0,
          .unit = "s",
          .noun = KnobNoun::kPeriod,
          .help = std::move(help)};
}

std::vector<KnobSpec> DracoKnobs() {
  return {PositiveKnob("eta", 0.01, "Step size of a training."),
          {.name = "B",
           .type = KnobType::kInteger,
           .default_value = int64_t{5},
           .min = 1,
           .unit = "batches",
           .noun = KnobNoun::kPeriod,
           .help = "Batches of one training, which ends with an update to "
                   "send."},
          {.name = "send",
           .type = KnobType::kText,
           .default_value = std::string("on-update"),
           .choices = {"on-update", "every", "poisson"},
           .noun = KnobNoun::kPeriod,
           .help = "When updates are sent. on-update: as soon as there is one. "
                   "every: every send_every seconds. poisson: at random times "
                   "with that mean. The last two send the newest update only."},
          {.name = "send_every",
           .default_value = 1.0,
           .min = 0,
           .min_open = true,
           .unit = "s",
           .noun = KnobNoun::kPeriod,
           .help = "Time between two sends, used with send every and poisson."},
          {.name = "gamma_max",
           .default_value = 10.0,
           .min = 0,
           .min_open = true,
           .unit = "s",
           .noun = KnobNoun::kPeriod,
           .help = "Deadline: an update that is older when it arrives is "
                   "dropped."},
          SecondsKnob("window", 0.0,
                      "Superposition window: all updates that arrive within "
                      "this time of the first one are applied together; 0 "
                      "applies each at once."),
          {.name = "psi",
           .type = KnobType::kInteger,
           .default_value = int64_t{0},
           .min = 0,
           .noun = KnobNoun::kParticipation,
           .help = "How many updates are accepted in a period of P seconds, "
                   "the first ones to arrive; 0: no limit."},
          {.name = "P",
           .default_value = 50.0,
           .min = 0,
           .unit = "s",
           .shared = true,
           .noun = KnobNoun::kPeriod,
           .help = "Period of unification, at which a hub's model replaces "
                   "everyone's. 0: never, and psi counts over the whole run."},
          {.name = "own_update",
           .type = KnobType::kFlag,
           .default_value = true,
           .help = "Whether a node adds its own update to its model too, with "
                   "weight 1."}};
}

}  // namespace

AlgorithmInfo DracoInfo() {
  return {
      .name = "draco",
      .summary = "Continuous time: nobody waits; updates are sent, not models",
      .source = "[thesis] ch. 3, Alg. 3, def. 3.1, sec. 3.2.2",
      .caveats =
          "Updates move models apart as well as together, and only unification "
          "makes them equal; with P = 0 keep steps small. Without own_update, "
          "which is the thesis's form, a node never applies what it learns "
          "itself. Updates that arrive beyond psi or gamma_max are lost for "
          "good.",
      .pace =
          "An iteration is one training of B steps. A round is one update "
          "sent, whatever the schedule: with send on-update one after every "
          "training. Every node counts its own.",
      .create = Create<Draco>,
      .derive = DeriveHubs,
      .exchange = Exchange::kPush,
      .graphs = GraphKind::kDirected,
      .continuous = true,
      .round_is_iteration = false,
      .computes_on_copy = true,
      .dense_only = true,
      .why_dense =
          "a coordinate of an update that is not sent is lost for good",
      .extra_vectors = 6,   // one of them a unification that waits
      .edge = {.sent = 3},  // an update under way, and what waits behind it
      .cost =
          "B gradients per training; to each out-neighbour at most 4 n bytes "
          "as "
          "fp32 a training, and every P seconds 4 n more over each edge.",
      .own_step =
          "others apply its updates, which are sums of plain steps, as they "
          "are",
      .knobs = DracoKnobs()};
}

}  // namespace dfl::core
