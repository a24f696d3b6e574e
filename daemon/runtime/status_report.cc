#include "daemon/runtime/status_report.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/core/contract/data_contract.h"
#include "daemon/core/plan/plan_topology.h"
#include "daemon/core/vector/message_format.h"

namespace dfl::runtime {
namespace {

std::string FormatText(const core::MessageFormat& format) {
  return absl::StrCat(core::ToString(format.coordinates), " ",
                      core::ToString(format.values));
}

void ReportPlan(const RunInForce& run, NodeStatus& status) {
  if (!run.has_plan()) return;
  const core::RunPlan& plan = run.plan();
  status.run_id = plan.run_id;
  status.plan_version = plan.version;
  status.algorithm = plan.algorithm.name;
  status.knobs = run.node().knobs.values();
  status.topology = core::KindInForce(plan);
  status.weights = plan.topology.weights;
  status.spectral_gap = run.SpectralGap();
  status.member_count = static_cast<int64_t>(plan.members.size());
  status.format = FormatText(plan.codec.format);
  status.stop_steps = plan.stop.steps;
  status.stop_rounds = plan.stop.rounds;
  status.stop_epochs = plan.stop.epochs;
}

void ReportModel(const RunInForce& run, const LearnerDriver& learner,
                 NodeStatus& status) {
  status.gradients = learner.gradients();
  const ports::Trainer* trainer = learner.trainer();
  if (trainer == nullptr) return;
  const ports::ModelInfo& model = trainer->model();
  status.model = model.kind;
  const core::ContractDigest& digest = run.contract_digest();
  for (size_t i = 0; i < digest.size(); ++i) {
    status.contract[std::string(core::FieldName(core::kContractFields[i]))] =
        absl::StrFormat("%016x", digest[i]);
  }
  status.parameter_count = model.parameter_count;
  status.buffer_count = model.buffer_count;
  status.train_rows = trainer->data().train_rows;
  status.test_rows = trainer->data().test_rows;
}

void ReportProgress(const OwnState& own, const Evaluations& evaluations,
                    absl::Time now, NodeStatus& status) {
  if (const core::Algorithm* algorithm = own.algorithm.get()) {
    status.step = algorithm->pace().steps;
    status.round = algorithm->pace().rounds;
    status.epochs = own.Epochs();
    status.gauges = algorithm->Gauges();
  }
  status.loss = own.progress.loss();
  if (evaluations.last()) {
    status.evaluated = true;
    status.evaluated_step = evaluations.step();
    status.evaluation = *evaluations.last();
  }
  status.steps_per_second = own.progress.StepsPerSecond();
  status.training_time = own.progress.TrainingTime(now);
  status.longest_step_gap = own.progress.longest_gap();
}

void ReportTraffic(const PeerTable& peers, NodeStatus& status) {
  status.dense_bytes_sent = peers.dense_bytes_sent();
  status.models_sent = peers.models_sent();
  status.models_received = peers.models_received();
  status.missed = peers.missed();
  status.rejected = peers.rejected();
  status.far_models = peers.far_models();
  if (const std::optional<double> distance = peers.ConsensusDistance()) {
    status.gauges["consensus_distance"] = *distance;
  }
}

// What a peer's iteration comes to in steps, if it counts as this node does.
int64_t StepsOf(const OwnState& own, int64_t iteration) {
  const core::Algorithm* algorithm = own.algorithm.get();
  if (algorithm == nullptr) return iteration;
  return std::max<int64_t>(0, algorithm->PaceAt(iteration).steps);
}

void ReportPeer(const PeerTable::Peer& known, const OwnState& own,
                PeerStatus& peer) {
  peer.phase = known.state.phase;
  peer.step = StepsOf(own, known.state.step);
  peer.plan_version = known.state.plan_version;
  peer.models_sent = known.models_sent;
  peer.models_received = known.models_received;
  peer.missed = known.missed;
  peer.rejected = known.rejected;
}

// Whether a peer and this node learn together, and why not.
void ReportMixing(const Together& together, PeerStatus& peer) {
  peer.disagrees = together.neighbourhood().Differing(peer.node);
  if (!peer.neighbour) return;
  peer.not_mixing = together.NotMixing(peer.node);
  peer.mixing = peer.not_mixing.empty();
}

// Neighbours, and whoever else is linked or was heard of.
void ReportPeers(const ReportedParts& parts, NodeStatus& status) {
  std::map<NodeId, PeerStatus> peers;
  for (const core::Neighbour& neighbour : parts.own.run.node().neighbours) {
    PeerStatus& peer = peers[neighbour.node];
    peer.neighbour = true;
    peer.weight = neighbour.weight;
  }
  for (const auto& [node, link] : parts.links.peers()) {
    PeerStatus& peer = peers[node];
    peer.linked = link.link != 0;
    peer.address = link.address;
    peer.bytes_sent = link.bytes_sent;
    peer.bytes_received = link.bytes_received;
    peer.last_error = link.last_error.empty() ? parts.links.rivals().Text(node)
                                              : link.last_error;
    status.bytes_sent += link.bytes_sent;
    status.bytes_received += link.bytes_received;
  }
  for (const auto& [node, known] : parts.peers.all()) {
    ReportPeer(known, parts.own, peers[node]);
  }
  for (auto& [node, peer] : peers) {
    peer.node = node;
    ReportMixing(parts.together, peer);
    status.peers.push_back(std::move(peer));
  }
}

}  // namespace

NodeStatus ReportStatus(const ReportedParts& parts, absl::Time now) {
  NodeStatus status;
  status.node = parts.own.self;
  status.phase = parts.own.phases.now();
  status.phase_reason = parts.own.phases.reason();
  status.last_error = parts.training.last_error();
  status.alone = parts.together.alone();
  status.failed_gradients = parts.training.health().failed();
  status.skipped_batches = parts.training.health().passed_over();
  if (parts.pending) status.pending_plan_version = parts.pending->version;
  ReportPlan(parts.own.run, status);
  ReportModel(parts.own.run, parts.training.learner(), status);
  ReportProgress(parts.own, parts.evaluations, now, status);
  ReportTraffic(parts.peers, status);
  ReportPeers(parts, status);
  return status;
}

}  // namespace dfl::runtime
