#include "daemon/core/algorithms/swarm.h"

#include <algorithm>
#include <utility>

#include "daemon/core/algorithms/fedavg.h"

namespace dfl::core {

Swarm::Swarm(const AlgorithmContext& context, Decisions& decisions)
    : Decefl(context), decisions_(decisions) {}

void Swarm::BeginRound() {
  const std::vector<NodeId> members = CompleteMembers(plan());
  leader_ = members[decisions_.ChooseTogether(
      plan().seed, "leader", step(), static_cast<int64_t>(members.size()),
      1)[0]];
}

std::vector<NodeId> Swarm::Receivers() const {
  return Leads() ? std::vector<NodeId>() : std::vector<NodeId>{leader_};
}

std::vector<NodeId> Swarm::Senders() const {
  return Leads() ? Decefl::Senders() : std::vector<NodeId>{leader_};
}

absl::Duration Swarm::Deadline() const {
  return Leads() ? Decefl::Deadline() : 2 * Decefl::Deadline();
}

void Swarm::Mix(std::vector<PushBarrier::Arrival> arrivals) {
  if (!Leads()) {
    arrivals.erase(std::remove_if(arrivals.begin(), arrivals.end(),
                                  [this](const PushBarrier::Arrival& a) {
                                    return a.from != leader_;
                                  }),
                   arrivals.end());
    for (PushBarrier::Arrival& mean : arrivals) mean.weight = 1;
  }
  Decefl::Mix(std::move(arrivals));
}

void Swarm::AfterMix(Actions& actions) {
  if (!Leads()) return;
  std::vector<NodeId> others = Decefl::Receivers();
  if (!others.empty()) {
    actions.Do(Push{std::move(others), step(), mix()});
  }
}

// ---- catalogue entry ----

AlgorithmInfo SwarmInfo() {
  AlgorithmInfo info = FedavgInfo();
  info.name = "swarm";
  info.summary = "Federated averaging through a leader drawn anew every round";
  info.source = "[Swarm] Methods; [DeceFL] eq. (8)";
  info.caveats =
      "A round has two hops, so it waits up to twice deadline.exchange. When "
      "its leader is down, nobody mixes in that round.";
  info.create = Create<Swarm>;
  info.mixes_models = false;  // but for the leader's, which nobody checks
  info.dense_only = true;
  info.why_dense = "the leader's whole model replaces the others'";
  info.cost =
      "A round takes one gradient (form gradient) or E epochs of gradients "
      "(form local); from each node to the leader 4 n bytes as fp32, and 4 n "
      "back.";
  // A mean of another round is of no use.
  info.knobs.erase(
      std::remove_if(info.knobs.begin(), info.knobs.end(),
                     [](const KnobSpec& k) { return k.name == "max_lag"; }),
      info.knobs.end());
  return info;
}

}  // namespace dfl::core
