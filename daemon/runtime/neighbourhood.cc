#include "daemon/runtime/neighbourhood.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/core/algorithm/algorithm_info.h"
#include "daemon/core/contract/data_contract.h"
#include "daemon/core/graph/topology.h"

namespace dfl::runtime {
namespace {

using ports::Phase;

// An answer to whether a peer lives takes no longer.
constexpr absl::Duration kPatience = absl::Seconds(1);
// Addresses that a text names.
constexpr size_t kNamed = 4;

// What a peer that could mix does instead; "": nothing.
std::string PhaseText(Phase phase) {
  switch (phase) {
    case Phase::kIdle:
      return "it has not been started (dflctl train start)";
    case Phase::kJoining:
      return "it looks for a model to start from";
    case Phase::kTraining:
    case Phase::kDegraded:
      return "";
    case Phase::kPaused:
      return "it is paused";
    case Phase::kFinished:
      return "it has finished";
    case Phase::kStopped:
      return "it was stopped";
    case Phase::kFailed:
      return "its training has failed";
  }
  return "";
}

}  // namespace

void Neighbourhood::BeginRun() {
  marks_.clear();
  for (const auto& [id, peer] : peers_.all()) {
    if (own_.run.IsMember(id)) {
      marks_[id] = {peer.models_sent, peer.models_received};
    }
  }
  missed_.clear();
  asked_.clear();
}

void Neighbourhood::OnMissed(const std::vector<NodeId>& peers) {
  for (const NodeId& peer : peers) missed_[peer] = loop_.Now();
}

// ------------------------------------------------------------ who they are --

bool Neighbourhood::HasAny() const {
  const core::AlgorithmInfo* algorithm = own_.run.algorithm();
  if (!own_.run.has_plan() || algorithm == nullptr ||
      (algorithm->exchange == core::Exchange::kNone &&
       !algorithm->gives_mass)) {
    return false;
  }
  // Where the graph varies, a round may have none.
  return core::TopologyVaries(own_.run.plan().topology)
             ? own_.run.plan().members.size() > 1
             : !own_.run.node().neighbours.empty();
}

std::vector<NodeId> Neighbourhood::Members() const {
  std::vector<NodeId> names;
  if (!HasAny()) return names;
  if (core::TopologyVaries(own_.run.plan().topology)) {
    for (const core::MemberSpec& member : own_.run.plan().members) {
      if (!(member.node == own_.self)) names.push_back(member.node);
    }
    return names;
  }
  for (const core::Neighbour& neighbour : own_.run.node().neighbours) {
    names.push_back(neighbour.node);
  }
  return names;
}

int64_t Neighbourhood::ModelsOf(const NodeId& id,
                                const PeerTable::Peer& peer) const {
  const auto found = marks_.find(id);
  const Mark before = found == marks_.end() ? Mark() : found->second;
  return own_.run.MayPush(id) ? peer.models_received - before.received
                              : peer.models_sent - before.sent;
}

int64_t Neighbourhood::Exchanged() const {
  int64_t models = 0;
  for (const auto& [id, peer] : peers_.all()) {
    if (own_.run.IsMember(id)) models += ModelsOf(id, peer);
  }
  return models;
}

bool Neighbourhood::ExchangedWith(const NodeId& peer) const {
  const auto known = peers_.all().find(peer);
  return known != peers_.all().end() && own_.run.IsMember(peer) &&
         ModelsOf(peer, known->second) > 0;
}

bool Neighbourhood::FinishedWithUs(const NodeId& peer) const {
  // Its daemon may have ended since.
  const auto known = peers_.all().find(peer);
  return known != peers_.all().end() &&
         known->second.state.phase == Phase::kFinished &&
         known->second.state.run_id == own_.run.plan().run_id &&
         ExchangedWith(peer);
}

const PeerTable::Peer* Neighbourhood::Known(const NodeId& peer) const {
  const auto found = peers_.all().find(peer);
  return found == peers_.all().end() || !found->second.known ? nullptr
                                                             : &found->second;
}

// ----------------------------------------------------------- who is silent --

void Neighbourhood::AskTheSilent(absl::Duration long_ago) {
  const absl::Time now = loop_.Now();
  for (const NodeId& peer : Members()) {
    const auto link = links_.peers().find(peer);
    if (link == links_.peers().end() || link->second.link == 0) continue;
    const absl::Time heard = link->second.heard;
    const auto missed = missed_.find(peer);
    const bool has_missed = missed != missed_.end() && missed->second > heard;
    if (!has_missed && now < heard + long_ago) continue;
    const auto asked = asked_.find(peer);
    if (asked != asked_.end() && asked->second > heard) continue;
    const PeerTable::Peer* known = Known(peer);
    // One that tells no contract may not know the question; of one that does
    // not train nothing is waited for.
    if (known == nullptr || known->state.contract == core::ContractDigest{} ||
        !PhaseText(known->state.phase).empty()) {
      continue;
    }
    asked_[peer] = now;
    (void)links_.Send(peer, ports::ContractWant{});
  }
}

bool Neighbourhood::IsSilent(const NodeId& peer) const {
  const auto asked = asked_.find(peer);
  const auto link = links_.peers().find(peer);
  if (asked == asked_.end() || link == links_.peers().end()) return false;
  return asked->second > link->second.heard &&
         loop_.Now() >= asked->second + kPatience;
}

// ----------------------------------------------------------- disagreements --

void Neighbourhood::Compare(const NodeId& peer) {
  const PeerTable::Peer* known = Known(peer);
  const bool may_know =
      known != nullptr && own_.run.has_plan() && own_.run.IsMember(peer);
  contracts_.Compare(peer, own_.run.contract_digest(),
                     may_know ? known->state.contract : core::ContractDigest{});
}

std::string Neighbourhood::Disagreement(const NodeId& peer,
                                        std::string* cause) const {
  const RunInForce& run = own_.run;
  const PeerTable::Peer* known = Known(peer);
  // Where one side has nothing, there is nothing to compare.
  if (known == nullptr || known->state.run_id.empty() || !run.has_plan() ||
      !run.contract() || !run.IsMember(peer)) {
    return "";
  }
  const ports::StateFrame& state = known->state;
  std::vector<std::string> differences;
  if (state.run_id != run.plan().run_id) {
    differences.push_back(
        absl::StrCat("run: ", run.plan().run_id, " here, ", state.run_id,
                     " there; apply one plan to both (dflctl plan apply)"));
  }
  for (const core::ContractField field :
       core::Differences(run.contract_digest(), state.contract)) {
    differences.push_back(contracts_.Difference(peer, field));
  }
  const std::string& algorithm = run.plan().algorithm.name;
  if (state.algorithm != algorithm) {
    differences.push_back(absl::StrCat("algorithm: ", algorithm, " here, ",
                                       state.algorithm,
                                       " there; set algorithm of the plan"));
  }
  if (differences.empty()) return "";
  if (cause != nullptr) {
    *cause = absl::StrCat(run.plan().run_id, " ", state.run_id, " ",
                          absl::StrJoin(run.contract_digest(), " "), " ",
                          absl::StrJoin(state.contract, " "), " ", algorithm,
                          " ", state.algorithm);
  }
  return absl::StrJoin(differences, "; ");
}

std::vector<std::string> Neighbourhood::Differing(const NodeId& peer) const {
  std::vector<std::string> names;
  const PeerTable::Peer* known = Known(peer);
  if (known == nullptr || known->state.run_id.empty() || !own_.run.contract()) {
    return names;
  }
  for (const core::ContractField field :
       core::Differences(own_.run.contract_digest(), known->state.contract)) {
    names.emplace_back(core::FieldName(field));
  }
  return names;
}

// ----------------------------------------------------------------- why not --

std::string Neighbourhood::WhyNotLinked(const NodeId& peer) const {
  std::vector<std::string> causes;
  for (const auto& [name, address] : links_.addresses()) {
    if (causes.size() == kNamed) break;
    if (address.node == peer || address.node.empty()) {
      if (!address.last_error.empty()) {
        causes.push_back(address.last_error);
      } else if (address.dialling) {
        causes.push_back(absl::StrCat("dialling ", name, " goes on"));
      }
    } else if (!own_.run.IsMember(address.node)) {
      causes.push_back(absl::StrCat(name, " is ", address.node.name(),
                                    ", which is no member of this plan"));
    }
  }
  const auto link = links_.peers().find(peer);
  if (causes.empty() && link != links_.peers().end() &&
      !link->second.last_error.empty()) {
    causes.push_back(link->second.last_error);
  }
  if (causes.empty()) {
    causes.emplace_back(
        "no address of it is dialled here, and it has not dialled");
  }
  return absl::StrCat("it is not linked: ", absl::StrJoin(causes, "; "));
}

std::string Neighbourhood::WhyNot(const NodeId& neighbour) const {
  if (!links_.IsUp(neighbour)) return WhyNotLinked(neighbour);
  const PeerTable::Peer* peer = Known(neighbour);
  if (peer == nullptr) return "it is linked and has not said its state";
  if (peer->state.run_id.empty()) return "it has no plan yet";
  const std::string disagreement = Disagreement(neighbour, nullptr);
  if (!disagreement.empty()) return disagreement;
  if (IsSilent(neighbour) || peers_.IsSilent(neighbour)) {
    return "it is linked and silent: it, or the network to it, is frozen";
  }
  if (peer->held) {
    return "it loses its memory again and again, and takes part once in 30 s: "
           "why does it not stay up?";
  }
  // What kept one apart whose run is over says more than that it is over.
  const Phase phase = peer->state.phase;
  const bool over = phase == Phase::kFinished || phase == Phase::kStopped ||
                    phase == Phase::kFailed;
  const std::string text = PhaseText(phase);
  if (!peer->refusal.empty() && (text.empty() || over)) {
    return absl::StrCat("its messages are refused: ", peer->refusal);
  }
  return text;
}

}  // namespace dfl::runtime
