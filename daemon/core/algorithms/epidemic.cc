#include "daemon/core/algorithms/epidemic.h"
#include "daemon/core/algorithm/algorithm_info.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/core/vector/flat_vector.h"

namespace dfl::core {
namespace {

// A node is chosen by s members a round on average. By more than this it is less
// than once in 10^12 rounds (the tail of a Poisson variable of mean s).
int64_t MostSenders(const Knobs& knobs, int64_t degree) {
  const auto s = static_cast<double>(knobs.Integer("s"));
  const double most = s + 10 * std::sqrt(s) + 10;
  return most < static_cast<double>(degree) ? static_cast<int64_t>(most)
                                            : degree;
}

}  // namespace

AlgorithmInfo EpidemicInfo() {
  AlgorithmInfo info;
  info.name = "epidemic";
  info.summary = "Send to s random members, average what came, and step";
  info.source = "[Epidemic] EL-Local";
  info.caveats =
      "How many models come differs from round to round and the mean of all "
      "models moves with it; a larger s makes it steadier.";
  info.exchange = Exchange::kPush;
  info.lock_step = true;
  info.complete_graph = true;
  info.edge = PushCost();
  info.heard_at_once = MostSenders;
  info.cost =
      "One gradient a round; to each of s peers 4 n bytes as fp32 and "
      "dense, 4 rate n with random coordinates.";
  KnobSpec s;
  s.name = "s";
  s.type = KnobType::kInteger;
  s.default_value = int64_t{2};
  s.min = 1;
  s.shared = true;
  s.noun = KnobNoun::kParticipation;
  s.help = "How many members a node sends to in a round.";
  KnobSpec step_first;
  step_first.name = "step_first";
  step_first.type = KnobType::kFlag;
  step_first.default_value = false;
  step_first.shared = true;
  step_first.help =
      "Step, send and average (the paper's order) instead of send, average and "
      "step.";
  info.knobs = {PositiveKnob("eta", 0.01, "Step size."), s, step_first,
                MaxLagKnob()};
  return info;
}

Epidemic::Epidemic(AlgorithmContext context, Decisions& decisions)
    : PushRounds(std::move(context)), decisions_(decisions) {}

PushRounds::Order Epidemic::RoundOrder() const {
  return plan().knobs.Flag("step_first") ? Order::kTrainPushMix
                                         : Order::kPushMixTrain;
}

void Epidemic::BeginRound() {
  moved_ = false;
  receivers_.clear();
  senders_.clear();
  const std::vector<NodeId> members = CompleteMembers(plan());
  const auto others = static_cast<int64_t>(members.size()) - 1;
  const int64_t s = std::min(plan().knobs.Integer("s"), others);
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
  MixArrivals(arrivals, vectors().parameters, vectors().buffers);
}

}  // namespace dfl::core
