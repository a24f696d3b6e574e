#include "daemon/core/algorithms/async_dsgd.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "daemon/core/algorithm/network.h"
#include "daemon/core/algorithm/state_fields.h"
#include "daemon/core/vector/flat_vector.h"

namespace dfl::core {
namespace {

constexpr uint64_t kClockTimer = 3;  // beside PushAlgorithm's

constexpr int64_t kWindow = 50;
constexpr double kLargestQ = 0.99;
// Rounds after which what was heard of q is forgotten.
constexpr double kForgetAfter = 2 * kWindow;

// Scalars of a push, in this order.
enum Scalar { kDegree = 0, kLeast, kAge, kScalars };

}  // namespace

// ---------------------------------------------------------- StragglerRate ----

void StragglerRate::Count(bool late) {
  rounds_.push_back(late);
  late_ += late ? 1 : 0;
  if (static_cast<int64_t>(rounds_.size()) <= kWindow) return;
  late_ -= rounds_.front() ? 1 : 0;
  rounds_.pop_front();
}

double StragglerRate::q() const {
  return std::min(static_cast<double>(late_) / kWindow, kLargestQ);
}

void StragglerRate::VisitState(StateFields& fields) {
  std::vector<double> late(rounds_.begin(), rounds_.end());
  fields.Numbers("late", late);
  *this = StragglerRate();
  for (const double was : late) Count(was != 0);
}

// -------------------------------------------------------------- AsyncDsgd ----

AsyncDsgd::Settings::Settings(const NodePlan& plan, Clock clock)
    : eta(plan.knobs.Number("eta")), xi(plan.knobs.Number("xi")) {
  if (clock == Clock::kNone) return;
  gamma_max = absl::Seconds(plan.knobs.Number("gamma_max"));
  discards_late = plan.knobs.Flag("discard_late");
  measures_q = plan.knobs.Flag("measure_q");
  q = plan.knobs.Number("q");
  largest_q = FactsOf<StragglerFacts>(plan).largest_q;
}

AsyncDsgd::AsyncDsgd(AlgorithmContext context, Clock clock)
    : PushAlgorithm(std::move(context)),
      clock_(clock),
      settings_(plan(), clock) {}

void AsyncDsgd::VisitState(StateFields& fields) {
  PushAlgorithm::VisitState(fields);
  fields.Flag("running", running_);
  fields.Flag("unwanted", unwanted_);
  fields.Flag("ready", ready_);
  fields.Count("from_round", from_round_);
  fields.Count("staleness", staleness_);
  rate_.VisitState(fields);
  fields.Number("least", heard_.least);
  fields.Number("least_age", heard_.age);
}

void AsyncDsgd::Resume(Actions& actions) {
  if (running_) actions.Do(ComputeGradient{});
}

double AsyncDsgd::OwnQ() const {
  return settings_.measures_q ? rate_.q() : settings_.q;
}

double AsyncDsgd::StepSize() const {
  if (clock_ == Clock::kNone) return settings_.eta;
  const double own = 1 - OwnQ();
  const double least = std::min(
      own, settings_.measures_q ? heard_.least : 1 - settings_.largest_q);
  return settings_.eta * least / own;
}

void AsyncDsgd::OnStepBegins(Actions& actions) {
  phase_ = Phase::kComputing;
  if (!running_ && !ready_) AskForGradient(actions);
  if (clock_ == Clock::kRounds) {
    actions.Do(WakeAfter{kClockTimer, settings_.gamma_max});
  }
}

void AsyncDsgd::AskForGradient(Actions& actions) {
  running_ = true;
  unwanted_ = false;
  from_round_ = step();
  actions.Do(ComputeGradient{});
}

void AsyncDsgd::OnGradient(Actions& actions) {
  running_ = false;
  if (unwanted_) {
    unwanted_ = false;
    // Anew, unless this round's barrier has passed: then with the next round.
    if (phase_ == Phase::kComputing) AskForGradient(actions);
    return;
  }
  ready_ = true;
  if (clock_ == Clock::kNone) EndComputing(actions);
}

void AsyncDsgd::OnTimer(uint64_t timer, Actions& actions) {
  if (timer == kClockTimer && phase_ == Phase::kComputing) {
    EndComputing(actions);
  } else if (timer == kDeadlineTimer && phase_ == Phase::kMixing) {
    actions.Do(barrier().Missing(step()));
    Mix(actions);
  }
}

// The compute barrier: eq. (2.2).
void AsyncDsgd::EndComputing(Actions& actions) {
  phase_ = Phase::kMixing;
  rate_.Count(!ready_);
  if (ready_) {
    ready_ = false;
    AddScaled(static_cast<float>(-StepSize()), vectors().gradient,
              vectors().parameters);
    CountGradient();
    staleness_ = step() - from_round_;
  } else if (settings_.discards_late) {
    unwanted_ = running_;
  }
  heard_.age += 1;
  if (heard_.age > kForgetAfter) heard_ = Heard();
  Hear(Heard{1 - OwnQ(), 0});

  std::vector<NodeId> usable = barrier().up_peers();
  degree_ = static_cast<int64_t>(usable.size());
  barrier().BeginRound(usable);
  if (usable.empty()) {
    Mix(actions);
    return;
  }
  Push push;
  push.peers = std::move(usable);
  push.round = step();
  push.scalars.resize(kScalars);
  push.scalars[kDegree] = static_cast<double>(degree_);
  push.scalars[kLeast] = heard_.least;
  push.scalars[kAge] = heard_.age;
  actions.Do(std::move(push));
  if (barrier().Complete(step())) {
    Mix(actions);
  } else {
    actions.Do(WakeAfter{kDeadlineTimer, plan().exchange_deadline,
                         /*for_neighbours=*/true});
  }
}

void AsyncDsgd::OnPush(const RemoteModel& model) {
  const std::vector<double>& said = model.scalars;
  if (said.size() == kScalars && said[kLeast] >= 1 - kLargestQ &&
      said[kLeast] <= 1 && said[kAge] >= 0) {
    Hear(Heard{said[kLeast], said[kAge]});
  }
}

// Keeps the least, of equal ones the younger.
void AsyncDsgd::Hear(const Heard& said) {
  if (said.age > kForgetAfter) return;
  if (said.least < heard_.least ||
      (said.least == heard_.least && said.age < heard_.age)) {
    heard_ = said;
  }
}

void AsyncDsgd::MixIfComplete(Actions& actions) {
  if (phase_ == Phase::kMixing && barrier().Complete(step())) Mix(actions);
}

// Eq. (2.9), by differences; W_ij = 1/(1 + max(d_i, d_j)).
void AsyncDsgd::Mix(Actions& actions) {
  actions.Do(CancelTimer{kDeadlineTimer});
  std::vector<PushBarrier::Arrival> arrivals =
      barrier().Take(step(), max_lag());
  // A link may have come up since the push went out.
  const double own = std::max(static_cast<double>(degree_),
                              static_cast<double>(arrivals.size()));
  for (PushBarrier::Arrival& arrival : arrivals) {
    const std::vector<double>& said = arrival.model.scalars;
    const double theirs = said.size() == kScalars ? said[kDegree] : 0;
    arrival.weight = settings_.xi / (1 + std::max(own, theirs));
  }
  MixModels(arrivals, vectors().parameters, settings_.xi);
  phase_ = Phase::kBoundary;
  EndRound(actions);
}

std::map<std::string, double> AsyncDsgd::Gauges() const {
  std::map<std::string, double> gauges = {
      {"dropped_late", static_cast<double>(barrier().dropped())},
      {"q", OwnQ()},
      {"staleness", static_cast<double>(staleness_)},
      {"step_size", StepSize()}};
  AddMixGauges(gauges);
  return gauges;
}

// ---- catalogue entry ----

namespace {

KnobSpec XiKnob() {
  return {.name = "xi",
          .default_value = 1.0,
          .min = 0,
          .max = 1,
          .min_open = true,
          .help =
              "Share of the mix in the new model. The rest is the node's own "
              "model."};
}

std::shared_ptr<const AlgorithmFacts> DeriveStragglers(const Network& network) {
  auto facts = std::make_shared<StragglerFacts>();
  for (const double q : network.Numbers("q")) {
    facts->largest_q = std::max(facts->largest_q, q);
  }
  return facts;
}

// What the two algorithms with a clock have in common.
AlgorithmInfo ClockedInfo(bool discard_late) {
  return {
      .pace =
          "A round is one exchange, and one step if a gradient was ready by "
          "then.",
      .create = [](AlgorithmContext context,
                   Decisions& /*decisions*/) -> std::unique_ptr<Algorithm> {
        return std::make_unique<AsyncDsgd>(std::move(context),
                                           AsyncDsgd::Clock::kRounds);
      },
      .derive = DeriveStragglers,
      .exchange = Exchange::kPush,
      .lock_step = true,
      .steps_of = [](const Knobs& /*knobs*/) { return StepsOf::kChance; },
      .mixes_models = true,
      .computes_on_copy = true,
      .extra_vectors = 1,
      .edge = PushCost(),
      .cost =
          "At most one gradient per round; to each neighbour 4 n bytes as fp32 "
          "and dense, 4 s with s random coordinates.",
      .own_step = "its step size makes up for nodes that straggle",
      .knobs =
          {PositiveKnob("eta", 0.01,
                        "Step size of the node that straggles most."),
           XiKnob(),
           {.name = "gamma_max",
            .default_value = 1.0,
            .min = 0,
            .min_open = true,
            .unit = "s",
            .shared = true,
            .noun = KnobNoun::kPeriod,
            .help =
                "Compute barrier: how long a round waits for the node's own "
                "gradient before it mixes without one."},
           {.name = "discard_late",
            .type = KnobType::kFlag,
            .default_value = discard_late,
            .help = "Whether a gradient that was not ready at the barrier is "
                    "discarded and computed anew. Otherwise it is applied in a "
                    "later round."},
           {.name = "measure_q",
            .type = KnobType::kFlag,
            .default_value = true,
            .shared = true,
            .help = "Whether q is measured over the last 50 rounds. Otherwise "
                    "the value in the plan is used."},
           {.name = "q",
            .default_value = 0.0,
            .min = 0,
            .max = kLargestQ,
            .help = "Probability that the node straggles, used while measure_q "
                    "is off; set it per node. The step size is "
                    "eta min(1 - q)/(1 - q)."},
           MaxLagKnob()}};
}

}  // namespace

AlgorithmInfo AsyncDsgdInfo() {
  AlgorithmInfo info = ClockedInfo(/*discard_late=*/false);
  info.name = "async-dsgd";
  info.summary = "Clocked rounds; late gradients are applied when they come";
  info.source = "[thesis] ch. 2, eq. (2.2), (2.9), Theorem 2.1";
  info.caveats =
      "A late gradient was computed at an old model and is applied to the "
      "present one, so large steps do not go together with very slow nodes. "
      "topology.weights is not used.";
  return info;
}

AlgorithmInfo BarrierDsgdInfo() {
  AlgorithmInfo info = ClockedInfo(/*discard_late=*/true);
  info.name = "barrier-dsgd";
  info.summary = "Clocked rounds; late gradients are discarded";
  info.source = "[thesis] ch. 2, a baseline";
  info.caveats =
      "A node whose gradients always take longer than gamma_max never trains. "
      "topology.weights is not used.";
  return info;
}

AlgorithmInfo SyncDsgdInfo() {
  return {.name = "sync-dsgd",
          .summary = "Rounds that wait for every node's gradient",
          .source = "[thesis] ch. 2, a baseline",
          .caveats =
              "The slowest node sets the pace: a node waits for its own "
              "gradient as "
              "long as that takes, and for its neighbours at most "
              "deadline.exchange. topology.weights is not used.",
          .create = [](AlgorithmContext context,
                       Decisions& /*decisions*/) -> std::unique_ptr<Algorithm> {
            return std::make_unique<AsyncDsgd>(std::move(context),
                                               AsyncDsgd::Clock::kNone);
          },
          .exchange = Exchange::kPush,
          .lock_step = true,
          .mixes_models = true,
          .edge = PushCost(),
          .cost =
              "One gradient per round; to each neighbour 4 n bytes as fp32 and "
              "dense, 4 s with s random coordinates.",
          .own_step = "it is the baseline of async-dsgd, with its step",
          .knobs = {PositiveKnob("eta", 0.01, "Step size."), XiKnob(),
                    MaxLagKnob()}};
}

}  // namespace dfl::core
