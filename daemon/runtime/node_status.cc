// What the node tells about itself.
#include "absl/strings/str_cat.h"
#include "daemon/core/graph/mixing.h"
#include "daemon/core/plan/plan_topology.h"
#include "daemon/runtime/node.h"

namespace dfl::runtime {
namespace {

std::string FormatText(const core::MessageFormat& format) {
  return absl::StrCat(core::ToString(format.coordinates), " ",
                      core::ToString(format.values));
}

}  // namespace

// It is for people; past some hundreds of members it costs too much.
double Node::SpectralGap() const {
  if (spectral_gap_.has_value()) return *spectral_gap_;
  spectral_gap_ = 0;
  if (plan_->members.size() <= (plan_->topology.directed ? 128U : 256U)) {
    const auto topology = core::DeriveTopology(*plan_);
    if (topology.ok()) spectral_gap_ = core::SpectralGap(*topology);
  }
  return *spectral_gap_;
}

NodeStatus Node::Status() const {
  NodeStatus status;
  status.node = options_.self;
  status.incarnation = options_.incarnation;
  status.phase = phase_;
  status.phase_reason = phase_reason_;
  if (plan_) {
    status.run_id = plan_->run_id;
    status.plan_version = plan_->version;
    status.algorithm = plan_->algorithm.name;
    status.knobs = node_plan_.knobs.values();
    status.topology = plan_->topology.kind;
    status.weights = plan_->topology.weights;
    status.spectral_gap = SpectralGap();
    status.member_count = static_cast<int64_t>(plan_->members.size());
    status.format = FormatText(plan_->codec.format);
    status.stop_steps = plan_->stop.steps;
  }
  if (pending_) status.pending_plan_version = pending_->plan->version;
  if (trainer_) {
    const ports::ModelInfo& model = trainer_->model();
    status.model = model.kind;
    status.fingerprint = model.fingerprint;
    status.parameter_count = model.parameter_count;
    status.buffer_count = model.buffer_count;
    status.train_rows = trainer_->data().train_rows;
    status.test_rows = trainer_->data().test_rows;
  }
  if (algorithm_) {
    status.step = algorithm_->step();
    status.gauges = algorithm_->Gauges();
  }
  status.gradients = gradients_;
  status.loss = progress_.loss();
  if (evaluation_) {
    status.evaluated = true;
    status.evaluated_step = evaluated_step_;
    status.evaluation = *evaluation_;
  }
  status.steps_per_second = progress_.StepsPerSecond();
  status.training_time = progress_.TrainingTime(loop_.Now());
  status.longest_step_gap = progress_.longest_gap();

  status.dense_bytes_sent = dense_bytes_sent_;
  status.models_sent = models_sent_;
  status.models_received = models_received_;
  status.missed = missed_;
  status.rejected = rejected_;
  status.last_error = last_error_;

  std::map<NodeId, PeerStatus> peers;
  for (const core::Neighbour& neighbour : node_plan_.neighbours) {
    PeerStatus& peer = peers[neighbour.node];
    peer.neighbour = true;
    peer.weight = neighbour.weight;
  }
  for (const auto& [node, link] : links_.peers()) {
    PeerStatus& peer = peers[node];
    peer.linked = link.link != 0;
    peer.address = link.address;
    peer.bytes_sent = link.bytes_sent;
    peer.bytes_received = link.bytes_received;
    peer.last_error = link.last_error;
    status.bytes_sent += link.bytes_sent;
    status.bytes_received += link.bytes_received;
  }
  for (const auto& [node, state] : peers_) {
    PeerStatus& peer = peers[node];
    peer.phase = state.state.phase;
    peer.step = state.state.step;
    peer.plan_version = state.state.plan_version;
    // Both train and nothing is exchanged: nobody else will say why.
    const bool trains = peer.phase == ports::Phase::kTraining ||
                        peer.phase == ports::Phase::kDegraded;
    if (peer.linked && peer.last_error.empty() && trains && Running()) {
      if (const auto mismatch = Mismatch(node, true)) {
        peer.last_error = mismatch->text;
      }
    }
    peer.models_sent = state.models_sent;
    peer.models_received = state.models_received;
    peer.missed = state.missed;
    peer.rejected = state.rejected;
  }
  for (auto& [node, peer] : peers) {
    peer.node = node;
    status.peers.push_back(std::move(peer));
  }
  return status;
}

}  // namespace dfl::runtime
