#include "daemon/core/algorithms/fedavg.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/core/algorithm/network.h"

namespace dfl::core {

FedavgPlus::FedavgPlus(const AlgorithmContext& context)
    : Decefl(context),
      fine_tunes_from_(plan().knobs.Integer("fine_tune_from")) {}

void FedavgPlus::OnPlanChanged() {
  Decefl::OnPlanChanged();
  fine_tunes_from_ = plan().knobs.Integer("fine_tune_from");
}

std::vector<NodeId> FedavgPlus::Receivers() const {
  return FineTunes() ? std::vector<NodeId>() : Decefl::Receivers();
}

std::vector<NodeId> FedavgPlus::Senders() const {
  return FineTunes() ? std::vector<NodeId>() : Decefl::Senders();
}

void FedavgPlus::Mix(std::vector<PushBarrier::Arrival> arrivals) {
  if (FineTunes()) arrivals.clear();  // late ones of the last average
  Decefl::Mix(std::move(arrivals));
}

void FedavgPlus::MoveTo(int64_t k) {
  Decefl::MoveTo(std::max(step(), std::min(k, fine_tunes_from_)));
}

// ---- catalogue entry ----

namespace {

std::vector<std::string> WarnOfFineTuning(const Network& network,
                                          const AnyGraph& /*window*/) {
  const int64_t from = network.knobs.Integer("fine_tune_from");
  const bool local = network.knobs.Text("form") == "local";
  double rounds = std::numeric_limits<double>::infinity();
  const char* key = "";
  const auto ends = [&](double after, const char* by) {
    if (after <= 0 || after >= rounds) return;
    rounds = after;
    key = by;
  };
  ends(static_cast<double>(network.stop_rounds), "stop.rounds");
  if (local) {
    ends(std::ceil(network.stop_epochs /
                   static_cast<double>(network.knobs.Integer("E"))),
         "stop.epochs");
  } else {
    ends(static_cast<double>(network.stop_steps), "stop.steps");
  }
  if (rounds > static_cast<double>(from)) return {};
  return {absl::StrCat("algorithm.knobs.fine_tune_from: ", from,
                       ", but the run ends after ", rounds, " rounds (", key,
                       "), so no node fine-tunes; lower the one or raise the "
                       "other")};
}

}  // namespace

AlgorithmInfo FedavgInfo() {
  AlgorithmInfo info = DeceflInfo();
  info.name = "fedavg";
  info.summary = "Federated averaging without a server: everyone with everyone";
  info.source = "[DeceFL] eq. (8), supplement eq. (17)";
  info.caveats =
      "Every node sends its model to all others: m (m-1) messages per round, "
      "where swarm sends 2 (m-1). What a node learns in a round reaches the "
      "others in the next. To average the models after the local steps of "
      "the same round, take dfedavgm with theta 0 on the complete graph.";
  info.complete_graph = true;
  for (KnobSpec& knob : info.knobs) {
    if (knob.name == "form") knob.default_value = std::string("local");
  }
  return info;
}

AlgorithmInfo FedavgPlusInfo() {
  AlgorithmInfo info = FedavgInfo();
  info.name = "fedavg+";
  info.summary = "Federated averaging, then local fine-tuning on every node";
  info.source = "baseline of [thesis] ch. 4";
  info.caveats =
      "Nodes end with different models. A node that joins while others "
      "fine-tune starts from one of their models.";
  info.create = Create<FedavgPlus>;
  info.warnings = WarnOfFineTuning;
  info.cost += " From round fine_tune_from on nothing is sent.";
  info.pace += " Rounds of fine-tuning count like others.";
  info.knobs.push_back(
      {.name = "fine_tune_from",
       .type = KnobType::kInteger,
       .default_value = int64_t{100},
       .min = 0,
       .unit = "rounds",
       .shared = true,
       .noun = KnobNoun::kPeriod,
       .help = "The first round in which every node trains its own model and "
               "exchanges nothing."});
  return info;
}

}  // namespace dfl::core
