#include "daemon/core/decefl.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "daemon/core/flat_vector.h"

namespace dfl::core {
namespace {

constexpr uint64_t kDeadlineTimer = 1;

KnobSpec Positive(std::string name, double value, std::string help) {
  KnobSpec knob;
  knob.name = std::move(name);
  knob.default_value = value;
  knob.min = 0;
  knob.min_open = true;
  knob.help = std::move(help);
  return knob;
}

}  // namespace

AlgorithmInfo DeceflInfo() {
  AlgorithmInfo info;
  info.name = "decefl";
  info.summary = "Mix by W and step at the same model; or whole local epochs";
  info.source = "[DeceFL] eq. (1), supplement eq. (2), (11)";
  info.caveats =
      "With sample weighting the gradient is scaled by rows_i m / sum of rows; "
      "the paper's own form has no factor m, so its eta is m times ours.";
  info.exchange = Exchange::kPush;
  info.lock_step = true;
  info.extra_vectors = 1;
  info.cost =
      "One gradient (form gradient) or E epochs of them (form local), and one "
      "push to every neighbour a round.";

  KnobSpec form;
  form.name = "form";
  form.type = KnobType::kText;
  form.default_value = std::string("gradient");
  form.choices = {"gradient", "local"};
  form.help =
      "gradient: one mini-batch gradient a round; local: E epochs of SGD.";
  KnobSpec eta =
      Positive("eta", 0.01, "Step size (of the local steps in form local).");
  KnobSpec delta;
  delta.name = "delta";
  delta.default_value = 0.0;
  delta.min = 0;
  delta.help =
      "When above 0, form gradient uses the decaying step delta/(t + Gamma) "
      "instead of eta.";
  KnobSpec gamma = Positive("Gamma", 1.0, "Offset of the decaying step.");
  KnobSpec epochs;
  epochs.name = "E";
  epochs.type = KnobType::kInteger;
  epochs.default_value = int64_t{1};
  epochs.min = 1;
  epochs.unit = "epochs";
  epochs.noun = KnobNoun::kPeriod;
  epochs.help = "Form local: passes over the node's data in a round.";
  KnobSpec mu = Positive(
      "mu", 1.0,
      "Form local: weight of the local progress (1: the authors' code; 0.1: "
      "the paper).");
  KnobSpec weighting;
  weighting.name = "sample_weighting";
  weighting.type = KnobType::kFlag;
  weighting.default_value = false;
  weighting.help =
      "Scale the gradient by rows_i m / sum of rows; needs the rows of every "
      "member in the plan.";
  info.knobs = {form, eta, delta, gamma, epochs, mu, weighting, MaxLagKnob()};
  return info;
}

Decefl::Decefl(AlgorithmContext context)
    : plan_(std::move(context.plan)),
      vectors_(context.vectors),
      batches_per_pass_(std::max<int64_t>(1, context.batches_per_pass)),
      barrier_(plan_.neighbours) {}

bool Decefl::LocalForm() const { return plan_.knobs.Text("form") == "local"; }

double Decefl::StepSize() const {
  const double delta = plan_.knobs.Number("delta");
  double eta = plan_.knobs.Number("eta");
  if (!LocalForm() && delta > 0) {
    eta = delta / (static_cast<double>(round_) + plan_.knobs.Number("Gamma"));
  }
  return plan_.knobs.Flag("sample_weighting") ? eta * plan_.sample_weight : eta;
}

void Decefl::Handle(Event event, Actions& actions) {
  if (const auto* started = std::get_if<Started>(&event)) {
    round_ = started->step;
    trained_ = moving_ = false;
  } else if (std::holds_alternative<StepBegins>(event)) {
    BeginRound(actions);
  } else if (std::holds_alternative<GradientReady>(event)) {
    OnGradient(actions);
  } else if (auto* push = std::get_if<PushArrived>(&event)) {
    barrier_.Add(push->from, std::move(push->model), round_,
                 plan_.knobs.Integer("max_lag"));
    FinishIfComplete(actions);
  } else if (const auto* timer = std::get_if<TimerFired>(&event)) {
    if (timer->timer == kDeadlineTimer && trained_) {
      actions.push_back(barrier_.Missing(round_));
      Finish(actions);
    }
  } else if (const auto* up = std::get_if<PeerUp>(&event)) {
    barrier_.SetUp(up->peer, true);
  } else if (const auto* down = std::get_if<PeerDown>(&event)) {
    barrier_.SetUp(down->peer, false);
    FinishIfComplete(actions);
  } else if (auto* changed = std::get_if<PlanChanged>(&event)) {
    plan_ = std::move(changed->plan);
    barrier_.SetNeighbours(plan_.neighbours);
  } else if (const auto* asked = std::get_if<AskArrived>(&event)) {
    actions.push_back(Answer{asked->from, asked->ask, 1, 0});
  }
}

void Decefl::BeginRound(Actions& actions) {
  barrier_.BeginRound();
  if (!barrier_.empty()) actions.push_back(Push{barrier_.peers(), round_});
  local_form_ = LocalForm();
  if (local_form_) {
    start_.assign(vectors_.parameters.begin(), vectors_.parameters.end());
    local_left_ = plan_.knobs.Integer("E") * batches_per_pass_;
    moving_ = true;
  }
  actions.push_back(ComputeGradient{});
}

void Decefl::OnGradient(Actions& actions) {
  ++gradients_;
  if (local_form_) {
    // w' <- w' - eta g(w')
    AddScaled(static_cast<float>(-StepSize()), vectors_.gradient,
              vectors_.parameters);
    if (--local_left_ > 0) {
      actions.push_back(ComputeGradient{});
      return;
    }
  }
  AwaitNeighbours(actions);
}

void Decefl::AwaitNeighbours(Actions& actions) {
  trained_ = true;
  if (!barrier_.Complete(round_)) {
    actions.push_back(WakeAfter{kDeadlineTimer, plan_.exchange_deadline});
  }
  FinishIfComplete(actions);
}

void Decefl::FinishIfComplete(Actions& actions) {
  if (trained_ && barrier_.Complete(round_)) Finish(actions);
}

void Decefl::Finish(Actions& actions) {
  actions.push_back(CancelTimer{kDeadlineTimer});
  trained_ = false;
  const auto arrivals = barrier_.Take(round_, plan_.knobs.Integer("max_lag"));
  if (local_form_) {
    // -mu (w - w') is kept in the parameters while start_ mixes in place.
    const auto mu = static_cast<float>(plan_.knobs.Number("mu"));
    for (size_t l = 0; l < start_.size(); ++l) {
      vectors_.parameters[l] = mu * (vectors_.parameters[l] - start_[l]);
    }
    MixArrivals(arrivals, absl::MakeSpan(start_), vectors_.buffers);
    AddScaled(1.0F, start_, vectors_.parameters);
    moving_ = false;
  } else {
    MixArrivals(arrivals, vectors_.parameters, vectors_.buffers);
    AddScaled(static_cast<float>(-StepSize()), vectors_.gradient,
              vectors_.parameters);
  }
  ++round_;
  actions.push_back(StepDone{});
}

std::map<std::string, double> Decefl::Gauges() const {
  return {{"dropped_late", static_cast<double>(barrier_.dropped())},
          {"step_size", StepSize()}};
}

}  // namespace dfl::core
