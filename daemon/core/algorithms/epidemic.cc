#include "daemon/core/algorithms/epidemic.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/core/vector/flat_vector.h"

namespace dfl::core {
Epidemic::Settings::Settings(const Knobs& knobs)
    : eta(knobs.Number("eta")),
      s(knobs.Integer("s")),
      step_first(knobs.Flag("step_first")) {}

Epidemic::Epidemic(AlgorithmContext context, Decisions& decisions)
    : PushRounds(std::move(context)),
      settings_(plan().knobs),
      decisions_(decisions) {}

PushRounds::Order Epidemic::RoundOrder() const {
  return settings_.step_first ? Order::kTrainPushMix : Order::kPushMixTrain;
}

void Epidemic::BeginRound() {
  moved_ = false;
  receivers_.clear();
  senders_.clear();
  const std::vector<NodeId> members = CompleteMembers(plan());
  const auto others = static_cast<int64_t>(members.size()) - 1;
  const int64_t s = std::min(settings_.s, others);
  for (int64_t i = 0; i <= others; ++i) {
    const bool own = members[i] == plan().self;
    // Places count the members without the sender.
    for (int64_t place : decisions_.ChooseTogether(
             plan().seed, absl::StrCat("receivers of ", members[i].name()),
             step(), others, s)) {
      if (place >= i) ++place;
      if (own) {
        receivers_.push_back(members[place]);
      } else if (members[place] == plan().self) {
        senders_.push_back(members[i]);
      }
    }
  }
}

PushRounds::Next Epidemic::AfterGradient() {
  moved_ = true;
  AddScaled(static_cast<float>(-StepSize()), vectors().gradient,
            vectors().parameters);
  return Next::kTrained;
}

void Epidemic::Mix(std::vector<PushBarrier::Arrival> arrivals) {
  moved_ = true;
  for (PushBarrier::Arrival& arrival : arrivals) {
    arrival.weight = 1.0 / static_cast<double>(arrivals.size() + 1);
  }
  MixModels(arrivals, vectors().parameters);
}

// ---- catalogue entry ----

namespace {

// On average s members send to a node in a round. More than this send to it
// less than once in 10^12 rounds: the tail of a Poisson variable of mean s.
int64_t MostSenders(const Knobs& knobs, int64_t degree) {
  const auto s = static_cast<double>(knobs.Integer("s"));
  const double most = s + 10 * std::sqrt(s) + 10;
  return most < static_cast<double>(degree) ? static_cast<int64_t>(most)
                                            : degree;
}

}  // namespace

AlgorithmInfo EpidemicInfo() {
  return {
      .name = "epidemic",
      .summary =
          "Send to s random members, average the models that arrive, and step",
      .source = "[Epidemic] EL-Local",
      .caveats =
          "The number of models that arrive differs from round to round, and "
          "the "
          "mean of all models moves with it; a larger s makes it steadier.",
      .create = Create<Epidemic>,
      .exchange = Exchange::kPush,
      .lock_step = true,
      .complete_graph = true,
      .mixes_models = true,
      .edge = PushCost(),
      .heard_at_once = MostSenders,
      .cost =
          "One gradient per round; to each of s peers 4 n bytes as fp32 and "
          "dense, 4 rate n with random coordinates.",
      .own_step = "[Epidemic] is about one plain step in a round",
      .knobs = {PositiveKnob("eta", 0.01, "Step size."),
                {.name = "s",
                 .type = KnobType::kInteger,
                 .default_value = int64_t{2},
                 .min = 1,
                 .shared = true,
                 .noun = KnobNoun::kParticipation,
                 .help = "How many members a node sends to in a round."},
                {.name = "step_first",
                 .type = KnobType::kFlag,
                 .default_value = false,
                 .shared = true,
                 .help = "on: step, send, average, which is the paper's order. "
                         "off: send, average, step."},
                MaxLagKnob()}};
}

}  // namespace dfl::core
