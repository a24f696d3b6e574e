// What the node tells about itself.
#include "absl/strings/str_cat.h"
#include "daemon/runtime/node.h"

namespace dfl::runtime {
namespace {

std::string FormatText(const core::MessageFormat& format) {
  return absl::StrCat(core::ToString(format.coordinates), " ",
                      core::ToString(format.values));
}

}  // namespace

NodeStatus Node::Status() const {
  NodeStatus status;
  status.node = options_.self;
  status.incarnation = options_.incarnation;
  status.phase = phase_;
  status.phase_reason = phase_reason_;
  if (run_.has_plan()) {
    status.run_id = run_.plan().run_id;
    status.plan_version = run_.plan().version;
    status.algorithm = run_.plan().algorithm.name;
    status.knobs = run_.node().knobs.values();
    status.topology = run_.plan().topology.kind;
    status.weights = run_.plan().topology.weights;
    status.spectral_gap = run_.SpectralGap();
    status.member_count = static_cast<int64_t>(run_.plan().members.size());
    status.format = FormatText(run_.plan().codec.format);
    status.stop_steps = run_.plan().stop.steps;
  }
  if (pending_) status.pending_plan_version = pending_->plan->version;
  if (const ports::Trainer* trainer = learner_.trainer()) {
    const ports::ModelInfo& model = trainer->model();
    status.model = model.kind;
    status.fingerprint = model.fingerprint;
    status.parameter_count = model.parameter_count;
    status.buffer_count = model.buffer_count;
    status.train_rows = trainer->data().train_rows;
    status.test_rows = trainer->data().test_rows;
  }
  if (const core::Algorithm* algorithm = algorithm_.get()) {
    status.step = algorithm->step();
    status.gauges = algorithm->Gauges();
  }
  status.gradients = learner_.gradients();
  status.loss = progress_.loss();
  if (evaluations_.last) {
    status.evaluated = true;
    status.evaluated_step = evaluations_.step;
    status.evaluation = *evaluations_.last;
  }
  status.steps_per_second = progress_.StepsPerSecond();
  status.training_time = progress_.TrainingTime(loop_.Now());
  status.longest_step_gap = progress_.longest_gap();

  status.dense_bytes_sent = peers_.dense_bytes_sent();
  status.models_sent = peers_.models_sent();
  status.models_received = peers_.models_received();
  status.missed = peers_.missed();
  status.rejected = peers_.rejected();
  status.last_error = last_error_;

  std::map<NodeId, PeerStatus> peers;
  for (const core::Neighbour& neighbour : run_.node().neighbours) {
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
  for (const auto& [node, state] : peers_.all()) {
    PeerStatus& peer = peers[node];
    peer.phase = state.state.phase;
    peer.step = state.state.step;
    peer.plan_version = state.state.plan_version;
    // Both train and nothing is exchanged: nobody else will say why.
    const bool trains = peer.phase == ports::Phase::kTraining ||
                        peer.phase == ports::Phase::kDegraded;
    if (peer.linked && peer.last_error.empty() && trains && Running()) {
      if (const auto mismatch = peers_.Mismatch(state, true)) {
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
