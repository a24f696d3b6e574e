#include "daemon/web/page/recorder.h"

#include <algorithm>
#include <utility>

namespace dfl::web {
namespace {

std::optional<double> Since(double at_s, const std::optional<double>& then_s) {
  if (!then_s.has_value()) return std::nullopt;
  return std::max(0.0, at_s - *then_s);
}

}  // namespace

page::Point PointOf(const runtime::NodeStatus& status, double at_s) {
  using page::Column;
  page::Point point;
  point.at_s = at_s;
  point[Column::kStep] = static_cast<double>(status.step);
  point[Column::kRound] = static_cast<double>(status.round);
  if (status.loss.has_value()) point[Column::kLoss] = *status.loss;
  if (status.evaluated) {
    point[Column::kTestLoss] = status.evaluation.loss;
    if (status.evaluation.accuracy.has_value()) {
      point[Column::kAccuracy] = *status.evaluation.accuracy;
    }
  }
  const auto consensus = status.gauges.find("consensus_distance");
  if (consensus != status.gauges.end()) {
    point[Column::kConsensus] = consensus->second;
  }
  point[Column::kBytesSent] = static_cast<double>(status.bytes_sent);
  point[Column::kDenseBytesSent] = static_cast<double>(status.dense_bytes_sent);
  point[Column::kBytesReceived] = static_cast<double>(status.bytes_received);
  point[Column::kStepsPerSecond] = status.steps_per_second;
  double mixing = 0;
  std::optional<int64_t> lag;
  for (const runtime::PeerStatus& peer : status.peers) {
    if (!peer.neighbour) continue;
    if (peer.mixing) ++mixing;
    if (peer.linked) {
      lag = std::max(lag.value_or(status.step - peer.step),
                     status.step - peer.step);
    }
  }
  point[Column::kMixing] = mixing;
  if (lag.has_value()) point[Column::kLag] = static_cast<double>(*lag);
  return point;
}

void Recorder::Take(const runtime::NodeStatus& status, double at_s) {
  history_.Add(PointOf(status, at_s));
  std::map<NodeId, Seen> now;
  for (const runtime::PeerStatus& peer : status.peers) {
    const auto known = peers_.find(peer.node);
    Seen seen = known == peers_.end() ? Seen() : known->second;
    if (peer.bytes_received != seen.bytes) {
      seen.bytes = peer.bytes_received;
      seen.bytes_at_s = at_s;
    }
    if (peer.models_received != seen.models) {
      seen.models = peer.models_received;
      seen.models_at_s = at_s;
    }
    now[peer.node] = seen;
  }
  peers_ = std::move(now);
}

std::map<NodeId, Recorder::Age> Recorder::Ages(double at_s) const {
  std::map<NodeId, Age> ages;
  for (const auto& [node, seen] : peers_) {
    ages[node] = {Since(at_s, seen.bytes_at_s), Since(at_s, seen.models_at_s)};
  }
  return ages;
}

}  // namespace dfl::web
