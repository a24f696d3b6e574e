#include "daemon/core/rounds/mass_rounds.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "daemon/core/algorithm/dispatch.h"
#include "daemon/core/algorithm/state_fields.h"
#include "daemon/core/vector/flat_vector.h"

namespace dfl::core {

MassRounds::MassRounds(AlgorithmContext context,
                       std::vector<Neighbour> NodePlan::* heard,
                       MassLedger::Merge merge)
    : PushAlgorithm(context, heard), ledger_(merge, context.mass_code) {}

void MassRounds::OnStarted() {
  in_round_ = waiting_ = false;
  skipped_.clear();
  ledger_.Reset();
  ResetState();
  ResetMass();
}

void MassRounds::OnStepBegins(Actions& actions) {
  in_round_ = true;
  barrier().BeginRound(barrier().peers());
  BeginRound(actions);
}

std::vector<Neighbour> MassRounds::Up(
    const std::vector<Neighbour>& neighbours) const {
  std::vector<Neighbour> up;
  for (const Neighbour& neighbour : neighbours) {
    if (barrier().IsUp(neighbour.node)) up.push_back(neighbour);
  }
  return up;
}

void MassRounds::GiveShares(const std::vector<Neighbour>& to,
                            absl::Span<const float> vector,
                            absl::Span<float> conserved, double scalar) {
  std::map<double, MassLedger::Share> by_weight;
  for (const Neighbour& neighbour : to) {
    MassLedger::Share& share = by_weight[neighbour.weight];
    if (!share) {
      auto made = std::make_shared<FlatVector>(vector.size());
      const auto weight = static_cast<float>(neighbour.weight);
      for (size_t l = 0; l < vector.size(); ++l) {
        (*made)[l] = weight * vector[l];
      }
      share = std::move(made);
    }
    ledger_.Give(neighbour.node, step(), share, neighbour.weight * scalar);
  }
  // Not before: `vector` and `conserved` may be one.
  for (const Neighbour& neighbour : to) {
    AddScaled(-1.0F, *by_weight[neighbour.weight], conserved);
  }
}

void MassRounds::Exchange(Parts parts, const std::vector<Neighbour>& receivers,
                          Actions& actions) {
  parts_ = parts;
  waiting_ = true;
  if (WaitsForModels() && !receivers.empty()) {
    Push push;
    for (const Neighbour& neighbour : receivers) {
      push.peers.push_back(neighbour.node);
    }
    push.round = step();
    actions.Do(std::move(push));
  }
  if (WaitsForMass()) ledger_.Send(actions);
  if (Complete()) {
    EndWait(actions);
  } else {
    actions.Do(WakeAfter{kDeadlineTimer, plan().exchange_deadline,
                         /*for_neighbours=*/true});
  }
}

bool MassRounds::Complete() const {
  const auto lacks = [&](const NodeId& peer) { return Lacks(peer); };
  const auto owes = [&](const NodeId& peer) { return ledger_.Owes(peer); };
  const std::set<NodeId>& awaited = barrier().awaited();
  const std::set<NodeId>& up = barrier().up();
  return std::none_of(awaited.begin(), awaited.end(), lacks) &&
         (!WaitsForMass() || std::none_of(up.begin(), up.end(), owes));
}

bool MassRounds::Skips(const NodeId& peer) const {
  const auto skipped = skipped_.find(peer);
  return skipped != skipped_.end() && skipped->second >= step();
}

bool MassRounds::Lacks(const NodeId& peer) const {
  return !Skips(peer) &&
         ((WaitsForModels() && barrier().Awaits(peer, step())) ||
          (WaitsForMass() && !ledger_.HasOf(peer, step())));
}

void MassRounds::OnTimer(uint64_t timer, Actions& actions) {
  if (timer != kDeadlineTimer || !waiting_) return;
  Missed missed;
  for (const NodeId& peer : barrier().awaited()) {
    if (Skips(peer)) continue;
    ++missed.wanted;
    if (Lacks(peer)) {
      missed.peers.push_back(peer);
    } else {
      ++missed.came;
    }
  }
  if (!missed.peers.empty()) actions.Do(std::move(missed));
  EndWait(actions);
}

void MassRounds::MixIfComplete(Actions& actions) {
  if (waiting_ && Complete()) EndWait(actions);
}

void MassRounds::EndWait(Actions& actions) {
  waiting_ = false;
  actions.Do(CancelTimer{kDeadlineTimer});
  Arrivals arrivals;
  if (WaitsForModels()) arrivals = barrier().Take(step(), max_lag());
  AfterExchange(std::move(arrivals), actions);
}

void MassRounds::EndMassRound(Actions& actions) {
  in_round_ = false;
  EndRound(actions);
}

void MassRounds::OnMass(MassEvent event, Actions& actions) {
  Dispatch(
      std::move(event),
      [&](MassArrived e) {
        const NodeId from = e.from;
        if (ledger_.Take(std::move(e))) OnTaken(from);
      },
      [&](const Delivered& e) {
        ledger_.OnDelivered(e);
        ledger_.Send(actions);
      },
      [&](const Skipped& e) {
        int64_t& newest = skipped_[e.from];
        newest = std::max(newest, e.round);
      },
      [&](EpochBegins) {
        ledger_.Reset();
        ResetMass();
      });
  MixIfComplete(actions);
}

void MassRounds::VisitState(StateFields& fields) {
  PushAlgorithm::VisitState(fields);
  ledger_.VisitState(fields, n(), MassLength(static_cast<int64_t>(n())));
  fields.ByNode("skipped", skipped_,
                [&](int64_t& round) { fields.Count("round", round); });
}

std::map<std::string, double> MassRounds::Gauges() const {
  std::map<std::string, double> gauges = {
      {"dropped_late", static_cast<double>(barrier().dropped())},
      {"step_size", StepSize()},
      {"mass_imbalance", ledger_.Imbalance()},
      {"mass_repeats", static_cast<double>(ledger_.repeats())}};
  AddGauges(gauges);
  return gauges;
}

}  // namespace dfl::core
